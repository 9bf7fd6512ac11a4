"""Stop when decided: wrong decisions, and the share of questions saved, over 10,000 random orders of each set.

    python benches/stopping.py [--draws 10000] [--questions 500] [--data ../shared/data] [--gates]

Each set of questions has values whose mean lies at a distance from a gate's bound. The questions are drawn in random
order without replacement; after the first 30 and then after every 20 it is asked whether the bound is decided. A
decision is wrong if it differs from what all questions together give. Contenders:

- `sequence`: this package, a 95% confidence sequence by betting without replacement.
- `truescore`: the empirical-Bernstein sequence of truescore, if it is installed (the numbers in the docs are of 0.7.4);
  it runs on the first 1,000 draws. It takes values as drawn independently.
- `ordinary`: the 95% interval of the normal distribution, with the correction for finite sets, looked at as often.

With `--gates`, the contender is the code that stops an evaluation, on a spec with one gate, `min`, which also requires
that 90% of the questions could be scored. It runs on the first 500 draws of each case.

Exits with 1 if the sequence is wrong in more than 5% of the draws of a case, or asks more than 0.8 times the questions
of truescore over all cases that are not level with the bound.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from rageval_spec.data.datasets import EvaluatedQueries
from rageval_spec.pipeline.execution.stopping_decision import Round, Stopper
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.pipeline.values.step_inputs import Materials
from rageval_spec.spec.spec_file import load_dict
from rageval_spec.statistics.sequential_analysis import grow_capital

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

HERE = Path(__file__).resolve().parent
ALPHA = 0.05
FIRST, BATCH = 30, 20
DISTANCES = (0.1, 0.05, 0.02, 0.01, 0.0)
BLOCK = 500
PEER_DRAWS = 1000
GATE_DRAWS = 500
MOST_OF_PEER = 0.8


class Stops(NamedTuple):
    """For each draw, how many questions were asked, and what was decided: above (1), below (-1) or nothing (0)."""

    asked: NDArray[np.int64]
    side: NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--gates", action="store_true")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    chosen = parser.parse_args()
    begun = time.perf_counter()
    if chosen.gates:
        is_wrong = measure_gates(chosen.questions, chosen.data, min(chosen.draws, GATE_DRAWS)) > ALPHA
        sys.exit(int(is_wrong))
    worst, asked, asked_by_peer = 0.0, 0.0, 0.0
    print(f"{chosen.draws} draws of {chosen.questions} questions; asked on average, and % of draws decided wrongly")
    heads = ("sequence", "saved", "ordinary", "truescore")
    print(f"{'values':<23}{'mean':>6}{'bound':>8}  {heads[0]:>14}{heads[1]:>7}  {heads[2]:>14}  {heads[3]:>14}  ratio")
    for name, values in list_sets(chosen.questions, chosen.data):
        for bound in list_bounds(float(values.mean())):
            draws = list(draw(values, chosen.draws))
            own = judge(values, bound, draws, stop_sequence)
            ordinary = judge(values, bound, draws, stop_ordinary)
            peer = judge(values, bound, first_of(draws), stop_peer) if find_spec("truescore") else None
            worst = max(worst, own[1])
            if peer and bound != values.mean():
                asked, asked_by_peer = asked + own[0], asked_by_peer + peer[0]
            print(describe(name, values, bound, own, ordinary, peer), flush=True)
    print(f"worst: {100 * worst:.2f}% wrong; {time.perf_counter() - begun:.0f} s")
    if asked_by_peer:
        print(f"questions of the sequence / questions of truescore: {asked / asked_by_peer:.2f}")
    sys.exit(worst > ALPHA or asked > MOST_OF_PEER * asked_by_peer > 0)


def measure_gates(questions: int, data: Path, draws: int) -> float:
    """Print how many questions evaluations ask until their gate is decided; returns the largest share of wrong ones."""
    worst = 0.0
    print(f"{draws} draws of {questions} questions; asked on average, and % of draws whose gate was wrong")
    for name, values in list_sets(questions, data):
        for bound in list_bounds(float(values.mean())):
            drawn = np.concatenate(first_of([*draw(values, draws)], draws))[:draws]
            asked, wrong = stop_gates(drawn, bound)
            worst = max(worst, wrong)
            print(f"{name:<23}{values.mean():>6.3f}{bound:>8.3f}  {asked:>6.0f} ({100 * wrong:.1f}%)", flush=True)
    print(f"worst: {100 * worst:.1f}% wrong")
    return worst


def stop_gates(drawn: Floats, bound: float) -> tuple[float, float]:
    """How many questions are asked on average, and the share of draws in which the gate has the wrong outcome."""
    total = drawn.shape[1]
    ids = [f"q{number}" for number in range(total)]
    asked, wrong = [], 0
    with TemporaryDirectory() as folder:
        stopper, whole = open_gate(Path(folder), ids, bound)
        for values in drawn:
            columns = {"query_id": ids, "value": values, "status": "scored"}
            table = pl.DataFrame({"dataset": "set", "system": "app", "metric": "exact_match", **columns})
            for count in stopper.list_counts("set", total):
                if count == total or stopper.is_decided(Round(whole, frozenset(ids), frozenset(), ids, count, table)):
                    break
            asked.append(count)
            wrong += (values[:count].mean() >= bound) != (values.mean() >= bound)
    return float(np.mean(asked)), wrong / len(drawn)


def open_gate(folder: Path, ids: list[str], bound: float) -> tuple[Stopper, EvaluatedQueries]:
    """What decides a spec with one gate, and its dataset."""
    rows = ({"query_id": query_id, "question": query_id, "reference": "a"} for query_id in ids)
    (folder / "set.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "app.py").write_text("def answer(question): return question")
    content = {
        "version": 1,
        "datasets": {"set": {"use": "jsonl", "path": "set.jsonl"}},
        "systems": {"app": {"use": "python", "function": "app:answer"}},
        "metrics": ["exact_match"],
        "gates": [{"metric": "exact_match", "min": bound}],
        "stopping": {"when": "decided", "confidence": 1 - ALPHA, "first": FIRST, "batch": BATCH},
    }
    spec = load_dict(content, folder=folder)
    parts = build_parts(spec)
    evaluated = EvaluatedQueries(Materials(spec, parts).open_whole("set").asked, pl.Series(ids))
    return Stopper(spec, parts, {}), evaluated


def list_sets(questions: int, data: Path) -> Iterator[tuple[str, Floats]]:
    """Sets of values by name: drawn once, and judged by people."""
    generator = np.random.default_rng(7)
    for mean in (0.7, 0.9):
        yield f"Bernoulli {mean}", np.repeat([1.0, 0.0], [round(mean * questions), round((1 - mean) * questions)])
        yield f"beta {mean}", generator.beta(8 * mean, 8 * (1 - mean), questions)
        yield f"U-shaped {mean}", generator.beta(0.6 * mean, 0.6 * (1 - mean), questions)
    for name, judged in list_judged(data):
        yield name, generator.choice(judged, min(questions, len(judged)), replace=False)


def list_judged(data: Path) -> Iterator[tuple[str, Floats]]:
    """Values that people judged: the share of an answer's claims that is supported, the difference of two models in it
    on the same question, and how much of a reference a summary covers.
    """
    claims, units = data / "faithfulness" / "refchecker_claims.jsonl.gz", data / "human" / "realsumm_scu.jsonl.gz"
    if claims.exists():
        shares: dict[str, dict[str, float]] = {}
        for row in read(claims):
            labels = [claim["label"] for claim in row["claims"]]
            if labels:
                share = sum(label == "Entailment" for label in labels) / len(labels)
                shares.setdefault(row["model"], {})[f"{row['setting']} {row['example_id']}"] = share
        yield "supported claims", np.array([share for own in shares.values() for share in own.values()])
        first, second, *_ = shares.values()
        differences = [share - second[question] for question, share in first.items() if question in second]
        yield "differences (rescaled)", (np.array(differences) + 1) / 2
    if units.exists():
        votes = [[vote for claim in row["claims"] for vote in claim["votes"]] for row in read(units)]
        yield "covered units", np.array([own.count("p") / len(own) for own in votes if own])


def read(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        yield from map(json.loads, lines)


def list_bounds(mean: float) -> Iterator[float]:
    """Bounds on both sides of the mean, at each distance."""
    for distance in DISTANCES:
        for bound in dict.fromkeys((mean - distance, mean + distance)):
            if 0 < bound < 1:
                yield bound


def draw(values: Floats, draws: int) -> Iterator[Floats]:
    generator = np.random.default_rng(11)
    for _ in range(0, draws, BLOCK):
        yield generator.permuted(np.tile(values, (BLOCK, 1)), axis=1)


def first_of(draws: list[Floats], count: int = PEER_DRAWS) -> list[Floats]:
    return draws[: max(1, -(-count // BLOCK))]


def judge(
    values: Floats, bound: float, draws: list[Floats], stop: Callable[[Floats, float], Stops]
) -> tuple[float, float]:
    """The mean number of questions asked, and the share of draws that were decided wrongly."""
    stops = [stop(drawn, bound) for drawn in draws]
    side = np.concatenate([one.side for one in stops])
    truth = 1 if values.mean() >= bound else -1
    return float(np.concatenate([one.asked for one in stops]).mean()), float((side == -truth).mean())


def look(above: Bools, below: Bools) -> Stops:
    """Stop at the first look at which a side had been decided; without one, all questions are asked."""
    count = above.shape[1]
    first_above, first_below = (np.where(side.any(1), side.argmax(1) + 1, count + 1) for side in (above, below))
    first = np.minimum(first_above, first_below)
    looks = FIRST + BATCH * np.ceil(np.maximum(first - FIRST, 0) / BATCH).astype(np.int64)
    asked = np.where(first > count, count, np.minimum(looks, count))
    side = np.where(asked >= count, 0, np.where(first_above <= first_below, 1, -1))
    return Stops(asked, side)


def stop_sequence(drawn: Floats, bound: float) -> Stops:
    above, below = grow_capital(drawn, bound, drawn.shape[1], 1 - ALPHA)
    edge = math.log(2 / ALPHA)
    return look(above >= edge, below >= edge)


def stop_ordinary(drawn: Floats, bound: float) -> Stops:
    """Decide by the interval at each look alone, as people do who look again and again."""
    count = drawn.shape[1]
    times = np.arange(1, count + 1)
    means = np.cumsum(drawn, axis=1) / times
    squares = np.cumsum(drawn**2, axis=1) / times
    variances = np.maximum(squares - means**2, 0) * times / np.maximum(times - 1, 1)
    half = 1.96 * np.sqrt(variances / times * (count - times) / (count - 1))
    is_look = (times >= FIRST) & ((times - FIRST) % BATCH == 0)
    return look((means - half > bound) & is_look, (means + half < bound) & is_look)


def stop_peer(drawn: Floats, bound: float) -> Stops:
    from truescore import confidence_sequence

    sequences = [confidence_sequence(values, alpha=ALPHA) for values in drawn]
    above = np.array([sequence.lower_bounds > bound for sequence in sequences])
    below = np.array([sequence.upper_bounds < bound for sequence in sequences])
    return look(above, below)


def describe(
    name: str,
    values: Floats,
    bound: float,
    own: tuple[float, float],
    ordinary: tuple[float, float],
    peer: tuple[float, float] | None,
) -> str:
    shown = f"{name:<23}{values.mean():>6.3f}{bound:>8.3f}  {show(own):>14}{100 * (1 - own[0] / len(values)):>6.0f}%"
    shown += f"  {show(ordinary):>14}"
    return shown + (f"  {show(peer):>14}  {own[0] / peer[0]:>5.2f}" if peer else "")


def show(judged: tuple[float, float]) -> str:
    return f"{judged[0]:.0f} ({100 * judged[1]:.2f}%)"


if __name__ == "__main__":
    main()
