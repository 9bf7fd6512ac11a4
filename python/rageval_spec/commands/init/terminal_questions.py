"""Asks on a terminal what there is to evaluate, and says it in the arguments of `init`, which then writes the spec.

Each question has a default, so that the return key is an answer. Nothing is written before the last one is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

import click

from rageval_spec.commands.init.folder_proposals import RUN, Kind, Proposal, is_beir, propose
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import UsageError
from rageval_spec.reading.formats.text_files import format_of

_URL = "http://localhost:8000/ask"
_SAMPLE, _FOLDER, _SPEC = "example", "evaluation", "spec.yaml"


class _Choice(NamedTuple):
    """An answer to the first question: what there is, and where, if that is known."""

    told: str
    kind: Kind | None
    proposal: Proposal | None = None


_OTHERS: Sequence[_Choice] = (
    _Choice("a golden set: a file of questions, with or without gold answers", "golden"),
    _Choice("answers of your system, in a file with their questions", "answers"),
    _Choice("judgements with runs (TREC), or with documents (a BEIR folder)", "trec"),
    _Choice("traces: a file of OpenTelemetry spans", "otel"),
    _Choice("nothing yet: sample data to try", None),
)


def ask(folder: Path) -> list[str]:
    """Ask what there is in a folder. Returns the arguments of `init` that write the spec for it.

    Raises `click.Abort` at Ctrl-C, and at the end of the input.
    """
    try:
        return _ask(folder)
    except click.Abort:
        click.echo()  # the message that follows begins a line of its own
        raise


def _ask(folder: Path) -> list[str]:
    proposals = propose(folder)
    choices = [*(_Choice(one.told, one.kind, one) for one in proposals), *_OTHERS]
    click.echo("What do you want to evaluate?")
    chosen = choices[_choose([one.told for one in choices], default=1 if proposals else len(choices))]
    if chosen.kind is None:
        return [_ask_target(_SAMPLE)]
    arguments = _ask_file(chosen.kind) if chosen.proposal is None else [*chosen.proposal.arguments]
    if chosen.kind == "golden":
        arguments = _ask_system(arguments[0], proposals)
    return [*arguments, _ask_target("." if not Path(_SPEC).exists() else _FOLDER)]


def _choose(told: Sequence[str], default: int) -> int:
    """The place of the answer, from 0."""
    for number, text in enumerate(told, 1):
        click.echo(f"  {number}  {make_visible(text)}")

    def read(text: str) -> int:
        if str(text).strip() not in map(str, range(1, len(told) + 1)):
            raise click.UsageError(f"write a number from 1 to {len(told)}")
        return int(text)

    return int(click.prompt("Number", value_proc=read, default=default)) - 1


def _ask_file(kind: Kind) -> list[str]:
    """The arguments for a file of this kind; asks again until it exists."""
    path = _ask_path("The folder, or the file of judgements" if kind == "trec" else "The file")
    if kind == "golden":
        return [str(path)]
    if kind == "answers":
        return ["--answers", str(path)]
    return ["--from", "beir" if path.is_dir() else kind, str(path)]


def _ask_path(question: str) -> Path:
    while True:
        path = Path(click.prompt(question).strip().strip("'\"")).expanduser()
        if path.is_file() or is_beir(path):
            return path
        if path.is_dir():
            click.echo(f"{path} is a folder, and has no BEIR dataset: corpus.jsonl, queries.jsonl and qrels/")
        else:
            click.echo(f"there is no {path}; write its path from this folder, such as data/golden.csv")


def _ask_system(golden: str, proposals: Sequence[Proposal]) -> list[str]:
    """What answers the questions of a golden set."""
    answered = [one for one in proposals if one.kind == "answers"]
    click.echo("\nWhat answers the questions?")
    told = ["your service, over HTTP", "a file that has its answers", "a Python function, or nothing yet"]
    place = _choose(told, default=2 if answered else 1)
    if place == 0:
        return [golden, "--url", click.prompt("Its URL", default=_URL, value_proc=_read_url)]
    if place == 1:
        known = str(answered[0].path) if answered else None
        path = str(click.prompt("The file", default=known, type=click.Path(exists=True, dir_okay=False)))
        return ["--answers", path] if Path(path) == Path(golden) else ["--answers", path, "--golden", golden]
    return [golden]


def _read_url(text: str) -> str:
    from rageval_spec.commands.init.first_spec import describe_service

    try:
        return str(describe_service(text.strip())["url"])
    except UsageError as error:
        raise click.UsageError(str(error).removeprefix("--url ")) from error


def _ask_target(default: str) -> str:
    """The folder of the spec; asks again for one that has none yet."""
    names = chain([default], (f"{default}-{number}" for number in count(2)))
    default = next(name for name in names if not (Path(name) / _SPEC).exists())
    while True:
        folder = Path(click.prompt("\nFolder for the spec", default=default).strip()).expanduser()
        if folder.is_file() or format_of(folder) in ("yaml", "yml", RUN):
            click.echo(f"{folder} is a file; name a folder")
        elif (folder / _SPEC).exists():
            click.echo(f"{folder / _SPEC} already exists; name another folder")
        else:
            return str(folder)
