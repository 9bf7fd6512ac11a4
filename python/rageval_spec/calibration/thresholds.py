"""Finds where to draw the line between yes and no, and where the steps of a judge decide by themselves.

The bounds of a cascade are chosen so that its steps agree with labels or with the last step. Bounds of a judge of
several steps can also be chosen so that few of the answers that it sends are wrong.

Questions are divided into folds, so that what is chosen on some of them can be judged on the others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Literal

from rageval_spec.calibration.labelled_items import Joined
from rageval_spec.calibration.measures import BETWEEN, CalibrationMeasure, Measuring
from rageval_spec.data.judge_calibration import CalibrationLabels, Figure, StepBounds
from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import UsageError
from rageval_spec.libraries import Bools, Floats, Ints, np
from rageval_spec.statistics.intervals import compute_exact_interval, number_clusters
from rageval_spec.statistics.raters import discrimination, risk_control
from rageval_spec.wording import format_number

_DECISIONS: tuple[discrimination.Decision, ...] = ("balanced_accuracy", "f1", "precision", "recall", "kappa")


@dataclass(frozen=True, slots=True)
class ThresholdCriterion:
    """What the best threshold is: the one with the highest F1 or Youden's index, or the lowest that is precise enough.

    Attributes:
        name: `f1`, `youden` or `precision`.
        wanted: the wanted precision; None for the other criteria.
    """

    name: Literal["f1", "youden", "precision"] = "youden"
    wanted: float | None = None

    def __str__(self) -> str:
        """As the command line has it: `f1`, `precision>=0.95`."""
        return self.name if self.wanted is None else f"{self.name}>={self.wanted:g}"

    def choose(self, values: Floats, is_yes: Bools) -> discrimination.ChosenThreshold | None:
        """The best threshold; None if only one class is there, or if no threshold reaches the wanted precision."""
        if self.name == "precision":
            return discrimination.choose_for_precision(values, is_yes, self.wanted or 0.0)
        return discrimination.choose_threshold(values, is_yes, self.name)


@dataclass(frozen=True, slots=True)
class BestThreshold:
    """The value from which on an answer is a yes, and what it is the best by; or why no threshold is precise enough."""

    criterion: str
    threshold: float | None
    reason: str | None = None


def find_threshold(values: Floats, is_yes: Bools, criterion: ThresholdCriterion) -> BestThreshold | None:
    """The best threshold on these labels; None if only one class is there."""
    if not 0 < is_yes.sum() < len(is_yes):
        return None
    choice = criterion.choose(values, is_yes)
    if choice is not None:
        return BestThreshold(str(criterion), choice.threshold)
    best = discrimination.choose_highest_precision(values, is_yes)
    reason = (
        f"no threshold reaches a precision of {criterion.wanted:g} on these labels; the highest is "
        f"{format_number(best.value)}, from {format_number(best.threshold)} on"
    )
    return BestThreshold(str(criterion), None, reason)


def rate_decisions(
    values: Floats, is_yes: Bools, criterion: ThresholdCriterion, how: Measuring
) -> tuple[CalibrationMeasure, ...]:
    """How good decisions are by thresholds that are best on other questions.

    Each fold's rows are decided by the threshold of the other folds. Empty if there are fewer questions than folds, or
    a part without one of the classes.
    """
    taken = decide_outside(values, is_yes, how.questions, criterion, how.seed)
    if taken is None:
        return ()
    decisions = discrimination.decide(taken.astype(float), is_yes, BETWEEN)
    found = (how.measure(name, decisions[name]) for name in _DECISIONS)
    among = {"precision": taken, "recall": is_yes}
    return tuple(_bound_perfect(one, among[one.name], how.questions) if one.name in among else one for one in found)


def _bound_perfect(found: CalibrationMeasure, among: Bools, questions: Sequence[Hashable]) -> CalibrationMeasure:
    """A share that is 0 or 1 with its exact interval (Clopper and Pearson), as if each question had one row."""
    if found.value not in (0.0, 1.0):
        return found
    total = len({question for question, counts in zip(questions, among, strict=True) if counts})
    return CalibrationMeasure(found.name, found.value, compute_exact_interval(total if found.value else 0, total))


def decide_outside(
    values: Floats, is_yes: Bools, questions: Sequence[Hashable], criterion: ThresholdCriterion, seed: int
) -> Bools | None:
    """Which rows are taken as yes, each by the threshold that is best on the questions of the other folds.

    None of a fold is, if no threshold reaches the wanted precision on the others. None if there are fewer questions
    than folds, or a part without one of the classes.
    """
    folds = deal_folds(questions, seed)
    if folds is None:
        return None
    taken = np.zeros(len(values), dtype=bool)
    for fold in np.unique(folds):
        inside = folds == fold
        if not 0 < is_yes[~inside].sum() < (~inside).sum():
            return None
        choice = criterion.choose(values[~inside], is_yes[~inside])
        if choice is not None:
            taken[inside] = values[inside] >= choice.threshold
    return taken


@dataclass(frozen=True)
class StepScores:
    """What all steps of a cascade said of the same answers.

    Attributes:
        items: dataset, system and query of each answer.
        scores: the scores of each step, in the order of the answers, from 0 to 1; None where it has none.
        together: the cluster of each question that belongs together with others, by dataset and query.
    """

    items: Sequence[tuple[str, str, str]]
    scores: Sequence[Sequence[float | None]]
    together: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    @property
    def clusters(self) -> list[tuple[str, str | int]]:
        """What of each answer is independent of the others: its question, or the question's cluster."""
        questions = ((dataset, query_id) for dataset, _, query_id in self.items)
        return [self.together.get(question, question) for question in questions]

    def take(self, places: Sequence[int]) -> StepScores:
        scores = [[one[place] for place in places] for one in self.scores]
        return StepScores([self.items[place] for place in places], scores, self.together)


