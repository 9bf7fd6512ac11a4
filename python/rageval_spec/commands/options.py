"""Options and arguments that several commands share, as decorators. It imports little: every command loads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

MOST_QUERIES = 2**31 - 1


def spec_argument(command: F) -> F:
    """Add the argument for the spec's file, and `--set`."""
    return click.argument("spec", type=click.Path(path_type=Path))(set_option(command))


def set_option(command: F) -> F:
    """Add `--set`, which overrides values of the spec."""
    return click.option(
        "--set", "overrides", multiple=True, metavar="PATH=VALUE",
        help="Override a value in the spec, for example systems.bm25.k1=0.9. Can be repeated.",
    )(command)  # fmt: skip


def limit_option(command: F) -> F:
    return click.option(
        "--limit",
        type=click.IntRange(1, MOST_QUERIES),
        metavar="N",
        help="Evaluate only the first N queries of each dataset.",
    )(command)


def selection_options(command: F) -> F:
    """Add `--only` and `--limit`, which select part of a spec."""
    only = click.option(
        "--only", multiple=True, metavar="PATTERN",
        help="Evaluate only the datasets, systems or metrics whose names match: bm25, 'ndcg*'. A section without a "
        "match is evaluated in full. Can be repeated.",
    )  # fmt: skip
    return limit_option(only(command))


def store_options(command: F) -> F:
    """Add `--store` and `--no-store`."""
    folder = click.option(
        "--store", type=click.Path(path_type=Path, file_okay=False), envvar="RAGEVAL_STORE", metavar="FOLDER",
        help="Where to store results that are costly to compute.  [default: .rageval/store, next to the spec]",
    )  # fmt: skip
    without = click.option("--no-store", is_flag=True, help="Store nothing, and ignore stored results.")
    return folder(without(command))


def output_options(command: F) -> F:
    """Add `--output`, `--save-as` and `--no-history`, which say where results go."""
    output = click.option(
        "-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("rageval-results"),
        show_default=True, metavar="FOLDER", help="The folder for the results and for reports that are files.",
    )  # fmt: skip
    label = click.option(
        "--save-as", metavar="LABEL", help="Save the results to the history as LABEL, a baseline for gates."
    )
    without = click.option("--no-history", is_flag=True, help="Do not record the evaluation in the history.")
    return output(label(without(command)))


def answer_options(command: F) -> F:
    """Add `--retry-failed` and `--fresh`, which say what answers of earlier evaluations are taken over."""
    retry = click.option(
        "--retry-failed", is_flag=True,
        help="Ask again only what failed in the last evaluation: questions to systems, and to judges whose replies "
        "could not be read. All else is taken over from it, and reports say so.",
    )  # fmt: skip
    old = click.option("--retry-errors", is_flag=True, hidden=True, help="The earlier name of --retry-failed.")
    fresh = click.option(
        "--fresh", is_flag=True, help="Ask all questions again, also after an evaluation that was interrupted."
    )
    return retry(old(fresh(command)))


def read_answer_options(options: dict[str, Any]) -> dict[str, Any]:
    """The same options, with `--retry-errors`, the earlier name of `--retry-failed`, as the new one.

    Raises:
        UsageError: they contradict one another.
    """
    from rageval_spec.commands.console import PROGRAM, tell

    if options.pop("retry_errors"):
        tell(f"{PROGRAM}: warning: --retry-errors is now --retry-failed; the next release knows only the new name")
        options["retry_failed"] = True
    if options["retry_failed"] and options["fresh"]:
        raise UsageError("--fresh asks everything again and --retry-failed only what failed; leave one of them out")
    return options


def power_options(command: F) -> F:
    """Add the options that ask what drop the questions can show."""
    power = click.option(
        "--power", is_flag=True, help="Show instead the smallest drop that the questions can show, for each metric."
    )
    sources = click.option(
        "--from", "sources", multiple=True, metavar="RESULTS",
        help="With --power: the results or label whose values tell the spread; twice for that of their differences.",
    )  # fmt: skip
    sd = click.option(
        "--sd", type=click.FloatRange(min=0), metavar="NUMBER",
        help="With --power: the standard deviation of the differences, if there are no earlier values.",
    )  # fmt: skip
    return power(sources(sd(command)))


