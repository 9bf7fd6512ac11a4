"""How close a judge comes to people: one measure after the other, each with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec.calibration.joining import Joined, question_of
from rageval_spec.calibration.sampling import Sampling
from rageval_spec.data.interval import Interval
from rageval_spec.statistics.agreement import Agreement, Ratings, measure_agreement
from rageval_spec.statistics.association import Association, associate
from rageval_spec.statistics.corrected import CorrectedMean, correct_mean
from rageval_spec.statistics.discrimination import (
    Choice,
    Decision,
    Discrimination,
    choose_threshold,
    decide,
    discriminate,
)
from rageval_spec.statistics.guarantees import Guarantee, Point, find_best_limit, find_guarantee, trace_risk
from rageval_spec.statistics.resampling import find_interval, number_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

Name = Association | Discrimination | Decision
ENOUGH_LABELS = 50
"""With fewer labelled items, intervals are too wide to choose a threshold by."""
FOLDS = 5
_BETWEEN = 0.5
_DECISIONS: tuple[Decision, ...] = ("balanced_accuracy", "f1", "precision", "recall", "kappa")


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a calibration; `value` is None, and `reason` says why, if it is not defined."""

    name: Name
    value: float | None
    interval: Interval | None
    reason: str | None = None


@dataclass(frozen=True)
class Calibration:
    """What a judge's values of one metric are worth.

    Attributes:
        metric: the metric.
        items: the number of labelled items; `yes` of them have a label above 0.5, `no` below.
        labels, annotators: how many labels they have, by how many people.
        association: correlations, error and bias.
        discrimination: how well the values tell yes from no; empty if only one of them is there.
        threshold: where to draw the line, chosen on all labels by Youden's index; None if there is nothing to tell.
        decisions: how good decisions by such thresholds are, on questions that had no part in choosing them.
        people: how well the people agree with one another (Krippendorff's alpha), if items have several labels.
        mean: the judge's mean, corrected by the labels.
        unused: labels that belong to nothing, counted by the reason.
        sampling: how the labelled items were chosen; None if it is not known.
    """

    metric: str
    items: int
    yes: int
    no: int
    labels: int
    annotators: int
    association: tuple[Measure, ...]
    discrimination: tuple[Measure, ...]
    threshold: Choice | None
    decisions: tuple[Measure, ...]
    people: Agreement
    mean: CorrectedMean
    unused: tuple[tuple[str, int], ...]
    sampling: Sampling | None = None

    @property
    def is_few(self) -> bool:
        """Whether there are fewer than 50 labelled items."""
        return self.items < ENOUGH_LABELS


def measure_judge(joined: Joined, *, resamples: int = 2000, seed: int = 42) -> Calibration:
    """Measure a judge against people. Intervals draw whole questions, because answers to one are not independent."""
    import numpy as np

    judged, labelled = np.array(joined.judged), np.array(joined.labelled)
    questions = joined.questions
    sides = labelled != _BETWEEN
    is_yes = labelled[sides] > _BETWEEN
    decided = [question for question, counts in zip(questions, sides, strict=True) if counts]
    drawn = {"resamples": resamples, "seed": seed}
    both = 0 < is_yes.sum() < len(is_yes)

    def measure(name: Name, statistic: object, rows: int, clusters: Sequence[Hashable]) -> Measure:
        value = float(statistic(np.ones((1, rows)))[0])  # type: ignore[operator]
        if not np.isfinite(value):
            return Measure(name, None, None, "the values, or the labels, are all the same")
        return Measure(name, value, find_interval(statistic, rows, clusters=clusters, **drawn))  # type: ignore[arg-type]

    association = [
        measure(name, statistic, len(judged), questions) for name, statistic in associate(judged, labelled).items()
    ]
    values = judged[sides]
    discrimination = discriminate(values, is_yes) if both else {}
    chosen = _decide_outside(values, is_yes, decided, seed) if both else None
    decisions = {} if chosen is None else decide(chosen.astype(float), is_yes, _BETWEEN)
    return Calibration(
        metric=joined.metric,
        items=len(judged),
        yes=int(is_yes.sum()),
        no=int((~is_yes).sum()),
        labels=len(joined.labels),
        annotators=len({label.annotator for label in joined.labels}),
        association=tuple(association),
        discrimination=tuple(measure(name, find, len(values), decided) for name, find in discrimination.items()),
        threshold=choose_threshold(values, is_yes, "youden") if both else None,
        decisions=tuple(measure(name, decisions[name], len(values), decided) for name in _DECISIONS if decisions),
        people=_compare_people(joined, **drawn),
        mean=correct_mean(
            judged,
            labelled,
            np.array([*joined.others.values()], dtype=float),
            weights=None if joined.weights is None else np.array(joined.weights),
            clusters=questions,
            other_clusters=[question_of(item) for item in joined.others],
        ),
        unused=tuple(joined.unused.items()),
        sampling=joined.sampling,
    )


