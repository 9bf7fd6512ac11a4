"""One question of one system, with everything that a reader wants to know."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.data.diagnosis import Diagnosis
from rageval_spec.reports.shared.cards import (
    Baseline,
    CardValue,
    Filter,
    Missing,
    ShownContext,
    build_card,
    select_cards,
)
from tests.answered_evaluation import ANSWER, BRIDGE, answered, bridges, sample, value


def test_a_card_holds_the_question_the_answer_and_what_it_took() -> None:
    card = build_card(bridges(), "golden", "v1", "q1")
    assert (card.question, card.answer, card.status, card.error) == ("Question q1?", ANSWER, "answered", None)
    assert card.references == ("The bridge was built in 1909.",)
    assert (card.seconds, card.cost, card.input_tokens) == (1.5, 0.002, None)


def test_contexts_have_a_rank_and_the_grade_of_judged_documents() -> None:
    card = build_card(bridges(), "golden", "v1", "q1")
    assert card.contexts == (
        ShownContext(1, "length", None, None, "The bridge is 120 m long."),
        ShownContext(2, "opening", None, 2, "It opened in 1909."),
    )


def test_relevant_documents_outside_the_contexts_are_missing() -> None:
    assert build_card(bridges(), "golden", "v1", "q1").missing == (Missing("history", 1, None),)


def test_a_missing_document_has_its_text_if_another_question_of_the_dataset_has_it() -> None:
    other: dict[str, Any] = {"contexts": ["It fell in 1950."], "context_ids": ["history"]}
    rows = [value("q1", "token_f1", 0.5), value("q2", "token_f1", 0.5)]
    for dataset, text in (("golden", "It fell in 1950."), ("silver", None)):
        evaluation = answered(rows, [BRIDGE, sample("q2", dataset=dataset, **other)])
        assert build_card(evaluation, "golden", "v1", "q1").missing == (Missing("history", 1, text),)


def test_a_document_that_was_retrieved_too_low_has_its_rank() -> None:
    judged = [{"doc_id": "far", "relevance": 1, "rank": 57}]
    evaluation = answered([value("q1", "ndcg@10", 0.5)], [{**BRIDGE, "relevant": judged}])
    assert build_card(evaluation, "golden", "v1", "q1").missing == (Missing("far", 1, None, 57),)


def test_nothing_is_missing_if_the_ids_of_the_contexts_are_not_known() -> None:
    evaluation = answered([value("q1", "token_f1", 0.5)], [{**BRIDGE, "context_ids": None}])
    card = build_card(evaluation, "golden", "v1", "q1")
    assert [context.doc_id for context in card.contexts] == [None, None]
    assert card.missing == ()


def test_everything_relevant_is_missing_if_nothing_was_retrieved() -> None:
    evaluation = answered([value("q1", "token_f1", 0.5)], [{**BRIDGE, "contexts": [], "context_ids": []}])
    missing = build_card(evaluation, "golden", "v1", "q1").missing
    assert [(one.doc_id, one.grade) for one in missing] == [("opening", 2), ("history", 1)]


def test_values_are_in_the_order_of_the_spec_with_their_reasons() -> None:
    values = build_card(bridges(), "golden", "v1", "q3").values
    assert values == (
        CardValue("faithfulness", None, "unscorable", "there is no answer"),
        CardValue("token_f1", None, "error", "HTTP 500"),
    )


def test_a_change_is_worse_or_better_by_the_direction_of_the_metric() -> None:
    now = answered([value("q1", "token_f1", 0.4), value("q1", "latency", 1.0), value("q1", "ndcg@10", 0.5)])
    before = answered([value("q1", "token_f1", 0.6), value("q1", "latency", 2.0), value("q1", "ndcg@10", 0.5)])
    values = build_card(now, "golden", "v1", "q1", Baseline("main", before)).values
    assert [(one.metric, one.baseline, one.against, one.change, one.is_worse) for one in values] == [
        ("token_f1", 0.6, "main", pytest.approx(-0.2), True),
        ("ndcg@10", 0.5, "main", 0.0, None),
        ("latency", 2.0, "main", -1.0, False),
    ]


def test_new_columns_of_the_samples_are_read_and_old_results_do_without() -> None:
    more: dict[str, Any] = {
        "columns": json.dumps({"level": 3}),
        "slices": ["level=3"],
        "status": "unfinished",
        "cause": "both",
    }
    rows = [value("q1", "token_f1", 0.1)]
    card = build_card(answered(rows, [sample("q1", **more)]), "golden", "v1", "q1")
    assert (card.columns, card.slices, card.status, card.cause) == ({"level": 3}, ("level=3",), "unfinished", "both")
    old = build_card(answered(rows, [sample("q1", answer=None, error="timeout")]), "golden", "v1", "q1")
    assert (old.columns, old.slices, old.status, old.cause) == ({}, (), "failed", None)


def test_a_cause_names_the_values_that_decided() -> None:
    evaluation = answered([value("q1", "token_f1", 0.1), value("q1", "ndcg@10", 1.0)], [sample("q1", cause="both")])
    evaluation = replace(evaluation, diagnosis=Diagnosis("judged documents", "token_f1", None, 0.5, 0.7))
    assert build_card(evaluation, "golden", "v1", "q1").cause_reason == (
        "no relevant document is among the contexts; token_f1 is 0.10"
    )


def test_a_system_that_only_retrieves_has_cards_too() -> None:
    card = build_card(answered([value("q1", "ndcg@10", 0.1)]), "golden", "v1", "q1")
    assert (card.status, card.question, card.answer, card.contexts) == ("retrieved", "", None, ())


def test_an_unknown_question_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="q9"):
        build_card(bridges(), "golden", "v1", "q9")


def test_cards_are_chosen_worst_first() -> None:
    assert [card.query_id for card in select_cards(bridges(), Filter(limit=2))] == ["q3", "q1"]
    assert [card.query_id for card in select_cards(bridges(), Filter(metric="faithfulness", below=1))] == ["q1"]


def test_regressed_cards_show_what_they_are_compared_with() -> None:
    chosen = select_cards(bridges(), Filter(regressed=True, metric="token_f1"), Baseline("main", bridges(shift=0.1)))
    assert [(card.query_id, card.values[1].baseline) for card in chosen] == [("q1", 0.35)]
