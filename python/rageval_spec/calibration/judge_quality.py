"""Measures how close a judge comes to people, overall and on each system and slice, and which of several is better.

Each measure has its interval. Judges are compared on the same labelled items; what each costs is in dollars and
seconds a sample.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rageval_spec import kernels
from rageval_spec.calibration import measures
from rageval_spec.calibration.labelled_items import Item, Joined, Sampling, read_item_samples
from rageval_spec.calibration.measures import BETWEEN, CalibrationMeasure, Measuring
from rageval_spec.calibration.reliability import MapChoice, Reliability, choose_map, rate_reliability
from rageval_spec.calibration.thresholds import (
    BestThreshold,
    ThresholdCriterion,
    decide_outside,
    find_threshold,
    rate_decisions,
)
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import average_labels
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.history.metric_definitions import RecordedSpec
from rageval_spec.libraries import Bools, Floats, np
from rageval_spec.plugin import ChatModel
from rageval_spec.statistics.intervals import bootstrap_interval, compute_p_value
from rageval_spec.statistics.raters import rater_agreement
from rageval_spec.statistics.raters.corrected_means import CorrectedMean
from rageval_spec.statistics.raters.discrimination import decide, discriminate
from rageval_spec.statistics.regression import associate

if TYPE_CHECKING:
    from rageval_spec.statistics.intervals import Statistic


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
    judged: Floats, labelled: Floats, how: measures.Measuring
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


@dataclass(frozen=True, slots=True)
class Spending:
    """What a judge took for each sample that it scored.

    Attributes:
        cost: US dollars, whenever they were paid; 0 for a judge that asks no chat model, None if it is not known.
        calls: calls to chat models; None if it is not known.
        seconds: how long it took; None if it did not run now.
    """

    cost: float | None = None
    calls: float | None = None
    seconds: float | None = None


def find_spending(evaluation: Evaluation, recorded: RecordedSpec, metric: str) -> Spending:
    """What the judge of a metric took, from the results.

    It is not known if another metric asks the same chat model, because the results count the calls of each model.
    """
    samples = evaluation.values.filter(metric=metric).drop_nulls("value").height
    models = list_chat_models(recorded, metric)
    if not models:
        return Spending(0.0, 0.0)
    others = {name for other in recorded.metrics if other != metric for name in list_chat_models(recorded, other)}
    found = [evaluation.provenance.judging.get(name) for name in models]
    if not samples or others & {*models} or not all(found):
        return Spending()
    costs = [one.cost for one in found if one is not None and one.cost is not None]
    calls = sum(one.calls for one in found if one is not None)
    return Spending(sum(costs) / samples if len(costs) == len(found) else None, calls / samples)


def list_chat_models(recorded: RecordedSpec, metric: str) -> Collection[str]:
    """The names of the chat models behind a metric."""
    node = recorded.metrics[metric].node
    models = (one.name for one in recorded.blocks.list_used(node) if one.section == "models")
    return [name for name in models if isinstance(recorded.models.get(name), ChatModel)]


Compared = Literal["auroc", "kappa", "mae"]
SIGNIFICANT = 0.05
_LOWER_IS_BETTER = frozenset({"mae"})


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One judge beside the others, on the items that all of them scored, with what it took.

    The measures are AUROC, kappa with people (on questions held out), mean absolute error and bias, if defined.
    """

    metric: str
    judge: str | None
    measures: tuple[CalibrationMeasure, ...]
    spending: Spending

    def find(self, name: str) -> CalibrationMeasure | None:
        return next((one for one in self.measures if one.name == name), None)


