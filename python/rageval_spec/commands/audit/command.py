"""`rageval-spec audit`: checks the test sets of a spec, with the values of an evaluation where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.errors import GATE_FAILED, PASSED, UsageError
from rageval_spec.progress import ProgressDisplay
from rageval_spec.wording import list_choices


@click.command("audit")
@click.argument("path", metavar="SPEC", type=click.Path(path_type=Path))
@shared.set_option
@click.option("--dataset", "datasets", multiple=True, metavar="DATASET", help="Only this dataset; can be repeated.")
@click.option(
    "--results", multiple=True, metavar="RESULTS",
    help="Results, a label or a record whose values show more about the questions; can be repeated, to count the "
    "systems of all of them.  [default: the last results of this spec]",
)  # fmt: skip
@click.option(
    "--train", type=click.Path(path_type=Path), metavar="FILE",
    help="Questions that a system was trained or tuned on: a file, a BEIR folder, or a split such as "
    "data/qrels/train.tsv.",
)  # fmt: skip
@click.option(
    "--documents", type=click.Path(path_type=Path), metavar="PATH",
    help="The documents that questions were made from, to find questions about documents that have changed: a folder "
    "or a corpus, as for generate.",
)  # fmt: skip
@click.option("--types", metavar="SHARES", help="The wanted mix of types.  [default: factual:40,analytical:35,"
              "comparative:15,procedural:10]")  # fmt: skip
@click.option("--difficulty", "difficulties", metavar="SHARES", help="The wanted mix of difficulties.  [default: "
              "easy:30,medium:50,hard:20]")  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=200, show_default=True, help="How many questions are wanted.")
@click.option(
    "--metric", metavar="METRIC",
    help="The metric that decides which questions systems fail and solve.  [default: the first of the spec]",
)  # fmt: skip
@click.option(
    "--model", metavar="MODEL",
    help="The embedding model of the spec that compares the meaning of questions.  [default: the first that runs on "
    "this machine]",
)  # fmt: skip
@click.option(
    "--store", type=click.Path(path_type=Path, file_okay=False), envvar="RAGEVAL_STORE", metavar="FOLDER",
    help="The store with generated questions and vectors.  [default: .rageval/store, next to the spec]",
)  # fmt: skip
@click.option(
    "--fix", is_flag=True,
    help="Write cleaned copies next to the files, without repeated questions, empty ones, and those of --train; and "
    "the removed rows with the reasons.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="With --fix: overwrite the files of an earlier --fix.")
@click.option("--strict", is_flag=True, help="Exit with 1 if there are warnings, too.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "html", "markdown"]),
    help="How to show the findings.  [default: what the name of -o ends in, else text]",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write the findings to this file: .html, .json, .md or .txt.",
)  # fmt: skip
def audit(
    path: Path,
    overrides: tuple[str, ...],
    datasets: tuple[str, ...],
    store: Path | None,
    form: str | None,
    output: Path | None,
    *,
    fix: bool,
    force: bool,
    strict: bool,
    **options: Any,
) -> int:
    """Check test sets: questions, references, judgements, mix, size.

    SPEC is a spec, or the file or the BEIR folder of a test set. Each finding names the row and what to do. With the
    results of an evaluation, the audit also reports what the questions show. It asks no system, and a model behind an
    endpoint only if --model names it. The exit code is 1 if there are errors.

    \b
    rageval-spec audit spec.yaml
    rageval-spec audit golden.jsonl --strict
    rageval-spec audit spec.yaml --train data/scifact/qrels/train.tsv -o audit.html
    """
    from rageval_spec.audit.audit_report import render
    from rageval_spec.commands.audit.audited_questions import audit_subject, open_questions, open_subject, write_cleaned

    form = form or _find_form(output)
    with ProgressDisplay() as display:
        display.announce("read the datasets")
        subject = open_subject(path, overrides, store)
        opened = {name: open_questions(dataset) for name, dataset in subject.choose(datasets).items()}
        audited = audit_subject(path, subject, opened, display, **options)
    if fix:
        write_cleaned(subject, opened, audited, force=force)
    content = render(audited, form)
    console.write(content if output is None else f"{console.write_file(output, content)}\n")
    return GATE_FAILED if audited.count("error") or (strict and audited.count("warning")) else PASSED


_SUFFIXES: Mapping[str, str] = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".txt": "text"}


def _find_form(output: Path | None) -> str:
    form = "text" if output is None else _SUFFIXES.get(output.suffix.lower())
    if form is None:
        raise UsageError(
            f"-o {output}: end the name in {list_choices([*_SUFFIXES])}, or name the format: --format json"
        )
    return form
