"""`rageval-spec audit`: checks the test sets of a spec, with the values of an evaluation where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import PROGRAM
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import GATE_FAILED, PASSED, UsageError
from rageval_spec.progress import ProgressDisplay
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    from rageval_spec.audit.audit_findings import Audit
    from rageval_spec.audit.checks import Material
    from rageval_spec.audit.mix_and_size import WantedMix
    from rageval_spec.audit.question_set import AuditedQuestions
    from rageval_spec.commands.audit.audited_questions import EarlierResults, Subject
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
    from rageval_spec.spec.blocks.spec_node import Spec


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
    """Check test sets: their questions, references, judgements, mix and size.

    SPEC is a spec, or the file or the BEIR folder of a test set. Each finding names the row and what to do. With the
    results of an evaluation, the audit also reports what the questions show. It asks no system, and a model behind an
    endpoint only if --model names it. The exit code is 1 if there are errors.

    \b
    rageval-spec audit spec.yaml
    rageval-spec audit golden.jsonl --strict
    rageval-spec audit spec.yaml --train data/scifact/qrels/train.tsv -o audit.html
    """
    from rageval_spec.commands.audit.audited_questions import open_questions, open_subject

    form = form or _find_form(output)
    with ProgressDisplay() as display:
        display.announce("read the datasets")
        subject = open_subject(path, overrides, store)
        opened = {name: open_questions(subject.datasets[name]) for name in _choose(datasets, subject)}
        audited = _audit(path, subject, opened, display, **options)
    if fix:
        _fix(subject, opened, audited, force=force)
    content = _render(audited, form)
    console.write(content if output is None else f"{console.write_file(output, content)}\n")
    return GATE_FAILED if audited.count("error") or (strict and audited.count("warning")) else PASSED


_SUFFIXES: Mapping[str, str] = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".txt": "text"}


def _render(audited: Audit, form: str) -> bytes:
    if form == "json":
        from rageval_spec.audit.audit_report import dump_audit

        return dump_audit(audited).encode("utf-8", "backslashreplace")
    if form == "html":
        from rageval_spec.audit.audit_report import render_page

        return render_page(audited)
    if form == "markdown":
        from rageval_spec.audit.audit_report import render_markdown

        return render_markdown(audited)
    from rageval_spec.audit.audit_report import render_audit

    return render_audit(audited)


def _find_form(output: Path | None) -> str:
    """The form that a file's name ends in."""
    form = "text" if output is None else _SUFFIXES.get(output.suffix.lower())
    if form is None:
        raise UsageError(
            f"-o {output}: end the name in {list_choices([*_SUFFIXES])}, or name the format: --format json"
        )
    return form


def _audit(
    path: Path,
    subject: Subject,
    opened: Mapping[str, AuditedQuestions],
    display: ProgressDisplay,
    *,
    results: Sequence[str],
    train: Path | None,
    documents: Path | None,
    metric: str | None,
    model: str | None,
    **wanted: Any,
) -> Audit:
    from rageval_spec.audit.audit_findings import Audit
    from rageval_spec.audit.checks import audit_dataset
    from rageval_spec.commands.audit.audited_questions import find_meaning, open_train
    from rageval_spec.generation.documents import read_documents

    if subject.spec is None:
        for option, value in (("--metric", metric), ("--model", model)):
            if value is not None:
                raise UsageError(f"{option} {value}: {path} is a dataset; {option} names a part of a spec")
    found = _find_results(subject, results)
    trained = None if train is None else (open_train(train), str(train))
    meaning = find_meaning(subject.parts, model)
    sources = None if documents is None else read_documents(documents)
    audits = []
    for name in opened:
        display.announce(f"audit {name}")
        material = _prepare(opened[name], subject, **wanted)
        material = replace(material, train=trained, documents=sources, embed=meaning.embed, compared=meaning.remark)
        if subject.spec is not None and subject.parts is not None:
            material = _add_values(material, subject.spec, subject.parts, found, name, metric)
        audits.append(audit_dataset(opened[name], subject.datasets[name], material))
    return Audit(subject.name, tuple(audits), tuple(found.names))


def _find_results(subject: Subject, named: Sequence[str]) -> EarlierResults:
    from rageval_spec.commands.audit.audited_questions import EarlierResults, find_results

    if subject.spec is not None:
        return find_results(subject.spec, named)
    if named:
        raise UsageError("--results needs a spec, which defines the metrics of the results")
    return EarlierResults([])


def _fix(subject: Subject, opened: Mapping[str, AuditedQuestions], audited: Audit, *, force: bool) -> None:
    """Write a cleaned copy of each dataset that has rows to remove, and tell where it is."""
    from rageval_spec.audit.cleaned_copy import clean, describe

    copies = [clean(subject.datasets[one.name], opened[one.name], one) for one in audited.datasets]
    found = [one for one in copies if one is not None]
    there = next((path for one in found for path in one.files if path.exists() and not force), None)
    if there is not None:
        raise UsageError(f"{there} exists; move it away, or overwrite it with --force")
    for one in found:
        for path, content in one.files.items():
            console.write_file(path, content)
        console.tell(describe(one))
    if not found:
        console.tell("nothing to remove: no row is certainly too many")


def _choose(wanted: Sequence[str], subject: Subject) -> Sequence[str]:
    known = tuple(subject.datasets)
    for name in wanted:
        if name not in known:
            raise UsageError(f"--dataset {name}: {suggest(name, known) or f'the spec has {list_choices(known)}'}")
    return [name for name in known if not wanted or name in wanted]


def _prepare(
    questions: AuditedQuestions, subject: Subject, *, count: int, types: str | None, difficulties: str | None
) -> Material:
    from rageval_spec.audit.checks import Material
    from rageval_spec.audit.mix_and_size import DIFFICULTY, TYPE
    from rageval_spec.pipeline.results.provenance import find_dataset_origin

    origin = find_dataset_origin(subject.datasets[questions.name].node, questions.collection)
    return Material(
        count=count,
        types=_want(TYPE, types, questions),
        difficulties=_want(DIFFICULTY, difficulties, questions),
        why_none=f"this needs results; audit a spec that has been evaluated with {PROGRAM} run",
        origin="" if origin is None else origin.describe(),
    )


def _add_values(
    material: Material, spec: Spec, parts: SpecPlugins, found: EarlierResults, dataset: str, metric: str | None
) -> Material:
    """The material with what the results say about a dataset."""
    from rageval_spec.commands.audit.audited_questions import list_outputs, list_powers, measure

    powers, why_no_powers = list_powers(spec, parts, found, dataset), ""
    if powers is None and found.opened:
        why_no_powers = (
            "the results know no clusters or weights of the questions, which the spec has; evaluate it again"
        )
    return replace(
        material,
        powers=powers,
        why_no_powers=why_no_powers,
        measured=measure(spec, parts, found, dataset, metric),
        outputs=list_outputs(found, dataset),
        why_none=found.why_none or f"the results have no values of questions of '{dataset}'",
    )


def _want(wanted: WantedMix, text: str | None, questions: AuditedQuestions) -> WantedMix:
    """The wanted shares that an option gives. A name that no question has is a gap, unless it looks mistyped."""
    if text is None:
        return wanted
    from rageval_spec.audit.mix_and_size import read_values
    from rageval_spec.generation.question_mix import read_shares

    known = dict.fromkeys([*wanted.shares, *read_values(questions, wanted.columns).values()])
    named = (part.partition(":")[0].strip() for part in text.lower().split(","))
    known |= {name: None for name in named if name and suggest(name, list(known)) is None}
    return wanted._replace(shares=read_shares(text.lower(), known, wanted.option), is_default=False)
