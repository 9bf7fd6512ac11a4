"""The group `review` of commands. Only click is imported; each command imports what it needs when called."""

from __future__ import annotations

from pathlib import Path

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Front
from rageval_spec.commands.review.forms import import_, select
from rageval_spec.errors import PASSED


@click.group("review", cls=Front)
def review() -> None:
    """Choose answers for people to judge, and work with what they say.

    \b
    rageval-spec review select -o review.xlsx
    rageval-spec review import review.xlsx -o labels.csv
    rageval-spec review agreement labels.csv
    """


@review.command("agreement")
@click.argument("labels", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Only this metric; can be repeated.")
@shared.label_column_option
@shared.form_option
def agree(labels: tuple[Path, ...], metrics: tuple[str, ...], columns: tuple[str, ...], form: str) -> int:
    """Show how well the people who labelled the same answers agree.

    LABELS are CSV, TSV, JSON, Excel or Parquet files with a row for each label (who judged which answer, and how), or
    exports of Label Studio.

    \b
    rageval-spec review agreement labels.csv
    rageval-spec review agreement ann.csv bob.csv --metric faithfulness --column value=rating
    """
    from rageval_spec.commands.review.agreement import describe_agreement

    console.write(describe_agreement(labels, columns, metrics, form))
    return PASSED


@review.command("preferences")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--column", "columns", multiple=True, metavar="PART=NAME",
    help="The column of a part of a choice, such as verdict=winner; can be repeated. Parts: query_id, first, second, "
    "verdict, annotator, metric.",
)  # fmt: skip
@shared.form_option
def prefer(files: tuple[Path, ...], columns: tuple[str, ...], form: str) -> int:
    """Show whether choices between two answers follow their order or their lengths.

    FILES are CSV, TSV, JSON or Parquet files with a row for each choice of a person or a judge: the question, the two
    answers in the order in which they were shown, and the verdict (first, second or tie).

    \b
    rageval-spec review preferences pairs.csv
    rageval-spec review preferences pairs.jsonl --column verdict=winner
    """
    from rageval_spec.commands.review.preferences import describe_preferences

    console.write(describe_preferences(files, columns, form))
    return PASSED


review.add_command(select)
review.add_command(import_)