@dataclass(frozen=True, slots=True)
class JudgeDifference:
    """A paired test of the judges of two metrics by one measure: that of the first less that of the second.

    The p-value is that it is 0, adjusted by Holm's correction for all pairs of judges by this measure.
    """

    first: str
    second: str
    measure: Compared
    difference: float
    interval: Interval | None
    p_value: float
    p_adjusted: float

    @property
    def better(self) -> str | None:
        """The metric whose judge is certainly better; None if neither is."""
        if self.p_adjusted >= SIGNIFICANT or not self.difference:
            return None
        return self.first if (self.difference > 0) != (self.measure in _LOWER_IS_BETTER) else self.second


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Several judges on the labelled items that all of them scored, with each pair of them by each measure."""

    items: int
    rows: tuple[JudgeRow, ...]
    differences: tuple[JudgeDifference, ...]


@dataclass(frozen=True, slots=True)
class ComparedJudge:
    """A judge to compare: its values beside the labels, its name if it is known, and what it took."""

    joined: Joined
    judge: str | None = None
    spending: Spending = field(default_factory=Spending)


def compare_judges(
    contenders: Sequence[ComparedJudge],
    criterion: ThresholdCriterion | None = None,
    *,
    resamples: int = 2000,
    seed: int = 42,
) -> JudgeComparison | None:
    """Compare judges on the labelled items that all of them scored; None if there is no such item.

    Differences are tested by bootstrap, which draws whole questions, the same for both judges. Each judge's threshold,
    which kappa needs, is the best by the criterion.
    """
    shared = _share([one.joined for one in contenders])
    if not shared:
        return None
    how = Measuring(shared[0].clusters, resamples, seed)
    statistics = [_list_statistics(one, criterion or ThresholdCriterion(), seed) for one in shared]
    rows = tuple(
        JudgeRow(
            one.joined.metric,
            one.judge,
            tuple(how.measure(name, find) for name, find in found.items()),  # type: ignore[arg-type]
            one.spending,
        )
        for one, found in zip(contenders, statistics, strict=True)
    )
    by_metric = dict(zip((row.metric for row in rows), statistics, strict=True))
    measures: tuple[Compared, ...] = ("auroc", "kappa", "mae")
    differences = [one for measure in measures for one in _test_pairs(by_metric, measure, how)]
    return JudgeComparison(len(shared[0].items), rows, tuple(differences))


def _share(joined: Sequence[Joined]) -> list[Joined]:
    """The same with only the items that all have, in the same order; empty if there are none."""
    common = set.intersection(*({*one.items} for one in joined)) if joined else set()
    order: list[Item] = [item for item in joined[0].items if item in common] if common else []
    found = []
    for one in joined if order else ():
        at = {item: place for place, item in enumerate(one.items)}
        places = [at[item] for item in order]
        judged, labelled = (tuple(of[place] for place in places) for of in (one.judged, one.labelled))
        found.append(replace(one, items=tuple(order), judged=judged, labelled=labelled, weights=None))
    return found


def _list_statistics(joined: Joined, criterion: ThresholdCriterion, seed: int) -> Mapping[str, Statistic]:
    """The measures of a judge as functions of weights of all items."""
    judged, labelled = np.array(joined.judged), np.array(joined.labelled)
    association = associate(judged, labelled)
    sides = labelled != BETWEEN
    is_yes = labelled[sides] > BETWEEN
    found: dict[str, Statistic] = {}
    if 0 < is_yes.sum() < len(is_yes):
        found["auroc"] = _narrow(discriminate(judged[sides], is_yes)["auroc"], sides)
        questions = [question for question, counts in zip(joined.clusters, sides, strict=True) if counts]
        taken = decide_outside(judged[sides], is_yes, questions, criterion, seed)
        if taken is not None:
            found["kappa"] = _narrow(decide(taken.astype(float), is_yes, BETWEEN)["kappa"], sides)
    return {**found, "mae": association["mae"], "bias": association["bias"]}


def _narrow(statistic: Statistic, sides: Bools) -> Statistic:
    """The statistic of some rows as a function of weights of all."""
    return lambda weights: statistic(weights[:, sides])


def _test_pairs(
    by_metric: Mapping[str, Mapping[str, Statistic]], measure: Compared, how: Measuring
) -> Sequence[JudgeDifference]:
    rows, drawn = len(how.questions), {"resamples": how.resamples, "seed": how.seed}
    tested: list[JudgeDifference] = []
    for first, second in itertools.combinations([name for name, found in by_metric.items() if measure in found], 2):
        one, other = by_metric[first][measure], by_metric[second][measure]

        def differ(weights: Floats, one: Statistic = one, other: Statistic = other) -> Floats:
            return one(weights) - other(weights)

        p_value = compute_p_value(differ, rows, clusters=how.questions, **drawn)
        if p_value is not None:
            interval = bootstrap_interval(differ, rows, clusters=how.questions, **drawn)
            difference = float(differ(np.ones((1, rows)))[0])
            tested.append(JudgeDifference(first, second, measure, difference, interval, p_value, p_value))
    adjusted = kernels.holm([one.p_value for one in tested]) if tested else []
    return [replace(one, p_adjusted=p_adjusted) for one, p_adjusted in zip(tested, adjusted, strict=True)]
