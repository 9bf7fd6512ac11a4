"""Chooses the questions that a page shows of an evaluation that is too large to show whole.

The page still has all numbers. Of the questions it shows the worst ones, and of the others some of every kind: of each
dataset, with each outcome, cause and slice, in their order and evenly spaced. So the choice needs no random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import SampleTable
from rageval_spec.drawing.cards import find_first
from rageval_spec.drawing.question_order import KEY, rank_questions
from rageval_spec.libraries import pl

LARGEST = 50_000
"""Up to this number of answers, a page shows all of them."""
MOST_SHOWN = 20_000
"""About how many answers a page shows of an evaluation that has more."""
_WORST = 0.25
"""The share of the shown questions that are the worst ones."""
_QUESTION = ("dataset", "query_id")
_BINS = 24
"""The bars of a chart of values, as `spread.js` draws them."""


@dataclass(frozen=True)
class ShownPart:
    """The evaluation with only the questions that are shown, and how many of how many they are."""

    evaluation: Evaluation
    shown: int
    total: int
    worst: int

    def describe(self) -> str:
        """What a reader must know, in two sentences, without the command that shows the others."""
        return (
            f"This page shows {self.shown:,} of {self.total:,} questions: the {self.worst:,} worst, and of the others "
            "some of every dataset, outcome, cause and slice. All numbers are of all questions."
        )


def choose_part(evaluation: Evaluation, largest: int = LARGEST, most: int = MOST_SHOWN) -> ShownPart | None:
    """The part of an evaluation that a page shows; None if it shows all of it."""
    ranked = rank_questions(evaluation).select(*KEY, "is_failed")
    if ranked.height <= largest:
        return None
    questions = ranked.select(_QUESTION).unique(maintain_order=True)  # the worst first
    wanted = max(1, most // max(1, len(evaluation.systems)))
    first = pl.DataFrame([(key[0], key[2]) for key in find_first(evaluation)], schema=questions.schema, orient="row")
    worst = pl.concat([first, questions.head(int(wanted * _WORST))]).unique(maintain_order=True)
    others = questions.join(worst, on=_QUESTION, how="anti", maintain_order="left")
    chosen = pl.concat([worst, _sample(evaluation, others, ranked, wanted - worst.height)])
    keys = ranked.select(KEY).join(chosen, on=_QUESTION, how="semi", maintain_order="left")
    samples = evaluation.sample_table.find(keys)
    values = evaluation.values.join(chosen, on=_QUESTION, how="semi", maintain_order="left")
    part = replace(evaluation, values=values, sample_table=SampleTable(lambda: (samples,)))
    return ShownPart(part, chosen.height, questions.height, worst.height)


def _sample(evaluation: Evaluation, others: pl.DataFrame, ranked: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """Some questions of every kind, as many of each as its share says, and at least one."""
    told = evaluation.select_samples(*KEY, "cause", "slices")
    told = ranked.join(told, on=KEY, how="left").sort(KEY)
    kinds = told.group_by(_QUESTION).agg("is_failed", pl.col("cause"), pl.col("slices").first())
    kinds = others.join(kinds, on=_QUESTION, how="left", maintain_order="left")
    for of in (("dataset", "is_failed", "cause", "slices"), ("dataset", "is_failed"), ("dataset",)):
        kind = pl.struct(of)
        count = pl.len().over(kind).cast(pl.UInt64)
        quota = pl.max_horizontal((count * wanted) // max(1, others.height), pl.lit(1, pl.UInt64))
        is_chosen = (pl.int_range(pl.len(), dtype=pl.UInt64).over(kind) * quota) % count < quota
        chosen = kinds.filter(is_chosen)
        if chosen.height <= 2 * wanted:
            break
    return chosen.select(_QUESTION)


def count_spreads(evaluation: Evaluation) -> dict[tuple[str, str], dict[str, Any]]:
    """How the values of all questions are spread, by system and metric, as the page's chart draws them.

    `low` and `high` are the ends of the axis of the metric; `counts` the values in each of its `_BINS` parts.
    """
    scored = evaluation.values.filter(status="scored").select("system", "metric", "value")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (metric,), rows in scored.group_by("metric", maintain_order=True):
        low, high = _find_range(*rows.select(pl.col("value").min().alias("low"), pl.col("value").max()).row(0))
        span = (high - low) or 1.0
        place = ((pl.col("value") - low) / span * _BINS).floor().clip(0, _BINS - 1).cast(pl.Int64)
        for (system,), of in rows.with_columns(place=place).group_by("system", maintain_order=True):
            counted = dict(of["place"].value_counts().iter_rows())
            counts = [counted.get(bar, 0) for bar in range(_BINS)]
            found[str(system), str(metric)] = {"low": low, "high": high, "counts": counts, "mean": of["value"].mean()}
    return found


def _find_range(low: float, high: float) -> tuple[float, float]:
    if low >= 0 and high <= 1 and high > 0.5:
        return 0.0, 1.0
    return (0.0 if 0 <= low < high / 2 else low), high
