"""One question of one system, with everything that a reader wants to know.

The places in an answer that judges decided about.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.outcomes import Diagnosis
from rageval_spec.drawing import cards
from rageval_spec.drawing.cards import (
    CardValue,
    Mark,
    Missing,
    ShownContext,
    build_card,
    list_first,
    list_notes,
    select_cards,
    split_answer,
    write_show,
)
from rageval_spec.drawing.question_order import BaselineValues, Filter
from tests.answered_evaluation import ANSWER, BRIDGE, CLAIMS, answered, bridges, sample, value
from tests.sample_evaluation import make_evaluation


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
    values = build_card(now, "golden", "v1", "q1", BaselineValues("main", before)).values
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
    chosen = select_cards(
        bridges(), Filter(regressed=True, metric="token_f1"), BaselineValues("main", bridges(shift=0.1))
    )
    assert [(card.query_id, card.values[1].baseline) for card in chosen] == [("q1", 0.35)]


def marks(details: object) -> tuple[Mark, ...]:
    return build_card(
        answered([value("q1", "faithfulness", 0.5, details=details)], [BRIDGE]), "golden", "v1", "q1"
    ).marks


def test_marks_are_in_the_order_of_the_answer_with_the_document_that_decided() -> None:
    found = marks({"claims": [CLAIMS[1], CLAIMS[0]]})
    assert [(one.start, one.is_supported, one.doc_id, one.evidence) for one in found] == [
        (0, True, "length", "120 m long"),
        (26, False, "opening", "opened in 1909"),
    ]
    assert [one.evidence_start for one in found] == [14, 3]


def test_claims_of_other_texts_are_not_marked() -> None:
    claims = [{"text": "The reference says this.", "start": 0, "end": 24, "score": 0.0}]
    assert marks({"claims": claims, "part": "reference", "against": "answer"}) == ()
    assert marks({"answer": {"claims": [CLAIMS[1]]}, "reference": {"claims": claims}})[0].text == CLAIMS[1]["text"]
    assert marks({"contexts": [{"text": "The bridge", "score": 1.0}]}) == ()


def test_a_score_decides_where_there_is_no_verdict() -> None:
    text = "It was built in 1911."
    assert [one.is_supported for one in marks({"claims": [{"text": text, "score": 0.5}]})] == [True]
    assert [one.is_supported for one in marks({"claims": [{"text": text, "score": 0.4}]})] == [False]


def pieces(
    answer: str, *places: tuple[int | None, int | None], verdict: str = "contradicted"
) -> list[tuple[str, object]]:
    found = [Mark(start, end, verdict, 0.0, "m", f"claim {at}") for at, (start, end) in enumerate(places)]
    return [(piece.text, piece.number) for piece in split_answer(answer, found)]


def test_an_answer_is_cut_where_unsupported_claims_lie() -> None:
    assert pieces("0123456789", (2, 4), (4, 6)) == [("01", None), ("23", 1), ("45", 2), ("6789", None)]
    assert pieces("0123456789", (2, 5), (4, 12)) == [("01", None), ("23456789", 1)]
    assert pieces("0123456789", (12, 14), (5, 5), (None, None)) == [("0123456789", None)]
    assert pieces("0123456789", (0, 4), verdict="supported") == [("0123456789", None)]


def test_notes_join_the_metrics_that_asked_about_one_claim() -> None:
    found = [
        Mark(0, 4, "not_enough_info", 0.25, "overlap", "long"),
        Mark(0, 4, "not_enough_info", 0.5, "embedding", "long"),
        Mark(0, 4, "contradicted", 0.0, "strict", "other"),
        Mark(None, None, None, 0.1, "strict", "lost"),
    ]
    assert [(note.number, note.claim, note.decision) for note in list_notes("long answer", found)] == [
        (1, None, "not enough info (overlap 0.25, embedding 0.50)"),
        (1, "other", "contradicted (strict)"),
        (None, "lost", "not supported (strict 0.10)"),
    ]


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
    monkeypatch.setattr(cards, "_MOST_VALUES", 1)
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
