from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from rageval_spec.data.findings import Criterion, Failed, Finding
from rageval_spec.judging.grade_scores import unscale_score
from tests.metrics.judges import RuleJudge, measure, metric, sample

GRADER = RuleJudge(abilities=frozenset({"grade"}), say=lambda one: Finding(float(one.answer or "0"), reason="so"))


def test_hand_worked() -> None:
    built = metric(
        "rubric",
        GRADER,
        name="politeness",
        criteria="How polite is the answer?",
        scale=[1, 10],
        guide={"1": "rude", "10": "kind"},
        shown=["question", "answer", "contexts"],
    )
    (found,) = measure(built, sample(answer="7.25", contexts=()))
    assert (found.value, found.reason) == (7.25, "so")
    assert found.details == {"score": 7.25, "claims": [], "scale": [1.0, 10.0]}
    assert built.name == "politeness"
    assert built.criteria() == (
        Criterion(
            "politeness",
            "grade",
            "How polite is the answer?",
            text="answer",
            against="question",
            shown=("question", "answer", "contexts"),
            scale=(1.0, 10.0),
            guide={"1": "rude", "10": "kind"},
        ),
    )


def test_parts_that_the_rubric_shows_are_required() -> None:
    assert metric("rubric", GRADER, criteria="?").needs == {"answer"}
    shown = ["question", "contexts", "reference", "reference_contexts"]
    assert metric("rubric", GRADER, criteria="?", shown=shown).needs == {"contexts", "reference", "reference_contexts"}


def test_low_grades_can_be_better() -> None:
    assert metric("rubric", GRADER, criteria="?").higher_is_better is True
    assert metric("rubric", GRADER, criteria="How rude is it?", higher_is_better=False).higher_is_better is False


@pytest.mark.parametrize("grade", ["0.9", "5.1", "-1"])
def test_a_grade_outside_the_scale_is_an_error(grade: str) -> None:
    (found,) = measure(metric("rubric", GRADER, criteria="?"), sample(answer=grade))
    assert (found.value, found.status) == (None, "error")
    assert found.reason == f"the judge's grade {grade} is not from 1 to 5"


def test_both_ends_of_the_scale_are_allowed() -> None:
    found = measure(metric("rubric", GRADER, criteria="?"), sample(answer="1"), sample(answer="5"))
    assert [one.value for one in found] == [1.0, 5.0]


@pytest.mark.parametrize(
    ("scale", "said", "grade"),
    [
        ((0.3, 0.9), 0.3 + 1.0 * (0.9 - 0.3), 0.9),
        ((0.1, 0.7), 0.1 - 1e-17, 0.1),
        ((0.0, 1e12), 1e12 + 0.001, 1e12),
        ((0.3, 0.9), 0.9 + 1e-8, None),
        ((0.3, 0.9), 0.3 - 1e-8, None),
        ((0.3, 0.9), float("nan"), None),
    ],
)
def test_a_rounding_error_does_not_put_a_grade_outside_the_scale(
    scale: tuple[float, float], said: float, grade: float | None
) -> None:
    judge = RuleJudge(abilities=frozenset({"grade"}), say=lambda _: Finding(said))
    (found,) = measure(metric("rubric", judge, criteria="?", scale=scale), sample(answer="x"))
    assert (found.value, found.status) == (grade, "error" if grade is None else "scored")
    if grade is not None:
        assert (found.details or {})["score"] == grade


@pytest.mark.parametrize("scale", [(0.3, 0.9), (0.1, 0.7), (1.0, 5.0), (-0.7, 0.1)])
def test_the_ends_of_a_scale_survive_what_composed_judges_compute(scale: tuple[float, float]) -> None:
    criterion = Criterion("tone", "grade", "?", scale=scale)
    assert [unscale_score(share, criterion) for share in (0.0, 1.0)] == list(scale)


def test_without_a_grade_there_is_no_value() -> None:
    answers: dict[str, Finding | Failed] = {"a": Finding(None, reason="no text"), "b": Failed("no JSON", "Five!")}
    judge = RuleJudge(say=lambda one: answers[str(one.answer)])
    found = measure(metric("rubric", judge, criteria="?"), sample(answer="a"), sample(answer="b"))
    assert [(one.value, one.status, one.reason) for one in found] == [
        (None, "unscorable", "no text"),
        (None, "error", "no JSON"),
    ]
    assert found[1].details == {"raw": "Five!"}


