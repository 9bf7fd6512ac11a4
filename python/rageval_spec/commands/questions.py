"""The commands `show`, `compare` and `comment`.

It imports only click; each command imports what it needs when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Command
from rageval_spec.errors import PASSED


def _limit_option(of: str, default: int) -> Callable[[shared.F], shared.F]:
    return click.option(
        "--limit", type=click.IntRange(1, shared.MOST_QUERIES), default=default, show_default=True, metavar="N",
        help=f"At most N questions{f' {of}' if of else ''}.",
    )  # fmt: skip


_form_option = click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True,
    help="How to print the result.",
)  # fmt: skip


def _question_options(command: shared.F) -> shared.F:
    """Add the options that choose questions of a results folder, and how to print them."""
    options = (
        click.option("--results", metavar="FOLDER", help="The results folder or label; then the argument is a query."),
        click.option("--baseline", metavar="FOLDER", help="Compare with this results folder, label, system or "
                     "baseline of a gate.  [default: the gates' baselines, else the first system that has the "
                     "metric]"),
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
        _limit_option("", 10),
        _form_option,
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


@click.command("compare", cls=Command)
@click.argument("before")
@click.argument("after")
@click.option("--metric", help="Only this metric.")
@click.option("--system", help="Only this system.")
@click.option("--dataset", help="Only this dataset.")
@_limit_option("of each kind: broken, fixed, worse, better, changed", 5)
@_form_option
def compare_results(before: str, after: str, form: Any, **options: Any) -> int:
    """Compare two results: the numbers, and question by question what broke, what was fixed and how answers changed.

    BEFORE and AFTER are results folders or labels of the history. The output begins with what else differs, such as
    edited references or other settings.

    \b
    rageval-spec compare main rageval-results
    rageval-spec compare results/monday results/friday --metric faithfulness --limit 20
    """
    from rageval_spec.commands.compare.command import compare
    from rageval_spec.reports.shared.worst import Filter

    console.write(compare(before, after, Filter(**options), form))
    return PASSED


@click.command("comment", cls=Command)
@click.argument("results", required=False)
@click.option("--baseline", metavar="RESULTS", help="Compare with these results: a folder or a label of the history.")
@click.option("--host", type=click.Choice(["github", "gitlab"]), help="The code host.  [default: the CI job's]")
@click.option(
    "--api", metavar="URL", help="The base URL of its API, for a server of your own.  [default: the CI job's]"
)
@click.option("--repository", metavar="NAME", help="owner/name, or GitLab's project.  [default: the CI job's]")
@click.option("--number", type=click.IntRange(1), help="The pull or merge request.  [default: the CI job's]")
@click.option("--key", metavar="TEXT", help="Tells several comments on one pull request apart.  [default: the spec's "
              "name]")  # fmt: skip
@click.option("--summary", type=click.Path(path_type=Path), metavar="FILE", help="Also append the text to this file.")
@click.option("--no-post", is_flag=True, help="Post nothing; for a job that only wants the summary.")
@click.option("--dry-run", is_flag=True, help="Print the text and post nothing.")
def comment_results(**options: Any) -> int:
    """Post results as a comment on a pull request of GitHub or a merge request of GitLab.

    The next call updates the same comment. In a CI job, nothing but the token is needed: GITHUB_TOKEN (with the
    permission `pull-requests: write`) or GITLAB_TOKEN (with the scope `api`). Outside a pull request, and for one from
    a fork, no comment is made and the exit code is 0.

    \b
    rageval-spec comment
    rageval-spec comment rageval-results --baseline main --summary "$GITHUB_STEP_SUMMARY"
    rageval-spec comment --host gitlab --repository group/app --number 7 --dry-run
    """
    from rageval_spec.commands.comment.command import Request, comment
    from rageval_spec.commands.comment.destination import Wanted

    destination = Wanted(*(options.pop(name) for name in ("host", "api", "repository", "number")))
    return comment(Request(**options, destination=destination))


def add_commands(group: click.Group) -> None:
    """Add the commands of this module to the program's."""
    for command in (show_questions, compare_results, comment_results):
        group.add_command(command)
