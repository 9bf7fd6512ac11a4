"""The labels that a spec names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rageval_spec import registry
from rageval_spec.data.labels import Label
from rageval_spec.errors import UsageError
from rageval_spec.plugin import Context

if TYPE_CHECKING:
    from rageval_spec.plugin import Labels
    from rageval_spec.spec.nodes import NamedMetric, Spec


def read_spec_labels(spec: Spec) -> list[Label]:
    """The labels that metrics of a spec name; all of its labels if no metric names any. Their scale is 0 to 1.

    Labels that name no metric get the name of the metric that names them, if it is the only one.

    Raises:
        UsageError: the spec has no labels.
        DataError: they cannot be read.
    """
    users = _list_users(spec.metrics)
    if not spec.labels:
        raise UsageError("the spec has no 'labels:'; add them, or name a file: --labels labels.csv")
    blocks = [name for name in spec.labels if name in users] or [*spec.labels]
    found: list[Label] = []
    for name in blocks:
        source = _build(spec, name)
        of = users.get(name, [])
        criterion = of[0] if len(of) == 1 else ""
        found += [_name(label, criterion) for label in _place(source.read(), source)]
    return found


def _list_users(metrics: Iterable[NamedMetric]) -> dict[str, list[str]]:
    """The metrics that name each block of labels."""
    users: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.node.labels is not None:
            users.setdefault(str(metric.node.labels), []).append(metric.name)
    return users


def _build(spec: Spec, name: str) -> Labels[Any]:
    node = spec.labels[name]
    built: Labels[Any] = registry.load("labels", node.use)(node, Context(name, spec.folder))
    return built


def _place(labels: Iterable[Label], source: Labels[Any]) -> Iterator[Label]:
    """The labels with their numbers on the scale from 0 to 1."""
    scale = source.scale
    for label in (one.put_on(scale) for one in labels):
        yield label if isinstance(label.value, str) else replace(label, value=scale.place(label.value))


def _name(label: Label, criterion: str) -> Label:
    return label if label.metric else replace(label, metric=criterion)