@dataclass(frozen=True)
class Bands:
    """Where the steps of a cascade but the last decide by themselves with the wanted agreement.

    `spared` are the places of the answers about which the last step need not be asked.
    """

    wanted: float
    items: int
    steps: tuple[discrimination.StepChoice, ...]
    spared: tuple[int, ...]

    def list_bounds(self) -> tuple[StepBounds, ...]:
        return tuple(StepBounds(place, one.band.low, one.band.high) for place, one in enumerate(self.steps))

    def list_figures(self, names: Sequence[str]) -> Iterator[Figure]:
        """What each step decides and how often it agrees, on questions held out."""
        for name, one in zip(names, self.steps, strict=False):
            ends = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
            yield Figure(f"decided by {name}", one.decided / self.items)
            yield Figure(f"agreement of {name}", one.agreement, *ends)


def find_bands(asked: StepScores, labels: Sequence[float], wanted: float, seed: int = 42) -> Bands:
    """Choose the bands in which the steps of a cascade decide with the wanted agreement, from 0.5 to 1.

    `labels` are what people, or the last step, say of each answer, from 0 to 1; above 0.5 is yes.

    Raises:
        UsageError: there are fewer questions than folds.
    """
    folds = deal_folds(asked.clusters, seed)
    if folds is None:
        raise UsageError(
            f"{len(asked.items)} answers are too few to hold questions out; label at least {FOLDS} questions"
        )
    scores = np.array([[np.nan if one is None else one for one in step] for step in asked.scores[:-1]]).T
    steps = discrimination.choose_bands(scores, np.array(labels) > BETWEEN, wanted, folds, asked.clusters)
    waiting = np.ones(len(labels), dtype=bool)
    for place, step in enumerate(steps):
        waiting &= step.band.decide(scores[:, place]) == 0
    return Bands(wanted, len(labels), steps, tuple(np.flatnonzero(~waiting).tolist()))


def count_decisions(asked: StepScores, decisions: Sequence[float]) -> CalibrationLabels:
    """The last step's own decisions, counted as labels."""
    rows = [[*item, decision] for item, decision in zip(asked.items, decisions, strict=True)]
    yes, count = sum(decision > BETWEEN for decision in decisions), len(rows)
    digest = hashlib.sha256(json.dumps(sorted(rows)).encode()).hexdigest()
    questions = len({(dataset, query_id) for dataset, _, query_id in asked.items})
    return CalibrationLabels("last step", digest, count, yes, count - yes, questions, count, 1)


Control = Literal["ltt", "crc"]
ENOUGH_TO_LEARN = 150
"""With fewer labels, none can be spared to find out which bounds to relax first."""
_PART = 4
"""One label in so many is used for that."""


