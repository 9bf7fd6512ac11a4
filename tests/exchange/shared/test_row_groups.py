""""""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.connections import list_row_pages
from rageval_spec.exchange.shared.row_groups import Rows, SpooledNode, SpooledSource, TraceRow
from rageval_spec.exchange.shared.spans.spans import nanoseconds_of
from rageval_spec.plugin import Context

PAGES = [
    [{"trace": "a", "id": "1", "time": "2026-03-01T00:00:00Z", "question": "q a"}, {"trace": "b", "id": "3"}],
    [
        {"trace": "b", "id": "2", "time": "2026-03-02T00:00:00Z", "question": "q b"},
        {"id": "9"},
        {"trace": "c", "id": "4"},
    ],
]


class Toy(SpooledSource[SpooledNode]):
    node_type = SpooledNode
    loose = "toy"

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        for page in PAGES:
            yield [("place", row) for row in page]

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        yield from (Trace(TraceLink("toy", dataset), "q"), None)

    def prepare(self, place: str, row: Mapping[str, Any]) -> TraceRow | None:
        return (
            TraceRow(row["trace"], row["id"], nanoseconds_of(row.get("time")) or None, row) if "trace" in row else None
        )

    def assemble(self, rows: Rows) -> Trace | None:
        first = rows[-1]
        question = first.get("question")
        return Trace(TraceLink("toy", first["trace"]), question, started=first.get("time")) if question else None


def read(folder: Path = Path(), **settings: Any) -> tuple[list[str], list[str]]:
    source = Toy(SpooledNode(**settings), Context("toy", folder))
    return [trace.question for trace in source.read()], list(source.remarks())


def test_rows_of_any_page_make_one_trace_and_the_rest_is_counted() -> None:
    questions, remarks = read()
    assert questions == ["q b", "q a"]
    assert "1 trace without a question" in remarks[0]
    assert remarks[1] == "1 toy of no trace that was read left out"


def test_window_and_limit() -> None:
    assert read(since="2026-03-02")[0] == ["q b"]
    assert read(until="2026-03-01T12:00:00Z")[0] == ["q a"]
    assert read(limit=1)[0] == ["q b"]


def test_items_of_a_dataset_need_no_rows() -> None:
    questions, remarks = read(dataset="golden")
    assert (questions, len(remarks)) == (["q"], 1)


def test_files_of_a_folder_are_read_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    for number, page in enumerate(PAGES):
        (tmp_path / "part" / f"{number}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in page))
    (tmp_path / "readme.txt").write_text("nothing")
    assert read(tmp_path, path="part")[0] == ["q b", "q a"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="this folder has no exported files"):
        read(tmp_path, path="empty")


ROW_PAGES = {None: (["a"], "1"), "1": (["b"], "2"), "2": ([], "3")}


def test_an_empty_page_is_the_last() -> None:
    assert list(list_row_pages(lambda asked: ROW_PAGES[asked.get("cursor")], "tool")) == [["a"], ["b"]]


def test_a_cursor_that_comes_again_is_an_error() -> None:
    numbers = count()
    with pytest.raises(ServiceError, match="tool: gave the page 'x' twice"):
        list(list_row_pages(lambda asked: ([next(numbers)], "x"), "tool"))


def test_rows_that_come_again_are_an_error() -> None:
    with pytest.raises(ServiceError, match="tool: gave the same rows twice in a row"):
        list(list_row_pages(lambda asked: (["a"], f"{asked}x"), "tool"))