@pytest.mark.parametrize(
    "keys",
    [
        {"scale": [5, 1]}, {"scale": [1, 1]}, {"scale": [1]}, {"scale": [1, float("inf")]}, {"criteria": " "},
        {"criteria": ""}, {"shown": []}, {"shown": ["score"]}, {"name": ""},
    ],
)  # fmt: skip
def test_keys_that_make_no_sense_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        metric("rubric", GRADER, **{"criteria": "?", **keys})


class AskingJudge(RuleJudge):
    """A judge that asks a question of its own, on a scale from 0 to 1."""

    scale = (0.0, 1.0)
    reads_criteria = False


def test_a_judge_with_its_own_question_gives_the_rubric_its_name_and_scale() -> None:
    asking = AskingJudge("completeness", frozenset({"grade"}), lambda one: Finding(float(one.answer or "0")))
    built = metric("rubric", asking)
    assert (built.name, built.bounds) == ("completeness", (0.0, 1.0))
    (criterion,) = built.criteria()
    assert (criterion.name, criterion.scale) == ("completeness", (0.0, 1.0))
    assert measure(built, sample(answer="0.65"))[0].value == 0.65
    assert built.check() is None
    assert metric("rubric", asking, scale=[1, 5], name="mine").bounds == (1.0, 5.0)
    assert metric("rubric", asking, scale=[1, 5], name="mine").name == "mine"


def test_results_record_the_name_and_the_scale_that_the_judge_gives() -> None:
    """A reader of the results has only the metric's node, not the judge."""
    asking = AskingJudge("completeness", frozenset({"grade"}), lambda one: Finding(float(one.answer or "0")))
    built = metric("rubric", asking)
    again = metric(
        "rubric", RuleJudge("completeness"), **{k: v for k, v in built.recorded().items() if k not in ("use", "judge")}
    )
    assert (again.name, again.bounds, again.criteria()) == (built.name, built.bounds, built.criteria())
    own = metric("rubric", GRADER, criteria="?")
    assert own.recorded() == own.node.model_dump(mode="json", by_alias=True)


def test_criteria_are_needed_by_exactly_the_judges_that_read_them() -> None:
    assert "'criteria' is missing" in (metric("rubric", GRADER).check() or "")
    asking = AskingJudge("mine", frozenset({"grade"}))
    assert "the judge 'mine' does not read 'criteria'" in (metric("rubric", asking, criteria="?").check() or "")
    assert "the judge 'mine' does not read 'guide'" in (metric("rubric", asking, guide={"1": "rude"}).check() or "")
    assert metric("rubric", GRADER, criteria="?", guide={"1": "rude"}).check() is None


class SeveralJudge(RuleJudge):
    """A judge whose reply has two values."""

    values: ClassVar[Mapping[str, tuple[float, ...]]] = {"faithfulness": (0.0, 1.0), "relevancy": (1.0, 5.0)}
    reads_criteria = False


def test_a_value_of_a_judge_that_gives_several_has_its_name_and_scale() -> None:
    several = SeveralJudge("own", frozenset({"grade", "support"}), lambda one: Finding(float(one.answer or "0")))
    built = metric("rubric", several, value="relevancy")
    assert (built.name, built.bounds, built.check()) == ("relevancy", (1.0, 5.0), None)
    (criterion,) = built.criteria()
    assert (criterion.name, criterion.scale) == ("relevancy", (1.0, 5.0))
    (criterion,) = metric("rubric", several, value="relevancy", name="on_topic").criteria()
    assert criterion.name == "relevancy"
    assert metric("faithfulness", several).check() is None


def test_the_judge_must_give_the_value() -> None:
    several = SeveralJudge("own", frozenset({"grade", "support"}))
    given = "the judge 'own' gives faithfulness and relevancy"
    write = "write {use: rubric, judge: own, value: faithfulness}"
    assert metric("rubric", several).check() == f"{given}; {write}"
    assert metric("rubric", several, value="relevance").check() == (
        f"{given}, and no 'relevance'; did you mean 'relevancy'?"
    )
    assert metric("context_recall", several).check() == f"{given}, and no 'context_recall'; {write}"
    one = AskingJudge("mine", frozenset({"grade"}))
    assert metric("rubric", one, value="x").check() == "the judge 'mine' gives one value; remove 'value: x'"
