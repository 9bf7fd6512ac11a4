"""The group `history` of commands. What opens a history is imported when a command is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Front
from rageval_spec.commands.history.changing import import_records, label_record, prune_records, remove_label
from rageval_spec.commands.history.choosing import choose
from rageval_spec.commands.history.exporting import export_records
from rageval_spec.commands.history.listing import list_records, show_record
from rageval_spec.commands.history.trend import draw
from rageval_spec.errors import PASSED

if TYPE_CHECKING:
    from rageval_spec.history.database import History


def _history_option(command: shared.F) -> shared.F:
    return click.option(
        "--history", "place", envvar="RAGEVAL_HISTORY", metavar="PLACE", default=".rageval/history.db",
        show_default=True, help="The history's file, or the address of a PostgreSQL database.",
    )(command)  # fmt: skip


def _choice_options(command: shared.F) -> shared.F:
    """Add the options that choose records."""
    for option in (
        click.option("--since", metavar="WHEN", help="Only records since then: 90d, 12h or 2026-03-01."),
        click.option("--branch", help="Only records of this branch."),
        click.option("--name", help="Only records of the evaluation with this name."),
    ):
        command = option(command)
    return command


def _open(place: str, *, create: bool = False) -> History:
    from rageval_spec.history.opening import open_history

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
    """Show one record: where it comes from, its gates and its numbers.

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
    with _open(place) as history:
        console.show(remove_label(history, record) if label is None else label_record(history, record, label))
    return PASSED


@records.command("export")
@_history_option
@_choice_options
@click.option(
    "--format", "form", type=click.Choice(["csv", "parquet", "jsonl"]), default="csv", show_default=True,
    help="The format of the table.",
)  # fmt: skip
def export(place: str, form: str, **choice: Any) -> int:
    """Write one line for each record, with its numbers as columns, to standard output.

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
    """Add results folders to the history, records that could not be sent, or all records of another history's file.

    What is there already stays.

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
        console.show(prune_records(history, keep, dry_run=dry_run))
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
    """Draw a metric over time, with its gates' bounds, the cost and the duration. Without METRIC, draw all metrics.

    The line breaks where questions, their weights, references, judgements, the judge or the metric's definition
    changed. Changes of level are marked if they are significant.

    \b
    rageval-spec history trend faithfulness --branch main
    rageval-spec history trend --html trend.html
    """
    from rageval_spec.history.trends import Wanted

    chosen = choose(**{name: options.pop(name) for name in ("name", "branch", "since")})
    with _open(place) as history:
        told = draw(history, Wanted(metric=metric, **options), chosen, html)
    console.write(told)
    return PASSED
