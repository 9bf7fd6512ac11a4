"""What a calibration says of a judge that is right, that guesses, and that is too generous.

How close a judge comes to people on each system and slice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from rageval_spec.calibration.judge_quality import Calibration, SliceCalibration, measure_judge, measure_slices
from rageval_spec.calibration.labelled_items import Item, Joined, join_labels
from rageval_spec.calibration.thresholds import promise
from rageval_spec.data.labels import Label, LabelScale
from tests.answered_evaluation import answered, sample, value


def join(
    judged: Mapping[str, float], labelled: Mapping[str, float], others: Mapping[str, float] | None = None
) -> Joined:
    items: list[Item] = [("golden", "v1", name, None) for name in judged]
    return Joined(
        metric="faithfulness",
        items=tuple(items),
        judged=tuple(judged.values()),
        labelled=tuple(labelled[name] for name in judged),
        labels=tuple(Label(name, "faithfulness", float(labelled[name] > 0.5), "ann") for name in judged),
        others={("golden", "v1", name, None): number for name, number in (others or {}).items()},
    )


def simulate(count: int, skill: float, seed: int = 1) -> Calibration:
    """A judge whose value is the truth with this probability, and noise otherwise."""
    random = np.random.default_rng(seed)
    truth = (random.random(count) < 0.6).astype(float)
    noise = random.random(count)
    knows = random.random(count) < skill
    judged = np.where(knows, 0.2 + 0.6 * truth, noise)
    names = [f"q{number}" for number in range(count)]
    return measure_judge(
        join(dict(zip(names, judged, strict=True)), dict(zip(names, truth, strict=True))), resamples=300
    )


def find(found: Calibration, name: str) -> float | None:
    every = (*found.association, *found.discrimination, *found.decisions)
    return next(one.value for one in every if one.name == name)


def test_a_judge_that_is_always_right() -> None:
    found = simulate(80, 1.0)
    assert [find(found, name) for name in ("auroc", "balanced_accuracy", "kappa", "spearman")] == pytest.approx(
        [1.0] * 4
    )
    assert found.threshold is not None and found.threshold.threshold == pytest.approx(0.5)
    assert (found.items, found.yes + found.no, found.is_few) == (80, 80, False)


def test_decisions_are_measured_on_questions_that_had_no_part_in_the_threshold() -> None:
    found = simulate(100, 0.0)
    assert found.threshold is not None and found.threshold.threshold is not None
    accuracy = next(one for one in found.decisions if one.name == "balanced_accuracy")
    assert accuracy.interval is not None and accuracy.interval.low < 0.5 < accuracy.interval.high


def test_two_answers_to_one_question_are_never_on_both_sides_of_a_fold() -> None:
    # Each question has its own threshold, so that only another answer to the same question could tell.
    items = [("golden", system, f"q{number}", None) for number in range(40) for system in ("a", "b")]
    random = np.random.default_rng(3)
    base = np.repeat(random.random(40), 2)
    labelled = np.tile([1.0, 0.0], 40)
    joined = Joined(
        "faithfulness",
        tuple(items),
        tuple(base + np.where(labelled > 0, 0.001, 0.0)),
        tuple(labelled),
        tuple(
            Label(item[2], "faithfulness", said, "ann", system=item[1])
            for item, said in zip(items, labelled, strict=True)
        ),
        {},
    )
    found = measure_judge(joined, resamples=200)
    assert (find(found, "auroc") or 0) < 0.55
    assert (find(found, "balanced_accuracy") or 0) < 0.6


def test_a_generous_judge_has_a_bias_and_a_corrected_mean() -> None:
    random = np.random.default_rng(5)
    truth = (random.random(400) < 0.5).astype(float)
    judged = np.clip(0.5 + 0.4 * truth + random.normal(0, 0.05, 400), 0, 1)
    names = [f"q{number}" for number in range(400)]
    values, labels = dict(zip(names, judged, strict=True)), dict(zip(names, truth, strict=True))
    first = {name: values[name] for name in names[:80]}
    found = measure_judge(join(first, labels, {name: values[name] for name in names[80:]}), resamples=200)
    bias = next(one for one in found.association if one.name == "bias")
    assert bias.interval is not None and bias.interval.low > 0.1
    assert found.mean.judged > 0.65
    assert found.mean.interval is not None
    assert found.mean.interval.low < truth.mean() < found.mean.interval.high
    assert found.mean.worth is not None and found.mean.worth > 200


def test_labels_that_all_say_the_same_tell_nothing_about_right_and_wrong() -> None:
    found = measure_judge(join({"q1": 0.2, "q2": 0.8}, {"q1": 1.0, "q2": 1.0}), resamples=50)
    assert (found.discrimination, found.decisions, found.threshold) == ((), (), None)
    pearson = found.association[0]
    assert (pearson.value, pearson.reason) == (None, "the values, or the labels, are all the same")


def test_items_on_which_people_are_divided_are_neither_yes_nor_no() -> None:
    found = measure_judge(join({"q1": 0.2, "q2": 0.8, "q3": 0.5}, {"q1": 0.0, "q2": 1.0, "q3": 0.5}), resamples=50)
    assert (found.items, found.yes, found.no) == (3, 1, 1)
    assert found.decisions == ()  # too few questions to hold some out
    assert found.is_few


def test_a_promise_counts_one_answer_of_each_question() -> None:
    items = tuple(("golden", system, f"q{number}", None) for number in range(100) for system in ("a", "b"))
    joined = Joined("faithfulness", items, (0.9,) * 200, (1.0,) * 200, (), {})
    found = promise(joined, 0.04, 0.95)
    assert found.items == 100
    assert found.wanted is not None and found.wanted.sent == 100
    unkept = promise(joined, 0.01, 0.95)
    assert unkept.wanted is None
    assert unkept.best is not None and unkept.best.limit == pytest.approx(0.03)


def test_answers_on_which_people_are_divided_count_as_wrong() -> None:
    items = tuple(("golden", "a", f"q{number}", None) for number in range(100))
    joined = Joined("faithfulness", items, (0.9,) * 100, (0.5,) * 100, (), {})
    assert promise(joined, 0.5, 0.95).wanted is None


def test_questions_that_belong_together_widen_every_interval() -> None:
    random = np.random.default_rng(3)
    truth = np.repeat(random.random(30) < 0.6, 4).astype(float)
    judged = np.clip(truth * 0.2 + np.repeat(random.random(30), 4) * 0.8, 0, 1)
    names = [f"q{number}" for number in range(120)]
    alone = join(dict(zip(names, judged, strict=True)), dict(zip(names, truth, strict=True)))
    clusters = {("golden", name): ("golden", place // 4) for place, name in enumerate(names)}
    widths = []
    for joined in (alone, replace(alone, together=clusters)):
        found = measure_judge(joined, resamples=300)
        intervals = [one.interval for one in (*found.association, *found.discrimination)] + [found.mean.interval]
        widths.append([one.high - one.low for one in intervals if one is not None])
    assert all(together > 1.3 * apart for apart, together in zip(*widths, strict=True))
    assert promise(replace(alone, together=clusters), 0.5, 0.9).items == 30


def test_peoples_own_kappa_is_that_of_their_yes_and_no() -> None:
    ann = [5, 4, 4, 2, 1, 2, 3, 5]
    bob = [4, 5, 2, 1, 2, 4, 5, 3]
    names = [f"q{number}" for number in range(len(ann))]
    plain = join(dict.fromkeys(names, 0.5), dict.fromkeys(names, 0.5))
    labels = [
        Label(name, "faithfulness", float(value), who)
        for who, values in (("ann", ann), ("bob", bob))
        for name, value in zip(names, values, strict=True)
    ]
    found = measure_judge(replace(plain, labels=tuple(labels), scale=LabelScale(1, 5)), resamples=200).people_decisions
    # A 3 is neither yes nor no. Of the other six pairs, four agree; by chance, 0.5 * 0.5 + 0.5 * 0.5 would.
    assert found.coefficient == "kappa" and found.items == 6
    assert found.value == pytest.approx((4 / 6 - 0.5) / 0.5)


def test_three_people_have_fleiss_kappa_if_all_items_have_all_labels() -> None:
    names = [f"q{number}" for number in range(12)]
    plain = join(dict.fromkeys(names, 0.5), dict.fromkeys(names, 0.5))
    labels = [Label(name, "faithfulness", float(place % 2), who) for who in "abc" for place, name in enumerate(names)]
    full = measure_judge(replace(plain, labels=tuple(labels)), resamples=200).people_decisions
    assert full.coefficient == "fleiss"
    assert full.value == pytest.approx(1.0)
    parts = measure_judge(replace(plain, labels=tuple(labels[:-1])), resamples=200).people_decisions
    assert parts.coefficient == "alpha-nominal"
    assert parts.value == pytest.approx(1.0)


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
