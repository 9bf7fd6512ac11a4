"""The group `review` of commands. It imports only click; each command imports what it needs when it is called."""

from __future__ import annotations

from pathlib import Path

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Front
from rageval_spec.errors import PASSED


@click.group("review", cls=Front)
def review() -> None:
    """Work with what people judged about answers.

    \b
    rageval-spec review agreement labels.csv
    """


@review.command("agreement")
@click.argument("labels", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Only this metric; can be repeated.")
@click.option(
    "--column", "columns", multiple=True, metavar="PART=NAME",
    help="The column of a part of a label, such as value=rating; can be repeated. Parts: query_id, value, annotator, "
    "metric, dataset, system, answer, claim, time, comment.",
)  # fmt: skip
@shared.form_option
def agree(labels: tuple[Path, ...], metrics: tuple[str, ...], columns: tuple[str, ...], form: str) -> int:
    """Show how well the people who labelled the same answers agree.

    LABELS are CSV, TSV, JSON or Parquet files with a row for each label: who judged which answer, and how.

    \b
    rageval-spec review agreement labels.csv
    rageval-spec review agreement ann.csv bob.csv --metric faithfulness --column value=rating
    """
    from rageval_spec.commands.review.agreement import describe_agreement

    console.write(describe_agreement(labels, columns, metrics, form))
    return PASSED


def add_review(cli: click.Group) -> None:
    """Add the group to the program."""
    cli.add_command(review)
