"""Tests with an embedded model are skipped where no package has its weights."""

from __future__ import annotations

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.inference.embedded_models import EMBEDDED


def find_problem(name: str) -> str:
    """Why the embedded model cannot be used; "" if it can."""
    try:
        EMBEDDED[name].find_folder()
    except UsageError as error:
        return str(error)
    return ""


def require(name: str) -> None:
    """Skip the test if the model is not installed."""
    if problem := find_problem(name):
        pytest.skip(problem)
