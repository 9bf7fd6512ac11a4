"""The same labelled answers, measured by rageval-spec, truescore and judgekeeper in one run.

    uv run --with truescore==0.7.4 --with judgekeeper==0.1.3 python benches/judge_peers.py [FOLDER]

FOLDER contains `faithfulness/` and `human/` with the labelled sets. Prints a figure a row, with what each says, and the
largest difference of numbers whose formula is the same. Exits with 1 if that is above 1e-9. Where formulas differ, both
are shown with the reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from corrected_means import judge, list_halueval, list_ratings, list_scifact, read
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HERE = Path(__file__).resolve().parent
SAME = 1e-9
CUT = 0.63
"""From which value of `overlap` on the decision is yes: the best cut of `judges.md`."""


class Figures:
    """Prints rows, and remembers the largest difference of those that must be the same."""

    def __init__(self) -> None:
        self.largest = 0.0
        print(f"{'figure':<58}{'rageval-spec':>16}{'truescore':>16}{'judgekeeper':>16}  note")

    def show(self, name: str, own: float, *peers: float | None, same: bool = True, note: str = "") -> None:
        cells = "".join(
            f"{'' if one is None else f'{one:.6f}':>16}" for one in (own, *peers, *[None] * (2 - len(peers)))
        )
        if same:
            self.largest = max([self.largest, *(abs(own - one) for one in peers if one is not None)])
        print(f"{name:<58}{cells}  {note}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE.parent.parent / "shared" / "data")
    data = parser.parse_args().folder
    figures = Figures()
    answers = {
        "halueval_qa": list_halueval(data / "faithfulness" / "halueval_qa.jsonl"),
        "scifact_claims": list_scifact(data / "faithfulness" / "scifact_claims.jsonl.gz"),
    }
    for name, rows in answers.items():
        values, labels = judge(rows), np.array([row["label"] for row in rows], dtype=float)
        lengths = np.array([len(row["answer"].split()) for row in rows], dtype=float)
        compare_decisions(figures, name, values, labels)
        compare_means(figures, name, values, labels)
        compare_biases(figures, name, values, labels, lengths)
        compare_drift(figures, name, values, labels)
        compare_plans(figures, name, values, labels)
    compare_raters(figures, list(read(data / "human" / "summeval_op.jsonl.gz")))
    compare_systems(figures, list_ratings(data / "human" / "summeval_op.jsonl.gz"), data)
    compare_times()
    print(f"\nlargest difference where the formula is the same: {figures.largest:.1e}")
    sys.exit(0 if figures.largest <= SAME else 1)


def compare_decisions(figures: Figures, name: str, values: Floats, labels: Floats) -> None:
    """A judge's yes and no beside people's."""
    import judgekeeper.metrics
    import truescore

    said, told = (values >= CUT).astype(int), labels.astype(int)
    words = {1: "yes", 0: "no"}
    kept = judgekeeper.metrics.agreement(
        [words[int(one)] for one in told], [words[int(one)] for one in said], "yes", "no"
    )
    figures.show(
        f"{name}: equal decisions", agree("percent", said, told), float((said == told).mean()), kept["accuracy"]
    )
    figures.show(f"{name}: Cohen's kappa", agree("kappa", said, told), truescore.cohen_kappa(said, told), kept["kappa"])
    figures.show(f"{name}: Gwet's AC1", agree("ac1", said, told), truescore.gwet_ac1(said, told))
    figures.show(
        f"{name}: nominal alpha", agree("alpha-nominal", said, told), truescore.krippendorff_alpha([said, told])
    )


def agree(coefficient: Any, *raters: Any) -> float:
    from rageval_spec.statistics.raters.rater_agreement import Ratings, measure_agreement

    given: dict[tuple[Hashable, Hashable], float | str]
    given = {(item, rater): float(one) for rater, of in enumerate(raters) for item, one in enumerate(of)}
    ratings = Ratings.of(given, range(len(raters[0])), range(len(raters)))
    found = measure_agreement(ratings, coefficient, resamples=200).value
    assert found is not None
    return found


def compare_raters(figures: Figures, rows: list[dict[str, Any]]) -> None:
    """Three people on a scale of 1 to 5, and how long the coefficients take with their intervals."""
    import truescore

    people = [[float(row["ratings"]["faithfulness"][name]) for row in rows] for name in ("a1", "a2", "a3")]
    first, second = (np.array(one, dtype=int) for one in people[:2])
    kappa = truescore.quadratic_weighted_kappa(first, second)
    figures.show("summeval_op: quadratic kappa of a1 and a2", agree("kappa-quadratic", first, second), kappa)
    for level in ("ordinal", "interval"):
        peer = truescore.krippendorff_alpha(people, level=level)
        figures.show(f"summeval_op: {level} alpha of three people", agree(f"alpha-{level}", *people), peer)


def compare_means(figures: Figures, name: str, values: Floats, labels: Floats) -> None:
    """Means corrected by the labels of 100 answers."""
    import truescore

    from rageval_spec.statistics.raters.corrected_means import correct_mean, correct_share

    drawn = np.random.default_rng(3).permutation(len(values))
    few, rest = drawn[:100], drawn[100:]
    own = correct_mean(values[few], labels[few], values[rest])
    peer = truescore.ppi_estimate(values, labels[few], few)
    given = truescore.ppi_estimate(values, labels[few], few, lambda_=min(max(own.weight, 0.0), 1.0))
    is_inside = 0 <= own.weight <= 1
    assert own.interval is not None
    note = "" if is_inside else "weights above 1 are cut to 1 there"
    figures.show(f"{name}: corrected mean, the same weight", own.value, given.point, same=is_inside, note=note)
    figures.show(
        f"{name}: corrected mean, own weight",
        own.value,
        peer.point,
        same=False,
        note=f"w {own.weight:.3f}, {peer.lambda_:.3f}",
    )
    width = own.interval.high - own.interval.low
    figures.show(
        f"{name}: width of its interval",
        width,
        peer.high - peer.low,
        same=False,
        note="Student's t, normal quantile; see corrected_means.py",
    )
    decided = (values >= CUT).astype(float)
    share = correct_share(decided[few], labels[few], decided[rest])
    rogan = truescore.rogan_gladen_estimate(decided.astype(int), labels[few].astype(int), few)
    figures.show(
        f"{name}: Rogan-Gladen's share",
        share.value,
        rogan.point,
        same=False,
        note="half a decision is added to each rate",
    )
    low, high = max(share.interval.low, 0), min(share.interval.high, 1)
    figures.show(
        f"{name}: width of its interval", high - low, rogan.high - rogan.low, same=False, note="Fieller's, delta method"
    )


def compare_biases(figures: Figures, name: str, values: Floats, labels: Floats, lengths: Floats) -> None:
    """The effect of length on the judge's error."""
    import truescore

    from rageval_spec.statistics.regression import regress

    (own,) = regress(values - labels, {"length": lengths / 100})
    peer = truescore.length_bias(values, labels, lengths)
    figures.show(f"{name}: effect of 100 words on the error", own.slope, peer.effect)
    figures.show(f"{name}: its HC3 standard error", own.error, peer.std_error)


