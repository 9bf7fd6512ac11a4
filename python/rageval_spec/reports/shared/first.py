"""Chooses the questions that a reader of a report should look at first."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rageval_spec.plugin.report import RESULTS_FOLDER
from rageval_spec.reports.shared.cards import build_cards
from rageval_spec.reports.shared.worst import KEY, rank_questions
from rageval_spec.wording import make_visible

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.reports.shared.cards import Card

MOST = 3
_MOST_VALUES = 200_000
"""A larger evaluation names no questions: to rank them would need all texts in memory at once."""


def list_first(evaluation: Evaluation, most: int = MOST) -> list[tuple[Card, str | None]]:
    """The cards of the worst questions, each with the metric that decided its place (None if it failed).

    A question appears once, with the system that did worst on it. Questions on which nothing went wrong are left out:
    those with the best value of their metric. Empty for an evaluation of more than 200,000 values.
    """
    import polars as pl

    if evaluation.values.height > _MOST_VALUES:
        return []
    ranked = rank_questions(evaluation).filter(pl.col("is_failed") | (pl.col("badness") > 0))
    chosen = ranked.unique(["dataset", "query_id"], keep="first", maintain_order=True).head(most)
    deciding = {tuple(row[:3]): row[3] for row in chosen.select(*KEY, "metric").iter_rows()}
    return [(card, deciding[card.key]) for card in build_cards(evaluation, deciding)]


def write_show(query_id: str | None, results: str) -> str:
    """The command that shows a question in full, or all of them, as a shell takes it: `rageval-spec show q14 out`.

    `results` is a folder or a label. The default folder needs no name.
    """
    names = [*([] if query_id is None else [query_id]), *([] if results == RESULTS_FOLDER else [results])]
    dashes = ["--"] if any(name.startswith("-") for name in names) else []
    return make_visible(shlex.join(["rageval-spec", "show", *dashes, *names]))
