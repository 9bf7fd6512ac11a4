"""Options and arguments that several commands have, as decorators. Only click is imported: every command loads this."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

MOST_QUERIES = 2**31 - 1


def spec_argument(command: F) -> F:
    """The spec's file, and values that override it."""
    return click.argument("spec", type=click.Path(path_type=Path))(set_option(command))


def set_option(command: F) -> F:
    """Values that override the spec."""
    return click.option(
        "--set", "overrides", multiple=True, metavar="PATH=VALUE",
        help="Override a value in the spec, such as systems.bm25.k1=0.9. May be repeated.",
    )(command)  # fmt: skip


def limit_option(command: F) -> F:
    """How many queries to look at."""
    return click.option(
        "--limit",
        type=click.IntRange(1, MOST_QUERIES),
        metavar="N",
        help="Evaluate only the first N queries of each dataset.",
    )(command)


def selection_options(command: F) -> F:
    """What to evaluate of a spec."""
    only = click.option(
        "--only", multiple=True, metavar="PATTERN",
        help="Evaluate only the datasets, systems or metrics whose names match: bm25, 'ndcg*'. A section without a "
        "match is evaluated whole. May be repeated.",
    )  # fmt: skip
    return limit_option(only(command))


def store_options(command: F) -> F:
    """Where results are stored, if at all."""
    folder = click.option(
        "--store", type=click.Path(path_type=Path, file_okay=False), envvar="RAGEVAL_STORE", metavar="FOLDER",
        help="Where results that are costly to compute are stored.  [default: .rageval/store, next to the spec]",
    )  # fmt: skip
    without = click.option("--no-store", is_flag=True, help="Store nothing, and ignore what is stored.")
    return folder(without(command))


def retry_option(command: F) -> F:
    """Whether to repair earlier replies."""
    return click.option(
        "--retry-errors",
        is_flag=True,
        help="Retry questions whose stored replies could not be parsed, on the answers of the last evaluation.",
    )(command)


form_option = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to print the results.",
)  # fmt: skip


def model_argument(command: F) -> F:
    """A model, and which file and revision of it."""
    revision = click.option("--revision", help="Branch, tag or commit of a hub model.  [default: main]")
    file = click.option("--file", metavar="NAME", help="Which .onnx file of the model to use: onnx/model_O3.onnx.")
    return click.argument("model")(revision(file(command)))


def store_folder_option(command: F) -> F:
    """A store, where there is no spec that it lies beside."""
    return click.option(
        "--store", "folder", type=click.Path(path_type=Path, file_okay=False), envvar="RAGEVAL_STORE", metavar="FOLDER",
        default=Path(".rageval", "store"), show_default=True, help="Which store.",
    )(command)  # fmt: skip


def pruning_options(command: F) -> F:
    """What to remove from a store."""
    age = click.option("--older-than", metavar="AGE", help="Remove what was not used for 30d, 12h or 2w.")
    size = click.option(
        "--max-size", metavar="SIZE", help="Remove what was not used for longest, until 500MB or 2GB are left."
    )
    specs = click.option(
        "--unused-by", type=click.Path(path_type=Path), multiple=True, metavar="SPEC",
        help="Remove what the evaluation of this spec does not use. With several, what none of them uses.",
    )  # fmt: skip
    return age(size(specs(command)))


def ranking_options(command: F) -> F:
    """How rankings are read: trec_eval's options, and the order of ties."""
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
        help="How to order documents with equal scores. trec_eval: as its tag v9.0.8 (commit d95ca64, 2020), with "
        "scores as float32; trec_eval_2023: as its tag trec_eval-9.0.8 (2023), with scores as float64; range: as "
        "trec_eval, with the lowest and highest value over all orders.",
    )  # fmt: skip
    duplicates = click.option(
        "--duplicates", type=click.Choice(["error", "first"]), default="error", show_default=True,
        help="What to do with a document that a query has twice: stop, or keep its first row.",
    )  # fmt: skip
    return complete(level(judged(depth(ties(duplicates(command))))))
