"""`rageval-spec history`: show, change and export the records of evaluations.

`list` and `show` print the records, or one of them with its numbers. `label`, `import` and `prune` change the
history. `export` writes one line for each record, with its numbers as columns. `trend` shows numbers over time, on
the terminal or as a page.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import Front
from rageval_spec.commands.options import read_age
from rageval_spec.data.tables import dump_parquet
from rageval_spec.diagnostics import dump_visible, make_visible
from rageval_spec.drawing.view import Block, Items, Span, tabulate, write_text
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.libraries import pl
from rageval_spec.wording import count_noun, describe_taken_over, format_number, protect_cell

if TYPE_CHECKING:
    from rageval_spec.data.outcomes import TakenOver
    from rageval_spec.history.database import History, Number, RecordFilter, RecordSummary, StoredRecord
    from rageval_spec.history.trends import TrendFilter


_history_option = click.option(
    "--history", "place", envvar="RAGEVAL_HISTORY", metavar="PLACE", default=".rageval/history.db", show_default=True,
    help="The history's file, or the address of a PostgreSQL database.",
)  # fmt: skip

_choice_options = shared.together(
    click.option("--name", help="Only records of the evaluation with this name."),
    click.option("--branch", help="Only records of this branch."),
    click.option("--since", metavar="WHEN", help="Only records since then: 90d, 12h or 2026-03-01."),
)


def _open(place: str, *, create: bool = False) -> History:
    from rageval_spec.history.database import open_history

    return open_history(place, create=create)


@click.group("history", cls=Front)
def records() -> None:
    """Show and manage the records of evaluations.

    `run` records every evaluation. A RECORD is a label, an id or its first characters, `previous`
    (the newest record), `branch:main` (the newest on that branch that passed) or `commit:51f7a9b3`.

    \b
    rageval-spec history list
    rageval-spec history trend ndcg@10 --html trend.html
    rageval-spec history label 3f2a91c0 main
    """


@records.command("list")
@_history_option
@_choice_options
@click.option(
    "--outcome",
    type=click.Choice(["pass", "warn", "fail", "error"]),
    help="Only records with this outcome; error: the evaluation broke.",
)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="At most N records.")
@shared.form_option
def list_all(place: str, form: str, **choice: Any) -> int:
    """List the newest records.

    \b
    rageval-spec history list
    rageval-spec history list --branch main --since 30d --format json
    """
    with _open(place) as history:
        console.write(list_records(history, choose(**choice), form))
    return PASSED


@records.command("show")
@click.argument("record")
@_history_option
@shared.form_option
def show_one(record: str, place: str, form: str) -> int:
    """Show one record: its origin, its gates and its numbers.

    \b
    rageval-spec history show main
    rageval-spec history show 3f2a91c0 --format json
    """
    with _open(place) as history:
        console.write(show_record(history, record, form))
    return PASSED


@records.command("label")
@click.argument("record")
@click.argument("label", required=False)
@click.option("--remove", is_flag=True, help="Remove the label RECORD instead. Its record stays.")
@_history_option
def set_label(record: str, label: str | None, remove: bool, place: str) -> int:
    """Give a record a label, which gates can use as a baseline. The record that had the label loses it.

    \b
    rageval-spec history label 3f2a91c0 main
    rageval-spec history label main --remove
    """
    if (label is None) is not remove:
        raise click.UsageError("write a record and a label, or one label and --remove")
    from rageval_spec.history.evaluation_lookup import check_label

    with _open(place) as history:
        if label is None:
            if not history.remove_label(record):
                raise UsageError(f"the history {history.connection.name} has no label '{record}'")
            console.show(f"removed the label {record}; its record stays\n")
        else:
            check_label(label)
            record_id = find_id(history, record)
            history.set_label(record_id, label)
            console.show(f"{label}: record {record_id[:SHOWN_ID]}\n")
    return PASSED


@records.command("export")
@_history_option
@_choice_options
@click.option(
    "--format", "form", type=click.Choice(["csv", "parquet", "jsonl"]), default="csv", show_default=True,
    help="The format of the table.",
)  # fmt: skip
def export(place: str, form: str, **choice: Any) -> int:
    """Write a line for each record, with its numbers as columns.

    The table goes to standard output.

    \b
    rageval-spec history export --format csv > runs.csv
    rageval-spec history export --format parquet --since 90d > runs.parquet
    """
    with _open(place) as history:
        console.write(export_records(history, choose(**choice), form))
    return PASSED


@records.command("import")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_history_option
def import_all(paths: tuple[Path, ...], place: str) -> int:
    """Add results folders, unsent records or another history.

    Another history is a file, of which all records are added. Existing records stay.

    \b
    rageval-spec history import .rageval/history.db --history "$HISTORY_URL"
    rageval-spec history import .rageval/history/*
    rageval-spec history import rageval-results/record-*.pending.json
    """
    with _open(place, create=True) as history:
        console.show(import_records(history, paths))
    return PASSED


@records.command("prune")
@click.option("--keep", required=True, metavar="AGE", help="Keep what is newer: 90d, 12w or 2026-03-01.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@_history_option
def prune(place: str, keep: str, dry_run: bool) -> int:
    """Remove old records. Those with a label stay.

    \b
    rageval-spec history prune --keep 90d --dry-run
    """
    with _open(place) as history:
        removed = history.prune(read_moment(keep, "--keep"), is_dry=dry_run)
    verb = "would remove" if dry_run else "removed"
    lines = [*(f"  {record_id[:SHOWN_ID]}" for record_id in removed), f"{verb} {count_noun(len(removed), 'record')}"]
    console.show("".join(f"{line}\n" for line in lines))
    return PASSED


@records.command("trend")
@click.argument("metric", required=False)
@_history_option
@_choice_options
@click.option("--dataset", help="Only this dataset.")
@click.option("--system", help="Only this system.")
@click.option("--slice", help="The numbers of this slice instead of those of all queries.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write an HTML page instead.")
def trend(metric: str | None, place: str, html: Path | None, **options: Any) -> int:
    """Draw metrics over time, with bounds, cost and duration.

    Without METRIC, draw all metrics. The line breaks where questions, their weights, references, judgements, the judge
    or the metric's definition changed. Changes of level are marked if they are significant.

    \b
    rageval-spec history trend faithfulness --branch main
    rageval-spec history trend --html trend.html
    """
    from rageval_spec.history.trends import TrendFilter

    chosen = choose(**{name: options.pop(name) for name in ("name", "branch", "since")})
    with _open(place) as history:
        told = draw(history, TrendFilter(metric=metric, **options), chosen, html)
    console.write(told)
    return PASSED


_DIRTY = "-dirty"
_SQLITE = b"SQLite format 3\0"
"""How every SQLite file begins."""


def import_records(history: History, paths: Sequence[Path]) -> str:
    """Add results folders, folders of labels, records that could not be sent, and the records of other histories.

    All of them are added, or none. Says how many are new.
    """
    found: set[str] = set()

    def read_all() -> Iterator[StoredRecord]:
        for path in paths:
            for record in _read_history(path) if _is_history(path) else [_read(path)]:
                found.add(str(record.row["id"]))
                yield record

    added = history.add(read_all())
    there = len(found) - added
    rest = f"; {there} {'was' if there == 1 else 'were'} there already" if there else ""
    return f"imported {count_noun(added, 'record')}{rest}\n"


def _is_history(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _read_history(path: Path) -> Iterator[StoredRecord]:
    from rageval_spec.history.database import open_history

    with open_history(path, create=False) as other:
        yield from other.copy()


def _read(path: Path) -> StoredRecord:
    from rageval_spec.history.evaluation_records import build_record, read
    from rageval_spec.history.results_folder import RESULTS
    from rageval_spec.history.saved_evaluations import holds_results, load_record
    from rageval_spec.store.checkout import Checkout

    if path.is_file() and path.suffix == ".json" and path.name != RESULTS:
        return read(path)
    folder = path.parent if path.is_file() else path
    if not holds_results(folder):
        raise UsageError(f"{path} is neither a results folder, nor a record that could not be sent, nor a history")
    record = load_record(folder)
    written = datetime.fromtimestamp((folder / RESULTS).stat().st_mtime, UTC)
    commit = record.commit or ""
    checkout = Checkout(commit.removesuffix(_DIRTY) or None, None, commit.endswith(_DIRTY) if commit else None)
    labels = () if record.label is None else (record.label,)
    return build_record(record.evaluation, record.id, record.time or written, checkout=checkout, labels=labels)


def choose(since: str | None = None, **wanted: Any) -> RecordFilter:
    from rageval_spec.history.database import RecordFilter

    return RecordFilter(since=None if since is None else read_moment(since, "--since"), **wanted)


def find_id(history: History, name: str) -> str:
    """The id of the record that a name means: a label, an id or its beginning, or `previous`, `branch:`, `commit:`."""
    from rageval_spec.history.evaluation_lookup import SearchPlaces, find_newest

    return history.look_up(name) or find_newest(history, name, SearchPlaces()) or history.find(name)


def read_moment(text: str, option: str) -> datetime:
    """The time that an age (`90d`) or a date (`2026-03-01`, in UTC) means."""
    with suppress(ValueError):
        date = datetime.fromisoformat(text)
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    try:
        return datetime.now(UTC) - timedelta(seconds=read_age(text))
    except (UsageError, OverflowError):
        message = f"{option} {make_visible(text)} is neither an age nor a date; write 90d, 12h or 2026-03-01"
        raise UsageError(message) from None


_ENDS = ("low", "high")


def export_records(history: History, chosen: RecordFilter, form: str) -> bytes:
    """The records, oldest first, as CSV, Parquet or JSON lines.

    Each number has three columns: `dataset/system/metric`, and the ends of its interval, `dataset/system/metric low`
    and `... high`. A slice is added in brackets: `dataset/system/metric [difficulty=hard]`. A record that lacks a
    number has an empty cell there; JSON lines leave the key out.
    """
    entries = list(reversed(history.entries(chosen)))
    columns: dict[str, None] = {}
    numbers: dict[str, dict[str, float]] = {entry.id: {} for entry in entries}
    for one in history.numbers(None, chosen):
        if one.record_id not in numbers:
            continue
        name = f"{one.dataset}/{one.system}/{one.metric}{f' [{one.slice}]' if one.slice else ''}"
        for column, number in ((name, one.mean), *((f"{name} {end}", getattr(one, end)) for end in _ENDS)):
            columns[column] = None
            if number is not None:
                numbers[one.record_id][column] = number
    rows = [{**_describe(entry), **numbers[entry.id]} for entry in entries]
    if form == "jsonl":
        lines = (json.dumps({key: cell for key, cell in row.items() if cell is not None}) for row in rows)
        return "".join(f"{line}\n" for line in lines).encode()
    head = [*_COLUMNS, *sorted(columns)]
    return _write_parquet(head, rows) if form == "parquet" else _write_csv(head, rows)


_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("id", "time", "name", "labels", "commit", "branch"), "text"),
    "is_dirty": "boolean",
    **dict.fromkeys(("ci_system", "ci_run", "ci_url", "outcome", "spec_digest"), "text"),
    "cost": "number",
    "cost_status": "text",
    "seconds": "number",
}


def _describe(entry: RecordSummary) -> dict[str, Any]:
    told = {f"ci_{key}": entry.ci.get(key) for key in ("system", "run", "url")}
    told |= {"time": entry.time.isoformat(timespec="seconds"), "labels": ", ".join(entry.labels) or None}
    return {name: told[name] if name in told else getattr(entry, name) for name in _COLUMNS}


def _write_csv(head: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(protect_cell(name) for name in head)
    for row in rows:
        cells = (row.get(name) for name in head)
        writer.writerow(protect_cell(cell) if isinstance(cell, str) else cell for cell in cells)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _write_parquet(head: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    kinds = {"text": pl.String, "boolean": pl.Boolean, "number": pl.Float64}
    schema = {name: kinds[_COLUMNS.get(name, "number")] for name in head}
    return dump_parquet(pl.DataFrame([[row.get(name) for name in head] for row in rows], schema, orient="row"))


SHOWN_ID = 8
_SHOWN_COMMIT = 8


def list_records(history: History, chosen: RecordFilter, form: str) -> str | bytes:
    entries = history.entries(chosen)
    if form == "json":
        return dump_visible([describe_entry(entry) for entry in entries])
    if not entries:
        return "no records\n"
    head = ("record", "time (UTC)", "outcome", "name", "labels", "branch", "commit", "cost", "taken over")
    return write_text([tabulate(head, map(_summarize, entries))])


def show_record(history: History, name: str, form: str) -> str | bytes:
    entry = history.entry(find_id(history, name))
    numbers = list(history.numbers_of(entry.id))
    if form == "json":
        return dump_visible({**describe_entry(entry), "numbers": [one._asdict() for one in numbers]})
    return write_text(_draw_record(entry, numbers))


def describe_entry(entry: RecordSummary) -> dict[str, Any]:
    return {**asdict(entry), "time": entry.time.isoformat(), "labels": list(entry.labels)}


def _summarize(entry: RecordSummary) -> tuple[str, ...]:
    return (
        entry.id[:SHOWN_ID],
        f"{entry.time:%Y-%m-%d %H:%M}",
        entry.outcome,
        entry.name,
        ", ".join(entry.labels),
        entry.branch or "",
        _name_commit(entry),
        entry.shown_cost,
        _count_taken_over(entry),
    )


def _read_taken_over(entry: RecordSummary) -> list[TakenOver]:
    from rageval_spec.data.outcomes import TakenOver

    return [TakenOver(**one) for one in entry.meaning.get("taken_over", ())]


def _count_taken_over(entry: RecordSummary) -> str:
    """`9 of 10 from 2026-03-01`: the answers that were not asked in this evaluation."""
    taken = [one for one in _read_taken_over(entry) if not one.place]
    if not taken:
        return ""
    told = f"{sum(one.answers for one in taken):,} of {sum(one.questions for one in taken):,}"
    first = min((one.first for one in taken if one.first is not None), default=None)
    return told if first is None else f"{told} from {first[:10]}"


def _name_commit(entry: RecordSummary) -> str:
    """The beginning of the commit; a star marks files that differ from it."""
    return f"{(entry.commit or '')[:_SHOWN_COMMIT]}{'*' if entry.is_dirty else ''}"


def _draw_record(entry: RecordSummary, numbers: Sequence[Number]) -> Iterator[Block]:
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
        "cost": entry.shown_cost,
        "spec": entry.spec_digest,
    }
    answers = [f"{one.system} on {one.dataset}: {describe_taken_over(one)}" for one in _read_taken_over(entry)]
    facts |= {"answers": "\n".join(answers)}
    yield Items([(key, Span(value, kind="prose"), "") for key, value in facts.items() if value])
    if entry.gates:
        yield tabulate(("gate", "dataset", "system", "slice", "outcome"), map(_list_gate, entry.gates))
    head = ("metric", "dataset", "system", "slice", "value", "interval", "scored")
    yield tabulate(head, map(_list_number, numbers), (4, 5, 6))


def _list_gate(gate: Any) -> tuple[str, ...]:
    bounds = " ".join(f"{key} {gate[key]:g}" for key in ("min", "max", "target") if key in gate)
    metric = f"{gate['metric']} {bounds}".strip()
    return (metric, gate["dataset"], gate["system"], gate["slice"] or "", gate["outcome"])


def _list_number(one: Number) -> tuple[str, ...]:
    interval = "" if one.low is None or one.high is None else f"[{format_number(one.low)}, {format_number(one.high)}]"
    value = "–" if one.mean is None else format_number(one.mean)
    return (one.metric, one.dataset, one.system, one.slice or "", value, interval, f"{one.scored} of {one.total}")


_WIDTH_IN_A_PIPE = 100


def draw(history: History, wanted: TrendFilter, chosen: RecordFilter, html: Path | None = None) -> str:
    """The charts as text; or, if `html` is a file, write the page there and say so."""
    from rageval_spec.drawing.trend_charts import draw_trend, write_trend
    from rageval_spec.history.trends import collect_trend

    trend = collect_trend(history, chosen, wanted)
    if html is None:
        return draw_trend(trend, shutil.get_terminal_size((_WIDTH_IN_A_PIPE, 24)).columns)
    return console.write_page(html, write_trend(trend)) + "\n"
