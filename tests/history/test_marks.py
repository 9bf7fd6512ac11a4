"""Tables know which results they belong to."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rageval_spec.errors import DataError
from rageval_spec.history.marks import check_marks, make_mark
from rageval_spec.history.results_folder import TABLES, write_results
from tests.answered_evaluation import bridges


def write_table(path: Path, metadata: dict[str, str]) -> Path:
    pl.DataFrame({"a": [1]}).write_parquet(path, metadata=metadata)
    return path


def test_tables_pass_with_the_mark_of_the_results_and_without_any(tmp_path: Path) -> None:
    results = b'{"name": "\xc3\xa4", "values": [0.1, 2]}'
    own, old = write_table(tmp_path / "own", make_mark(results)), write_table(tmp_path / "old", {"other": "x"})
    (tmp_path / "broken").write_bytes(b"text")
    check_marks(results, [own, old, tmp_path / "absent", tmp_path / "broken"])
    check_marks(b'{\r\n "values": [0.1, 2],\r\n "name": "\\u00e4"}', [own])


def test_a_table_of_other_results_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "values.parquet", make_mark(b'{"name": "a"}'))
    with pytest.raises(DataError, match=r"values\.parquet is not of the evaluation in results\.json"):
        check_marks(b'{"name": "b"}', [path])


@pytest.mark.parametrize("name", [name for name in TABLES if name != "baselines.parquet"])
def test_each_table_of_a_folder_is_marked(tmp_path: Path, name: str) -> None:
    write_results(bridges(), tmp_path)
    with pytest.raises(DataError, match=name):
        check_marks(b"{}", [tmp_path / name])
