"""Designs of datasets: lookups by question, and their form in files."""

from __future__ import annotations

import pytest

from rageval_spec.data.design import Design, DesignSummary, dump_designs, parse_designs

SUMMARY = DesignSummary(3, cluster="source", clusters=2, weights="production.csv")
DESIGN = Design({"a": 0, "b": 0}, {"a": 0.25, "b": 0.75}, {"b": 1}, SUMMARY)


def test_a_question_without_a_cluster_has_its_own() -> None:
    assert DESIGN.list_clusters(["a", "b", "c"]) == [0, 0, "c"]
    assert Design().list_clusters(["a"]) is None


def test_a_question_without_a_weight_does_not_count() -> None:
    assert DESIGN.list_weights(["b", "c"]) == [0.75, 0.0]
    assert Design().list_weights(["b"]) is None


@pytest.mark.parametrize(
    ("summary", "source"),
    [(SUMMARY, "production.csv"), (DesignSummary(1, weight="traffic"), "traffic"), (DesignSummary(1, cluster="x"), "")],
)
def test_a_summary_says_where_weights_come_from(summary: DesignSummary, source: str) -> None:
    assert (summary.is_weighted, summary.source) == (bool(source), source)


def test_designs_are_read_as_they_were_written() -> None:
    designs = {"golden": DESIGN, "wiki": Design({"x": 4}, summary=DesignSummary(1, cluster="page"))}
    text = dump_designs(designs)
    assert parse_designs(text, {name: one.summary for name, one in designs.items()}) == designs


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{", '{"golden": 3}', '{"golden": [{}, null]}', '{"other": [{}, null, {}]}']
)
def test_other_texts_give_no_designs(text: str | None) -> None:
    assert parse_designs(text, {"golden": SUMMARY}) == {}
