"""The command `compare`: its options, and where its output goes. It imports little more than click."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.errors import PASSED


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
def compare_results(before: str, after: str, form: str, html: Path | None, **wanted: Any) -> int:
    """Compare two results in numbers and question by question.

    It lists what broke, what was fixed and how answers changed. BEFORE and AFTER are results folders or labels of the
    history. The output begins with what else differs, such as
    edited references or other settings.

    \b
    rageval-spec compare main rageval-results
    rageval-spec compare results/monday results/friday --metric faithfulness --limit 20
    rageval-spec compare main rageval-results --html compare.html
    """
    from rageval_spec.commands.compare import changes, comparison_view
    from rageval_spec.commands.results_argument import open_results
    from rageval_spec.drawing.question_order import Filter

    later = open_results(after)
    found = changes.compare_results(open_results(before, later.evaluation), later, Filter(**wanted))
    content = comparison_view.render_comparison(found, form if html is None else "html")
    if html is None:
        console.write(content)
    else:
        console.tell(console.write_page(html, content))
    return PASSED
