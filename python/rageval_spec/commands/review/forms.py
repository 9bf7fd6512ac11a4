"""`review select` and `review import`: writes answers for people to judge as a form, and reads forms that come back."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.results_argument import open_baseline, open_results
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.terminal import render_text, tabulate
from rageval_spec.errors import DataError, UsageError
from rageval_spec.libraries import Text, pl
from rageval_spec.review import document_grades, nugget_edits
from rageval_spec.review.criteria import GENERAL, ReviewCriterion, make_criterion
from rageval_spec.review.label_import import (
    CheckedEntries,
    FilledForm,
    Merged,
    Problem,
    check_entries,
    merge_labels,
    read_form,
)
from rageval_spec.review.selection import REASONS, Selection, WantedSelection, select_answers
from rageval_spec.review.tasks import ReviewSheet, build_sheet, to_payload
from rageval_spec.wording import count_noun, list_choices, list_names

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.data.evaluation import Evaluation


Form: TypeAlias = Literal["csv", "xlsx", "label_studio", "html"]
_SUFFIXES: Mapping[str, Form] = {".csv": "csv", ".xlsx": "xlsx", ".json": "label_studio", ".html": "html"}
_NEXT: Mapping[Form, str] = {
    "csv": "Fill in the columns with brackets and 'annotator', and save the file as CSV UTF-8.",
    "xlsx": "Fill in the yellow cells. The guidelines are on the second sheet.",
    "html": "Open it in a browser, judge, and save the file that the page offers.",
    "label_studio": "Paste the .xml file into a new project's labelling interface, import the .json file, label, and "
    "export as JSON.",
}


def select(
    results: str | None,
    output: Path,
    wanted: WantedSelection,
    *,
    form: Form | None = None,
    baseline: str | None = None,
    asked: Sequence[str] = (),
    scale: str = "yes_no",
    annotators: Sequence[str] = (),
    overlap: float = 1.0,
    guidelines: Path | None = None,
    shows_judge: bool = False,
    force: bool = False,
) -> bytes:
    """Choose answers, write the form, and say what was chosen and what to do next.

    With several annotators, each gets a file with their name before the suffix of `output`. Raises UsageError: an
    option is wrong, a file exists, or a library is not installed. Raises DataError: the results cannot be reviewed.
    """
    if overlap < 1 and len(annotators) < 2:
        raise UsageError(
            "--overlap divides the answers among several people; name them: --annotator ann --annotator bob"
        )
    form = form or _find_form(output)
    names = _name_files(output, annotators, form)
    _refuse_existing([path for paths in names.values() for path in paths], force=force)
    opened = open_results(results)
    evaluation = opened.evaluation
    scales = _read_asked(asked)
    against = None if baseline is None else open_baseline(baseline, evaluation)
    selection = select_answers(evaluation, wanted, against)
    criteria, left_out = make_criteria(evaluation, selection.metrics, scales, scale, wanted.metrics)
    sheet = build_sheet(
        evaluation,
        selection.chosen,
        criteria,
        results=opened.name,
        guidelines=_read_guidelines(guidelines),
        shows_judge=shows_judge,
    )
    for one, paths in zip(_divide(sheet, annotators, overlap), names.values(), strict=True):
        for path, content in zip(paths, _write(one, form), strict=True):
            console.write_file(path, content)
    files = [path for paths in names.values() for path in paths]
    return render_text(lambda _: _describe(selection, sheet, left_out, files, form, annotators, overlap))


def _find_form(output: Path) -> Form:
    form = _SUFFIXES.get(output.suffix.lower())
    if form is None:
        raise UsageError(f"-o {output}: end the name in {list_choices([*_SUFFIXES])}, or name the format: --format csv")
    return form


def _name_files(output: Path, annotators: Sequence[str], form: Form) -> dict[str, list[Path]]:
    """The files of each annotator: the form, and for Label Studio its configuration too."""
    if len(set(annotators)) < len(annotators):
        raise UsageError("an annotator is named twice; give each a name of their own")
    named: dict[str, Path] = {}
    for annotator in annotators if len(annotators) > 1 else ():
        if not annotator.strip() or not set(annotator).isdisjoint('/\\:*?"<>|\0') or annotator.startswith("."):
            raise UsageError(f"--annotator '{annotator}': the name is part of a file's name; write letters and digits")
        named[annotator] = output.with_name(f"{output.stem}-{annotator}{output.suffix}")
    named = named or {"": output}
    return {
        name: [path, *([path.with_suffix(".xml")] if form == "label_studio" else [])] for name, path in named.items()
    }


def _refuse_existing(files: Sequence[Path], *, force: bool) -> None:
    found = next((path for path in files if path.exists()), None)
    if found is not None and found.is_dir():
        raise UsageError(f"{found} is a folder; name a file")
    if found is not None and not force:
        raise UsageError(
            f"{found} exists, and people's work could be in it; name another file, or overwrite it: --force"
        )


def _read_asked(asked: Sequence[str]) -> dict[str, str]:
    """The scale of each criterion that the command line names as `NAME=SCALE`."""
    named: dict[str, str] = {}
    for text in asked:
        name, equals, scale = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--ask {text}: write NAME=SCALE, such as faithfulness=claims or fluency=1..5")
        named[name.strip()] = scale.strip()
    return named


def make_criteria(
    evaluation: Evaluation, metrics: Sequence[str], asked: Mapping[str, str], scale: str, named: Sequence[str]
) -> tuple[list[ReviewCriterion], dict[str, str]]:
    """What people are asked, and the metrics that are left out because another asks the same, each with that one."""
    words = {node.get("as") or node["use"]: node["use"] for node in evaluation.provenance.spec.get("metrics") or ()}
    criteria: list[ReviewCriterion] = []
    left_out: dict[str, str] = {}
    for name in dict.fromkeys([*(() if asked and not named else metrics), *asked]):
        made = make_criterion(name, asked.get(name, scale), evaluation.summaries.get(name, ""), words.get(name, ""))
        same = next((one.name for one in criteria if one.question == made.question), None)
        if same is not None and name not in (*asked, *named) and made.kind != "claims":
            left_out[name] = same
        else:
            criteria.append(made)
    return criteria, left_out


def _read_guidelines(path: Path | None) -> str:
    if path is None:
        return GENERAL
    try:
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise UsageError(f"--guidelines {path}: the file cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"--guidelines {path}: the file is not UTF-8 text; save it as UTF-8") from error


def _divide(sheet: ReviewSheet, annotators: Sequence[str], overlap: float) -> Iterator[ReviewSheet]:
    """The sheet of each annotator. All get the first tasks, in the same order; the others are dealt out in turn."""
    if len(annotators) < 2:
        yield replace(sheet, annotator="".join(annotators))
        return
    shared = round(overlap * len(sheet.tasks))
    for place, annotator in enumerate(annotators):
        tasks = (*sheet.tasks[:shared], *sheet.tasks[shared + place :: len(annotators)])
        yield replace(sheet, annotator=annotator, tasks=tasks)


def _write(sheet: ReviewSheet, form: Form) -> list[bytes]:
    """The files of a form."""
    if form == "html":
        from rageval_spec.review.page.rendering import render_page

        return [render_page(to_payload(sheet))]
    from rageval_spec.review import forms

    writers = {"csv": [forms.write_csv], "xlsx": [forms.write_xlsx]}
    return [write(sheet) for write in writers.get(form, [forms.write_tasks, forms.write_config])]


def _describe(
    selection: Selection,
    sheet: ReviewSheet,
    left_out: Mapping[str, str],
    files: Sequence[Path],
    form: Form,
    annotators: Sequence[str],
    overlap: float,
) -> Iterator[RenderableType]:
    answers = count_noun(selection.population, "answer")
    yield Text(make_visible(f"Chose {len(sheet.tasks)} of {answers} of {sheet.name} for review"), "bold")
    yield ""
    rows = [(one.reason, REASONS[one.reason], str(one.concerned), str(one.drawn)) for one in selection.sources]
    yield tabulate(("reason", "meaning", "answers", "chosen"), rows, {2, 3})
    if len(selection.sources) > 1:
        yield Text("An answer that several reasons chose counts once.", "dim")
    yield ""
    for criterion in sheet.criteria:
        yield Text(make_visible(f"{criterion.name}: {criterion.question} ({', '.join(criterion.choices)})"))
    for name, same in left_out.items():
        yield Text(
            make_visible(f"{name} asks people the same as {same}, so it is left out (--ask {name}=yes_no)"), "dim"
        )
    if not selection.is_representative:
        yield Text(
            "! No answer is drawn at random, so the labels cannot represent all answers; add --random 50.", "yellow"
        )
    yield ""
    for path in files:
        yield Text(make_visible(f"wrote {path}"))
    yield ""
    yield Text(_NEXT[form])
    filled = {"label_studio": ["EXPORT.json"], "html": ["SAVED.json"]}.get(form, [str(path) for path in files])
    yield Text(make_visible(f"Then: {PROGRAM} review import {shlex.join(filled)} -o labels.csv"))
    if len(annotators) < 2:
        yield Text("Let a second person judge the same answers, to see whether people agree.", "dim")
    else:
        shared = round(overlap * len(sheet.tasks))
        yield Text(make_visible(f"{list_names(annotators)} share {count_noun(shared, 'task')}."), "dim")


def write_page(sheet: ReviewSheet, output: Path, *, force: bool, then: str) -> bytes:
    """Write the page of a sheet, and say what to do next, in the end with `then`."""
    from rageval_spec.review.page.rendering import render_page

    if _find_form(output) != "html":
        raise UsageError(f"-o {output}: this is done on a page; end the name in .html")
    _refuse_existing([output], force=force)
    console.write_file(output, render_page(to_payload(sheet)))
    lines = (f"wrote {output}: {count_noun(len(sheet.tasks), 'task')}", _NEXT["html"], f"Then: {PROGRAM} {then}")
    return "".join(f"{make_visible(line)}\n" for line in lines).encode()


def write_bank_page(bank: Path, output: Path, annotator: str, *, force: bool) -> bytes:
    """Write the page on which people edit a file of nuggets."""
    sheet = replace(nugget_edits.build_bank_sheet(bank), annotator=annotator)
    return write_page(sheet, output, force=force, then=f"review import SAVED.json --into {shlex.quote(str(bank))}")


def write_document_page(
    spec: Path, output: Path, annotator: str, count: int, dataset: str | None, systems: tuple[str, ...], depth: int,
    qrels: Path | None, scale: str, seed: int, overrides: tuple[str, ...], *, force: bool,
) -> bytes:  # fmt: skip
    """Draw pairs from what systems find and from what is judged, and write the page on which people grade them.

    Raises DataError: a document has no text, or there is no pair.
    """
    from rageval_spec import kernels
    from rageval_spec.commands.generate import narrowed_spec
    from rageval_spec.data.tables import document_texts
    from rageval_spec.pipeline.planning.question_selection import has_judgements, judged_queries
    from rageval_spec.progress import ProgressDisplay
    from rageval_spec.spec import load

    whole = load(spec, overrides=overrides)
    named = narrowed_spec.choose(whole, "datasets", dataset, "--dataset")
    pooled = [narrowed_spec.choose(whole, "systems", one, "--system") for one in systems] or [*whole.systems]
    narrowed = narrowed_spec.narrow(whole, {named: whole.datasets[named]}, pooled, {}, {})
    with ProgressDisplay() as display, narrowed_spec.open_parts(narrowed, display, None, no_store=False) as parts:
        collection = parts.datasets[named].open()
        if qrels is not None:
            collection = replace(collection, load_qrels=lambda: kernels.read_qrels(qrels))
        if has_judgements(collection):  # rankings of other queries have no value
            collection = judged_queries(collection)
        ranked = narrowed_spec.rank_documents(narrowed, parts, collection, depth)
        queries = collection.require("queries", "review qrels")
        pool = document_grades.pool_pairs(ranked.values(), collection.qrels, depth)
        pool = pool.join(queries.select("query_id"), on="query_id", how="semi")
        documents = collection.find_documents(pool["doc_id"], "review qrels")
    texts = dict(zip(documents["doc_id"], document_texts(documents), strict=True))
    readable = pool.filter(pl.col("doc_id").is_in([doc_id for doc_id, text in texts.items() if text]))
    if pool.height and not readable.height:
        raise DataError(f"no document of the pool is in the corpus of '{named}' with a text; compare the ids")
    pairs = document_grades.draw_pairs(readable, count, seed)
    asked = dict(queries.select("query_id", "text").iter_rows())
    sheet = document_grades.build_document_sheet(named, pairs, texts, asked, scale, annotator)
    told = write_page(sheet, output, force=force, then="review import SAVED.json -o people.csv")
    of_queries = count_noun(readable["query_id"].n_unique(), "query", "queries")
    lines = f"drew {pairs.height:,} of {count_noun(readable.height, 'pair')} of {of_queries}\n"
    if left_out := pool.height - readable.height:
        lines += f"! {count_noun(left_out, 'pair')} left out: the corpus has no text of the document\n"
    return lines.encode() + told


MOST_SHOWN = 50
"""The most problems that a message lists."""
MOST_PLACES = 5
"""The most places of a problem."""


def import_forms(
    forms: Sequence[Path], *, output: Path | None, into: Path | None, annotator: str, results: str | None, replace: bool
) -> bytes:
    """Read forms, check them, write their labels if nothing is wrong, and say what to do next."""
    if any(edits := [nugget_edits.read_edits(path) for path in dict.fromkeys(forms)]):
        return _import_edits([*zip(dict.fromkeys(forms), edits, strict=True)], into)
    target = _find_target(forms, output, into)
    evaluation = None if results is None else open_results(results).evaluation
    read = [read_form(path) for path in dict.fromkeys(forms)]
    checked = check_entries((entry for form in read for entry in form.entries), annotator.strip(), evaluation)
    _refuse_problems(checked.problems)
    if not checked.labels:
        raise DataError(f"{list_names([*map(str, forms)])}: no field is filled in, so there are no labels")
    labels = document_grades.take_grades(checked.labels)
    merged = merge_labels(labels, checked.written, target if target.exists() else None, replace=replace)
    _refuse_problems(merged.problems)
    console.write_file(target, merged.content)
    return render_text(lambda _: _describe_import(checked, merged, read, target))


def _import_edits(edits: Sequence[tuple[Path, list[nugget_edits.BankEdit] | None]], into: Path | None) -> bytes:
    """Apply what people edited on pages to the file of nuggets that these were made from, and say what changed."""
    other = next((path for path, found in edits if found is None), None)
    if other is not None:
        raise UsageError(f"{other} has no edited nuggets, and the other files have; import them one kind at a time")
    if into is None or not into.is_file():
        raise UsageError("name the file of nuggets that the page was made from: --into nuggets.jsonl")
    edited = nugget_edits.apply_edits(into, (edit for _, found in edits for edit in found or ()))
    if edited.conflicts:
        told = "nothing was written, because the nuggets were changed since the page was made. Make a page from the "
        raise DataError("\n".join([f"{told}file as it is now, and edit these questions again:", *edited.conflicts]))
    if edited.changes:
        console.write_file(into, edited.content)
    counts = [count_noun(len(edited.changes), "question"), count_noun(edited.confirmed, "question")]
    lines = [f"{counts[0]} changed, {counts[1]} right as they are"]
    lines += (f"  {query_id}: {change}" for query_id, of in edited.changes.items() for change in of)
    lines += [f"wrote {into}"] if edited.changes else []
    return "".join(f"{make_visible(line)}\n" for line in lines).encode()


def _find_target(forms: Sequence[Path], output: Path | None, into: Path | None) -> Path:
    target = output or into
    if target is None or (output and into):
        raise UsageError(
            "choose where the labels go: into a new file with -o labels.csv, or to others with --into labels.csv"
        )
    if target.suffix.lower() != ".csv":
        raise UsageError(f"{target}: labels are written as CSV; end the name in .csv")
    if output is not None and target.exists():
        raise UsageError(f"{target} exists; add the labels to it with --into {shlex.quote(str(target))}")
    same = next((form for form in forms if target.exists() and form.exists() and form.samefile(target)), None)
    if same is not None:
        raise UsageError(f"{same} is the form; name another file for the labels")
    return target


def _refuse_problems(problems: Sequence[Problem]) -> None:
    """Raise an error that lists all problems; the places that share one are listed together."""
    if not problems:
        return
    places: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        places.setdefault((problem.column, problem.message), []).append(problem.place)
    lines = [f"  {_list_places(at)}, column '{column}': {message}" for (column, message), at in places.items()]
    more = [f"  and {len(lines) - MOST_SHOWN} more"] if len(lines) > MOST_SHOWN else []
    what = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    raise DataError("\n".join([f"nothing was imported, because of {what}:", *lines[:MOST_SHOWN], *more]))


def _list_places(places: Sequence[str]) -> str:
    """`review.csv:2, review.csv:10 and 30 more`."""
    shown = places[:MOST_PLACES]
    rest = len(places) - len(shown)
    return f"{', '.join(shown)} and {rest} more" if rest else list_names(shown)


def _describe_import(
    checked: CheckedEntries, merged: Merged, forms: Sequence[FilledForm], target: Path
) -> Iterator[RenderableType]:
    people = [*dict.fromkeys(label.annotator for label in checked.labels)]
    read = count_noun(len(checked.labels), "label")
    yield Text(make_visible(f"Read {read} by {list_names(people)}"), "bold")
    for metric, count in Counter(label.metric for label in checked.labels).items():
        yield Text(make_visible(f"  {metric}: {count}"))
    if checked.empty:
        yield Text(f"{count_noun(checked.empty, 'field')} {'is' if checked.empty == 1 else 'are'} empty.", "dim")
    if checked.repeated:
        yield Text(f"{count_noun(checked.repeated, 'label')} came twice with the same value; each counts once.", "dim")
    remarks = [remark for form in forms for remark in form.remarks]
    for place, comment in remarks:
        yield Text(make_visible(f"{place}: a comment without a value, which is not imported: {comment}"), "yellow")
    yield ""
    changes = [f"{merged.added} new", *([f"{merged.replaced} replaced"] if merged.replaced else [])]
    yield Text(make_visible(f"wrote {target}: {count_noun(merged.labels, 'label')}, {', '.join(changes)}"))
    if merged.rechosen:
        told = f"{count_noun(merged.rechosen, 'label')} of the file came from another selection too"
        yield Text(
            f"{told}; each has the reasons of both now, and the probability that one of them chose it.", "yellow"
        )
    yield ""
    name = shlex.quote(str(target))
    yield Text(make_visible(f"Do people agree? {PROGRAM} review agreement {name}"))
    metrics = [*dict.fromkeys(label.metric for label in checked.labels if label.metric != document_grades.RELEVANCE)]
    for number, options in enumerate(_name_options(forms, metrics) if metrics else ()):
        asked = "What is the judge worth? " if number == 0 else " " * 25
        yield Text(make_visible(f"{asked}{PROGRAM} calibrate --labels {name}{options}"))


def _name_options(forms: Sequence[FilledForm], metrics: Sequence[str]) -> list[str]:
    """The options with which `calibrate` reads the labels: once, unless grades have several scales."""
    scales = {metric: _name_scale(forms, metric) for metric in metrics}
    different = {scale for scale in scales.values() if scale}
    if len(different) < 2:
        return ["".join(different)]
    return [f" --metric {shlex.quote(metric)}{scale}" for metric, scale in scales.items()]


def _name_scale(forms: Sequence[FilledForm], metric: str) -> str:
    """The option that names the scale of a metric's grades; "" if people said yes or no, or gave verdicts."""
    criteria = (entry.criterion for form in forms for entry in form.entries if entry.metric == metric)
    found = next((one.scale for one in criteria if one is not None and one.kind == "rating"), None)
    return "" if found is None else f" --scale {found}"
