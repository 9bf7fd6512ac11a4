"""`review import`: reads the forms that people filled in, checks them, and writes their labels."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.results_argument import open_results
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.terminal import render_text
from rageval_spec.errors import DataError, UsageError
from rageval_spec.review.entries import FilledForm, read_form
from rageval_spec.review.label_import import CheckedEntries, Merged, Problem, check_entries, merge_labels
from rageval_spec.wording import count_noun, list_names

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_SHOWN = 50
"""The most problems that a message lists."""
MOST_PLACES = 5
"""The most places of a problem."""


def import_forms(
    forms: Sequence[Path],
    *,
    output: Path | None,
    into: Path | None,
    annotator: str,
    results: str | None,
    replace: bool,
) -> bytes:
    """Read forms, check them, write their labels, and say what to do next. Nothing is written if anything is wrong.

    Raises:
        UsageError: an option is wrong.
        DataError: a form cannot be read, or something in it is wrong; the message lists everything.
    """
    target = _find_target(forms, output, into)
    evaluation = None if results is None else open_results(results).evaluation
    read = [read_form(path) for path in dict.fromkeys(forms)]
    checked = check_entries((entry for form in read for entry in form.entries), annotator.strip(), evaluation)
    _refuse(checked.problems)
    if not checked.labels:
        raise DataError(f"{list_names([*map(str, forms)])}: no field is filled in, so there are no labels")
    merged = merge_labels(checked.labels, checked.written, target if target.exists() else None, replace=replace)
    _refuse(merged.problems)
    console.write_file(target, merged.content)
    return render_text(lambda _: _describe(checked, merged, read, target))


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


def _refuse(problems: Sequence[Problem]) -> None:
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


def _describe(
    checked: CheckedEntries, merged: Merged, forms: Sequence[FilledForm], target: Path
) -> Iterator[RenderableType]:
    from rich.text import Text

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
    metrics = [*dict.fromkeys(label.metric for label in checked.labels)]
    for number, options in enumerate(_name_options(forms, metrics)):
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
