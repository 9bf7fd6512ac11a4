from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.store.folder import FolderStore, Store, open_store

TABLE = pl.DataFrame(
    {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d\x00 é", "d3"], "score": [1.5, -0.0, float("inf")]}
)
KEY = "ab" * 32


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(tmp_path / "store" if request.param == "folder" else None)


def test_a_saved_table_is_loaded(store: Store) -> None:
    assert not store.has(KEY)
    assert store.load(KEY) is None
    store.save(KEY, TABLE)
    assert store.has(KEY)
    loaded = store.load(KEY)
    assert loaded is not None
    assert_frame_equal(loaded, TABLE)


def test_an_empty_table_keeps_its_columns(store: Store) -> None:
    store.save(KEY, TABLE.clear())
    loaded = store.load(KEY)
    assert loaded is not None
    assert_frame_equal(loaded, TABLE.clear())


def test_saving_under_an_existing_key_keeps_the_first_table(store: Store) -> None:
    store.save(KEY, TABLE)
    store.save(KEY, TABLE.head(1))
    loaded = store.load(KEY)
    assert loaded is not None
    assert loaded.height == TABLE.height


def test_version_control_ignores_the_store(tmp_path: Path) -> None:
    FolderStore(tmp_path).save(KEY, TABLE)
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_a_record_is_kept_with_its_table(store: Store) -> None:
    assert store.record(KEY) == {}
    store.save(KEY, TABLE, {"seconds": 1.5, "notes": [{"code": "cut"}]})
    store.save(KEY, TABLE, {"seconds": 9})
    assert store.record(KEY) == {"seconds": 1.5, "notes": [{"code": "cut"}]}


def test_a_forgotten_table_can_be_replaced(store: Store) -> None:
    store.forget(KEY)
    store.save(KEY, TABLE, {"seconds": 1})
    store.forget(KEY)
    assert not store.has(KEY)
    store.save(KEY, TABLE.head(1), {"seconds": 2})
    assert store.record(KEY) == {"seconds": 2}


def test_answers_are_kept_in_the_store(store: Store) -> None:
    store.answers.keep("model", {b"q": b"a"})
    store.close()
    assert store.answers.find("model", [b"q"]) == {b"q": b"a"}
    store.close()
