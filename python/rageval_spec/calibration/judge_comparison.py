"""Compares several judges on the same labelled items: which is really better, and what each costs.

The cost is in dollars and seconds a sample.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from rageval_spec import kernels
from rageval_spec.calibration.labelled_items import Item, Joined
from rageval_spec.calibration.measures import BETWEEN, CalibrationMeasure, Measuring
from rageval_spec.calibration.thresholds import ThresholdCriterion, decide_outside
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Interval
from rageval_spec.history.metric_definitions import RecordedSpec
from rageval_spec.libraries import np
from rageval_spec.plugin import ChatModel
from rageval_spec.statistics.intervals import bootstrap_interval, find_p_value
from rageval_spec.statistics.raters.discrimination import decide, discriminate
from rageval_spec.statistics.regression import associate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.libraries import Floats

    from rageval_spec.statistics.intervals import Statistic


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
    models = (name for section, name in recorded.list_used(node) if section == "models")
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
        """A measure by its name; None if it is not defined."""
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


def _narrow(statistic: Statistic, sides: NDArray[np.bool_]) -> Statistic:
    """The statistic of some rows as a function of weights of all."""
    return lambda weights: statistic(weights[:, sides])


def _test_pairs(
    by_metric: Mapping[str, Mapping[str, Statistic]], measure: Compared, how: Measuring
) -> Sequence[JudgeDifference]:
    rows, drawn = len(how.questions), {"resamples": how.resamples, "seed": how.seed}
    tested: list[JudgeDifference] = []
    for first, second in itertools.combinations([name for name, found in by_metric.items() if measure in found], 2):
        differ = _subtract(by_metric[first][measure], by_metric[second][measure])
        p_value = find_p_value(differ, rows, clusters=how.questions, **drawn)
        if p_value is not None:
            interval = bootstrap_interval(differ, rows, clusters=how.questions, **drawn)
            difference = float(differ(np.ones((1, rows)))[0])
            tested.append(JudgeDifference(first, second, measure, difference, interval, p_value, p_value))
    adjusted = kernels.holm([one.p_value for one in tested]) if tested else []
    return [replace(one, p_adjusted=p_adjusted) for one, p_adjusted in zip(tested, adjusted, strict=True)]


def _subtract(first: Statistic, second: Statistic) -> Callable[[Floats], Floats]:
    return lambda weights: first(weights) - second(weights)
