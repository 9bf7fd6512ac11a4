"""Finds the bounds of a judge of several steps with which few of the answers that it sends are wrong."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from rageval_spec.statistics.control import Rule, find_controlled, learn_path, level_path
from rageval_spec.statistics.guarantees import Guarantee, Point, find_best_limit, find_guarantee, trace_risk

Control = Literal["ltt", "crc"]
ENOUGH_TO_LEARN = 150
"""With fewer labels, none can be spared to find out which bounds to relax first."""
_PART = 4
"""One label in so many is used for that."""


@dataclass(frozen=True)
class StepsPromise:
    """Whether bounds of several steps can keep a promise about wrong answers.

    Attributes:
        control: how the risk is controlled.
        bounds: the bounds that keep the wanted limit, one for each step; None if the labels cannot show any.
        wanted: what these promise.
        best: the smallest limit that the labels can show; None if they can show none, and for crc.
        best_bounds: the bounds that keep it.
        curve: what bounds from strict to loose do.
        labels: the labelled answers that count: one of each question.
        learnt: how many of them found out which bounds to relax first, and were not used to test.
    """

    control: Control
    bounds: tuple[float, ...] | None
    wanted: Guarantee | None
    best: Guarantee | None
    best_bounds: tuple[float, ...] | None
    curve: tuple[Point, ...]
    labels: int
    learnt: int


def promise_steps(
    values: Sequence[Sequence[float | None]],
    labelled: Sequence[float],
    questions: Sequence[Hashable],
    rule: Rule,
    limit: float,
    confidence: float,
    *,
    together: bool,
    control: Control = "ltt",
    seed: int = 42,
    find_best: bool = True,
) -> StepsPromise:
    """Find bounds that send as many answers as possible and keep the promise.

    An answer is wrong unless most of its labels say that it is right. One answer of each question counts. With 150
    labels or more, a quarter of them says which bounds to relax first; with fewer, all bounds go down together.

    Args:
        values: the value of each answer at each step, from 0 to 1; None where it has none.
        labelled: the mean of the labels of each answer, from 0 to 1.
        questions: the question of each answer.
        rule: which answers are sent with which bounds.
        limit: the largest share of wrong answers among those that are sent (of all answers, for crc).
        confidence: the probability with which the promise must be kept; crc does not use it.
        together: whether an answer must reach all bounds, as in a waterfall; else one is enough, as in a cascade.
        control: `ltt` for Learn then Test, `crc` for conformal risk control.
        seed: the seed of the draws.
        find_best: whether to look for the best promise if the wanted one cannot be kept, which takes a while.
    """
    import numpy as np

    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(labelled))
    rows = np.array([*{questions[place]: int(place) for place in order}.values()])
    table = np.array([[np.nan if one is None else one for one in row] for row in values])[rows]
    is_wrong = np.array(labelled)[rows] <= 0.5
    learnt = len(rows) // _PART if len(rows) >= ENOUGH_TO_LEARN else 0
    path = level_path(table.shape[1], rule)
    if learnt:
        path = learn_path(table[:learnt], is_wrong[:learnt], rule, together=together)
    scores, tested = path.score(table[learnt:]), is_wrong[learnt:]
    if control == "crc":
        wanted, best = find_controlled(scores, tested, limit), None
    else:
        wanted = find_guarantee(scores, tested, limit, confidence)
        best = wanted or (find_best_limit(scores, tested, confidence) if find_best else None)
    return StepsPromise(
        control,
        None if wanted is None else path.find(wanted.threshold),
        wanted,
        best,
        None if best is None else path.find(best.threshold),
        trace_risk(scores, tested, confidence),
        len(rows),
        learnt,
    )