@dataclass(frozen=True)
class Promise:
    """Whether a threshold, or the bounds of several steps, can keep a promise about wrong answers.

    Attributes:
        wanted: the threshold that keeps the wanted limit; None if these labels cannot show one.
        best: the smallest limit that these labels can show; None if they can show none, and for crc.
        curve: what thresholds, or bounds from strict to loose, do.
        items: the labelled items that count: one of each question, or of each cluster of questions.
        control: how the risk is controlled.
        bounds, best_bounds: of several steps, the bound of each that keeps the wanted and the smallest limit.
        learnt: how many items found out which bounds to relax first, and were not used to test.
    """

    wanted: risk_control.Guarantee | None
    best: risk_control.Guarantee | None
    curve: tuple[risk_control.RiskPoint, ...]
    items: int
    control: Control = "ltt"
    bounds: tuple[float, ...] | None = None
    best_bounds: tuple[float, ...] | None = None
    learnt: int = 0


def _draw_one_each(clusters: Sequence[Hashable], seed: int) -> list[int]:
    """The place of an item of each cluster, because items of one are not independent."""
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(clusters))
    return [*{clusters[place]: int(place) for place in order}.values()]


def promise(joined: Joined, limit: float, confidence: float, seed: int = 42) -> Promise:
    """Find the threshold from which on at most a share of the answers is wrong, with a confidence.

    An answer is wrong unless most of its labels say that it is right.
    """
    rows = sorted(_draw_one_each(joined.clusters, seed))
    values, is_wrong = np.array(joined.judged)[rows], np.array(joined.labelled)[rows] <= BETWEEN
    wanted = risk_control.find_guarantee(values, is_wrong, limit, confidence)
    best = wanted or risk_control.find_best_limit(values, is_wrong, confidence)
    return Promise(wanted, best, risk_control.trace_risk(values, is_wrong, confidence), len(rows))


def promise_steps(
    values: Sequence[Sequence[float | None]],
    labelled: Sequence[float],
    questions: Sequence[Hashable],
    rule: risk_control.Rule,
    limit: float,
    confidence: float,
    *,
    together: bool,
    control: Control = "ltt",
    seed: int = 42,
    find_best: bool = True,
) -> Promise:
    """Find bounds that send as many answers as possible and keep the promise.

    An answer is wrong unless most of its labels say that it is right. One answer of each question counts. With 150
    labels or more, a quarter of them says which bounds to relax first; with fewer, all bounds go down together.

    Args:
        values: the value of each answer at each step, from 0 to 1; None where it has none.
        labelled, questions: the mean of the labels of each answer, from 0 to 1, and its question.
        rule: which answers are sent with which bounds.
        limit: the largest share of wrong answers among those that are sent (of all answers, for crc).
        confidence: the probability with which the promise must be kept; crc does not use it.
        together: whether an answer must reach all bounds, as in a waterfall; else one is enough, as in a cascade.
        control: `ltt` for Learn then Test, `crc` for conformal risk control.
        seed: the seed of the draws.
        find_best: whether to look for the best promise if the wanted one cannot be kept, which takes a while.
    """
    rows = np.array(_draw_one_each(questions, seed))
    table = np.array([[np.nan if one is None else one for one in row] for row in values])[rows]
    is_wrong = np.array(labelled)[rows] <= BETWEEN
    learnt = len(rows) // _PART if len(rows) >= ENOUGH_TO_LEARN else 0
    path = risk_control.level_path(table.shape[1], rule)
    if learnt:
        path = risk_control.learn_path(table[:learnt], is_wrong[:learnt], rule, together=together)
    scores, tested = path.score(table[learnt:]), is_wrong[learnt:]
    if control == "crc":
        wanted, best = risk_control.find_controlled(scores, tested, limit), None
    else:
        wanted = risk_control.find_guarantee(scores, tested, limit, confidence)
        best = wanted or (risk_control.find_best_limit(scores, tested, confidence) if find_best else None)
    bounds, best_bounds = (None if one is None else path.find(one.threshold) for one in (wanted, best))
    curve = risk_control.trace_risk(scores, tested, confidence)
    return Promise(wanted, best, curve, len(rows), control, bounds, best_bounds, learnt)


FOLDS = 5


def deal_folds(questions: Sequence[Hashable], seed: int) -> Ints | None:
    """The fold of each row, from 0: all rows of a question have the same one. None for fewer questions than folds."""
    members = number_clusters(questions, len(questions))
    count = int(members.max()) + 1 if len(members) else 0
    if count < FOLDS:
        return None
    folds: Ints = np.random.Generator(np.random.PCG64(seed)).permutation(count)[members] % FOLDS
    return folds
