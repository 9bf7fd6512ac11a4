"""Where the history is, and how it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.history.opening import exists, locate, open_history
from rageval_spec.plugin.secret import Secret
from rageval_spec.spec.history import HistoryNode


def test_the_place_is_that_of_the_spec(tmp_path: Path) -> None:
    assert locate(HistoryNode(use="none"), tmp_path) is None
    assert locate(HistoryNode(use="sqlite"), tmp_path) == tmp_path / ".rageval" / "history.db"
    assert locate(HistoryNode(use="sqlite", path="a.db"), tmp_path) == tmp_path / "a.db"
    url = "postgresql://me:word@host/base"
    assert locate(HistoryNode(use="postgres", url=Secret(url)), tmp_path) == url


def test_reading_does_not_create_a_history(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no history at .*a\.db; rageval-spec run records evaluations"):
        open_history(tmp_path / "a.db", create=False)
    assert not list(tmp_path.iterdir())
    assert not exists(tmp_path / "a.db") and not exists(None) and exists("postgresql://host/base")
