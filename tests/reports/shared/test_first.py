from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from rageval_spec.reports.shared import first
from rageval_spec.reports.shared.first import list_first, write_show
from tests.sample_evaluation import make_evaluation


def values(*rows: tuple[str, str, float | None, str]) -> pl.DataFrame:
    """Rows of (system, query, value, status) of the metric map on golden."""
    return pl.DataFrame(
        [("golden", system, "map", query, value, status, None) for system, query, value, status in rows],
        schema={
            **dict.fromkeys(("dataset", "system", "metric", "query_id"), pl.String),
            "value": pl.Float64, "status": pl.String, "reason": pl.String,
        },
        orient="row",
    )  # fmt: skip


def chosen(*rows: tuple[str, str, float | None, str], most: int = 3) -> list[tuple[str, str]]:
    evaluation = replace(make_evaluation(), values=values(*rows))
    return [(card.query_id, card.system) for card, _ in list_first(evaluation, most)]


def test_a_question_appears_once_with_the_system_that_did_worst() -> None:
    rows = [("bm25", "q1", 0.5, "scored"), ("dense", "q1", 0.1, "scored"), ("bm25", "q2", 0.3, "scored")]
    assert chosen(*rows) == [("q1", "dense"), ("q2", "bm25")]


def test_failures_come_first() -> None:
    assert chosen(("bm25", "q1", 0.0, "scored"), ("bm25", "q2", None, "error"))[0] == ("q2", "bm25")


def test_questions_without_fault_are_left_out() -> None:
    assert chosen(("bm25", "q1", 1.0, "scored"), ("bm25", "q2", 0.9, "scored")) == [("q2", "bm25")]


def test_only_the_worst_are_shown() -> None:
    rows = [("bm25", f"q{n}", n / 10, "scored") for n in range(8)]
    assert chosen(*rows, most=2) == [("q0", "bm25"), ("q1", "bm25")]


def test_a_huge_evaluation_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first, "_MOST_VALUES", 1)
    assert chosen(("bm25", "q1", 0.5, "scored"), ("bm25", "q2", 0.5, "scored")) == []


@pytest.mark.parametrize(
    ("query_id", "results", "command"),
    [
        ("q14", "rageval-results", "rageval-spec show q14"),
        ("q14", "out/pr 7", "rageval-spec show q14 'out/pr 7'"),
        ("<b>&#q=1", "main", "rageval-spec show '<b>&#q=1' main"),
        ("-q", "rageval-results", "rageval-spec show -- -q"),
        (None, "main", "rageval-spec show main"),
    ],
)
def test_a_command_can_be_pasted_into_a_shell(query_id: str | None, results: str, command: str) -> None:
    assert write_show(query_id, results) == command
