"""What a budget of calls buys: how wide the interval of a window's mean is at the same number of calls.

    python benches/sampling.py [FOLDER] [--rounds 2000] > benches/sampling.md

FOLDER has the labelled sets (see `benches/judges.py`). Windows of 1,000 traces are drawn from a set again and again.
The costly judge is people's labels, the cheap one is `overlap`, and the budget is 200 calls a window.

- *cascade*: the judge is `cascade: [overlap, costly]`. Traces of which overlap is sure need no call. `all alike` leaves
  out all traces with the same chance; `sure ones kept` judges those without a call, and leaves out the others.
- *alone*: the costly judge gets every trace, and overlap is another metric of the spec. `unsure first` gives traces of
  which overlap is unsure four times the chance of the others; `learned` is Neyman's allocation: the chance is
  proportional to the root of the mean squared deviation of labels from their mean, in ten classes of overlap's score,
  as found in a window before; no chance is below a quarter of the average one.

Means and intervals are those of the monitor. A width is the average one, as a part of that of `all alike`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from judges import READERS, Floats, read_task
from rageval_spec import registry
from rageval_spec.data.findings import Finding
from rageval_spec.judges.cascade import BANDS
from rageval_spec.plugin import Context
from rageval_spec.statistics.level_sequences import estimate_mean

TRACES, CALLS, CLASSES, FLOOR, PREFERENCE = 1000, 200, 10, 0.25, 4.0
SETS = ("begin", "halueval_qa", "scifact_claims", "realsumm_scu")
Chances = Callable[[Floats, Floats, Floats], Floats]
"""From the scores of a window, and the scores and labels of the one before, the chance of each trace."""


def share_calls(sizes: Floats, calls: float) -> Floats:
    """Chances in proportion to sizes that need so many calls on average; none is above 1."""
    chances = np.zeros(len(sizes))
    for _ in range(20):
        is_free = chances < 1
        left = calls - (~is_free).sum()
        if left <= 0 or not is_free.any():
            break
        chances[is_free] = np.minimum(1, sizes[is_free] * left / sizes[is_free].sum())
    return chances


def choose_alike(scores: Floats, *_: Floats) -> Floats:
    return share_calls(np.ones(len(scores)), CALLS)


def choose_unsure(scores: Floats, *_: Floats) -> Floats:
    return share_calls(np.where(find_sure(scores), 1.0, PREFERENCE), CALLS)


def choose_learned(scores: Floats, before: Floats, labels: Floats) -> Floats:
    bounds = np.quantile(before, np.linspace(0, 1, CLASSES + 1)[1:-1])
    places, squares = np.digitize(before, bounds), (labels - labels.mean()) ** 2
    roots = np.array([np.sqrt(squares[places == one].mean()) if (places == one).any() else 0.0
                      for one in range(CLASSES)])  # fmt: skip
    sizes = roots[np.digitize(scores, bounds)]
    return share_calls(np.maximum(sizes, FLOOR * sizes.mean()), CALLS)


def find_sure(scores: Floats) -> np.ndarray:
    low, high = BANDS["overlap"]["support"]
    return (scores <= low) | (scores >= high)


def choose_kept(scores: Floats, *_: Floats) -> Floats:
    sure = find_sure(scores)
    return np.where(sure, 1.0, share_calls(np.ones(len(scores)), CALLS * len(scores) / max(1, (~sure).sum())))


def choose_cascade_alike(scores: Floats, *_: Floats) -> Floats:
    return share_calls(np.ones(len(scores)), CALLS * len(scores) / max(1, (~find_sure(scores)).sum()))


ALONE: dict[str, Chances] = {"all alike": choose_alike, "unsure first": choose_unsure, "learned": choose_learned}
CASCADE: dict[str, Chances] = {"all alike": choose_cascade_alike, "sure ones kept": choose_kept}


def simulate(scores: Floats, labels: Floats, values: Floats, choose: Chances, rounds: int) -> tuple[float, ...]:
    """The bias in standard errors, the coverage, the average width, and the calls of a window."""
    random, truth, found = np.random.default_rng(7), values.mean(), []
    for _ in range(rounds):
        now, before = random.integers(len(scores), size=(2, TRACES))
        chances = choose(scores[now], scores[before], labels[before])
        kept = random.random(TRACES) < chances
        mean = estimate_mean(values[now][kept], 1 / chances[kept], value_range=(0.0, 1.0))
        assert mean is not None and mean.interval is not None
        low, high = mean.interval.low, mean.interval.high
        found.append((mean.mean - truth, low <= truth <= high, high - low, (kept & ~find_sure(scores[now])).sum()
                      if values is not labels else kept.sum()))  # fmt: skip
    errors, covered, widths, calls = map(np.array, zip(*found, strict=True))
    return errors.mean() / (errors.std() / np.sqrt(rounds)), covered.mean(), widths.mean(), calls.mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=2000)
    asked = parser.parse_args()
    plugin = registry.load("judges", "overlap")
    judge = plugin(plugin.node_type(use="overlap"), Context("overlap", Path.cwd()))
    print("# What a budget of calls buys\n\nMade by `python benches/sampling.py`.\n")
    print("| set | judge | mean | surely decided | chances | bias, in its standard errors | coverage | calls | width |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in SETS:
        assert name in READERS
        task = read_task(asked.folder, name, 0)
        findings = judge.assess(task.criterion, [row.sample for row in task.rows]).findings
        pairs = [(one.score, row.is_right) for one, row in zip(findings, task.rows, strict=True)
                 if isinstance(one, Finding) and one.score is not None]  # fmt: skip
        scores, labels = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
        for kind, ways, values in (
            ("cascade", CASCADE, np.where(find_sure(scores), scores, labels)),
            ("alone", ALONE, labels),
        ):
            first = None
            for way, choose in ways.items():
                bias, coverage, width, calls = simulate(scores, labels, values, choose, asked.rounds)
                first = first or width
                print(f"| {name} | {kind} | {values.mean():.2f} | {find_sure(scores).mean():.0%} | {way} | {bias:+.1f} "
                      f"| {coverage:.1%} | {calls:.0f} | {width:.3f} ({width / first:.0%}) |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