annotations_option = click.option(
    "--annotations", type=click.Choice(["github"]),
    help="Also print annotations, at most ten, that GitHub shows at the lines of the spec: gates that did not pass, "
    "and errors in the spec.",
)  # fmt: skip


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


def model_argument(command: F) -> F:
    """Add the argument for a model, `--file`, `--graph` and `--revision`."""
    revision = click.option("--revision", help="Branch, tag or commit of a hub model.  [default: main]")
    file = click.option("--file", metavar="NAME", help="Which .onnx file of the model to use: onnx/model_O3.onnx.")
    graph = click.option(
        "--graph", type=click.Choice(["own", "repository"]),
        help="Which graph to use where the model has both: own is built from its safetensors, repository is its .onnx "
        "file.  [default: own where it can be built]",
    )  # fmt: skip
    return click.argument("model")(revision(file(graph(command))))


def store_folder_option(command: F) -> F:
    """Add `--store` for commands without a spec, so without a folder to derive it from."""
    return click.option(
        "--store", "folder", type=click.Path(path_type=Path, file_okay=False), envvar="RAGEVAL_STORE", metavar="FOLDER",
        default=Path(".rageval", "store"), show_default=True, help="The store's folder.",
    )(command)  # fmt: skip


def pruning_options(command: F) -> F:
    """Add the options that say what to remove from a store."""
    age = click.option("--older-than", metavar="AGE", help="Remove what has not been used for this long: 30d, 12h, 2w.")
    size = click.option(
        "--max-size", metavar="SIZE",
        help="Remove the least recently used until the store is no larger than this: 500MB, 2GB.",
    )  # fmt: skip
    specs = click.option(
        "--unused-by", type=click.Path(path_type=Path), multiple=True, metavar="SPEC",
        help="Remove what the evaluation of this spec does not use. If repeated, remove what none of the specs uses.",
    )  # fmt: skip
    answers = click.option(
        "--answers", is_flag=True, help="Remove all answers of systems. Replies and vectors of models stay."
    )
    return age(size(specs(answers(command))))


def read_age(text: str) -> float:
    """Convert `30d`, `12h`, `90m` or `2w` to seconds.

    Raises:
        UsageError: it is not an age.
    """
    from rageval_spec.wording import read_duration

    seconds = read_duration(text)
    if seconds is None:
        raise UsageError(f"--older-than {make_visible(text)} is not an age; write 30d, 12h, 90m or 2w")
    return seconds


def ranking_options(command: F) -> F:
    """Add trec_eval's options for reading rankings, and the order of ties."""
    complete = click.option(
        "-c", "--complete", is_flag=True,
        help="Count queries that are missing from the run as 0 instead of skipping them.",
    )  # fmt: skip
    level = click.option(
        "-l", "--level", "relevance_level", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
        help="The lowest relevance that counts as relevant.",
    )  # fmt: skip
    judged = click.option(
        "-J", "--judged-only", is_flag=True, help="Remove unjudged documents from the rankings before scoring."
    )
    depth = click.option(
        "-M", "--depth", type=click.IntRange(min=1), metavar="N",
        help="Score only the first N documents of each ranking.",
    )  # fmt: skip
    ties = click.option(
        "--ties", type=click.Choice(["trec_eval", "trec_eval_2023", "input", "float64", "ranx", "range"]),
        default="trec_eval", show_default=True,
        help="How to order documents with equal scores. trec_eval: like its tag v9.0.8 (commit d95ca64, 2020), with "
        "scores as float32; trec_eval_2023: like its tag trec_eval-9.0.8 (2023), with scores as float64; range: like "
        "trec_eval, plus the lowest and highest value over all orders.",
    )  # fmt: skip
    duplicates = click.option(
        "--duplicates", type=click.Choice(["error", "first"]), default="error", show_default=True,
        help="What to do if a query lists a document twice: stop with an error, or keep its first row.",
    )  # fmt: skip
    return complete(level(judged(depth(ties(duplicates(command))))))
