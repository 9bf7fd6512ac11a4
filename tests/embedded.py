"""Tests with an embedded model are skipped where no package has its weights."""

from __future__ import annotations

import pytest

from rageval_spec.inference.embedded_models import EMBEDDED


def is_installed(name: str) -> bool:
    """Whether the embedded model can be used; no file is read."""
    return EMBEDDED[name].is_installed


def require(name: str) -> None:
    """Skip the test if the model is not installed."""
    if not is_installed(name):
        pytest.skip(f"the embedded model {name} is not installed: {EMBEDDED[name].install}")
