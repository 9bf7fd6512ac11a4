"""The toy of the tests of exchange."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.conftest import toy as toy
from tests.tiny import install, write_spec

__all__ = ["install"]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.1}], reports=["terminal", "json"])
