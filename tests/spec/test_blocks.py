"""Blocks refuse unknown keys and cannot be changed."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec.spec.blocks import Block


class Bounds(Block):
    low: int = 0


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="hihg"):
        Bounds.model_validate({"low": 1, "hihg": 2})


def test_a_block_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Bounds().low = 1  # type: ignore[misc]
