"""What a reviewer is shown, and what is hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import digest_answer
from rageval_spec.errors import DataError
from rageval_spec.review.criteria import make_criterion
from rageval_spec.review.tasks import ChosenAnswer, ReviewSheet, build_sheet, to_payload
from tests.answered_evaluation import ANSWER, answered, bridges, sample, value

FIRST = ChosenAnswer(("golden", "v1", "q1"), ("random", "low"), 0.25)
SECOND = ChosenAnswer(("golden", "v1", "q2"), ("random",), 0.03)


def build(evaluation: Evaluation | None = None, scale: str = "yes_no", **more: Any) -> ReviewSheet:
    criteria = [make_criterion("faithfulness", scale)]
    return build_sheet(evaluation or bridges(), [SECOND, FIRST], criteria, **more)


def test_a_task_has_all_that_a_person_needs() -> None:
    task = build().tasks[1]
    assert (task.question, task.answer) == ("Question q1?", ANSWER)
    assert [(one.doc_id, one.text) for one in task.contexts] == [
        ("length", "The bridge is 120 m long."),
        ("opening", "It opened in 1909."),
    ]
    assert task.references == ("The bridge was built in 1909.",)
    assert task.answer_digest == digest_answer(ANSWER)
    assert [(claim.number, claim.text, claim.verdict) for claim in task.claims] == [
        (0, "The bridge is 120 m long.", "supported"),
        (1, "It was built in 1911.", "contradicted"),
    ]
    assert task.judged == {"faithfulness": 0.5}
    assert (task.reason, task.probability) == ("random + low", 0.25)


def test_tasks_keep_the_order_in_which_they_were_chosen_and_unknown_ones_are_left_out() -> None:
    sheet = build_sheet(bridges(), [ChosenAnswer(("golden", "v1", "q9"), ("random",), 1.0), SECOND, FIRST], ())
    assert [task.query_id for task in sheet.tasks] == ["q2", "q1"]


def test_what_the_judge_says_is_apart_from_what_people_are_asked() -> None:
    task = to_payload(build(scale="claims"))["tasks"][1]
    asked, told = task["claims"][1], task["verdicts"][1]
    assert asked["text"] == told["text"] == "It was built in 1911."
    assert set(asked).isdisjoint({"verdict", "score", "reason", "evidence"})
    assert (told["verdict"], told["reason"]) == ("contradicted", "the source says 1909")
    assert task["judged"] == {"faithfulness": 0.5}
    assert not to_payload(build(scale="claims"))["shows_judge"]


def test_verdicts_are_told_even_if_people_judge_whole_answers() -> None:
    task = to_payload(build())["tasks"][1]
    assert (len(task["claims"]), len(task["verdicts"])) == (0, 2)


def test_the_payload_is_plain_json_that_comes_back_equal() -> None:
    payload = to_payload(build(results="rageval-results", annotator="ann"))
    assert json.loads(json.dumps(payload)) == payload
    assert (payload["format"], payload["version"], payload["annotator"]) == ("rageval-review", 1, "ann")
    assert payload["criteria"][0]["choices"] == ["yes", "no"]


def test_claims_are_listed_only_if_people_are_asked_about_them() -> None:
    assert to_payload(build())["tasks"][1]["claims"] == []
    sheet = build(scale="claims")
    assert [len(task["claims"]) for task in to_payload(sheet)["tasks"]] == [0, 2]
    asked = [(one.name, claim and claim.number) for one, claim in sheet.questions_of(sheet.tasks[1])]
    assert asked == [("faithfulness", 0), ("faithfulness", 1)]


def test_an_edited_answer_is_another_task_and_another_sheet() -> None:
    evaluation = answered([value("q1", "faithfulness", 0.5)], [sample("q1", answer="other")])
    before = build_sheet(bridges(), [FIRST], [make_criterion("faithfulness")])
    after = build_sheet(evaluation, [FIRST], [make_criterion("faithfulness")])
    assert before.tasks[0].id != after.tasks[0].id
    assert before.digest != after.digest
    assert build(annotator="ann").digest == build(annotator="bob").digest


def test_without_claims_nobody_can_be_asked_claim_by_claim() -> None:
    with pytest.raises(DataError, match="--ask faithfulness=yes_no"):
        build(answered([value("q1", "faithfulness", 0.5)], [sample("q1")]), "claims")


def test_results_without_texts_cannot_be_reviewed() -> None:
    with pytest.raises(DataError, match="do not hold the answer of q1"):
        build(answered([value("q1", "faithfulness", 0.5)], [sample("q1", answer=None)]))
