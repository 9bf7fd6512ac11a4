"""The winner of a sweep: how often its intervals hold, and how often the truly best combination is ruled out.

    python benches/sweep_winner.py [--draws 1000]

Each draw makes the values of several combinations on the same questions. A question is easy or hard for all of them,
so their values go together. Values lie in [0, 1]: shares around the question's own, or yes and no with that chance.
Where all combinations are equal, every winner has won by luck. Elsewhere one is better, or two are equally good and
better than the others. The true means are known.

- `naive`: how often the usual 95% interval of the winner's mean holds its true mean.
- `corrected`: the same of the interval that `run` shows for it.
- `wider`: how many times as wide the corrected interval is.
- `ruled out`: how often a truly best combination (one, if several are) is found significantly worse than the winner.
- `any equal`: how often any of the equally good best ones is, which is not promised.
- `lone wrong`: how often a combination that is not better than all others is named without another.
- `found`: how often a better one is named without another, where there is one.

With `halving`, a quarter, half and all of the questions are asked, and each round leaves out what is worse.

Exits with 1 if a corrected interval holds in less than 93% of the draws of a case, or a truly best combination is ruled
out, or a wrong one named alone, in more than 7%.
"""

from __future__ import annotations

import argparse
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.sweep.field import Field, Placing

METRIC: Any = SimpleNamespace(statistic="mean", bounds=(0.0, 1.0), higher_is_better=True)
NAMES = ("naive", "corrected", "wider", "ruled out", "any equal", "lone wrong", "found")
SETTINGS = StatisticsNode(resamples=4000, permutations=2000)


class Case(NamedTuple):
    kind: str
    questions: int
    effects: tuple[float, ...]
    halving: bool = False


CASES = (
    Case("shares", 50, (0.0,) * 8),
    Case("shares", 200, (0.0,) * 8),
    Case("yes and no", 50, (0.0,) * 8),
    Case("yes and no", 200, (0.0,) * 8),
    Case("yes and no", 100, (0.0,) * 32),
    Case("yes and no", 200, (0.0,) * 8, halving=True),
    Case("shares", 200, (0.05, *(0.0,) * 7)),
    Case("shares", 200, (0.05, *(0.0,) * 7), halving=True),
    Case("shares", 200, (0.05, 0.05, *(0.0,) * 6)),
    Case("yes and no", 200, (0.1, 0.1, *(0.0,) * 6), halving=True),
)


def draw(case: Case, random: np.random.Generator) -> dict[str, dict[str, float]]:
    base = random.uniform(0.2, 0.7, case.questions)
    scores = {}
    for at, effect in enumerate(case.effects):
        values = base + effect + random.uniform(-0.2, 0.2, case.questions)
        if case.kind != "shares":
            values = (random.random(case.questions) < base + effect).astype(float)
        scores[f"c{at}"] = {f"q{question}": float(value) for question, value in enumerate(values)}
    return scores


def measure(case: Case, draws: int, seed: int) -> dict[str, float]:
    random, field = np.random.default_rng(seed), Field("set", "m", METRIC, SETTINGS)
    counts = dict.fromkeys(NAMES, 0.0)
    top = max(case.effects)
    is_unique = case.effects.count(top) == 1
    for _ in range(draws):
        whole, last, placings = draw(case, random), dict[str, dict[str, float]](), dict[str, Placing]()
        rounds = [case.questions // 4, case.questions // 2, case.questions] if case.halving else [case.questions]
        left = [*whole]
        for number, size in enumerate(rounds, start=1):
            some = {name: dict([*whole[name].items()][:size]) for name in left}
            last |= some
            placings |= field.place(some, number, len(rounds))
            left = [name for name in left if placings[name].standing in ("best", "tied")]
        found = field.sum_up("system", rounds, placings, last)
        assert found.best is not None
        winner, is_alone, best = int(found.best[1:]), len(left) == 1, placings[found.best].aggregate
        assert best is not None and found.corrected is not None
        usual, corrected = best.interval, found.corrected.interval
        assert usual is not None and corrected is not None
        true = 0.45 + case.effects[winner]
        counts["naive"] += usual.low <= true <= usual.high
        counts["corrected"] += corrected.low <= true <= corrected.high
        counts["wider"] += (corrected.high - corrected.low) / (usual.high - usual.low)
        worst = [placings[f"c{at}"].standing == "worse" for at, effect in enumerate(case.effects) if effect == top]
        counts["ruled out"] += worst[0]
        counts["any equal"] += any(worst)
        counts["lone wrong"] += is_alone and not (is_unique and case.effects[winner] == top)
        counts["found"] += is_alone and is_unique and case.effects[winner] == top
    return {name: count / draws for name, count in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    header = ("values", "questions", "combinations", "truth", "search", *NAMES)
    print("|", " | ".join(header), "|")
    print("|---" * len(header) + "|")
    is_bad = False
    for seed, case in enumerate(CASES):
        got = measure(case, options.draws, seed)
        best = case.effects.count(max(case.effects))
        truth = "all equal" if best == len(case.effects) else f"{best} better by {max(case.effects)}"
        shares = [f"{got[name]:.1%}" for name in ("naive", "corrected")] + [f"{got['wider']:.2f}"]
        shares += [f"{got[name]:.1%}" for name in ("ruled out", "any equal", "lone wrong", "found")]
        search = "halving" if case.halving else "all"
        print(
            "|",
            " | ".join([case.kind, str(case.questions), str(len(case.effects)), truth, search, *shares]),
            "|",
            flush=True,
        )
        is_bad |= got["corrected"] < 0.93 or max(got["ruled out"], got["lone wrong"]) > 0.07
    sys.exit(is_bad)


if __name__ == "__main__":
    main()
