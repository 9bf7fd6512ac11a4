"""Options and arguments that several commands share. It imports little: every command loads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

MOST_QUERIES = 2**31 - 1


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator. `--help` shows them in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


set_option = click.option(
    "--set", "overrides", multiple=True, metavar="PATH=VALUE",
    help="Override a value in the spec, for example systems.bm25.k1=0.9. Can be repeated.",
)  # fmt: skip

spec_argument = together(click.argument("spec", type=click.Path(path_type=Path)), set_option)

limit_option = click.option(
    "--limit", type=click.IntRange(1, MOST_QUERIES), metavar="N",
    help="Evaluate only the first N queries of each dataset.",
)  # fmt: skip

selection_options = together(
    limit_option,
    click.option("--only", multiple=True, metavar="PATTERN", help="Evaluate only the datasets, systems or metrics "
                 "whose names match: bm25, 'ndcg*'. A section without a match is evaluated in full. Can be repeated."),
)  # fmt: skip
"""What part of a spec to evaluate."""

sweep_option = click.option(
    "--sweep", multiple=True, metavar="PATH=A,B", help="Evaluate all combinations of these values of keys in the spec, "
    "and compare them: systems.dense.depth=50,100. Can be repeated, and adds to `axes:` of the spec."
)  # fmt: skip

shard_option = click.option(
    "--shard", metavar="K/N",
    help="Evaluate only part K of N of the questions, such as 3/8; `rageval-spec merge` puts the parts together. Each "
    "part may spend an equal share of the spec's limits on calls and cost.",
)  # fmt: skip

store_options = together(
    click.option("--store", type=click.Path(path_type=Path, file_okay=False), envvar="RAGEVAL_STORE", metavar="FOLDER",
                 help="Where to store results that are costly to compute.  [default: .rageval/store, next to the "
                 "spec]"),
    click.option("--no-store", is_flag=True, help="Store nothing, and ignore stored results."),
)  # fmt: skip

answer_options = together(
    click.option("--retry-failed", is_flag=True, help="Ask again only what failed in the last evaluation: questions to "
                 "systems, and to judges whose replies could not be read. All else is taken over from it, and reports "
                 "say so."),
    click.option("--retry-errors", is_flag=True, hidden=True, help="The earlier name of --retry-failed."),
    click.option("--fresh", is_flag=True, help="Ask all questions again, also after an evaluation that was "
                 "interrupted."),
)  # fmt: skip
"""What answers of earlier evaluations are taken over; `read_answer_options` reads them."""


def read_answer_options(options: dict[str, Any]) -> dict[str, Any]:
    """The same options, with `--retry-errors`, the earlier name of `--retry-failed`, as the new one."""
    from rageval_spec.commands.console import PROGRAM, tell

    if options.pop("retry_errors"):
        tell(f"{PROGRAM}: warning: --retry-errors is now --retry-failed; the next release knows only the new name")
        options["retry_failed"] = True
    if options["retry_failed"] and options["fresh"]:
        raise UsageError("--fresh asks everything again and --retry-failed only what failed; leave one of them out")
    return options


form_option = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to print the results.",
)  # fmt: skip


def questions_limit_option(of: str, default: int) -> Callable[[F], F]:
    """`--limit` of a command that shows questions: at most `default` of each of the kinds `of`."""
    return click.option(
        "--limit", type=click.IntRange(1, MOST_QUERIES), default=default, show_default=True, metavar="N",
        help=f"At most N questions{f' {of}' if of else ''}.",
    )  # fmt: skip


questions_form_option = click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True,
    help="How to print the result.",
)  # fmt: skip

label_column_option = click.option(
    "--column", "columns", multiple=True, metavar="PART=NAME",
    help="The column of a part of a label, such as value=rating; can be repeated. Parts: query_id, value, annotator, "
    "metric, dataset, system, answer, claim, time, comment, reason, probability, adjudicated, saw_judge.",
)  # fmt: skip

model_argument = together(
    click.argument("model"),
    click.option("--revision", help="Branch, tag or commit of a hub model.  [default: main]"),
    click.option("--file", metavar="NAME", help="Which .onnx file of the model to use: onnx/model_O3.onnx."),
    click.option("--graph", type=click.Choice(["own", "repository"]), help="Which graph to use where the model has "
                 "both: own is built from its safetensors, repository is its .onnx file.  [default: own where it can "
                 "be built]"),
)  # fmt: skip

store_folder_option = click.option(
    "--store", "folder", type=click.Path(path_type=Path, file_okay=False), envvar="RAGEVAL_STORE", metavar="FOLDER",
    default=Path(".rageval", "store"), show_default=True, help="The store's folder.",
)  # fmt: skip
"""`--store` for commands without a spec, so without a folder to derive it from."""


def read_age(text: str) -> float:
    """Convert `30d`, `12h`, `90m` or `2w` to seconds. Raises `UsageError` if it is not an age."""
    from rageval_spec.wording import read_duration

    seconds = read_duration(text)
    if seconds is None:
        raise UsageError(f"--older-than {make_visible(text)} is not an age; write 30d, 12h, 90m or 2w")
    return seconds
