"""Numbers as OpenMetrics text, which is valid in the older text format of Prometheus too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from rageval_spec.diagnostics import make_visible

MetricSample: TypeAlias = tuple[Mapping[str, str], float | None]
"""The labels of a number; None stands for a number that is not known."""


class MetricFamily(NamedTuple):
    """A metric: its name, its help and its samples. A counter's samples have `_total` behind the name."""

    name: str
    told: str
    samples: Sequence[MetricSample]
    kind: Literal["gauge", "counter"] = "gauge"


def render_families(families: Iterable[MetricFamily], *, is_old: bool = False) -> bytes:
    """The exposition in UTF-8; a number that is not known has no line, and a family without numbers none at all.

    In the older text format, a counter is declared under its full name.
    """
    lines = [line for family in families for line in _write(family, is_old)]
    return "".join(f"{line}\n" for line in (*lines, *([] if is_old else ["# EOF"]))).encode("utf-8", "backslashreplace")


def _write(family: MetricFamily, is_old: bool) -> Iterator[str]:
    numbers = [(labels, number) for labels, number in family.samples if number is not None]
    name = f"{family.name}_total" if family.kind == "counter" else family.name
    if numbers:
        declared = name if is_old else family.name
        yield f"# HELP {declared} {family.told}"
        yield f"# TYPE {declared} {family.kind}"
    for labels, number in numbers:
        shown = ",".join(f'{label}="{escape_label(value)}"' for label, value in labels.items())
        yield f"{name}{{{shown}}} {float(number)!r}"


def escape_label(value: str) -> str:
    """A label's value, also for PromQL: control characters visible, and backslashes and quotes escaped."""
    return make_visible(value).replace("\\", "\\\\").replace('"', '\\"')
