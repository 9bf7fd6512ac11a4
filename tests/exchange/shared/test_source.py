"""The nodes of sources check what a user asks for."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec.exchange.shared.source import WindowNode


def test_a_window_is_checked_when_the_spec_is_read() -> None:
    assert WindowNode(since="7d", until="2026-03-01").since == "7d"
    with pytest.raises(ValidationError, match="is not a moment"):
        WindowNode(since="last week")
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        WindowNode(limit=0)
