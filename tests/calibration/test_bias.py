"""What makes a judge err is found, said in words, and not made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rageval_spec import kernels
from rageval_spec.calibration.bias import Bias, Biases, find_biases
from rageval_spec.calibration.joining import join_labels
from rageval_spec.data.labels import Label
from rageval_spec.statistics.regression import regress
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
    return {one.name: one for one in find_biases(evaluation, join_labels(evaluation, labels, "faithfulness")).found}


def test_a_judge_that_likes_length_is_found_out() -> None:
    found = find(lambda words, _contexts, _system: 0.07 * words / 100)
    assert found["length"].is_significant
    assert found["length"].effect.slope == pytest.approx(0.07, abs=0.01)
    assert str(found["length"]).startswith("100 more words make the judge 0.07")
    assert str(found["length"]).count("more generous (adjusted p ") == 1
    assert not any(found[name].is_significant for name in ("contexts", "system v2", "slice difficulty=hard"))


def test_a_judge_that_is_strict_with_one_system_is_found_out() -> None:
    found = find(lambda _words, _contexts, system: -0.1 if system == "v2" else 0.0)
    assert found["system v2"].is_significant
    assert str(found["system v2"]).startswith("Answers of v2 instead of v1 make the judge 0.")
    assert str(found["system v2"]).count("more strict (adjusted p ") == 1
    assert not found["length"].is_significant


def test_a_judge_without_a_bias_is_left_in_peace() -> None:
    assert not any(one.is_significant for one in find(lambda *_: 0.0).values())


def test_p_values_are_adjusted_for_all_properties() -> None:
    for one in find(lambda *_: 0.0).values():
        assert one.p_adjusted >= one.effect.p_value


def test_few_labels_show_nothing() -> None:
    evaluation = answered([value("q1", "faithfulness", 0.5)], [sample("q1")])
    joined = join_labels(evaluation, [Label("q1", "faithfulness", 1.0, "ann")], "faithfulness")
    found = find_biases(evaluation, joined)
    assert found.found == ()
    assert found.reason == "the labelled answers are all alike"


def test_lengths_are_compared_in_steps_that_the_answers_have() -> None:
    values = [value(f"q{number}", "faithfulness", 0.02 * (number % 30)) for number in range(60)]
    samples = [sample(f"q{number}", answer="word " * (number % 30)) for number in range(60)]
    evaluation = answered(values, samples)
    labels = [Label(f"q{number}", "faithfulness", 0.2, "ann") for number in range(60)]
    (length,) = find_biases(evaluation, join_labels(evaluation, labels, "faithfulness")).found
    assert str(length).startswith("10 more words make the judge 0.200 [0.200, 0.200] more generous (adjusted p < ")
    assert length.standardized == pytest.approx(1)
    assert length.at_equal_labels == length.effect
    assert length.explain() is None


def judge(
    count: int,
    describe: Callable[[int, np.random.Generator], tuple[float, float, dict[str, Any]]],
    seed: int = 5,
    **label: Any,
) -> Biases:
    """The biases of a judge whose value and label of each of `count` samples are described by a function."""
    random = np.random.default_rng(seed)
    values, samples, labels = [], [], []
    for number in range(count):
        judged, said, content = describe(number, random)
        values.append(value(f"q{number}", "faithfulness", judged, content.pop("system", "v1")))
        samples.append(sample(f"q{number}", values[-1]["system"], **content))
        labels.append(Label(f"q{number}", "faithfulness", said, "ann", system=values[-1]["system"], **label))
    evaluation = answered(values, samples)
    return find_biases(evaluation, join_labels(evaluation, labels, "faithfulness"))


def test_a_judge_that_is_strict_with_a_language_is_found_out() -> None:
    def describe(number: int, random: np.random.Generator) -> tuple[float, float, dict[str, Any]]:
        truth = float(random.random() < 0.5)
        german = number % 3 == 0
        answer = "Die Brücke wurde nicht gebaut." if german else "The bridge was not built."
        answer += " 1911" * int(random.integers(1, 30))
        return 0.2 + 0.6 * truth - 0.1 * german + random.normal(0, 0.02), truth * 0.6 + 0.2, {"answer": answer}

    found = {one.name: one for one in judge(90, describe).found}
    assert found["language de"].effect.slope == pytest.approx(-0.1, abs=0.03)
    assert str(found["language de"]).startswith("German instead of English makes the judge 0.")
    assert "more strict" in str(found["language de"])


def test_the_questions_own_column_says_their_language() -> None:
    def describe(number: int, random: np.random.Generator) -> tuple[float, float, dict[str, Any]]:
        language = "Klingon" if number % 2 else "en"
        return 0.5 + random.normal(0, 0.1), 0.5, {"columns": json.dumps({"language": language})}

    (found,) = judge(60, describe).found
    assert found.name == "language Klingon"
    assert found.change == "Klingon instead of English makes"


def test_properties_that_cannot_be_compared_are_named_with_the_reason() -> None:
    def describe(number: int, random: np.random.Generator) -> tuple[float, float, dict[str, Any]]:
        system = "v2" if number % 2 else "v1"
        slices = ["set=a"] if number % 2 else ["set=b", "rare"] if number < 8 else ["set=b"]
        words = int(random.integers(1, 40))
        content = {"system": system, "slices": slices, "answer": "1 " * words, "contexts": ["text"]}
        return 0.5 + random.normal(0, 0.1), 0.5, content

    found = judge(100, describe)
    assert {one.name for one in found.found} == {"length", "system v2"}
    assert {one.name: one.reason for one in found.left_out} == {
        "contexts": "all labelled items are alike",
        "language": "it is not clear for any answer",
        "own model": "the spec names no `generator` of a labelled system, or the judge asks no model",
        "style": "no chat model is known behind the judge",
        "slice set=a": "cannot be told apart from system v2",
        "slice set=b": "cannot be told apart from system v2",
        "slice rare": "only 4 labelled items with it; 10 are needed",
    }


def test_few_questions_compare_only_the_first_properties() -> None:
    def describe(number: int, random: np.random.Generator) -> tuple[float, float, dict[str, Any]]:
        content = {"answer": "1 " * int(random.integers(1, 40)), "contexts": ["text"] * int(random.integers(1, 5))}
        return 0.5 + random.normal(0, 0.1), 0.5, content

    found = judge(19, describe)
    assert [one.name for one in found.found] == ["length"]
    assert ("contexts", "19 labelled questions are too few for it") in {
        (one.name, one.reason) for one in found.left_out
    }
    none = judge(9, describe)
    assert none.found == ()
    assert none.reason == "9 labelled questions; 10 are needed for each property"


def test_an_effect_that_only_people_have_is_told_from_one_of_the_judge() -> None:
    def describe(number: int, random: np.random.Generator) -> tuple[float, float, dict[str, Any]]:
        # People like long answers. The judge says nearly the same of all, whatever their length.
        words = int(random.integers(10, 300))
        return 0.5 + random.normal(0, 0.02), float(random.random() < words / 300), {"answer": "1 " * words}

    (length,) = judge(150, describe).found
    assert length.is_significant
    assert length.effect.slope < 0
    assert length.explain() == "Among answers that people rate the same, it does not show."


def test_labelled_claims_are_compared_by_their_own_lengths_and_places() -> None:
    random = np.random.default_rng(6)
    values, samples, labels = [], [], []
    for number in range(50):
        claims = []
        for place in range(2):
            words, source = int(random.integers(2, 40)), int(random.integers(0, 4))
            score = 0.2 + 0.01 * words + 0.05 * source + float(random.normal(0, 0.01))
            claims.append({"text": "w " * words, "score": score, "source": source})
            labels.append(Label(f"q{number}", "faithfulness", 0.5, "ann", claim=place))
        values.append(value(f"q{number}", "faithfulness", 0.5, details={"claims": claims}))
        samples.append(sample(f"q{number}", contexts=["a", "b", "c", "d"]))
    evaluation = answered(values, samples)
    joined = join_labels(evaluation, labels, "faithfulness")
    found = {one.name: one for one in find_biases(evaluation, joined).found}
    assert found["length"].effect.slope == pytest.approx(0.1, abs=0.01)
    assert str(found["length"]).startswith("10 more words in a claim make the judge 0.")
    assert found["evidence"].effect.slope == pytest.approx(0.05, abs=0.01)


def test_results_without_samples_have_no_properties() -> None:
    values = [value(f"q{number}", "faithfulness", number / 40) for number in range(40)]
    evaluation = answered(values)
    labels = [Label(f"q{number}", "faithfulness", 0.5, "ann") for number in range(40)]
    found = find_biases(evaluation, join_labels(evaluation, labels, "faithfulness"))
    assert found.reason == "the labelled answers are all alike"


def test_an_effect_can_be_the_other_way_round_among_equal_labels() -> None:
    def describe(number: int, random: np.random.Generator) -> tuple[float, float, dict[str, Any]]:
        # The judge sees little, so that bad answers are overrated; most of v2's are bad. It is strict with v2.
        system = "v2" if number % 2 else "v1"
        truth = float(random.random() < (0.1 if system == "v2" else 0.9))
        judged = 0.5 + 0.1 * truth - 0.1 * (system == "v2") + random.normal(0, 0.02)
        return judged, truth, {"system": system}

    found = {one.name: one for one in judge(200, describe).found}["system v2"]
    assert "more generous" in str(found)
    explained = found.explain()
    assert explained is not None
    assert explained.startswith("Among answers that people rate the same, it is the other way round: 0.")
    assert explained.endswith("more strict.")


def test_answers_that_were_chosen_more_often_count_less() -> None:
    # Long answers that the judge overrates were chosen for sure, others with a probability of 1 in 10.
    random = np.random.default_rng(2)
    values, samples, labels = [], [], []
    for number in range(1200):
        words, error = int(random.integers(10, 300)), float(random.normal(0, 0.2))
        odd = words > 150 and error > 0
        if odd or random.random() < 0.1:
            values.append(value(f"q{number}", "faithfulness", 0.5 + error))
            samples.append(sample(f"q{number}", answer="1 " * words))
            labels.append(Label(f"q{number}", "faithfulness", 0.5, "ann", probability=1.0 if odd else 0.1))
    evaluation = answered(values, samples)
    (weighted,) = find_biases(evaluation, join_labels(evaluation, labels, "faithfulness")).found
    unweighted = [replace(label, probability=None) for label in labels]
    (naive,) = find_biases(evaluation, join_labels(evaluation, unweighted, "faithfulness")).found
    assert naive.is_significant
    assert not weighted.is_significant


def count_findings(bias: float, draws: int) -> float:
    """In how many draws of 60 answers to 40 questions a significant effect of length is found, as a share.

    Values are noisy, with a spread that grows with the length, and answers to one question share a part of it.
    """
    names = ("length", "contexts", "language")
    random, hits = np.random.default_rng(11), 0
    questions = [*range(40), *range(20)]
    for _ in range(draws):
        shared = random.normal(0, 0.1, 40)[questions]
        predictors = {name: random.exponential(1, 60) for name in names}
        errors = bias * predictors["length"] + shared + random.normal(0, 0.1, 60) * (0.5 + predictors["length"] / 2)
        effects = regress(errors, predictors, questions)
        adjusted = kernels.holm([effect.p_value for effect in effects])
        hits += any(p_value < 0.05 for p_value in adjusted) if bias == 0 else adjusted[0] < 0.05
    return hits / draws


def test_a_planted_bias_is_found_and_an_absent_one_is_not() -> None:
    assert count_findings(0.15, 100) >= 0.9
    assert count_findings(0.0, 300) <= 0.075
