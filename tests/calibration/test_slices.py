"""How close a judge comes to people on each system and slice."""

from __future__ import annotations

import numpy as np
import pytest

from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.slices import SliceCalibration, measure_slices
from rageval_spec.data.labels import Label
from tests.answered_evaluation import answered, sample, value


def measure(count: int = 40) -> dict[str, SliceCalibration]:
    """A judge that is 0.2 too generous about v2, and cannot tell right from wrong on hard questions."""
    random = np.random.default_rng(1)
    values, samples, labels = [], [], []
    for number in range(count):
        hard = number % 2 == 0
        for system in ("v1", "v2"):
            truth = float(random.random() < 0.5)
            judged = 0.4 if hard else 0.2 + 0.4 * truth
            values.append(value(f"q{number}", "faithfulness", judged + 0.2 * (system == "v2"), system))
            slices = ["level=hard"] if hard else ["level=easy", *(["rare"] if number == 1 else [])]
            samples.append(sample(f"q{number}", system, slices=slices))
            labels.append(Label(f"q{number}", "faithfulness", truth, "ann", system=system))
    evaluation = answered(values, samples)
    joined = join_labels(evaluation, labels, "faithfulness")
    return {f"{one.kind} {one.name}": one for one in measure_slices(evaluation, joined, resamples=200)}


def test_systems_and_slices_are_measured_apart() -> None:
    found = measure()
    assert [*found] == ["system v1", "system v2", "slice level=hard", "slice level=easy", "slice rare"]
    first, second = (found[f"system {name}"].bias for name in ("v1", "v2"))
    assert first is not None and second is not None and first.value is not None and second.value is not None
    assert found["system v1"].items == 40
    assert found["system v2"].judged - found["system v1"].judged == pytest.approx(0.2, abs=0.1)
    hard, easy = (found[f"slice level={name}"].auroc for name in ("hard", "easy"))
    assert hard is not None and easy is not None and hard.value is not None and easy.value is not None
    assert hard.value < 0.75 < easy.value
    assert hard.interval is not None
    assert easy.interval is None  # without a mistake, no resample has one


def test_a_slice_with_few_labels_has_no_numbers() -> None:
    rare = measure()["slice rare"]
    assert (rare.items, rare.bias, rare.auroc) == (2, None, None)


def test_one_system_is_no_part() -> None:
    values = [value(f"q{number}", "faithfulness", 0.5) for number in range(12)]
    evaluation = answered(values, [sample(f"q{number}") for number in range(12)])
    labels = [Label(f"q{number}", "faithfulness", 1.0, "ann") for number in range(12)]
    assert measure_slices(evaluation, join_labels(evaluation, labels, "faithfulness")) == ()


def test_labels_that_all_say_the_same_have_a_bias_and_no_auroc() -> None:
    values = [value(f"q{number}", "faithfulness", number / 12) for number in range(12)]
    evaluation = answered(values, [sample(f"q{number}", slices=["all"]) for number in range(12)])
    labels = [Label(f"q{number}", "faithfulness", 1.0, "ann") for number in range(12)]
    (found,) = measure_slices(evaluation, join_labels(evaluation, labels, "faithfulness"), resamples=100)
    assert found.bias is not None and found.bias.value == pytest.approx(11 / 24 - 1)
    assert found.auroc is None