def compare_drift(figures: Figures, name: str, values: Floats, labels: Floats) -> None:
    """The same judge after a change: its values with some noise. McNemar's test is the exact one in both."""
    import truescore

    from rageval_spec.statistics.raters.judge_drift import compare_agreement, count_flips

    later = np.clip(values + np.random.default_rng(11).normal(0, 0.1, len(values)), 0, 1)
    before, now, told = ((one >= CUT).astype(int) for one in (values, later, np.where(labels > 0.5, 1.0, 0.0)))
    flips = count_flips(values, later, None, CUT)
    shift = compare_agreement(values, later, labels, CUT, range(len(values)))
    peer = truescore.judge_drift(before, now, told)
    exact = truescore.compare.mcnemar((now == told).astype(int), (before == told).astype(int), midp=False)
    figures.show(f"{name}: drift, share of flips", (flips.up + flips.down) / flips.rows, peer.flip_rate)
    figures.show(f"{name}: drift, agreement before", shift.before, peer.baseline_agreement)
    figures.show(f"{name}: drift, agreement now", shift.now, peer.current_agreement)
    figures.show(f"{name}: drift, McNemar's exact p", shift.p_value, exact.p_value)


def compare_plans(figures: Figures, name: str, values: Floats, labels: Floats) -> None:
    """How many labels the mean of 5,000 answers to +-0.05 takes, with a judge that says yes or no, and without it."""
    import truescore

    from rageval_spec.statistics.raters.label_counts import Spread

    said, rate = (values >= CUT).astype(float), float(labels.mean())
    sensitivity, specificity = float(said[labels == 1].mean()), float(1 - said[labels == 0].mean())
    explained = float(np.corrcoef(said, labels)[0, 1]) ** 2
    spread = Spread(rate * (1 - rate), explained, 5000)
    peer = truescore.required_gold_labels(
        5000, target_half_width=0.05, true_rate=rate, sensitivity=sensitivity, specificity=specificity
    )
    note = "Student's t, normal quantile"
    figures.show(f"{name}: labels to buy", spread.count_labels(0.1) or 0, peer.required_gold, same=False, note=note)
    alone = spread.count_labels(0.1, judged=False) or 0
    figures.show(f"{name}: labels without the judge", alone, peer.gold_only_required, same=False, note=note)


