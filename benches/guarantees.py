"""Guarantees: how often the promise is broken, and how many answers are sent.

    python benches/guarantees.py [--draws 2000] [--labels 300] [--data ../shared/data] [--rules one | several]

The labelled sets and judges are those of `corrected_means.py`. Each draw takes `labels` answers at random, finds the
threshold that keeps the share of wrong answers below a limit with 95% confidence, and looks at all answers of the set
from that threshold on. The limits are parts of the set's own share of wrong answers. "best" is the largest share of
answers that a threshold could send if all labels were known.

Rules of several thresholds, as waterfalls and cascades have them, are drawn from answers whose values at two or four
steps follow a known quality with more and more noise; a quarter of the labels says which bounds to relax first.

Exits with 1 if the promise is broken in more than 5% of the draws of a case.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from corrected_means import HERE, Labelled, load_sets

from rageval_spec.calibration.thresholds import promise_steps
from rageval_spec.statistics.raters.risk_control import Rule, find_guarantee, send_through_stages, send_through_steps

CONFIDENCE = 0.95
PARTS = (0.25, 0.5, 0.75)
POPULATION = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--labels", type=int, default=300)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--rules", choices=["one", "several", "all"], default="all")
    options = parser.parse_args()
    print(f"{'set and judge':<28}{'wrong':>8}{'limit':>8}{'found':>8}{'broken':>8}{'sent':>8}{'best':>8}")
    worst = 0.0
    for one in () if options.rules == "several" else load_sets(options.data):
        for part in PARTS:
            worst = max(worst, simulate(one, part, options.draws, options.labels))
    for steps in () if options.rules == "one" else (2, 4):
        for together in (True, False):
            for part in PARTS:
                worst = max(worst, simulate_steps(steps, part, options.draws, options.labels, together=together))
    print(f"\nbroken at most in {worst:.2%} of the draws")
    sys.exit(0 if worst <= 1 - CONFIDENCE else 1)


def simulate(one: Labelled, part: float, draws: int, labels: int) -> float:
    """Print a line, and return how often the promise was broken."""
    random = np.random.default_rng(11)
    is_wrong = one.labelled <= 0.5
    limit = part * float(is_wrong.mean())
    thresholds = []
    for _ in range(draws):
        drawn = random.integers(0, len(is_wrong), labels)
        found = find_guarantee(one.judged[drawn], is_wrong[drawn], limit, CONFIDENCE)
        if found is not None:
            thresholds.append(found.threshold)
    sent = [one.judged >= threshold for threshold in thresholds]
    broken = sum(bool(is_wrong[chosen].mean() > limit) for chosen in sent) / draws
    grid = [one.judged >= threshold for threshold in np.linspace(0, 1, 201)]
    best = max((chosen.mean() for chosen in grid if chosen.any() and is_wrong[chosen].mean() <= limit), default=0.0)
    share = float(np.mean([chosen.mean() for chosen in sent])) if sent else 0.0
    numbers = (is_wrong.mean(), limit, len(sent) / draws, broken, share, best)
    print(f"{one.name:<28}" + "".join(f"{number:>8.1%}" for number in numbers), flush=True)
    return broken


def simulate_steps(steps: int, part: float, draws: int, labels: int, *, together: bool) -> float:
    """As `simulate`, for a waterfall (`together`) or a cascade of so many steps."""
    random = np.random.default_rng(11)
    quality = random.random(POPULATION)
    is_wrong = random.random(POPULATION) < (1 - quality) ** 2
    noise = random.normal(0, 1, (POPULATION, steps)) * np.linspace(0.1, 0.4, steps)
    values = np.clip(quality[:, None] + noise, 0, 1)
    rule: Rule = send_through_stages if together else send_through_steps([0.2] * steps)
    limit = part * float(is_wrong.mean())
    broken, shares = 0, []
    for draw in range(draws):
        drawn = random.integers(0, POPULATION, labels)
        found = promise_steps(
            values[drawn].tolist(), (~is_wrong[drawn]).astype(float).tolist(), range(labels), rule, limit, CONFIDENCE,
            together=together, seed=draw, find_best=False,
        )  # fmt: skip
        if found.bounds is not None:
            sent = rule(values, found.bounds)
            shares.append(float(sent.mean()))
            broken += bool(is_wrong[sent].mean() > limit)
    name = f"{'waterfall' if together else 'cascade'} of {steps} steps"
    best = find_best_share(quality, is_wrong, limit)
    numbers = (is_wrong.mean(), limit, len(shares) / draws, broken / draws, np.mean(shares) if shares else 0.0, best)
    print(f"{name:<28}" + "".join(f"{number:>8.1%}" for number in numbers), flush=True)
    return broken / draws


def find_best_share(quality: np.ndarray, is_wrong: np.ndarray, limit: float) -> float:
    """The largest share of answers that could be sent if the quality were known."""
    order = np.argsort(-quality)
    risk = np.cumsum(is_wrong[order]) / np.arange(1, len(order) + 1)
    kept = np.flatnonzero(risk <= limit)
    return float((kept[-1] + 1) / len(order)) if len(kept) else 0.0


if __name__ == "__main__":
    main()
