"""What makes a judge err is found, said in words, and not made up.

Self-preference: what a judge gives its own model's answers beyond what people give them, at equal labels.

The properties of labelled answers: their numbers, and what is said of those that cannot be compared.

Closeness to the judge's own wording: what is close is found, a quoted answer and the topic are not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rageval_spec import kernels
from rageval_spec.calibration.bias import (
    Bias,
    Biases,
    LeftOut,
    Property,
    compare_slices,
    compare_style,
    find_biases,
    find_own_systems,
    list_properties,
    measure_closeness,
)
from rageval_spec.calibration.labelled_items import join_labels, read_item_samples
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
        "slice set=a": "cannot be distinguished from system v2",
        "slice set=b": "cannot be distinguished from system v2",
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
            labels.append(Label(f"q{number:02}", "faithfulness", 0.5, "ann", claim=place))
        values.append(value(f"q{number:02}", "faithfulness", 0.5, details={"claims": claims}))
        samples.append(sample(f"q{number:02}", contexts=["a", "b", "c", "d"]))
    evaluation = answered(values, samples)
    joined = join_labels(evaluation, labels, "faithfulness")
    found = {one.name: one for one in find_biases(evaluation, joined).found}
    assert found["length"].effect.slope == pytest.approx(0.1, abs=0.01)
    assert str(found["length"]).startswith("10 more words in a claim make the judge 0.")
    assert found["evidence"].effect.slope == pytest.approx(0.05, abs=0.01)


def test_results_without_samples_have_no_properties() -> None:
    values = [value(f"q{number:02}", "faithfulness", number / 40) for number in range(40)]
    evaluation = answered(values)
    labels = [Label(f"q{number:02}", "faithfulness", 0.5, "ann") for number in range(40)]
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
            values.append(value(f"q{number:02}", "faithfulness", 0.5 + error))
            samples.append(sample(f"q{number:02}", answer="1 " * words))
            labels.append(Label(f"q{number:02}", "faithfulness", 0.5, "ann", probability=1.0 if odd else 0.1))
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


MODELS = {"gpt": "gpt-4o", "mini": "gpt-4o-mini", "llama": "llama3.1:8b"}
QUALITY = {"gpt": 0.8, "mini": 0.5, "llama": 0.4, "none": 0.3}


def spec(systems: list[str], model: str = "gpt-4o") -> dict[str, Any]:
    """A spec whose judge asks a model, and whose systems have generators."""
    return {
        "metrics": [{"use": "faithfulness", "judge": "strict"}],
        "judges": {"strict": {"use": "grade", "model": "m"}},
        "models": {"m": {"use": "chat", "base_url": "http://localhost:1", "model": model}},
        "systems": {name: {"generator": MODELS[name]} if name in MODELS else {} for name in systems},
    }


def find_own(
    systems: list[str],
    judge: Callable[[str, float, np.random.Generator], float],
    count: int = 60,
    recorded: dict[str, Any] | None = None,
) -> Biases:
    """The biases of a judge on answers whose quality depends on the system."""
    random = np.random.default_rng(8)
    values, samples, labels = [], [], []
    for number in range(count):
        for system in systems:
            truth = float(random.random() < QUALITY[system])
            answer = "1 " * int(random.integers(5, 60))
            values.append(value(f"q{number:02}", "faithfulness", judge(system, truth, random), system))
            samples.append(sample(f"q{number:02}", system, answer=answer))
            labels.append(Label(f"q{number:02}", "faithfulness", truth, "ann", system=system))
    evaluation = answered(values, samples, spec=spec(systems) if recorded is None else recorded)
    return find_biases(evaluation, join_labels(evaluation, labels, "faithfulness"))


def own(biases: Biases) -> Bias:
    return next(one for one in biases.found if one.name == "own model")


def why(biases: Biases) -> str:
    return next(one.reason for one in biases.left_out if one.name == "own model")


def test_a_judge_that_favours_its_own_model_is_found_out() -> None:
    found = own(
        find_own(["llama", "gpt"], lambda name, truth, random: 0.2 + 0.5 * truth + 0.08 * (name == "gpt")
             + random.normal(0, 0.05))
    )  # fmt: skip
    assert found.is_significant
    assert found.effect.slope == pytest.approx(0.08, abs=0.02)
    assert str(found).startswith("Answers of its own model (gpt) make the judge 0.0")
    assert "more generous than answers of other models that people rate the same (adjusted p < 0.0001)." in str(found)


def test_better_answers_of_its_own_model_are_no_preference() -> None:
    # The judge hardly tells good from bad. Its error is smaller for the better system, but not at equal labels.
    found = find_own(["llama", "gpt"], lambda name, truth, random: 0.5 + 0.1 * truth + random.normal(0, 0.05), 150)
    by_name = {one.name: one for one in found.found}
    assert by_name["system gpt"].is_significant
    assert by_name["system gpt"].explain() is not None
    assert not by_name["own model"].is_significant


def test_a_family_counts_as_its_own_and_an_unknown_generator_as_neither() -> None:
    def favour(name: str, truth: float, random: np.random.Generator) -> float:
        return 0.2 + 0.5 * truth + {"mini": 0.1, "none": 0.3}.get(name, 0.0) + float(random.normal(0, 0.05))

    found = own(find_own(["llama", "mini", "none"], favour))
    assert found.effect.slope == pytest.approx(0.1, abs=0.02)
    assert found.change == "Answers of its own model or its family (mini) make"


@pytest.mark.parametrize(
    ("systems", "count", "reason"),
    [
        (["gpt"], 60, "only 0 labelled items of other models; 10 are needed"),
        (["llama", "none"], 60, "only 0 labelled items of the judge's own model; 10 are needed"),
        (["none"], 60, "the spec names no `generator` of a labelled system, or the judge asks no model"),
        (["gpt", "llama"], 9, "only 9 labelled items of the judge's own model; 10 are needed"),
    ],
)
def test_what_cannot_be_compared_is_said(systems: list[str], count: int, reason: str) -> None:
    found = find_own(systems, lambda name, truth, random: truth + random.normal(0, 0.1), count)
    assert why(found) == reason
    assert "own model" not in {one.name for one in found.found}


def test_labels_that_are_all_the_same_are_equal_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUALITY, "gpt", 1.0)
    monkeypatch.setitem(QUALITY, "llama", 1.0)
    found = own(
        find_own(["llama", "gpt"], lambda name, truth, random: truth - random.random() / 5 - 0.1 * (name != "gpt"))
    )
    assert found.effect.slope == pytest.approx(0.1, abs=0.03)


def test_only_the_same_models_answers_are_its_own_texts() -> None:
    evaluation = answered(
        [value("q1", "faithfulness", 1.0, name) for name in ("gpt", "mini", "llama")],
        [sample("q1", name) for name in ("gpt", "mini", "llama")],
        spec=spec(["gpt", "mini", "llama"]),
    )
    assert find_own_systems(evaluation, "faithfulness") == {"gpt"}


ENGLISH, GERMAN = "It is not the one that was built.", "Das ist nicht die Brücke, die gebaut wurde."


def describe(*contents: dict[str, Any]) -> dict[str, Property | LeftOut]:
    """The properties of answers, each with these parts of its sample; `system` and `claims` are its own."""
    values, samples, labels = [], [], []
    for number, content in enumerate(contents):
        system, claims = content.pop("system", "v1"), content.pop("claims", [])
        values.append(
            value(f"q{number:02}", "faithfulness", 0.5, system, details={"claims": claims} if claims else None)
        )
        samples.append(sample(f"q{number:02}", system, **content))
        labels.append(Label(f"q{number:02}", "faithfulness", 1.0, "ann", system=system))
    evaluation = answered(values, samples)
    joined = join_labels(evaluation, labels, "faithfulness")
    read = read_item_samples(evaluation, joined)
    return {one.name: one for one in (*list_properties(evaluation, joined, read), *compare_slices(joined, read))}


def numbers(found: Property | LeftOut) -> list[float]:
    assert isinstance(found, Property)
    return [*found.numbers]


def test_lengths_contexts_and_evidence_are_counted() -> None:
    claims = [{"text": "a", "score": 1.0, "source": 2}, {"text": "b", "score": 0.0, "source": 1}]
    found = describe({"answer": "w " * 30, "contexts": ["a", "b", "c"], "claims": claims}, {"answer": None})
    assert numbers(found["length"]) == [3.0, 0.0]
    assert numbers(found["contexts"]) == [3.0, 0.0]
    assert numbers(found["evidence"]) == [1.5, 1.5]


@pytest.mark.parametrize(
    ("words", "change"),
    [(200, "100 more words make"), (199, "10 more words make"), (19, "1 more word makes"), (0, "1 more word makes")],
)
def test_lengths_are_compared_by_what_the_answers_have(words: int, change: str) -> None:
    found = describe({"answer": "w " * words})["length"]
    assert isinstance(found, Property)
    assert found.change == change


def test_small_groups_and_unclear_languages_are_kept_apart() -> None:
    contents: list[dict[str, Any]] = [{"answer": ENGLISH} for _ in range(12)]
    contents += [{"answer": GERMAN} for _ in range(10)]
    contents += [{"answer": "Paris", "columns": json.dumps({"language": "fr"})} for _ in range(3)]
    contents += [{"answer": "1911", "question": "1911?"} for _ in range(2)]
    found = describe(*contents)
    assert numbers(found["language de"]) == [0.0] * 12 + [1.0] * 10 + [0.0] * 5
    assert found["language fr"] == LeftOut("language fr", "only 3 labelled items with it; 10 are needed")
    rest = found["other language"]
    assert numbers(rest) == [0.0] * 22 + [1.0] * 5
    assert isinstance(rest, Property)
    assert not rest.is_shown


def test_the_question_says_the_language_of_an_unclear_answer() -> None:
    contents: list[dict[str, Any]] = [{"answer": "1911", "question": ENGLISH} for _ in range(10)]
    contents += [{"answer": "1911", "question": GERMAN} for _ in range(10)]
    assert numbers(describe(*contents)["language de"]) == [0.0] * 10 + [1.0] * 10


def test_slices_of_all_or_few_items_are_left_out() -> None:
    contents: list[dict[str, Any]] = [
        {"slices": ["all", *(["half"] if n % 2 else []), *(["rare"] if n < 2 else [])]} for n in range(30)
    ]
    found = describe(*contents)
    assert sum(numbers(found["slice half"])) == 15
    assert found["slice all"] == LeftOut("slice all", "all labelled items have it")
    assert found["slice rare"] == LeftOut("slice rare", "only 2 labelled items with it; 10 are needed")


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


def describe_style(
    spec: dict[str, Any], reasons: int = 30, system: str = "v1", own: frozenset[str] = frozenset()
) -> Any:
    random = np.random.default_rng(3)
    values, samples, labels = [], [], []
    for number in range(30):
        claim = {"text": "x", "verdict": "supported", "score": 1.0}
        claim |= {"reason": write(ORNATE, random)} if number < reasons else {}
        values.append(value(f"q{number:02}", "faithfulness", 0.5, system, details={"claims": [claim]}))
        samples.append(sample(f"q{number:02}", system, answer=write(ORNATE if number % 2 else PLAIN, random)))
        labels.append(Label(f"q{number:02}", "faithfulness", 1.0, "ann", system=system))
    evaluation = answered(values, samples, spec=spec)
    joined = join_labels(evaluation, labels, "faithfulness")
    return compare_style(evaluation, joined, read_item_samples(evaluation, joined), own)


def test_the_property_counts_standard_deviations() -> None:
    found = describe_style(SPEC)
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
    assert describe_style(spec, reasons) == LeftOut("style", why)


def test_answers_of_its_own_model_are_its_texts_too() -> None:
    assert isinstance(describe_style(SPEC, reasons=0, own=frozenset({"v1"})), Property)
