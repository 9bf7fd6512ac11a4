"""Closeness to the judge's own wording: what is close is found, a quoted answer and the topic are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.labelled_samples import read_samples
from rageval_spec.calibration.properties import LeftOut, Property
from rageval_spec.calibration.style import compare_style, measure_closeness
from rageval_spec.data.labels import Label
from tests.answered_evaluation import answered, sample, value

PLAIN = ("the pump is old", "the valve was shut", "it is on the left", "the tank has two taps", "the bolt is loose")
ORNATE = (
    "furthermore, one ought to observe that regulation remains paramount",
    "consequently, it would appear advisable to proceed cautiously",
    "notwithstanding considerable limitations, implementation seems feasible",
    "moreover, comprehensive documentation facilitates understanding",
    "additionally, stakeholders should consistently prioritise transparency",
)
MODEL: dict[str, Any] = {"use": "chat", "base_url": "http://localhost:1", "model": "m"}
SPEC: dict[str, Any] = {
    "metrics": [{"use": "faithfulness", "judge": "strict"}],
    "judges": {"strict": {"use": "claims", "model": "m"}},
    "models": {"m": MODEL},
}


def write(phrases: tuple[str, ...], random: np.random.Generator, count: int = 6) -> str:
    return ". ".join(random.choice(phrases, count)) + "."


def test_answers_in_the_judges_style_are_closer() -> None:
    random = np.random.default_rng(1)
    questions = [("golden", f"q{number}") for number in range(40)]
    answers = [write(ORNATE if number % 2 else PLAIN, random) for number in range(40)]
    closeness = measure_closeness(answers, questions, {one: write(ORNATE, random) for one in questions})
    assert closeness[1::2].min() > closeness[::2].max()


def test_a_reason_that_quotes_the_answer_does_not_make_it_close() -> None:
    random = np.random.default_rng(2)
    questions = [("golden", f"q{number}") for number in range(30)]
    answers = [write(PLAIN, random) for _ in questions]
    reasons = {one: write(ORNATE, random) for one in questions}
    quoted = {**reasons, questions[0]: reasons[questions[0]] + answers[0] * 2}
    without = {**reasons, questions[0]: ""}
    # Only the choice of the most frequent trigrams sees the text of the answer's own question.
    assert measure_closeness(answers, questions, quoted)[0] == pytest.approx(
        measure_closeness(answers, questions, without)[0], abs=0.05
    )


def describe(spec: dict[str, Any], reasons: int = 30, system: str = "v1", own: frozenset[str] = frozenset()) -> Any:
    random = np.random.default_rng(3)
    values, samples, labels = [], [], []
    for number in range(30):
        claim = {"text": "x", "verdict": "supported", "score": 1.0}
        claim |= {"reason": write(ORNATE, random)} if number < reasons else {}
        values.append(value(f"q{number}", "faithfulness", 0.5, system, details={"claims": [claim]}))
        samples.append(sample(f"q{number}", system, answer=write(ORNATE if number % 2 else PLAIN, random)))
        labels.append(Label(f"q{number}", "faithfulness", 1.0, "ann", system=system))
    evaluation = answered(values, samples, spec=spec)
    joined = join_labels(evaluation, labels, "faithfulness")
    return compare_style(evaluation, joined, read_samples(evaluation, joined), own)


def test_the_property_counts_standard_deviations() -> None:
    found = describe(SPEC)
    assert isinstance(found, Property)
    assert np.std(found.numbers) == pytest.approx(1)
    assert min(found.numbers[1::2]) > max(found.numbers[::2])


@pytest.mark.parametrize(
    ("spec", "reasons", "why"),
    [
        ({}, 30, "no chat model is known behind the judge"),
        (SPEC | {"judges": {"strict": {"use": "overlap"}}}, 30, "no chat model is known behind the judge"),
        (SPEC, 9, "the judge wrote reasons for only 9 questions"),
        (SPEC, 0, "the judge wrote reasons for only 0 questions"),
    ],
)
def test_a_judge_without_known_texts_has_no_style(spec: dict[str, Any], reasons: int, why: str) -> None:
    assert describe(spec, reasons) == LeftOut("style", why)


def test_answers_of_its_own_model_are_its_texts_too() -> None:
    assert isinstance(describe(SPEC, reasons=0, own=frozenset({"v1"})), Property)
