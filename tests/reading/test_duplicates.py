"""Ids that a file lists twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading import duplicates
from rageval_spec.reading.duplicates import find_twice

HERE = Path(__file__)


def rows(*ids: Any, key: str = "id") -> list[tuple[str, Mapping[str, Any]]]:
    return [(f"f:{line}", {key: query_id}) for line, query_id in enumerate(ids, 1)]


def test_the_first_that_comes_again_is_named_with_both_places() -> None:
    assert find_twice(HERE, rows("a", "b", "c", "b", "a"), ["id"]) == "f:4: the query 'b' is listed twice, first at f:2"
    assert find_twice(HERE, rows(7, "7"), ["id"]) == "f:2: the query '7' is listed twice, first at f:1"


@given(st.lists(st.text("ab", max_size=3)))
def test_only_ids_that_come_again_are_found(ids: list[str]) -> None:
    assert (find_twice(HERE, rows(*ids), ["id"]) is not None) == (len(set(ids)) < len(ids))


def test_rows_without_an_id_and_other_keys_do_not_count() -> None:
    assert find_twice(HERE, rows("a", "a", key="text"), ["id"]) is None
    assert find_twice(HERE, rows(None, None), ["id"]) is None


def test_a_large_or_absent_file_is_left_to_whoever_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_twice(HERE / "none", rows("a", "a"), ["id"]) is None
    monkeypatch.setattr(duplicates, "_MOST_BYTES", 10)
    assert find_twice(HERE, rows("a", "a"), ["id"]) is None


def test_a_damaged_file_is_left_to_whoever_reads_it() -> None:
    def damaged() -> Iterator[tuple[str, Mapping[str, Any]]]:
        yield "f:1", {"id": "a"}
        raise DataError("f:2: not JSON")

    assert find_twice(HERE, damaged(), ["id"]) is None
