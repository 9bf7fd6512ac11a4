"""Which labels belong to which metric, and what is wrong with them, as far as it shows before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rageval_spec.data.correction import FEWEST_LABELS
from rageval_spec.data.labels import Label, Scale, average_labels
from rageval_spec.errors import DataError
from rageval_spec.plugin import AnswerMetric
from rageval_spec.wording import count_noun, list_choices

if TYPE_CHECKING:
    from rageval_spec.diagnostics import Diagnostic
    from rageval_spec.pipeline.parts import Parts
    from rageval_spec.plugin import Metric
    from rageval_spec.spec.nodes import Spec

_SCALE = "scale: [1, 5]"


def list_labelled(metrics: Mapping[str, Metric[Any]]) -> dict[str, Metric[Any]]:
    """The metrics that name labels."""
    return {name: metric for name, metric in metrics.items() if metric.node.labels is not None}


def choose_labels(labels: Sequence[Label], name: str, word: str) -> list[Label]:
    """The labels of a metric: those that name it as tables do; else by its word; and those that name no metric."""
    criterion = name if any(label.metric == name for label in labels) else word
    return [label for label in labels if label.metric in ("", criterion)]


def find_label_faults(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    """What is wrong with the labels of metrics, as far as it shows before anything is asked or paid for."""
    places = {metric.name: index for index, metric in enumerate(spec.metrics)}
    for name, metric in list_labelled(parts.metrics).items():
        path = ("metrics", places[name], "labels")
        if fault := _find_misuse(spec, metric):
            yield spec.diagnose(path, *fault)
            continue
        source = parts.labels.get(str(metric.node.labels))
        if source is None:
            continue  # the reference is dangling, which is told elsewhere
        try:
            labels = source.read()
        except (DataError, OSError):
            continue  # `check_files` tells it
        if found := _find_fault(labels, metric, name, source.scale, parts):
            yield spec.diagnose(path, found[0], "labels", found[1])


def _find_misuse(spec: Spec, metric: Metric[Any]) -> tuple[str, str, str] | None:
    """Why a metric cannot have labels: the message, the code and the hint."""
    remove = "remove 'labels:'"
    if not isinstance(metric, AnswerMetric):
        return f"{metric.node.use} is not a metric of answers, so people's labels cannot correct it", "labels", remove
    if metric.statistic != "mean":
        return f"labels correct means, and {metric.name} is the {metric.statistic} of its values", "labels", remove
    if metric.bounds[1] is None:
        return f"{metric.name} has no highest value, so labels cannot be put on its scale", "labels", remove
    if spec.stopping is not None:
        hint = "remove 'labels:' or 'stopping:'"
        return "'stopping' decides by the judge's values alone, which 'labels' correct", "labels", hint
    return None


def _find_fault(
    labels: Sequence[Label], metric: Metric[Any], name: str, scale: Scale, parts: Parts
) -> tuple[str, str | None] | None:
    """Why labels cannot correct a metric, and what to do."""
    own = choose_labels(labels, name, metric.node.use)
    source = f"'{metric.node.labels}'"
    if not own:
        criteria = [*dict.fromkeys(label.metric for label in labels)]
        return (
            f"no label of {source} is about {name}; they are about {list_choices(criteria)}",
            f"write the metric's name into the labels, or name the metric as they do: 'as: {criteria[0]}'",
        )
    whole = [label for label in own if label.claim is None]
    if not whole:
        return f"all labels of {source} are of claims; a mean needs labels of whole answers", "label whole answers"
    if len({(label.dataset, label.system, label.query_id, label.answer) for label in whole}) < FEWEST_LABELS:
        count = count_noun(len({label.item for label in whole}), "answer")
        return (
            f"{source} has labels of only {count} for {name}; a corrected mean needs at least {FEWEST_LABELS}",
            "label more answers, or remove 'labels:' to see the judge's own mean",
        )
    for part, names in (("dataset", [*parts.datasets]), ("system", _list_answering(parts))):
        lacking = next((label for label in whole if not getattr(label, part)), None)
        if len(names) > 1 and lacking is not None:
            told = f"{lacking.place}: the label does not say its {part}, and there are several: {', '.join(names)}"
            return told, f"add a column '{part}'"
    try:
        for label in whole:
            average_labels([label], scale, _SCALE)
    except DataError as error:
        return str(error), None
    return None


def _list_answering(parts: Parts) -> list[str]:
    return [name for name, system in parts.systems.items() if system.can_answer]
