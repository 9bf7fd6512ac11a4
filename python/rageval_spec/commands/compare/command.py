"""Opens both evaluations, compares them, and prints what was found."""

from __future__ import annotations

from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.compare.changes import Compared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.diagnostics import dump_visible
from rageval_spec.errors import PASSED, UsageError

if TYPE_CHECKING:
    from rageval_spec.commands.results_argument import NamedResults
    from rageval_spec.drawing.question_order import Filter


Form: TypeAlias = Literal["text", "json", "markdown"]
FORMAT_VERSION = 1
"""Of the JSON shape. Within a version, keys are only added."""


def _render(found: Compared, form: Form) -> bytes:
    if form == "json":
        return dump_visible(_to_json(found)).encode("utf-8", "backslashreplace")
    if form == "markdown":
        from rageval_spec.commands.compare.comparison_text import write_comparison

        return write_comparison(found).encode("utf-8", "backslashreplace")
    from rageval_spec.commands.compare.comparison_text import draw_comparison
    from rageval_spec.drawing.terminal import render_text

    return render_text(lambda console: draw_comparison(found, console.width))


def _compare(before: NamedResults, after: NamedResults, wanted: Filter) -> Compared:
    from rageval_spec.commands.compare.changes import compare_metrics, find_changes, list_differences
    from rageval_spec.drawing.question_order import match_systems
    from rageval_spec.history.comparability import find_comparability

    now, earlier = after.evaluation, before.evaluation
    for noun, common, here, there in (
        ("system", match_systems(now.systems, earlier.systems), now.systems, earlier.systems),
        ("dataset", {*now.datasets} & {*earlier.datasets}, now.datasets, earlier.datasets),
    ):
        if not common:
            raise UsageError(
                f"the results have no {noun} in common: {before.name} has {', '.join(there)}, "
                f"{after.name} has {', '.join(here)}"
            )
    known = find_comparability(now, earlier, before.name)
    metrics = [
        one
        for one in compare_metrics(now, earlier, known)
        if all(getattr(wanted, part) in (None, getattr(one, part)) for part in ("metric", "system", "dataset"))
    ]
    questions = find_changes(now, earlier, wanted)
    return Compared(before, after, tuple(list_differences(now, earlier, known)), tuple(metrics), questions)


def _to_json(found: Compared) -> dict[str, Any]:
    """The object of the JSON output.

    `before` and `after` are the names of the results, `metrics` the attributes of `MetricChange`, `counts` those of
    questions by kind, and `questions` the attributes of `QuestionChange`, with `diff`: pairs of "equal", "removed" or
    "added" and a text.
    """
    from rageval_spec.commands.compare.comparison_text import diff_words

    return {
        "format_version": FORMAT_VERSION,
        "before": found.before.name,
        "after": found.after.name,
        "differences": list(found.differences),
        "metrics": [asdict(one) for one in found.metrics],
        "counts": {**found.questions.counts, "shared": found.questions.shared},
        "questions": [
            {**asdict(one), "diff": [astuple(edit) for edit in diff_words(one.answer_before or "", one.answer or "")]}
            for one in found.questions.shown
        ],
    }


@click.command("compare", cls=OutputCommand)
@click.argument("before")
@click.argument("after")
@click.option("--metric", help="Only this metric.")
@click.option("--system", help="Only this system.")
@click.option("--dataset", help="Only this dataset.")
@shared.questions_limit_option("of each kind: broken, fixed, worse, better, changed", 5)
@shared.questions_form_option
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write an HTML page instead, with the "
              "answers side by side.")  # fmt: skip
def compare_results(before: str, after: str, form: Any, html: Path | None, **wanted: Any) -> int:
    """Compare two results: the numbers, and question by question what broke, what was fixed and how answers changed.

    BEFORE and AFTER are results folders or labels of the history. The output begins with what else differs, such as
    edited references or other settings.

    \b
    rageval-spec compare main rageval-results
    rageval-spec compare results/monday results/friday --metric faithfulness --limit 20
    rageval-spec compare main rageval-results --html compare.html
    """
    from rageval_spec.commands.results_argument import open_results
    from rageval_spec.drawing.question_order import Filter

    later = open_results(after)
    found = _compare(open_results(before, later.evaluation), later, Filter(**wanted))
    if html is None:
        console.write(_render(found, form))
        return PASSED
    from rageval_spec.commands.compare.comparison_text import write_page

    console.tell(console.write_page(html, write_page(found)))
    return PASSED
