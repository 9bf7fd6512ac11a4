"""The places in an answer that judges decided about."""

from __future__ import annotations

from rageval_spec.reports.shared.cards import Mark, build_card
from rageval_spec.reports.shared.marks import list_notes, split_answer
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
