"""`rageval-spec review`: the group of commands, with their options and help.

Only click is imported; each command imports what it needs when it is called.
"""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import Front
from rageval_spec.errors import PASSED
from rageval_spec.libraries import compile_later

_SHARE = compile_later(r"([0-9]+(?:\.[0-9]+)?) *%")
_LONGEST = 9
_SUSPICIONS = ("unsure", "low", "regressed", "person")


class _Size(click.ParamType[float]):
    """A share (`3%`) or a count (`50`): a number below 1, or from 1 on; infinity for 100%."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        share = _SHARE.fullmatch(text)
        if (share is None and not text.isdecimal()) or len(text) > _LONGEST or (share and float(share[1]) > 100):
            self.fail(f"'{text}' is neither a share nor a count; write 3% or 50", param, ctx)
        if share is None:
            return float(text)
        return math.inf if float(share[1]) == 100 else float(share[1]) / 100


class _Share(_Size):
    """A share: `20%`."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        if 1 <= found < math.inf:
            self.fail(f"'{value}' is not a share; write 20%", param, ctx)
        return min(found, 1.0)


@click.command("select")
@click.argument("results", required=False)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FILE",
    help="The form to write: .csv, .xlsx (a workbook), .html (a page), or .json (tasks for Label Studio).",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["csv", "xlsx", "label_studio", "html"]),
    help="The format, if the name of the file does not show it.",
)  # fmt: skip
@click.option(
    "--random", type=_Size(), metavar="SIZE",
    help="Draw a share (3%) or a number (50) of the answers at random.  [default: 3%, at least 50]",
)  # fmt: skip
@click.option("--by-slice", is_flag=True, help="Draw them from each slice, at least 5, instead of from all answers.")
@click.option("--unsure", is_flag=True, help="Choose answers that the judge is unsure about.")
@click.option("--low", is_flag=True, help="Choose answers with low values.")
@click.option("--regressed", is_flag=True, help="Choose answers that are worse than the baseline's.")
@click.option("--person", is_flag=True, help="Choose answers that a waterfall sent to a person.")
@click.option(
    "--most", type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
    help="The most answers that each of these four reasons chooses, the worst first; 0 for all.",
)  # fmt: skip
@click.option(
    "--below", type=click.FloatRange(0, 1), default=0.7, show_default=True, metavar="NUMBER",
    help="Which values are low.",
)  # fmt: skip
@click.option(
    "--threshold", type=click.FloatRange(0, 1), default=0.5, show_default=True, metavar="NUMBER",
    help="The value near which (within 0.1) a judge is unsure.",
)  # fmt: skip
@click.option(
    "--baseline", metavar="RESULTS",
    help="What answers regressed from: results, a label or a system.  [default: the baselines of gates]",
)  # fmt: skip
@click.option(
    "--metric", "metrics", multiple=True, metavar="METRIC",
    help="Only this metric; can be repeated.  [default: those that a judge decides]",
)  # fmt: skip
@click.option("--slice", metavar="SLICE", help="Only answers to questions of this slice.")
@click.option("--system", metavar="SYSTEM", help="Only answers of this system.")
@click.option("--dataset", metavar="DATASET", help="Only answers to questions of this dataset.")
@click.option(
    "--paired", is_flag=True, help="Choose the answers of all systems to a question together, to compare systems."
)
@click.option(
    "--scale", default="yes_no", show_default=True, metavar="SCALE",
    help="What people enter: yes_no, grades such as 1..5, or claims (a verdict for each claim).",
)  # fmt: skip
@click.option(
    "--ask", "asked", multiple=True, metavar="NAME=SCALE",
    help="Ask about this, on this scale: faithfulness=claims, fluency=1..5. Can be repeated. Without --metric, only "
    "this is asked.",
)  # fmt: skip
@click.option("--guidelines", type=click.Path(path_type=Path), metavar="FILE", help="A text with your own guidelines.")
@click.option(
    "--annotator", "annotators", multiple=True, metavar="NAME",
    help="Who judges. If repeated, each gets a file of their own.",
)  # fmt: skip
@click.option(
    "--overlap", type=_Share(), default="100%", show_default=True, metavar="SHARE",
    help="With several annotators: the share of the answers that all of them get; the others are divided.",
)  # fmt: skip
@click.option(
    "--show-judge", "shows_judge", is_flag=True,
    help="Show people the judge's verdicts. They will follow them. Without this option, only a page (.html) shows "
    "them, to those who ask, and their labels record it.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=42, show_default=True, help="The seed of the draw.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def select(random: float | None, most: int, **options: Any) -> int:
    """Choose answers for people to judge, and write them as a form.

    RESULTS is a results folder, or a label or a record of the history; by default the last results. Without options,
    some answers are drawn at random, and some are chosen because the judge is unsure or the answer is bad. Each row
    has the reason and the probability of its choice, so that `calibrate` can use all labels for unbiased means.

    \b
    rageval-spec review select -o review.xlsx
    rageval-spec review select -o review.csv --random 3% --low --ask faithfulness=claims
    rageval-spec review select main -o review.html --by-slice --annotator ann --annotator bob --overlap 20%
    """
    from rageval_spec.commands.review.forms import select
    from rageval_spec.review.selection import WantedSelection

    suspicions: Any = tuple(name for name in _SUSPICIONS if options.pop(name))
    is_drawn = random is not None or options["by_slice"]
    wanted = WantedSelection(
        random=random if is_drawn or not suspicions else 0,
        suspicions=suspicions if is_drawn or suspicions else None,
        most=most or None,
        **{one.name: options.pop(one.name) for one in fields(WantedSelection) if one.name in options},
    )
    console.write(select(wanted=wanted, **options))
    return PASSED


@click.command("import")
@click.argument("forms", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FORMS...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="A new file for the labels: .csv."
)
@click.option(
    "--into", type=click.Path(path_type=Path), metavar="FILE",
    help="A file of labels to add them to; it is made if it does not exist.",
)  # fmt: skip
@click.option("--annotator", default="", metavar="NAME", help="Who judged, for forms that name nobody.")
@click.option(
    "--results", metavar="RESULTS",
    help="What was judged: a results folder, a label or a record. Each answer must be in it, unchanged.",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="Replace earlier labels of the same person on the same thing.")
def import_(**options: Any) -> int:
    """Check the forms that people filled in, and write their labels.

    FORMS are the .csv and .xlsx files of `review select`, what a page saved, and exports of Label Studio as JSON. If
    anything is wrong, the command lists it all and writes nothing. A label that already exists is not added again.
    Edited nuggets go --into the file that their page was made from.

    \b
    rageval-spec review import review.xlsx -o labels.csv
    rageval-spec review import ann.xlsx bob.json --into labels.csv --results rageval-results
    """
    from rageval_spec.commands.review.forms import import_forms

    console.write(import_forms(**options))
    return PASSED


_page_options = shared.together(
    click.option(
        "-o", "--output", type=click.Path(path_type=Path), default=Path("review.html"), show_default=True,
        metavar="FILE", help="The page to write: .html.",
    ),
    click.option("--annotator", default="", metavar="NAME", help="Who works on it.  [default: the page asks]"),
    click.option("--force", is_flag=True, help="Overwrite the file if it exists."),
)  # fmt: skip


@click.command("nuggets")
@click.argument("bank", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_page_options
def nuggets(**options: Any) -> int:
    """Let people edit nuggets, the facts of good answers, on a page.

    BANK is a .jsonl file of nuggets. On the page, people reword, merge, split, add and delete nuggets, and say which
    are vital. `review import` brings their edits into the file, and refuses to overwrite what changed meanwhile.

    \b
    rageval-spec review nuggets nuggets.jsonl -o review.html
    rageval-spec review import nuggets-ann.json --into nuggets.jsonl
    """
    from rageval_spec.commands.review.forms import write_bank_page

    console.write(write_bank_page(**options))
    return PASSED


@click.command("qrels")
@shared.spec_argument
@_page_options
@click.option("--labels", "count", type=click.IntRange(1), default=200, show_default=True, metavar="N",
              help="How many pairs to draw.")  # fmt: skip
@click.option("--dataset", metavar="NAME", help="The dataset with the queries.  [default: the only one]")
@click.option("--system", "systems", multiple=True, metavar="NAME",
              help="Pool what this system finds; can be repeated.  [default: all systems]")  # fmt: skip
@click.option("--depth", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N",
              help="Pool the first N documents of each system.")  # fmt: skip
@click.option("--qrels", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
              help="The grades so far, as TREC qrels.  [default: those of the dataset]")  # fmt: skip
@click.option("--scale", default="0..3", show_default=True, metavar="SCALE", help="The worst and the best grade.")
@click.option("--seed", type=click.IntRange(min=0), default=42, show_default=True, help="The seed of the draw.")
def qrels(**options: Any) -> int:
    """Let people grade documents of queries on a page.

    The pairs are drawn from what the systems find and from what is judged: as many for each query, and more at high
    ranks. Each has the probability with which it was drawn, so that people's grades can correct a judge's. A grade that
    a pair has is hidden until people gave theirs.

    \b
    rageval-spec review qrels spec.yaml --labels 200 -o review.html
    rageval-spec review import labels-ann.json -o people.csv
    """
    from rageval_spec.commands.review.forms import write_document_page

    console.write(write_document_page(**options))
    return PASSED


@click.group("review", cls=Front)
def review() -> None:
    """Choose answers for people to judge, and work with their labels.

    \b
    rageval-spec review select -o review.xlsx
    rageval-spec review import review.xlsx -o labels.csv
    rageval-spec review agreement labels.csv
    """


@review.command("agreement")
@click.argument("labels", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Only this metric; can be repeated.")
@shared.label_column_option
@shared.form_option
def agree(labels: tuple[Path, ...], metrics: tuple[str, ...], columns: tuple[str, ...], form: str) -> int:
    """Show how well the people who labelled the same answers agree.

    LABELS are CSV, TSV, JSON, Excel or Parquet files with a row for each label (who judged which answer, and how), or
    exports of Label Studio.

    \b
    rageval-spec review agreement labels.csv
    rageval-spec review agreement ann.csv bob.csv --metric faithfulness --column value=rating
    """
    from rageval_spec.commands.review.agreement_report import describe_agreement

    console.write(describe_agreement(labels, columns, metrics, form))
    return PASSED


review.add_command(select)
review.add_command(nuggets)
review.add_command(qrels)
review.add_command(import_)
