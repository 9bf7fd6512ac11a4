from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rageval_spec.store.memory import MemoryStore


def test_memory_store_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MemoryStore().save("key", pl.DataFrame({"number": [1]}))
    assert list(tmp_path.rglob("*")) == []
