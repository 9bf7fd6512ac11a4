"""The commands that look at questions: `show`. It imports only click; each command imports what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Command
from rageval_spec.errors import PASSED


def _question_options(command: shared.F) -> shared.F:
    """Add the options that choose questions of a results folder, and how to print them."""
    options = (
        click.option("--results", metavar="FOLDER", help="The results folder or label; then the argument is a query."),
        click.option("--baseline", metavar="FOLDER", help="Compare with this results folder or label.  "
                     "[default: the first system that has the metric]"),
        click.option("--metric", help="Order by this metric's values; --below and --above concern them."),
        click.option("--below", type=float, metavar="VALUE", help="Only questions with a lower value."),
        click.option("--above", type=float, metavar="VALUE", help="Only questions with a higher value."),
        click.option("--system", help="Only this system."),
        click.option("--dataset", help="Only this dataset."),
        click.option("--slice", help="Only questions of this slice, for example difficulty=hard."),
        click.option("--cause", help="Only questions with this cause, for example retrieval or generation."),
        click.option("--regressed", is_flag=True, help="Only questions with a value worse than the baseline's, "
                     "the largest fall first."),
        click.option("--failed", is_flag=True, help="Only questions without an answer, or with an error."),
        click.option("--limit", type=click.IntRange(1, shared.MOST_QUERIES), default=10, show_default=True, metavar="N",
                     help="At most N questions."),
        click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text",
                     show_default=True, help="How to print them."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command("show", cls=Command)
@click.argument("names", metavar="[QUERY] [RESULTS]", nargs=-1)
@_question_options
@click.option("--full", is_flag=True, help="Show long texts in full, and cards instead of a list.")
def show_questions(names: Sequence[str], form: Any, full: bool, **options: Any) -> int:
    """Show the questions behind the numbers, worst first, or one question in full.

    RESULTS is a results folder or a label of the history. The default is rageval-results, where `run` writes. A
    question's card has the answer with unsupported claims marked, the sources, the reference, the documents and all
    values with their reasons.

    \b
    rageval-spec show
    rageval-spec show q187
    rageval-spec show --metric faithfulness --below 0.5 --system v2 --slice difficulty=hard
    rageval-spec show --regressed --baseline main --format markdown
    """
    from rageval_spec.commands.show import Request, show
    from rageval_spec.reports.shared.worst import Filter

    results, baseline = options.pop("results"), options.pop("baseline")
    console.write(show(Request(names, results, baseline, Filter(**options), full), form))
    return PASSED
