from __future__ import annotations

from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.diagnosis import JUDGED_DOCUMENTS
from rageval_spec.diagnosis.causes import CAUSES, count_causes, find_causes
from rageval_spec.diagnosis.evidence import Choice
from rageval_spec.spec.nodes import DiagnosisNode

NODE = DiagnosisNode()
CHOICE = Choice("context_recall", "token_f1", "faithfulness")
Row = tuple[float | None, float | None, float | None]
"""The values of context_recall, token_f1 and faithfulness of one question."""


def tabulate(rows: list[Row]) -> pl.DataFrame:
    cells = [
        ("golden", "bot", metric, f"q{place}", value, "scored" if value is not None else "unscorable", None)
        for place, row in enumerate(rows)
        for metric, value in zip(CHOICE, row, strict=True)
    ]
    schema = {
        "dataset": pl.String, "system": pl.String, "metric": pl.String, "query_id": pl.String,
        "value": pl.Float64, "status": pl.String, "reason": pl.String,
    }  # fmt: skip
    return pl.DataFrame(cells, schema=schema, orient="row")


def causes(rows: list[Row], choice: Choice = CHOICE) -> list[str]:
    return find_causes(tabulate(rows), choice, NODE, {})["cause"].to_list()


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        ((0.0, 0.1, 0.9), "retrieval"),
        ((0.0, 0.1, None), "retrieval"),
        ((0.0, 0.1, 0.2), "both"),
        ((1.0, 0.1, 0.9), "generation"),
        ((1.0, 0.9, 0.2), "generation"),
        ((0.2, 0.9, 0.9), "lucky"),
        ((0.8, 0.9, 0.9), "fine"),
        ((0.8, 0.9, None), "fine"),
        ((None, 0.1, 0.9), "undecided"),
        ((1.0, None, 0.9), "undecided"),
        ((0.6, 0.1, 0.9), "undecided"),
        ((1.0, 0.6, 0.9), "undecided"),
    ],
)
def test_each_cause(row: Row, cause: str) -> None:
    assert causes([row]) == [cause]


@pytest.mark.parametrize(
    ("value", "cause"), [(0.5, "undecided"), (0.4999, "generation"), (0.7, "fine"), (0.6999, "undecided")]
)
def test_the_thresholds_belong_to_what_is_above_them(value: float, cause: str) -> None:
    assert causes([(1.0, value, None)]) == [cause]


VALUES = st.sampled_from([None, 0.0, 0.49, 0.5, 0.69, 0.7, 1.0])


def name_slowly(row: Row) -> str:
    found, right, faithful = (None if v is None else True if v >= 0.7 else False if v < 0.5 else None for v in row)
    if found is False and right is False:
        return "both" if faithful is False else "retrieval"
    if found is False and right:
        return "lucky"
    if found and (right is False or faithful is False):
        return "generation"
    return "fine" if found and right else "undecided"


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=20))
def test_it_equals_a_slow_reading_of_the_table(rows: list[Row]) -> None:
    assert causes(rows) == [name_slowly(row) for row in rows]


def test_every_combination_has_a_cause() -> None:
    rows = [(a, b, c) for a, b, c in product([None, 0.0, 1.0], repeat=3)]
    assert set(causes(rows)) == set(CAUSES)


def test_judged_documents_decide_where_no_metric_does() -> None:
    judged = {("golden", "bot"): pl.DataFrame({"query_id": ["q0", "q1"], "found": [True, False]})}
    choice = Choice(JUDGED_DOCUMENTS, "token_f1", None)
    table = find_causes(tabulate([(0.0, 0.1, None), (1.0, 0.1, None), (1.0, 0.9, None)]), choice, NODE, judged)
    assert table["cause"].to_list() == ["generation", "retrieval", "undecided"]


def test_counts_add_up_and_have_intervals() -> None:
    table = find_causes(tabulate([(0.0, 0.1, None), (0.0, 0.2, None), (1.0, 1.0, 1.0)]), CHOICE, NODE, {})
    counts = list(count_causes(table, 0.95, "difficulty=hard"))
    assert [(c.cause, c.count, c.total, c.slice) for c in counts] == [
        ("retrieval", 2, 3, "difficulty=hard"),
        ("fine", 1, 3, "difficulty=hard"),
    ]
    assert all(c.interval is not None and c.interval.low < c.share < c.interval.high for c in counts)
