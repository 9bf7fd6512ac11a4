"""`history list` and `history show`: the records, and one of them with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rageval_spec.commands.history.choosing import find_id
from rageval_spec.diagnostics import dump_visible
from rageval_spec.wording import format_number, make_visible

if TYPE_CHECKING:
    from rageval_spec.history.database import Chosen, Entry, History, Number


SHOWN_ID = 8
_SHOWN_COMMIT = 8


def list_records(history: History, chosen: Chosen, form: str) -> str:
    """One line for each record, newest first, or a JSON list."""
    entries = history.entries(chosen)
    if form == "json":
        return dump_visible([describe_entry(entry) for entry in entries])
    if not entries:
        return "no records\n"
    head = ("record", "time (UTC)", "outcome", "name", "labels", "branch", "commit", "cost")
    rows = [head, *map(_summarize, entries)]
    return "".join(f"{line}\n" for line in _align(rows))


def show_record(history: History, name: str, form: str) -> str:
    """A record with its gates and its numbers; `name` is what `find_id` takes."""
    entry = history.entry(find_id(history, name))
    numbers = list(history.numbers_of(entry.id))
    if form == "json":
        return dump_visible({**describe_entry(entry), "numbers": [one._asdict() for one in numbers]})
    return "".join(f"{line}\n" for line in _show(entry, numbers))


def describe_entry(entry: Entry) -> dict[str, Any]:
    """An entry in JSON types."""
    return {**asdict(entry), "time": entry.time.isoformat(), "labels": list(entry.labels)}


def _summarize(entry: Entry) -> tuple[str, ...]:
    return (
        entry.id[:SHOWN_ID],
        f"{entry.time:%Y-%m-%d %H:%M}",
        entry.outcome,
        entry.name,
        ", ".join(entry.labels),
        entry.branch or "",
        _name_commit(entry),
        "" if entry.cost is None else f"${entry.cost:,.2f}",
    )


def _name_commit(entry: Entry) -> str:
    """The beginning of the commit; a star marks files that differ from it."""
    return f"{(entry.commit or '')[:_SHOWN_COMMIT]}{'*' if entry.is_dirty else ''}"


def _align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines with aligned columns; columns without content are left out."""
    visible = [[make_visible(cell) for cell in row] for row in rows]
    kept = [column for column in range(len(visible[0])) if any(row[column] for row in visible[1:])]
    widths = {column: max(len(row[column]) for row in visible) for column in kept}
    for row in visible:
        yield "  ".join(f"{row[column]:<{widths[column]}}" for column in kept).rstrip()


def _show(entry: Entry, numbers: Sequence[Number]) -> Iterator[str]:
    dirty = " (with changed files)" if entry.is_dirty else ""
    facts = {
        "record": entry.id,
        "name": entry.name,
        "time": f"{entry.time:%Y-%m-%d %H:%M:%S} UTC",
        "outcome": entry.outcome,
        "labels": ", ".join(entry.labels),
        "commit": f"{entry.commit}{dirty}" if entry.commit else "",
        "branch": entry.branch or "",
        "CI": ", ".join(f"{key} {value}" for key, value in entry.ci.items()),
        "duration": "" if entry.seconds is None else f"{entry.seconds:,.1f} s",
        "cost": "" if entry.cost is None else f"${entry.cost:,.2f}",
        "spec": entry.spec_digest,
    }
    for key, value in facts.items():
        if value:
            yield f"{key:<8}  {make_visible(value)}"
    if entry.gates:
        yield ""
        yield from _align([("gate", "dataset", "system", "slice", "outcome"), *map(_show_gate, entry.gates)])
    yield ""
    head = ("metric", "dataset", "system", "slice", "value", "interval", "scored")
    yield from _align([head, *map(_show_number, numbers)])


def _show_gate(gate: Any) -> tuple[str, ...]:
    bounds = " ".join(f"{key} {gate[key]:g}" for key in ("min", "max", "target") if key in gate)
    metric = f"{gate['metric']} {bounds}".strip()
    return (metric, gate["dataset"], gate["system"], gate["slice"] or "", gate["outcome"])


def _show_number(one: Number) -> tuple[str, ...]:
    interval = "" if one.low is None or one.high is None else f"[{format_number(one.low)}, {format_number(one.high)}]"
    value = "–" if one.mean is None else format_number(one.mean)
    return (one.metric, one.dataset, one.system, one.slice or "", value, interval, f"{one.scored} of {one.total}")
