"""Measures the judges of an evaluation beside people's labels: one criterion after the other, each judge in full.

Options of `calibrate` say which metrics are calibrated with which labels, and which are compared. The labels can also
be those that a spec names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rageval_spec import registry
from rageval_spec.calibration.bias import Biases, find_biases
from rageval_spec.calibration.judge_quality import (
    Calibration,
    ComparedJudge,
    JudgeComparison,
    SliceCalibration,
    Spending,
    compare_judges,
    find_spending,
    measure_judge,
    measure_slices,
)
from rageval_spec.calibration.labelled_items import Joined, join_labels
from rageval_spec.calibration.thresholds import Promise, ThresholdCriterion, promise
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import Label, LabelScale, find_ends
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.history.metric_definitions import RecordedSpec, read_ranges, read_recorded_spec
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import Context, Labels, Node
from rageval_spec.plugin.block_names import names_in
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.wording import count_noun, list_choices

_GUARANTEE = compile_later(r"(?:wrong(?: answers)?(?: sent)? *(?:<=|≤) *)?([0-9]+(?:\.[0-9]+)?) *%")
_PRECISION = compile_later(r"precision *(?:>=|≥) *([0-9]*\.?[0-9]+)( *%)?")


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """What a user wants to know: the labels' scale, what thresholds are the best by, and the width of intervals.

    `limit` is the largest share of wrong answers to promise with a confidence; None for no promise.
    """

    scale: LabelScale | None
    criterion: ThresholdCriterion
    width: float
    limit: float | None
    confidence: float
    details: bool


def read_scale(scale: str | None) -> LabelScale | None:
    """The labels that are worst and best: `1..5`."""
    if scale is None:
        return None
    low, dots, high = scale.partition("..")
    try:
        found = LabelScale(float(low), float(high))
    except ValueError:
        found = None
    if found is None or not dots or found.low == found.high:
        raise UsageError(f"--scale {scale}: write the worst and the best label, such as 1..5")
    return found


def read_guarantee(guarantee: str | None) -> float | None:
    """The largest share of wrong answers: `wrong answers sent <= 2%`."""
    if guarantee is None:
        return None
    found = _GUARANTEE.fullmatch(guarantee.strip())
    limit = float(found[1]) / 100 if found else 0.0
    if not 0 < limit < 1:
        raise UsageError(
            f"--guarantee '{guarantee}': write the largest share of wrong answers, such as 2% or 'wrong <= 2%'"
        )
    return limit


def read_criterion(threshold: str) -> ThresholdCriterion:
    """What the threshold is the best by: `f1`, `youden`, `precision>=0.95` or `precision>=95%`."""
    text = threshold.strip().casefold()
    if text in ("f1", "youden"):
        return ThresholdCriterion(text)  # type: ignore[arg-type]  # mypy does not narrow it
    found = _PRECISION.fullmatch(text)
    wanted = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < wanted <= 1:
        raise UsageError(f"--threshold '{threshold}': write f1, youden or a precision, such as 'precision>=0.95'")
    return ThresholdCriterion("precision", wanted)


@dataclass(frozen=True, slots=True)
class Known:
    """The metrics of results, and what is known of them.

    Attributes:
        metrics: their names.
        questions: what each asks its judge: the word after `use:`, and its other keys as text. Empty for results of
            earlier versions.
        judges: the judge that each asks, if it asks one.
    """

    metrics: Sequence[str]
    questions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    judges: Mapping[str, str] = field(default_factory=dict)

    def list_labelled(self, criterion: str) -> list[str]:
        """The metrics that labels of a criterion are about: the one of this name, and those that differ in the judge.

        If none has this name, those with this word after `use:`, as long as they ask the same.
        """
        if criterion in self.metrics:
            question = self.questions.get(criterion)
            same = (one for one in self.metrics if question is not None and self.questions.get(one) == question)
            return [*dict.fromkeys((criterion, *same))]
        found = [one for one in self.metrics if self.questions.get(one, ("",))[0] == criterion]
        return found if len({self.questions[one] for one in found}) == 1 else []


@dataclass(frozen=True, slots=True)
class CalibratedCriterion:
    """The labels of one criterion, the metrics that are shown in full, and those that are compared, if several are."""

    labels: Sequence[Label]
    shown: Sequence[str]
    compared: Sequence[str]


def know(evaluation: Evaluation, recorded: RecordedSpec | None) -> Known:
    if recorded is None:
        return Known(evaluation.metrics)
    return replace(know_nodes({name: one.node for name, one in recorded.metrics.items()}), metrics=evaluation.metrics)


def know_nodes(nodes: Mapping[str, Node]) -> Known:
    judges = {name: names_in(node, "judges") for name, node in nodes.items()}
    return Known(
        [*nodes],
        {name: (node.use, _list_settings(node)) for name, node in nodes.items()},
        {name: named[0] for name, named in judges.items() if len(named) == 1},
    )


def _list_settings(node: Node) -> str:
    """The keys of a metric that say what is asked, as text."""
    return node.model_dump_json(exclude={"use", "as_", "judge", "labels", "correction"}, exclude_defaults=True)


def choose(
    known: Known, labels: Sequence[Label], metrics: Sequence[str], judges: Sequence[str]
) -> list[CalibratedCriterion]:
    """Choose the metrics for each criterion of the labels.

    Labels are about the metric of this name, and those that ask another judge the same. Labels that name no metric are
    about those that the command line names. Labels of criteria without a metric are left out (`count_others`), as long
    as some criterion has one. `metrics` are the only ones, none for all that have labels; so are those that ask one
    of `judges`.

    Raises:
        UsageError: a metric or a judge is not there, or has no labels.
    """
    named = [*dict.fromkeys(label.metric for label in labels if label.metric)]
    criteria = named if all(label.metric for label in labels) else _name_criteria(known, named, metrics)
    _check_metrics(known, criteria, metrics)
    found = [_choose(known, labels, criterion, metrics, judges) for criterion in criteria]
    found = [one for one in found if one.shown]
    absent = [judge for judge in judges if judge not in {known.judges.get(name) for one in found for name in one.shown}]
    if absent:
        there = [*dict.fromkeys(known.judges.values())]
        hint = suggest(absent[0], there)
        hint = hint or (f"they ask {list_choices(there)}" if there else "no metric asks a judge")
        raise UsageError(f"no labelled metric of the results asks the judge '{absent[0]}'; {hint}")
    return found


def count_others(known: Known, labels: Iterable[Label], metrics: Sequence[str]) -> dict[str, int]:
    """The criteria of labels that no metric is about, and how many labels they have; none if metrics are named."""
    if metrics:
        return {}
    return dict(Counter(label.metric for label in labels if label.metric and not known.list_labelled(label.metric)))


def explain_other(criterion: str, count: int, known: Known) -> str:
    why = f"left out {count_noun(count, 'label')} of '{criterion}', because no metric has this name"
    return "; ".join(filter(None, (why, suggest(criterion, known.metrics))))


def _name_criteria(known: Known, named: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """The criteria, if some labels do not name theirs: what they are about must be clear from the command line."""
    questions = {known.questions.get(metric, metric) for metric in metrics}
    if len(questions) != 1:
        raise UsageError(
            "some labels do not name their metric; add a column 'metric', or name it: --metric "
            + ([*named] or [*known.metrics])[0]
        )
    return [metrics[0]]


def _check_metrics(known: Known, criteria: Sequence[str], metrics: Sequence[str]) -> None:
    unknown = [one for one in criteria if not known.list_labelled(one)]
    for metric in metrics or (unknown if len(unknown) == len(criteria) else ()):
        if metric not in known.metrics:
            there = list_choices(known.metrics)
            what, hint = f"the results have no metric '{metric}'", f"they have {there}"
            if not metrics:
                what = f"the labels are about '{metric}', which is not a metric of the results"
                hint = f"in the labels, name the metric that they are about: {there}"
            raise UsageError(f"{what}; {suggest(metric, known.metrics) or hint}")
    labelled = {name for criterion in criteria for name in known.list_labelled(criterion)}
    for metric in metrics:
        if metric not in labelled:
            raise UsageError(f"no label has the metric '{metric}'; the labels have {list_choices(criteria)}")


def _choose(
    known: Known, labels: Iterable[Label], criterion: str, metrics: Sequence[str], judges: Sequence[str]
) -> CalibratedCriterion:
    about = [
        name
        for name in known.list_labelled(criterion)
        if (not metrics or name in metrics) and (not judges or known.judges.get(name) in judges)
    ]
    if not metrics:  # of those that ask the same judge, only the first
        judged = [known.judges.get(name, name) for name in about]
        about = [name for at, name in enumerate(about) if judged.index(judged[at]) == at]
    shown = [criterion] if criterion in about and not metrics and not judges else about
    return CalibratedCriterion(
        [label for label in labels if label.metric in ("", criterion)], shown, about if len(about) > 1 else ()
    )


def read_spec_labels(spec: Spec) -> list[Label]:
    """The labels that metrics of a spec name; all of its labels if no metric names any. Their scale is 0 to 1.

    Labels that name no metric get the name of the metric that names them, if it is the only one.
    """
    users: dict[str, list[str]] = {}
    for metric in spec.metrics:
        if metric.node.labels is not None:
            users.setdefault(str(metric.node.labels), []).append(metric.name)
    if not spec.labels:
        raise UsageError("the spec has no 'labels:'; add them, or name a file: --labels labels.csv")
    found: list[Label] = []
    for name in [name for name in spec.labels if name in users] or spec.labels:
        node = spec.labels[name]
        source: Labels[Any] = registry.load("labels", node.use)(node, Context(name, spec.folder))
        of = users.get(name, [])
        for label in (one.put_on(source.scale) for one in source.read()):
            value = label.value if isinstance(label.value, str) else source.scale.place(label.value)
            found.append(replace(label, value=value, metric=label.metric or (of[0] if len(of) == 1 else "")))
    return found


@dataclass(frozen=True, slots=True)
class CalibrationValues:
    """Results, what of them is calibrated with which labels, and the metrics that are known.

    `spending` is what the judges that are compared took, by metric; `others` the number of labels of each criterion
    that no metric is about.
    """

    evaluation: Evaluation
    chosen: Sequence[CalibratedCriterion]
    known: Known
    spending: Mapping[str, Spending] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What is known of a judge on one metric."""

    joined: Joined
    calibration: Calibration
    biases: Biases
    promise: Promise | None
    slices: tuple[SliceCalibration, ...] = ()


