"""What in a spec has no effect on the traces that came: columns that none has, and metrics that can measure none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rageval_spec.diagnostics import make_visible
from rageval_spec.monitoring.ledger import Ledger, name_group
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.spec.blocks.monitor import MonitorNode
from rageval_spec.wording import count_noun

_RECENT = 200
"""How many of the last traces show which columns traces have."""


def list_remarks(node: MonitorNode, ledger: Ledger, series: Mapping[str, Series]) -> Iterator[tuple[str, str]]:
    """A remark for each part of the spec that comes to nothing, with a key by which it is told once."""
    columns = {"sample.by": node.sample.by, "ab.by": None if node.ab is None else node.ab.by}
    wanted = {place: column for place, column in columns.items() if column is not None}
    traces = ledger.read_recent(_RECENT) if wanted else []
    for place, column in wanted.items():
        if traces and all(name_group(one, column) is None for one in traces):
            names = dict.fromkeys(name for one in traces for name, _ in one.list_columns())
            has = make_visible(list_keys([*names])) if names else "none"
            recent = count_noun(len(traces), "trace")
            yield place, f"{place}: no column '{make_visible(column)}' in the last {recent}; the columns are {has}"
    for one in series.values():
        counts = ledger.count(one.id)
        if counts["filtered"] and not counts["judged"]:
            why = make_visible(ledger.read_reason(one.id) or "no reason is known")
            traces_left = count_noun(counts["filtered"], "trace")
            yield one.name, f"{one.name} has no value for any of {traces_left}: {why}"
