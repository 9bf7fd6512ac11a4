"""Self-preference: what a judge gives its own model's answers beyond what people give them, at equal labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rageval_spec.calibration.bias import Bias, Biases, find_biases
from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.own_model import find_own_systems
from rageval_spec.data.labels import Label
from tests.answered_evaluation import answered, sample, value

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


def find(
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
            values.append(value(f"q{number}", "faithfulness", judge(system, truth, random), system))
            samples.append(sample(f"q{number}", system, answer=answer))
            labels.append(Label(f"q{number}", "faithfulness", truth, "ann", system=system))
    evaluation = answered(values, samples, spec=spec(systems) if recorded is None else recorded)
    return find_biases(evaluation, join_labels(evaluation, labels, "faithfulness"))


def own(biases: Biases) -> Bias:
    return next(one for one in biases.found if one.name == "own model")


def why(biases: Biases) -> str:
    return next(one.reason for one in biases.left_out if one.name == "own model")


def test_a_judge_that_favours_its_own_model_is_found_out() -> None:
    found = own(
        find(["llama", "gpt"], lambda name, truth, random: 0.2 + 0.5 * truth + 0.08 * (name == "gpt")
             + random.normal(0, 0.05))
    )  # fmt: skip
    assert found.is_significant
    assert found.effect.slope == pytest.approx(0.08, abs=0.02)
    assert str(found).startswith("Answers of its own model (gpt) make the judge 0.0")
    assert "more generous than answers of other models that people rate the same (adjusted p < 0.0001)." in str(found)


def test_better_answers_of_its_own_model_are_no_preference() -> None:
    # The judge hardly tells good from bad. Its error is smaller for the better system, but not at equal labels.
    found = find(["llama", "gpt"], lambda name, truth, random: 0.5 + 0.1 * truth + random.normal(0, 0.05), 150)
    by_name = {one.name: one for one in found.found}
    assert by_name["system gpt"].is_significant
    assert by_name["system gpt"].explain() is not None
    assert not by_name["own model"].is_significant


def test_a_family_counts_as_its_own_and_an_unknown_generator_as_neither() -> None:
    def favour(name: str, truth: float, random: np.random.Generator) -> float:
        return 0.2 + 0.5 * truth + {"mini": 0.1, "none": 0.3}.get(name, 0.0) + float(random.normal(0, 0.05))

    found = own(find(["llama", "mini", "none"], favour))
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
    found = find(systems, lambda name, truth, random: truth + random.normal(0, 0.1), count)
    assert why(found) == reason
    assert "own model" not in {one.name for one in found.found}


def test_labels_that_are_all_the_same_are_equal_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUALITY, "gpt", 1.0)
    monkeypatch.setitem(QUALITY, "llama", 1.0)
    found = own(find(["llama", "gpt"], lambda name, truth, random: truth - random.random() / 5 - 0.1 * (name != "gpt")))
    assert found.effect.slope == pytest.approx(0.1, abs=0.03)


def test_only_the_same_models_answers_are_its_own_texts() -> None:
    evaluation = answered(
        [value("q1", "faithfulness", 1.0, name) for name in ("gpt", "mini", "llama")],
        [sample("q1", name) for name in ("gpt", "mini", "llama")],
        spec=spec(["gpt", "mini", "llama"]),
    )
    assert find_own_systems(evaluation, "faithfulness") == {"gpt"}
