"""Chooses the questions that a page shows of an evaluation that is too large to show whole.

The page still has all numbers. Of the questions it shows the worst ones, and of the others some of every kind: of each
dataset, with each outcome, cause and slice, in their order and evenly spaced. So the choice needs no random numbers.
"""

from __future__ import annotations

from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import SampleTable
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.drawing.question_order import is_failed, list_scales
from rageval_spec.libraries import pl

LARGEST = 50_000
"""Up to this number of answers, a page shows all of them."""
MOST_SHOWN = 10_000
"""About how many answers a page shows of an evaluation that has more."""
_ROWS_AT_ONCE = 2**14
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
    cells = evaluation.values.group_by("metric", "system").len()["len"]
    if max([0, *cells]) <= largest and evaluation.select_samples("query_id").height <= largest:
        return None
    questions = _rank(evaluation)
    wanted = max(1, most // max(1, len(evaluation.systems)))
    worst = questions.head(int(wanted * _WORST))
    others = questions.slice(worst.height).sort("place")
    chosen = pl.concat([worst, _sample(others, wanted - worst.height)]).select(_QUESTION)
    total, shown = questions.height, worst.height
    del questions, worst, others
    samples = evaluation.sample_table.find(chosen)
    blocks = evaluation.values.iter_slices(_ROWS_AT_ONCE)  # a join of all values needs several times their memory
    values = pl.concat(block.join(chosen, on=_QUESTION, how="semi", maintain_order="left") for block in blocks)
    part = replace(evaluation, values=values, sample_table=SampleTable(lambda: (samples,)))
    return ShownPart(part, chosen.height, total, shown)


def _list_questions(evaluation: Evaluation) -> pl.DataFrame:
    """A row for each sample: `place, dataset, query_id, failed, kind`, the last for what strata are made of."""
    told = evaluation.select_samples(*_QUESTION, "status", "cause", "slices", "error")
    texts = (pl.col("cause").fill_null(""), pl.col("slices").list.join("\n").fill_null(""))
    kind = pl.concat_str(is_failed(told), *texts, separator="\n\n").cast(pl.Categorical).to_physical()
    return told.select(*_QUESTION, failed=is_failed(told), kind=kind).with_row_index("place")


def _rank(evaluation: Evaluation) -> pl.DataFrame:
    """The questions, the worst first, as `rank_questions` orders those of each system.

    Columns `dataset, query_id, place`, its place in the evaluation, and `kind`, which has what strata are made of.
    """
    scales = {
        (metric, part): number
        for metric, *of in list_scales(evaluation).iter_rows()
        for part, number in zip(("best", "scale"), of, strict=True)
    }
    best, scale = (
        pl.col("metric").replace_strict(
            {m: n for (m, of), n in scales.items() if of == part}, default=None, return_dtype=pl.Float64
        )
        for part in ("best", "scale")
    )
    badness = (best - pl.col("value")) * scale
    is_error = pl.col("status") == "error"
    rows = _list_questions(evaluation)
    table = _set_side_by_side(evaluation, rows, is_error, badness)
    if table is None:
        of_values = evaluation.values.lazy().group_by(_QUESTION)
        found = of_values.agg(has_error=is_error.any(), worst=badness.max(), mean=badness.mean())
        of_samples = rows.lazy().group_by(_QUESTION, maintain_order=True)
        known = of_samples.agg(pl.col("place").first(), pl.col("failed").any(), "kind")
        table = known.join(found, on=_QUESTION, how="full", coalesce=True).collect(engine="streaming")
    order = [pl.col("failed").fill_null(False) | pl.col("has_error").fill_null(False), pl.col("worst"), pl.col("mean")]
    names = ("dataset", "query_id") if table["place"].has_nulls() else ()  # places are unique, and cheaper to sort
    ascending = [pl.col("place"), *map(pl.col, names)]
    return table.sort(
        [*order, *ascending], descending=[True] * len(order) + [False] * len(ascending), nulls_last=True
    ).select(*_QUESTION, "place", pl.struct(failed=order[0], of="kind").alias("kind"))


def _set_side_by_side(
    evaluation: Evaluation, rows: pl.DataFrame, is_error: pl.Expr, badness: pl.Expr
) -> pl.DataFrame | None:
    """What `_rank` groups, without groups: of one system, most metrics have values of all questions.

    None if one has not. A million questions in groups take 450 MB more.
    """
    if len(evaluation.systems) != 1 or not evaluation.metrics:
        return None
    rows = rows.sort(_QUESTION)
    columns = []
    for number, metric in enumerate(evaluation.metrics):
        values = evaluation.values.lazy().filter(metric=metric).select(*_QUESTION, is_error, badness.alias("bad"))
        of = values.collect()
        if not _has_same(of, rows) and not _has_same(of := of.sort(_QUESTION), rows):
            return None
        columns.append(of.select(pl.col("status").alias(f"error{number}"), pl.col("bad").alias(f"bad{number}")))
    errors, bad = (pl.col(rf"^{name}\d+$") for name in ("error", "bad"))
    return pl.concat([rows, *columns], how="horizontal").select(
        *rows.drop("kind").columns,
        kind=pl.concat_list("kind"),
        has_error=pl.any_horizontal(errors),
        worst=pl.max_horizontal(bad),
        mean=pl.mean_horizontal(bad),
    )


def _has_same(values: pl.DataFrame, rows: pl.DataFrame) -> bool:
    """Whether both have the same questions in the same order."""
    return all(values[key].equals(rows[key]) for key in _QUESTION)


def _sample(others: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """Some questions of every kind, as many of each as its share says, and at least one."""
    chosen = others
    for kind in (pl.struct("dataset", "kind"), pl.struct("dataset", pl.col("kind").struct.field("failed"))):
        count = pl.len().over(kind).cast(pl.UInt64)
        quota = pl.max_horizontal((count * wanted) // max(1, others.height), pl.lit(1, pl.UInt64))
        is_chosen = (pl.int_range(pl.len(), dtype=pl.UInt64).over(kind) * quota) % count < quota
        chosen = others.filter(is_chosen)
        if chosen.height <= 2 * wanted:
            break
    return chosen


def count_spreads(evaluation: Evaluation) -> dict[tuple[str, str], dict[str, Any]]:
    """How the values of all questions are spread, by system and metric, as the page's chart draws them.

    `low` and `high` are the ends of the axis of the metric; `counts` the values in each of its `_BINS` parts.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for metric in evaluation.metrics:
        rows = evaluation.values.lazy().filter(metric=metric, status="scored").select("system", "value").collect()
        if rows.is_empty():
            continue
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
