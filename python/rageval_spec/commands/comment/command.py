"""Writes the text of the comment, adds it to a job's summary, and posts it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands.console import OutputCommand
from rageval_spec.errors import PASSED, RagevalError
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.commands.comment.code_hosts import CodeHost, Destination
    from rageval_spec.endpoints.pacing import Clock


_RETRIES = 4


def comment(
    results: str | None = None,
    *,
    baseline: str | None = None,
    key: str | None = None,
    summary: Path | None = None,
    dry_run: bool = False,
    no_post: bool = False,
    environment: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
    **destination: Any,
) -> int:
    """Post the comment and print its address on the web, where the host tells it; or print the text for a dry run."""
    from rageval_spec.commands.comment.code_hosts import NoDestinationError, find_destination
    from rageval_spec.commands.comment.comment_view import write_body
    from rageval_spec.commands.results_argument import open_results
    from rageval_spec.drawing.evaluation_view import mark_comment
    from rageval_spec.endpoints.pacing import Clock

    opened = open_results(results)
    against = None if baseline is None else open_results(baseline, opened.evaluation)
    commit = environment.get("GITHUB_SHA") or environment.get("CI_COMMIT_SHA")
    text = write_body(opened.evaluation, against, key=key, commit=commit)
    if summary is not None:
        try:
            with summary.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError as error:
            raise RagevalError(f"{summary}: the summary could not be written: {error.strerror or error}") from error
    if dry_run:
        console.write(text)
    if dry_run or no_post:
        return PASSED
    try:
        found = find_destination(environment, **destination)
    except NoDestinationError as reason:
        console.tell(f"no comment was made: {reason}")
        return PASSED
    address = post(found, text, mark_comment(key or opened.evaluation.name), clock or Clock())
    console.tell("the comment is up to date")
    if address:
        console.show(f"{address}\n")
    return PASSED


def post(destination: Destination, text: str, marker: str, clock: Clock) -> str:
    """Save the comment, again after failures that can pass, and return its address on the web ("" if unknown)."""
    from rageval_spec.commands.comment.code_hosts import GitHub, GitLab, save_comment
    from rageval_spec.endpoints.tries import BrokenDownError, Limits, Tries, TryError

    host: CodeHost = GitHub(destination) if destination.host == "github" else GitLab(destination)
    try:
        return Tries(Limits(1, _RETRIES), clock).make(lambda: save_comment(host, text, marker))
    except (TryError, BrokenDownError) as error:
        tries = getattr(error, "tries", 1)
        told = f", after {count_noun(tries, 'try', 'tries')}" if tries > 1 else ""
        raise RagevalError(f"{error}{told}") from error


@click.command("comment", cls=OutputCommand)
@click.argument("results", required=False)
@click.option("--baseline", metavar="RESULTS", help="Compare with these results: a folder or a label of the history.")
@click.option("--host", type=click.Choice(["github", "gitlab"]), help="The code host.  [default: the CI job's]")
@click.option(
    "--api", metavar="URL", help="The base URL of its API, for a server of your own.  [default: the CI job's]"
)
@click.option("--repository", metavar="NAME", help="owner/name, or GitLab's project.  [default: the CI job's]")
@click.option("--number", type=click.IntRange(1), help="The pull or merge request.  [default: the CI job's]")
@click.option("--key", metavar="TEXT", help="Distinguishes several comments on one pull request.  [default: the spec's "
              "name]")  # fmt: skip
@click.option("--summary", type=click.Path(path_type=Path), metavar="FILE", help="Also append the text to this file.")
@click.option("--no-post", is_flag=True, help="Post nothing; for a job that only wants the summary.")
@click.option("--dry-run", is_flag=True, help="Print the text and post nothing.")
def comment_results(**options: Any) -> int:
    """Post results as a comment on a pull or merge request.

    It is one comment on GitHub or GitLab, which the next call updates. In a CI job, nothing but the token is needed:
    GITHUB_TOKEN (with the permission `pull-requests: write`) or GITLAB_TOKEN (with the scope `api`). Outside a pull
    request, and for one from a fork, no comment is made and the exit code is 0.

    \b
    rageval-spec comment
    rageval-spec comment rageval-results --baseline main --summary "$GITHUB_STEP_SUMMARY"
    rageval-spec comment --host gitlab --repository group/app --number 7 --dry-run
    """
    return comment(**options)
