"""`rageval-spec demo`: evaluates an assistant before and after a change, and shows the question that the change broke.

The assistant, its documents, the questions and the spec are files of this package. They are copied into a folder,
where the user can change and run them; nothing is written elsewhere.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM, OutputCommand
from rageval_spec.errors import GATE_FAILED, PASSED, UsageError

if TYPE_CHECKING:
    from rageval_spec.commands.compare.changes import Compared
    from rageval_spec.drawing.view import Block

FOLDER = Path("rageval-demo")
SPEC, BEFORE, AFTER = "spec.yaml", "before", "after"
PAGE = Path(AFTER) / "report.html"
_SOURCE = Path(__file__).parent / "bike_shop"
_FILES = (SPEC, "assistant.py", "documents.jsonl", "questions.jsonl")
_SUFFIX = ".txt"
"""Of the assistant's name in this package, of which it is no module."""
_STORY = (
    "The assistant of a bike shop answers 8 questions from 8 documents. To make its prompts shorter, somebody let it "
    "read 1 document for each question; it was 3 before. All else is as it was."
)


@click.command("demo", cls=OutputCommand)
@click.argument("folder", required=False, default=FOLDER, type=click.Path(path_type=Path))
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser.")
def demo(folder: Path, no_open: bool) -> int:
    """Show a change that breaks an answer, and the gate that finds it.

    FOLDER, rageval-demo by default, gets a spec, an assistant and its documents. The assistant is evaluated before and
    after the change, and the page of its results is opened if there is a screen. The demo needs no model and no
    network, and writes nowhere else. Its exit code is 0, although a gate fails.

    \b
    rageval-spec demo
    rageval-spec demo my-demo --no-open
    """
    from rageval_spec.drawing.view import write_text

    _write_files(folder)
    compared = _evaluate(folder)
    console.write(write_text(_draw(compared)))
    console.show(_list_next(compared.questions.shown[0].query_id, folder))
    if not no_open and has_browser():
        import webbrowser

        webbrowser.open((folder / PAGE).resolve().as_uri())
    return PASSED


def _write_files(folder: Path) -> None:
    """Copy the files of the demo into the folder, unless it has anything that the demo did not write."""
    from rageval_spec.store.disk import write_or_explain

    program = console.name_program()
    other = f"{program} demo {shlex.quote(str(Path(f'{folder}-2') if folder.name else FOLDER))}"
    try:
        has_any = folder.is_dir() and any(folder.iterdir())
        if folder.exists() and (not folder.is_dir() or (has_any and not (folder / SPEC).is_file())):
            raise UsageError(f"{folder} already exists, and is not a demo; write it to another folder: {other}")
        there = {name: folder / name for name in _FILES if (folder / name).exists()}
        changed = [path for name, path in there.items() if path.read_bytes() != _read(name)]
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror or error}") from error
    if changed:
        run = f"{program} run {shlex.quote(str(folder / SPEC))}"
        told = f"you have changed {changed[0]}. To keep your change, evaluate it: {run}"
        raise UsageError(f"{told}; for a new demo, name another folder: {other}")
    for name in _FILES:
        told = f"{folder / name} cannot be written; name a folder that can, such as {program} demo /tmp/rageval-demo"
        write_or_explain(folder / name, _read(name), told, UsageError)


def _read(name: str) -> bytes:
    return (_SOURCE / (f"{name}{_SUFFIX}" if name.endswith(".py") else name)).read_bytes()


def _evaluate(folder: Path) -> Compared:
    from rageval_spec import runner
    from rageval_spec.commands.compare.changes import compare_results
    from rageval_spec.commands.results_argument import NamedResults
    from rageval_spec.drawing.question_order import Filter

    def run(name: str, *overrides: str) -> NamedResults:
        options = runner.Options(overrides=overrides, output=folder / name, no_store=True, no_history=True)
        outcome = runner.run(folder / SPEC, options)
        errors = [*(failure.error for failure in outcome.failures), *outcome.lost_reports]
        if errors:
            raise errors[0]
        return NamedResults(name, outcome.evaluation, outcome.folder)

    before = run(BEFORE, "systems.assistant.function=assistant:answer_as_before")
    return compare_results(before, run(AFTER), Filter(limit=5))


def _draw(compared: Compared) -> Iterator[Block]:
    """The numbers and the gates of both evaluations, and the question that broke."""
    from rageval_spec.drawing.cards import build_card
    from rageval_spec.drawing.verdict import describe_headline
    from rageval_spec.drawing.view import Fields, Heading, Line, Span, tabulate
    from rageval_spec.wording import format_mean

    after = compared.after.evaluation
    gates = {gate.metric: f"{'✓' if gate.outcome == 'pass' else '✗'} {gate.bound}" for gate in after.gates}
    yield Line(_STORY)
    rows = [(one.metric, *map(format_mean, (one.before, one.after)), gates[one.metric]) for one in compared.metrics]
    yield tabulate(("metric", "before", "after", "gate"), rows, (1, 2))
    yield Line(Span(f"✗ {describe_headline(after)}", "bold red"))
    broken = compared.questions.shown[0]
    card = build_card(after, broken.dataset, broken.system, broken.query_id)
    yield Heading(f"The question that broke: {card.query_id}", 2)
    read, missing = card.contexts[0].doc_id, card.missing[0].doc_id
    yield Fields([
        ("question", card.question),
        ("gold answer", card.references[0]),
        ("before", Span(broken.answer_before or "", "green")),
        ("after", Span(broken.answer or "", "red")),
        ("why", f"{card.cause}: the assistant read '{read}', but the answer is in '{missing}'"),
    ])  # fmt: skip
    yield Line(
        "Faithfulness has not changed: each answer still agrees with what the assistant read. So a judge alone would "
        "not have found this."
    )
    yield Line(
        f"In a pipeline, `{PROGRAM} run` exits with {GATE_FAILED} here, which stops the change. The demo itself did "
        f"what it should, and exits with {PASSED}."
    )


def _list_next(query_id: str, folder: Path) -> str:
    """The page, and the commands to type next: lines that are never broken, so that they can be copied."""
    program, spec = console.name_program(), shlex.quote(str(folder / SPEC))
    commands = (
        ("See the question in full:", f"show {query_id} {shlex.quote(str(folder / AFTER))}"),
        (f"Write DOCUMENTS_READ = 3 in {folder / 'assistant.py'}, and check the gates again:", f"run {spec}"),
        ("Write a spec for your own files:", "init"),
    )
    lines = "".join(f"  {why}\n    {program} {command}\n" for why, command in commands)
    return f"\nPage: {folder / PAGE}\n\nNext:\n{lines}"


def has_browser() -> bool:
    """Whether a person sees the output, on a machine that can show a page."""
    if not console.is_terminal() or os.environ.get("CI"):
        return False
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