def compare_systems(figures: Figures, rows: list[dict[str, Any]], data: Path) -> None:
    """Two summarizers on the same items, on what people would say."""
    import truescore

    from rageval_spec.statistics.raters.corrected_means import correct_mean

    models = [row["model"] for row in read(data / "human" / "summeval_op.jsonl.gz")]
    values, labels = judge(rows), np.array([row["label"] for row in rows])
    names = sorted(set(models))
    sides = [np.array([place for place, model in enumerate(models) if model == name]) for name in names[:2]]
    few = np.arange(len(sides[0]) // 2)
    own = correct_mean(
        (values[sides[0]] - values[sides[1]])[few],
        (labels[sides[0]] - labels[sides[1]])[few],
        np.delete(values[sides[0]] - values[sides[1]], few),
    )
    peer = truescore.ppi_compare(values[sides[0]], values[sides[1]], labels[sides[0]][few], labels[sides[1]][few], few)
    figures.show(
        f"summeval_op: {names[0]} less {names[1]}, corrected",
        own.value,
        peer.difference,
        same=False,
        note=f"w {own.weight:.3f}",
    )


def compare_times() -> None:
    """How long kappa and AC1 take with intervals from 2,000 resamples of 1,000 decisions: medians of five, in turns."""
    import truescore

    from rageval_spec.statistics.raters.rater_agreement import Ratings, measure_agreement

    random = np.random.default_rng(5)
    truth = random.integers(0, 2, 1000)
    raters = [np.where(random.random(1000) < 0.8, truth, 1 - truth) for _ in range(2)]
    given: dict[tuple[Hashable, Hashable], float | str]
    given = {(item, rater): float(one) for rater, of in enumerate(raters) for item, one in enumerate(of)}
    ratings = Ratings.of(given, range(1000), range(2))
    tools: dict[str, Callable[[], Any]] = {
        "rageval-spec": lambda: (measure_agreement(ratings, "kappa"), measure_agreement(ratings, "ac1")),
        "truescore": lambda: truescore.judge_agreement(*raters),
    }
    times: dict[str, list[float]] = {tool: [] for tool in tools}
    for _ in range(6):
        for tool, find in tools.items():
            start = time.perf_counter()
            find()
            times[tool].append(time.perf_counter() - start)
    told = ", ".join(f"{tool} {median(of[1:]):.3f} s" for tool, of in times.items())
    print(f"\nkappa and AC1 of 1,000 decisions with intervals from 2,000 resamples: {told}")


if __name__ == "__main__":
    main()