@dataclass(frozen=True)
class Promise:
    """Whether a threshold can keep a promise about wrong answers.

    Attributes:
        wanted: the threshold that keeps the wanted limit; None if these labels cannot show one.
        best: the smallest limit that these labels can show; None if they can show none.
        curve: what thresholds do.
        items: the labelled items that count: one of each question.
    """

    wanted: Guarantee | None
    best: Guarantee | None
    curve: tuple[Point, ...]
    items: int


def promise(joined: Joined, limit: float, confidence: float, seed: int = 42) -> Promise:
    """Find the threshold from which on at most a share of the answers is wrong.

    An answer is wrong unless most of its labels say that it is right. Answers to one question are not independent, so
    one of them is drawn.

    Args:
        joined: the judge's values and the labels.
        limit: the largest share of wrong answers among those that are sent, between 0 and 1.
        confidence: the probability with which the promise must be kept.
        seed: the seed of the draw.
    """
    import numpy as np

    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(joined.items))
    chosen = {joined.questions[place]: int(place) for place in order}
    rows = sorted(chosen.values())
    values, is_wrong = np.array(joined.judged)[rows], np.array(joined.labelled)[rows] <= _BETWEEN
    wanted = find_guarantee(values, is_wrong, limit, confidence)
    best = wanted or find_best_limit(values, is_wrong, confidence)
    return Promise(wanted, best, trace_risk(values, is_wrong, confidence), len(rows))


def _decide_outside(
    values: Floats, is_yes: NDArray[np.bool_], questions: Sequence[Hashable], seed: int
) -> NDArray[np.bool_] | None:
    """Decide each row by the threshold that is best on the questions of the other folds.

    None if there are fewer questions than folds, or a part without one of the classes.
    """
    import numpy as np

    members = number_clusters(questions, len(values))
    count = int(members.max()) + 1
    if count < FOLDS:
        return None
    folds = np.random.Generator(np.random.PCG64(seed)).permutation(count)[members] % FOLDS
    taken = np.zeros(len(values), dtype=bool)
    for fold in range(FOLDS):
        inside = folds == fold
        choice = choose_threshold(values[~inside], is_yes[~inside], "youden")
        if choice is None:
            return None
        taken[inside] = values[inside] >= choice.threshold
    return taken


def _compare_people(joined: Joined, *, resamples: int, seed: int) -> Agreement:
    """Krippendorff's alpha of the labels of these items."""
    labels = [label for label in joined.labels if not label.adjudicated]
    items = [*dict.fromkeys(label.item for label in labels)]
    people = [*dict.fromkeys(label.annotator for label in labels)]
    ratings = Ratings.of({(label.item, label.annotator): label.value for label in labels}, items, people)
    return measure_agreement(
        ratings,
        "alpha-interval" if ratings.is_scale else "alpha-nominal",
        clusters=[item[:2] for item in items],
        resamples=resamples,
        seed=seed,
    )