@dataclass(frozen=True, slots=True)
class CriterionReport:
    """What labels of one criterion show: metrics in full, and judges side by side."""

    found: Sequence[JudgeReport]
    comparison: JudgeComparison | None = None


def choose_values(
    evaluation: Evaluation, labels: Sequence[Label], metrics: Sequence[str], judges: Sequence[str]
) -> CalibrationValues:
    """What of finished results is calibrated; metrics, judges and errors are those of `choose`."""
    recorded = read_recorded_spec(evaluation)
    known = know(evaluation, recorded)
    chosen = choose(known, labels, metrics, judges)
    compared = [] if recorded is None else [name for one in chosen for name in one.compared]
    spending = {name: find_spending(evaluation, recorded, name) for name in compared if recorded is not None}
    return CalibrationValues(evaluation, chosen, known, spending, count_others(known, labels, metrics))


def measure_judges(values: CalibrationValues, settings: CalibrationSettings) -> list[CriterionReport]:
    """Measure the judges of each criterion, and compare them; a DataError if labels do not fit the results."""
    bounds = {name: find_ends(*ends) for name, ends in read_ranges(values.evaluation).items()}
    return [_measure_criterion(values, chosen, settings, bounds) for chosen in values.chosen]


def list_judges(groups: Iterable[CriterionReport]) -> list[JudgeReport]:
    """The judges of all criteria, the first of each metric."""
    found = [one for group in groups for one in group.found]
    return [*{one.joined.metric: one for one in found[::-1]}.values()][::-1]


def _measure_criterion(
    values: CalibrationValues,
    chosen: CalibratedCriterion,
    settings: CalibrationSettings,
    bounds: Mapping[str, tuple[float, float]],
) -> CriterionReport:
    joined = {
        metric: join_labels(values.evaluation, chosen.labels, metric, settings.scale, bounds.get(metric, (0.0, 1.0)))
        for metric in dict.fromkeys((*chosen.shown, *chosen.compared))
    }
    found = [_measure(values.evaluation, joined[metric], settings) for metric in chosen.shown]
    contenders = [
        ComparedJudge(joined[name], values.known.judges.get(name), values.spending.get(name, Spending()))
        for name in chosen.compared
    ]
    return CriterionReport(found, compare_judges(contenders, settings.criterion) if contenders else None)


def _measure(evaluation: Evaluation, joined: Joined, settings: CalibrationSettings) -> JudgeReport:
    return JudgeReport(
        joined,
        measure_judge(joined, settings.criterion, width=settings.width),
        find_biases(evaluation, joined),
        None if settings.limit is None else promise(joined, settings.limit, settings.confidence),
        measure_slices(evaluation, joined),
    )
