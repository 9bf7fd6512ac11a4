"""What makes a judge err is found, said in words, and not made up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rageval_spec.calibration.bias import Bias, find_biases
from rageval_spec.calibration.joining import join_labels
from rageval_spec.data.labels import Label
from tests.answered_evaluation import answered, sample, value

COUNT = 80


def find(error: Callable[[int, int, str], float]) -> dict[str, Bias]:
    """The biases of a judge with this error for a number of words, a number of contexts and a system."""
    random = np.random.default_rng(3)
    values, samples, labels = [], [], []
    for number in range(COUNT):
        for system in ("v1", "v2"):
            words, contexts = int(random.integers(10, 300)), int(random.integers(1, 8))
            truth = float(random.random() < 0.5)
            judged = 0.2 + 0.5 * truth + error(words, contexts, system) + random.normal(0, 0.03)
            values.append(value(f"q{number}", "faithfulness", judged, system))
            hard = ["difficulty=hard"] if number % 2 else []
            texts = ["text"] * contexts
            samples.append(sample(f"q{number}", system, answer="word " * words, contexts=texts, slices=hard))
            labels.append(Label(f"q{number}", "faithfulness", 0.2 + 0.5 * truth, "ann", system=system))
    evaluation = answered(values, samples)
    return {one.name: one for one in find_biases(evaluation, join_labels(evaluation, labels, "faithfulness"))}


def test_a_judge_that_likes_length_is_found_out() -> None:
    found = find(lambda words, _contexts, _system: 0.07 * words / 100)
    assert found["length"].is_significant
    assert found["length"].effect.slope == pytest.approx(0.07, abs=0.01)
    assert str(found["length"]).startswith("100 more words make the judge 0.07")
    assert str(found["length"]).endswith("more generous.")
    assert not any(found[name].is_significant for name in ("contexts", "system v2", "slice difficulty=hard"))


def test_a_judge_that_is_strict_with_one_system_is_found_out() -> None:
    found = find(lambda _words, _contexts, system: -0.1 if system == "v2" else 0.0)
    assert found["system v2"].is_significant
    assert str(found["system v2"]).startswith("Answers of v2 instead of v1 make the judge 0.")
    assert str(found["system v2"]).endswith("more strict.")
    assert not found["length"].is_significant


def test_a_judge_without_a_bias_is_left_in_peace() -> None:
    assert not any(one.is_significant for one in find(lambda *_: 0.0).values())


def test_p_values_are_adjusted_for_all_properties() -> None:
    for one in find(lambda *_: 0.0).values():
        assert one.p_adjusted >= one.effect.p_value


def test_few_labels_show_nothing() -> None:
    evaluation = answered([value("q1", "faithfulness", 0.5)], [sample("q1")])
    joined = join_labels(evaluation, [Label("q1", "faithfulness", 1.0, "ann")], "faithfulness")
    assert find_biases(evaluation, joined) == ()


def test_lengths_are_compared_in_steps_that_the_answers_have() -> None:
    values = [value(f"q{number}", "faithfulness", 0.02 * (number % 30)) for number in range(60)]
    samples = [sample(f"q{number}", answer="word " * (number % 30)) for number in range(60)]
    evaluation = answered(values, samples)
    labels = [Label(f"q{number}", "faithfulness", 0.2, "ann") for number in range(60)]
    (length,) = find_biases(evaluation, join_labels(evaluation, labels, "faithfulness"))
    assert str(length) == "10 more words make the judge 0.200 more generous."
