"""Which metrics are calibrated with which labels, and which are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.plugin.names import names_in
from rageval_spec.wording import count_noun, list_choices

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.labels import Label
    from rageval_spec.history.recorded_spec import RecordedSpec
    from rageval_spec.plugin import Node


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
class Chosen:
    """What is calibrated with the labels of one criterion.

    Attributes:
        labels: the labels.
        shown: the metrics that are shown in full.
        compared: the metrics that are compared with one another; none if there are not several.
    """

    labels: Sequence[Label]
    shown: Sequence[str]
    compared: Sequence[str]


def know(evaluation: Evaluation, recorded: RecordedSpec | None) -> Known:
    """The metrics of results."""
    if recorded is None:
        return Known(evaluation.metrics)
    return replace(know_nodes({name: one.node for name, one in recorded.metrics.items()}), metrics=evaluation.metrics)


def know_nodes(nodes: Mapping[str, Node]) -> Known:
    """What the nodes of metrics, by name, say of them."""
    judges = {name: names_in(node, "judges") for name, node in nodes.items()}
    return Known(
        [*nodes],
        {name: (node.use, _list_settings(node)) for name, node in nodes.items()},
        {name: named[0] for name, named in judges.items() if len(named) == 1},
    )


def _list_settings(node: Node) -> str:
    """The keys of a metric that say what is asked, as text."""
    return node.model_dump_json(exclude={"use", "as_", "judge", "labels", "correction"}, exclude_defaults=True)


def choose(known: Known, labels: Sequence[Label], metrics: Sequence[str], judges: Sequence[str]) -> list[Chosen]:
    """Choose the metrics for each criterion of the labels.

    Labels are about the metric of this name, and those that ask another judge the same. Labels that name no metric are
    about those that the command line names. Labels of criteria without a metric are left out (`count_others`), as long
    as some criterion has one.

    Args:
        known: the metrics of the results.
        labels: all labels.
        metrics: only these metrics; none for all that have labels.
        judges: only metrics that ask one of these judges; none for all.

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
        raise UsageError(_explain_judge(absent[0], known))
    return found


def count_others(known: Known, labels: Iterable[Label], metrics: Sequence[str]) -> dict[str, int]:
    """The criteria of labels that no metric is about, and how many labels they have; none if metrics are named."""
    if metrics:
        return {}
    return dict(Counter(label.metric for label in labels if label.metric and not known.list_labelled(label.metric)))


def explain_other(criterion: str, count: int, known: Known) -> str:
    """Why the labels of a criterion are not used."""
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
) -> Chosen:
    about = [
        name
        for name in known.list_labelled(criterion)
        if (not metrics or name in metrics) and (not judges or known.judges.get(name) in judges)
    ]
    if not metrics:
        about = _drop_repeated(known, about)
    shown = [criterion] if criterion in about and not metrics and not judges else about
    return Chosen(
        [label for label in labels if label.metric in ("", criterion)], shown, about if len(about) > 1 else ()
    )


def _drop_repeated(known: Known, metrics: Iterable[str]) -> list[str]:
    """The metrics, only the first of those that ask the same judge."""
    by_judge: dict[str, str] = {}
    for name in metrics:
        by_judge.setdefault(known.judges.get(name, name), name)
    return [*by_judge.values()]


def _explain_judge(judge: str, known: Known) -> str:
    there = [*dict.fromkeys(known.judges.values())]
    hint = suggest(judge, there) or (f"they ask {list_choices(there)}" if there else "no metric asks a judge")
    return f"no labelled metric of the results asks the judge '{judge}'; {hint}"
