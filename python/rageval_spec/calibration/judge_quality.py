"""Measures how close a judge comes to people, overall and on each system and slice.

Each measure has its interval.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rageval_spec.calibration import measures
from rageval_spec.calibration.labelled_items import Item, Joined, Sampling, read_item_samples
from rageval_spec.calibration.reliability import MapChoice, Reliability, choose_map, rate_reliability
from rageval_spec.calibration.thresholds import BestThreshold, ThresholdCriterion, find_threshold, rate_decisions
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import average_labels
from rageval_spec.libraries import np
from rageval_spec.statistics.raters import rater_agreement, risk_control
from rageval_spec.statistics.raters.corrected_means import CorrectedMean
from rageval_spec.statistics.raters.discrimination import discriminate
from rageval_spec.statistics.regression import associate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]


ENOUGH_LABELS = 50
"""With fewer labelled items, intervals are too wide to choose a threshold by."""


@dataclass(frozen=True)
class Calibration:
    """What a judge's values of one metric are worth.

    Attributes:
        metric: the metric.
        items: the number of labelled items; `yes` of them have a label above 0.5, `no` below.
        labels, annotators: how many labels they have, by how many people.
        association: correlations, error and bias.
        discrimination: how well the values tell yes from no; empty if only one of them is there.
        threshold: where to draw the line, chosen on all labels; None if there is nothing to tell.
        decisions: how good decisions by such thresholds are, on questions that had no part in choosing them.
        reliability: whether values mean what they say; None if they are not all between 0 and 1.
        map: the map that would make them, if one is really better than none.
        people: how well the people agree with one another (Krippendorff's alpha), if items have several labels.
        people_decisions: how well their yes and no do, to compare the judge's kappa with: Cohen's kappa of two people,
            Fleiss' of more if all items have equally many labels, else nominal alpha.
        mean: the judge's mean, corrected by the labels.
        learning: how many labels narrower intervals need; None if there is no interval to start from.
        unused: labels that belong to nothing, counted by the reason.
        sampling: how the labelled items were chosen; None if it is not known.
    """

    metric: str
    items: int
    yes: int
    no: int
    labels: int
    annotators: int
    association: tuple[measures.CalibrationMeasure, ...]
    discrimination: tuple[measures.CalibrationMeasure, ...]
    threshold: BestThreshold | None
    decisions: tuple[measures.CalibrationMeasure, ...]
    reliability: Reliability | None
    map: MapChoice
    people: rater_agreement.AgreementCoefficient
    people_decisions: rater_agreement.AgreementCoefficient
    mean: CorrectedMean
    learning: measures.Learning | None
    unused: tuple[tuple[str, int], ...]
    sampling: Sampling | None = None

    @property
    def is_few(self) -> bool:
        """Whether there are fewer than 50 labelled items."""
        return self.items < ENOUGH_LABELS


def measure_judge(
    joined: Joined,
    criterion: ThresholdCriterion | None = None,
    *,
    width: float = measures.WIDTH,
    resamples: int = 2000,
    seed: int = 42,
) -> Calibration:
    """Measure a judge against people. Intervals draw whole questions, because answers to one are not independent.

    The threshold is the best by `criterion`, and labels are planned for intervals of `width`.
    """
    criterion = criterion or ThresholdCriterion()
    judged, labelled = np.array(joined.judged), np.array(joined.labelled)
    how = measures.Measuring(joined.clusters, resamples, seed)
    sides = labelled != measures.BETWEEN
    values, is_yes = judged[sides], labelled[sides] > measures.BETWEEN
    decided = measures.Measuring([*compress(joined.clusters, sides)], resamples, seed)
    both = 0 < is_yes.sum() < len(is_yes)
    find_discrimination = discriminate(values, is_yes) if both else {}
    discrimination = tuple(decided.measure(name, find) for name, find in find_discrimination.items())
    threshold = find_threshold(values, is_yes, criterion)
    is_found = threshold is not None and threshold.threshold is not None
    decisions = rate_decisions(values, is_yes, criterion, decided) if is_found else ()
    people, people_decisions = _compare_people(joined, resamples=resamples, seed=seed)
    mean, raw = measures.correct_judge(joined), measures.correct_with(joined, range(len(joined.items)))
    return Calibration(
        metric=joined.metric,
        items=len(judged),
        yes=int(is_yes.sum()),
        no=int((~is_yes).sum()),
        labels=len(joined.labels),
        annotators=len({label.annotator for label in joined.labels}),
        association=tuple(how.measure(name, find) for name, find in associate(judged, labelled).items()),
        discrimination=discrimination,
        threshold=threshold,
        decisions=decisions,
        reliability=rate_reliability(judged, labelled, how),
        map=choose_map(joined, resamples=resamples, seed=seed),
        people=people,
        people_decisions=people_decisions,
        mean=mean,
        learning=measures.plan_labels(joined, raw, (*discrimination, *decisions), width, seed),
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
        items: the labelled items that count: one of each question, or of each cluster of questions.
    """

    wanted: risk_control.Guarantee | None
    best: risk_control.Guarantee | None
    curve: tuple[risk_control.RiskPoint, ...]
    items: int


def promise(joined: Joined, limit: float, confidence: float, seed: int = 42) -> Promise:
    """Find the threshold from which on at most a share of the answers is wrong, with a confidence.

    An answer is wrong unless most of its labels say that it is right. Answers to one question, or to questions of one
    cluster, are not independent, so one of them is drawn.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(joined.items))
    chosen = {joined.clusters[place]: int(place) for place in order}
    rows = sorted(chosen.values())
    values, is_wrong = np.array(joined.judged)[rows], np.array(joined.labelled)[rows] <= measures.BETWEEN
    wanted = risk_control.find_guarantee(values, is_wrong, limit, confidence)
    best = wanted or risk_control.find_best_limit(values, is_wrong, confidence)
    return Promise(wanted, best, risk_control.trace_risk(values, is_wrong, confidence), len(rows))


def _compare_people(
    joined: Joined, *, resamples: int, seed: int
) -> tuple[rater_agreement.AgreementCoefficient, rater_agreement.AgreementCoefficient]:
    """The agreement of people's labels of these items (Krippendorff's alpha), and that of their yes and no.

    Labels in the middle of the scale are neither yes nor no.
    """
    labels = [label for label in joined.labels if not label.adjudicated]
    given: _Said = {(label.item, label.annotator): label.value for label in labels}
    placed = {(label.item, label.annotator): average_labels([label], joined.scale) for label in labels}
    decided: _Said = {
        key: float(value > measures.BETWEEN) for key, value in placed.items() if value != measures.BETWEEN
    }
    ratings, clusters = _rate(given)
    usual: rater_agreement.Coefficient = "alpha-interval" if ratings.is_scale else "alpha-nominal"
    people = rater_agreement.measure_agreement(ratings, usual, clusters=clusters, resamples=resamples, seed=seed)
    ratings, clusters = _rate(decided, (0.0, 1.0))
    counts = {sum(code != rater_agreement.MISSING for code in row) for row in ratings.codes.tolist()}
    usual = "kappa" if len({name for _, name in decided}) == 2 else "fleiss" if len(counts) == 1 else "alpha-nominal"
    return people, rater_agreement.measure_agreement(ratings, usual, clusters=clusters, resamples=resamples, seed=seed)


_Said: TypeAlias = "dict[tuple[Hashable, Hashable], float | str]"


def _rate(said: _Said, scale: Sequence[float] | None = None) -> tuple[rater_agreement.Ratings, list[Hashable]]:
    """What people said of items, and the question of each item."""
    items: dict[Any, None] = dict.fromkeys(item for item, _ in said)
    people = dict.fromkeys(name for _, name in said)
    return rater_agreement.Ratings.of(said, [*items], [*people], scale), [item[:2] for item in items]


Kind = Literal["dataset", "system", "slice"]
FEWEST = 10
"""The fewest labelled items of a slice that is measured."""


@dataclass(frozen=True, slots=True)
class SliceCalibration:
    """What a judge's values are worth on a part of the labelled items: the means of values and labels, bias and AUROC.

    Bias and AUROC are None with fewer than ten items, and AUROC if only yes or only no is there.
    """

    kind: Kind
    name: str
    items: int
    judged: float
    labelled: float
    bias: measures.CalibrationMeasure | None
    auroc: measures.CalibrationMeasure | None


def measure_slices(
    evaluation: Evaluation, joined: Joined, *, resamples: int = 2000, seed: int = 42
) -> tuple[SliceCalibration, ...]:
    """Measure each dataset and system, if labels are of several, and each slice."""
    judged, labelled = np.array(joined.judged), np.array(joined.labelled)
    samples = read_item_samples(evaluation, joined)
    found = []
    for kind, name, inside in _list_parts(joined.items, samples):
        rows = np.flatnonzero(inside)
        how = measures.Measuring([joined.clusters[row] for row in rows], resamples, seed)
        bias, auroc = _measure(judged[rows], labelled[rows], how) if len(rows) >= FEWEST else (None, None)
        means = float(judged[rows].mean()), float(labelled[rows].mean())
        found.append(SliceCalibration(kind, name, len(rows), *means, bias, auroc))
    return tuple(found)


def _measure(
    judged: NDArray[np.float64], labelled: NDArray[np.float64], how: measures.Measuring
) -> tuple[measures.CalibrationMeasure, measures.CalibrationMeasure | None]:
    bias = how.measure("bias", associate(judged, labelled)["bias"])
    sides = labelled != measures.BETWEEN
    is_yes = labelled[sides] > measures.BETWEEN
    if not 0 < is_yes.sum() < len(is_yes):
        return bias, None
    decided = measures.Measuring([*compress(how.questions, sides)], how.resamples, how.seed)
    return bias, decided.measure("auroc", discriminate(judged[sides], is_yes)["auroc"])


def _list_parts(
    items: Sequence[Item], samples: Mapping[Item, Mapping[str, Any]]
) -> Iterator[tuple[Kind, str, list[bool]]]:
    """Each part with the items that belong to it."""
    places: tuple[tuple[Kind, int], ...] = (("dataset", 0), ("system", 1))
    for kind, place in places:
        names = [*dict.fromkeys(str(item[place]) for item in items)]
        if len(names) > 1:
            yield from ((kind, name, [item[place] == name for item in items]) for name in names)
    slices = [samples[item].get("slices") or () for item in items]
    for name in dict.fromkeys(name for names in slices for name in names):
        yield "slice", name, [name in names for names in slices]
