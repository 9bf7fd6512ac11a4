"""The places in an answer that judges decided about."""

from __future__ import annotations

from rageval_spec.reports.shared.cards import Mark, build_card
from tests.answered_evaluation import BRIDGE, CLAIMS, answered, value


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


def test_claims_of_other_texts_are_not_marked() -> None:
    assert marks({"claims": [{"text": "The reference says this.", "start": 0, "end": 24, "score": 0.0}]}) == ()
    assert marks({"contexts": [{"text": "The bridge", "score": 1.0}]}) == ()


def test_a_score_decides_where_there_is_no_verdict() -> None:
    text = "It was built in 1911."
    assert [one.is_supported for one in marks({"claims": [{"text": text, "score": 0.5}]})] == [True]
    assert [one.is_supported for one in marks({"claims": [{"text": text, "score": 0.4}]})] == [False]
