from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import SampleTable
from rageval_spec.drawing.cards import find_first
from rageval_spec.drawing.page import page_part
from rageval_spec.drawing.page.page import dump_head
from rageval_spec.drawing.page.page_part import choose_part, count_spreads
from rageval_spec.drawing.page.question_data import collect_questions
from rageval_spec.drawing.question_order import rank_questions
from tests.reports.page import make_page_evaluation

EVALUATION = make_page_evaluation(600)
ROWS = rank_questions(EVALUATION).height


def test_a_page_shows_all_of_a_small_evaluation() -> None:
    assert choose_part(EVALUATION, largest=ROWS) is None


def test_the_worst_questions_and_some_of_every_kind_are_shown() -> None:
    part = choose_part(EVALUATION, largest=10, most=100)
    assert part is not None
    shown = rank_questions(part.evaluation)
    worst = rank_questions(EVALUATION)["query_id"].unique(maintain_order=True).head(part.worst)
    assert set(worst) <= set(shown["query_id"])
    assert {key[2] for key in find_first(EVALUATION)} <= set(shown["query_id"])
    kinds = ["dataset", "cause", "slices", "status"]
    every = EVALUATION.samples.select(kinds).unique()
    assert part.evaluation.samples.select(kinds).unique().sort(kinds).equals(every.sort(kinds))
    assert (part.shown, part.total) == (shown["query_id"].n_unique(), EVALUATION.samples["query_id"].n_unique())
    assert part.shown < part.total / 2


def test_the_choice_is_the_same_each_time() -> None:
    one, other = (choose_part(EVALUATION, largest=10, most=100) for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.evaluation.samples.equals(other.evaluation.samples)


def test_questions_of_one_system_have_the_same_order_with_and_without_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    system = EVALUATION.systems[0]
    values, samples = EVALUATION.values.filter(system=system), EVALUATION.samples.filter(system=system)
    alone = replace(EVALUATION, systems=(system,), values=values, sample_table=SampleTable(lambda: (samples,)))
    beside = page_part._set_side_by_side
    found: list[pl.DataFrame | None] = []

    def spy(*told: Any) -> pl.DataFrame | None:
        found.append(beside(*told))
        return found[-1]

    monkeypatch.setattr(page_part, "_set_side_by_side", spy)
    expected = page_part._rank(alone)
    assert found[0] is not None
    monkeypatch.setattr(page_part, "_set_side_by_side", lambda *_: None)
    assert page_part._rank(alone).equals(expected)


def test_the_page_says_what_it_leaves_out_and_counts_the_values_of_all() -> None:
    part = choose_part(EVALUATION, largest=10, most=100)
    assert part is not None
    head = json.loads(dump_head(EVALUATION, collect_questions(part.evaluation), 3, "A title", part))
    assert head["part"]["told"].startswith(f"This page shows {part.shown:,} of {part.total:,} questions: the ")
    assert head["part"]["command"] == "rageval-spec show QUERY"
    assert (
        head["results"]["aggregates"]
        == json.loads(dump_head(EVALUATION, collect_questions(EVALUATION), 3, ""))["results"]["aggregates"]
    )
    for cell in head["questions"]["cells"]:
        names = {"system": EVALUATION.systems[cell["system"]], "metric": EVALUATION.metrics[cell["metric"]]}
        scored = EVALUATION.values.filter(**names, status="scored")["value"]
        assert sum(cell["spread"]["counts"]) == len(scored)
        assert cell["spread"]["mean"] == scored.mean()
        low, high = scored.min(), scored.max()
        assert cell["spread"]["low"] <= low
        assert high <= cell["spread"]["high"]


def test_values_that_are_all_equal_are_one_bar() -> None:
    values = EVALUATION.values.with_columns(value=pl.lit(3.0))
    for spread in count_spreads(replace(EVALUATION, values=values)).values():
        assert sorted(spread["counts"])[:-1] == [0] * (page_part._BINS - 1)
