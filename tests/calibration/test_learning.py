"""What more labels would bring."""

from __future__ import annotations

import numpy as np
import pytest

from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.calibration.learning import Learning, measure_part
from rageval_spec.calibration.measuring import measure_judge


def join(labels: int, rows: int, skill: float = 0.7, constant: float | None = None) -> Joined:
    random = np.random.default_rng(1)
    truth = (random.random(rows) < 0.6).astype(np.float64) if constant is None else np.full(rows, constant)
    judged = np.where(random.random(rows) < skill, 0.1 + 0.8 * truth, random.random(rows))
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(rows)]
    others = dict(zip(items[labels:], judged[labels:].tolist(), strict=True))
    return Joined(
        "faithfulness",
        tuple(items[:labels]),
        tuple(judged[:labels].tolist()),
        tuple(truth[:labels].tolist()),
        (),
        others,
    )


def plan(joined: Joined, width: float = 0.1) -> Learning:
    found = measure_judge(joined, width=width, resamples=300).learning
    assert found is not None
    return found


def test_a_judge_saves_labels() -> None:
    found = plan(join(120, 1000))
    with_judge, without = found.find("corrected_mean"), found.find("labels_alone")
    assert with_judge is not None and without is not None
    assert with_judge.labels is not None and without.labels is not None
    assert with_judge.labels < 0.8 * without.labels
    assert with_judge.labels_interval is not None
    assert with_judge.labels_interval.low < with_judge.labels < with_judge.labels_interval.high


def test_the_curve_falls_and_goes_on_as_far_as_there_are_answers() -> None:
    found = plan(join(120, 600))
    assert [(point.labels, point.is_measured) for point in found.curve] == [
        (30, True), (60, True), (120, True), (240, False), (480, False),
    ]  # fmt: skip
    for name in ("corrected_mean", "labels_alone", "auroc", "kappa"):
        widths = [point.widths[name] for point in found.curve]
        assert widths == sorted(widths, reverse=True)


def test_parts_of_the_labels_have_the_expected_widths() -> None:
    joined = join(400, 400)
    found, part = plan(joined), measure_part(joined, 100, 42)
    expected = next(point for point in found.curve if point.labels == 100)
    assert part["labels_alone"] == expected.widths["labels_alone"]
    assert part["labels_alone"] == pytest.approx(2 * found.curve[-1].widths["labels_alone"], rel=0.05)


def test_an_interval_that_is_narrow_enough_needs_no_more() -> None:
    found = plan(join(300, 1000), width=0.5)
    assert all(need.is_met(0.5) for need in found.needs)
    auroc = found.find("auroc")
    assert auroc is not None and auroc.labels == 300


def test_a_width_that_labels_of_all_answers_would_not_reach() -> None:
    need = plan(join(100, 200), width=0.01).find("corrected_mean")
    assert need is not None and need.labels is None and need.labels_interval is None


@pytest.mark.parametrize("joined", [join(1, 10), join(40, 60, constant=1.0)], ids=["one label", "all yes"])
def test_without_a_spread_there_is_no_plan(joined: Joined) -> None:
    assert measure_judge(joined, resamples=50).learning is None
