"""Filters the questions of an evaluation, and orders them so that those to look at come first.

A question of one system counts once. The order is:

1. Questions that failed: the system gave no answer, or a metric could not be computed because of an error.
2. The others by their worst value. How bad a value is lies between 0 (best) and 1 (worst), on the scale of its
   metric: from 0 to 1 if all of the metric's values lie there, else from its lowest to its highest value. For a
   metric whose low values are good, the scale is reversed. Metrics with a unit (seconds, dollars) and counts do not
   take part, unless the filter names them or there are no others.
3. Ties by the mean of how bad all values are, then by the order of the datasets, the questions and the systems.
   Questions without a value come last.

With `regressed`, questions are ordered by how far they fell instead, on the same scale. They fell from the values of
a baseline: the one that the caller names. Without a name, it is what gates compare with, and else the evaluation's
own first system that has the metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from unicodedata import normalize

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import CELL
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.libraries import pl

KEY = ("dataset", "system", "query_id")
"""The columns that name one question of one system."""
_NAMES_SHOWN = 20
_DIGITS_THAT_COUNT = 9
"""Falls that differ only after these are equal: 0.9 - 0.75 and 0.65 - 0.5 differ in the last bit."""
_NOT_ANSWERED = ("failed", "unfinished")


class NoBaselineError(UsageError):
    """Regressed questions are wanted, but there is nothing to compare with."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What the chosen questions have in common; None and False choose all.

    Attributes:
        metric: the metric whose values are filtered and ordered; systems that do not have it are left out. Needed for
            `below` and `above` if there are several.
        below, above: only values under, or over, this; the bound itself is left out.
        system, dataset: names.
        slice: the name of a slice: `difficulty=hard`.
        cause: a cause of the diagnosis: `retrieval`.
        regressed: only questions with a value that is worse than the baseline's.
        failed: only questions that failed.
        limit: at most this many.
    """

    metric: str | None = None
    below: float | None = None
    above: float | None = None
    system: str | None = None
    dataset: str | None = None
    slice: str | None = None
    cause: str | None = None
    regressed: bool = False
    failed: bool = False
    limit: int | None = None


def rank_questions(
    evaluation: Evaluation, wanted: Filter | None = None, baseline: BaselineValues | None = None
) -> pl.DataFrame:
    """The questions that a filter chooses, worst first: one row for each question of each system.

    Without a values table of a system, its samples still count as questions. `regressed` compares with the baseline;
    None stands for the baselines of gates, then for the first system that has the metric.

    Returns:
        Columns `dataset, system, query_id, is_failed: bool`, `metric, value` (the value that decided the place: the
        worst, or with `regressed` the one that fell furthest; null without one), `badness: f64 or null` and, only with
        `regressed`, `fall: f64` (how much worse than the baseline, as a difference of badness).

    Raises:
        UsageError: as for `complete_filter`.
        NoBaselineError: `regressed` has nothing to compare with.
    """
    wanted = complete_filter(evaluation, wanted or Filter())
    rated = rate_values(evaluation, wanted.metric)
    rows = _list_questions(evaluation, wanted)
    rows = rows.join(_find_worst(rated, wanted), on=KEY, how="left", maintain_order="left")
    rows = rows.join(_find_errors(evaluation, wanted), on=KEY, how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("is_failed") | pl.col("has_error").fill_null(False))
    if wanted.failed:
        rows = rows.filter(pl.col("is_failed"))
    if wanted.below is not None or wanted.above is not None:
        rows = rows.filter(pl.col("value").is_not_null())
    table = rows.collect()
    table = _keep_fallen(table, rated, _require_base(evaluation, wanted, baseline)) if wanted.regressed else table
    return (
        _order(evaluation, table, wanted)
        .head(table.height if wanted.limit is None else wanted.limit)
        .select(*KEY, "is_failed", "metric", "value", "badness", *(["fall"] if wanted.regressed else []))
    )


def _require_base(evaluation: Evaluation, wanted: Filter, baseline: BaselineValues | None) -> pl.DataFrame:
    base = find_base_values(evaluation, baseline)
    if not (base if wanted.metric is None else base.filter(metric=wanted.metric)).is_empty():
        return base
    what = "a value" if wanted.metric is None else f"a value of {wanted.metric}"
    if baseline is None:
        raise NoBaselineError(f"there is no baseline to compare with: only one system has {what}")
    raise UsageError(f"the baseline lacks {what} of a system and dataset of these results")


def complete_filter(evaluation: Evaluation, wanted: Filter) -> Filter:
    """The filter with the metric that its bounds concern, and with the slice as the results spell it.

    Raises:
        UsageError: the evaluation has no such metric, system, dataset, slice or cause, or a bound has no metric.
    """
    _require("metric", wanted.metric, evaluation.metrics)
    _require("system", wanted.system, evaluation.systems)
    _require("dataset", wanted.dataset, evaluation.datasets)
    if wanted.slice is not None:
        slices = sorted({*_list_slices(evaluation), *(one.name for one in evaluation.slices)})
        same = (name for name in slices if normalize("NFC", name) == normalize("NFC", wanted.slice))
        wanted = replace(wanted, slice=next(same, wanted.slice))
        _require("slice", wanted.slice, slices)
    _require_kept(evaluation, "slice", wanted.slice)
    _require_kept(evaluation, "cause", wanted.cause)
    if wanted.cause is not None and (known := _list_causes(evaluation)) is not None:
        _require("cause", wanted.cause, known)
    elif wanted.cause is not None:
        raise UsageError(
            "these results have no causes: a spec needs answer_correctness, completeness or token_f1, "
            "and context_recall or judged documents"
        )
    if wanted.metric is None and (wanted.below is not None or wanted.above is not None):
        if len(evaluation.metrics) != 1:
            raise UsageError(f"a bound needs a metric; name one of {', '.join(evaluation.metrics)}")
        return replace(wanted, metric=evaluation.metrics[0])
    return wanted


def _require_kept(evaluation: Evaluation, noun: str, name: str | None) -> None:
    """Raise `UsageError` if the results left out the samples, which say what slices and cause a question has."""
    if (
        name is not None
        and evaluation.provenance.spec.get("samples") == "none"
        and evaluation.select_samples("query_id").is_empty()
    ):
        raise UsageError(
            f"these results do not record which questions have the {noun} '{name}', because their spec has "
            "'samples: none'; run it again with 'samples: texts' or 'full'"
        )


def _require(noun: str, name: str | None, known: Sequence[str]) -> None:
    if name is None or name in known:
        return
    if not known:
        raise UsageError(f"unknown {noun} '{name}'; the results have no {noun}s")
    hint = suggest(name, known)
    names = ", ".join(known[:_NAMES_SHOWN]) + (", ..." if len(known) > _NAMES_SHOWN else "")
    raise UsageError(f"unknown {noun} '{name}'; {f'{hint} ' if hint else ''}these results have {names}")


def _list_slices(evaluation: Evaluation) -> list[str]:
    samples = evaluation.select_samples("slices")
    if "slices" not in samples.columns:
        return []
    return [str(name) for name in samples["slices"].explode().drop_nulls().unique().to_list()]


def _list_causes(evaluation: Evaluation) -> list[str] | None:
    """The causes that occur; None if the results have none."""
    samples = evaluation.select_samples("cause")
    if "cause" not in samples.columns:
        return None
    return sorted(map(str, samples["cause"].drop_nulls().unique().to_list())) or None


def _list_questions(evaluation: Evaluation, wanted: Filter) -> pl.LazyFrame:
    """One row for each question of each system: `KEY`, `is_failed`, `place`."""
    samples = evaluation.select_samples(*KEY, "error", "status", "slices", "cause")
    told = samples.lazy().with_columns(is_failed=is_failed(samples))
    told = told.with_columns(pl.lit(None).alias(name) for name in ("slices", "cause") if name not in samples.columns)
    told = told.select(*KEY, "is_failed", "slices", "cause")
    values = evaluation.values.lazy()
    valued = values.select(KEY).unique(maintain_order=True)
    valued = valued.join(told.select(KEY), on=KEY, how="anti", maintain_order="left")
    table = pl.concat([told, valued.with_columns(pl.lit(False).alias("is_failed"))], how="diagonal")
    same = {"dataset": wanted.dataset, "system": wanted.system, "cause": wanted.cause}
    table = table.filter(**{name: value for name, value in same.items() if value is not None})
    if wanted.slice is not None:
        table = table.filter(pl.col("slices").list.contains(wanted.slice))
    if wanted.metric is not None:
        asked = values.filter(metric=wanted.metric).select(KEY)
        table = table.join(asked, on=KEY, how="semi", maintain_order="left")
    return table.select(*KEY, "is_failed").with_row_index("place")


def is_failed(samples: pl.DataFrame) -> pl.Expr:
    """Whether a system gave no answer, as an expression for this samples table."""
    failed = pl.col("error").is_not_null()
    return failed | pl.col("status").is_in(_NOT_ANSWERED).fill_null(False) if "status" in samples.columns else failed


def got_no_answer(evaluation: Evaluation) -> bool:
    """Whether every system was asked, and not one question got an answer, because all of them failed."""
    samples = evaluation.select_samples(*KEY, "error", "status")
    is_asked = not samples.is_empty() and set(samples["system"].unique()) == set(evaluation.systems)
    return is_asked and bool(samples.select(is_failed(samples).all()).item())


def _find_errors(evaluation: Evaluation, wanted: Filter) -> pl.LazyFrame:
    """The questions with a value that is an error: `KEY`, `has_error`."""
    metric = {} if wanted.metric is None else {"metric": wanted.metric}
    failed = evaluation.values.lazy().filter(status="error", **metric)
    return failed.select(KEY).unique().with_columns(pl.lit(True).alias("has_error"))


def rate_values(evaluation: Evaluation, metric: str | None = None) -> pl.DataFrame:
    """The scored values of one metric, or of all metrics that count, with how bad they are.

    The columns are `dataset, system, metric, query_id, value, best, scale, badness`, the last `(best - value) * scale`.
    """
    scored = evaluation.values.filter(status="scored").select(*CELL, "query_id", "value")
    scales = list_scales(evaluation, metric)
    scored = scored.filter(pl.col("metric").is_in(scales["metric"].implode()))
    rated = scored.join(scales, on="metric", how="left", maintain_order="left")
    return rated.with_columns(((pl.col("best") - pl.col("value")) * pl.col("scale")).alias("badness"))


def list_scales(evaluation: Evaluation, metric: str | None = None) -> pl.DataFrame:
    """How bad values are of one metric, or of all that count: `metric, best, scale`, as for `rate_values`."""
    counted = [metric] if metric is not None else _list_counted(evaluation)
    scored = evaluation.values.lazy().filter((pl.col("status") == "scored") & pl.col("metric").is_in(counted))
    ends = scored.group_by("metric").agg(pl.col("value").min().alias("low"), pl.col("value").max().alias("high"))
    rows = [
        (name, *_find_scale(low, high, lower_is_better=name in evaluation.lower_is_better))
        for name, low, high in ends.collect().iter_rows()
    ]
    schema = {"metric": pl.String, "best": pl.Float64, "scale": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _find_scale(low: float, high: float, *, lower_is_better: bool) -> tuple[float, float]:
    """The best value, and what a difference from it is multiplied by to lie in [0, 1]."""
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    span = high - low
    best, sign = (low, -1.0) if lower_is_better else (high, 1.0)
    return best, sign / (span or 1.0)


def _list_counted(evaluation: Evaluation) -> list[str]:
    sums = {one.metric for one in evaluation.aggregates if one.statistic == "sum"}
    counted = [metric for metric in evaluation.metrics if metric not in evaluation.units and metric not in sums]
    return counted or list(evaluation.metrics)


def _find_worst(values: pl.DataFrame, wanted: Filter) -> pl.LazyFrame:
    """For each question its worst value: `KEY`, `metric`, `value`, `badness`, `mean_badness`."""
    rated = values.lazy()
    rated = rated.filter(
        *([] if wanted.below is None else [pl.col("value") < wanted.below]),
        *([] if wanted.above is None else [pl.col("value") > wanted.above]),
    )
    mean = rated.group_by(KEY).agg(pl.col("badness").mean().alias("mean_badness"))
    worst = rated.sort("badness", descending=True, maintain_order=True).unique(KEY, keep="first", maintain_order=True)
    return worst.select(*KEY, "metric", "value", "badness").join(mean, on=KEY, how="left")


def _keep_fallen(table: pl.DataFrame, rated: pl.DataFrame, base: pl.DataFrame) -> pl.DataFrame:
    """The questions with a value worse than the baseline's, or that failed and had a value, with the largest `fall`."""
    both = rated.join(base, on=[*CELL, "query_id"])
    falls = both.with_columns(((pl.col("base") - pl.col("value")) * pl.col("scale")).alias("fall"))
    order = [pl.col("fall").round(_DIGITS_THAT_COUNT), pl.col("badness")]
    largest = falls.sort(order, descending=True, maintain_order=True).unique(KEY, keep="first", maintain_order=True)
    had = base.select(KEY).unique().with_columns(pl.lit(1.0).alias("had"))
    kept = table.drop("metric", "value").join(
        largest.select(*KEY, "metric", "value", "fall"), on=KEY, how="left", maintain_order="left"
    )
    kept = kept.join(had, on=KEY, how="left", maintain_order="left")
    fall = pl.when(pl.col("is_failed") & pl.col("had").is_not_null()).then(pl.col("had")).otherwise("fall")
    return kept.with_columns(fall.alias("fall")).filter(pl.col("fall") > SMALLEST_CHANGE)


def _order(evaluation: Evaluation, table: pl.DataFrame, wanted: Filter) -> pl.DataFrame:
    datasets = {name: at for at, name in enumerate(evaluation.datasets)}
    place = pl.col("dataset").replace_strict(datasets, default=len(datasets), return_dtype=pl.Int64)
    of_query = pl.col("place").min().over("dataset", "query_id")
    first = [pl.col("fall")] if wanted.regressed else [pl.col("is_failed")]
    descending = [*first, pl.col("badness"), pl.col("mean_badness")]
    ascending = [place, of_query, pl.col("place")]
    return table.sort(
        [*descending, *ascending],
        descending=[True] * len(descending) + [False] * len(ascending),
        nulls_last=True,
        maintain_order=True,
    )


SMALLEST_CHANGE = 1e-9
"""A smaller difference between two values does not count as a change: rounding can cause it."""


class BaselineValues(NamedTuple):
    """What values are compared with.

    Attributes:
        name: how a reader knows it: a label, a folder, or a system.
        evaluation: the earlier evaluation; None if `name` is a baseline of a gate, whose values lie beside the
            evaluation, or a system of the evaluation itself.
    """

    name: str
    evaluation: Evaluation | None = None


def match_systems(systems: Iterable[str], earlier: Iterable[str]) -> dict[str, str]:
    """The earlier system that each system is compared with: the one of the same name.

    If no name occurs in both and each side has one system, these two are compared. Systems without a counterpart are
    left out.
    """
    now, before = list(systems), list(earlier)
    matched = {system: system for system in now if system in before}
    return dict(zip(now, before, strict=True)) if not matched and len(now) == len(before) == 1 else matched


def find_base_values(evaluation: Evaluation, baseline: BaselineValues | None = None) -> pl.DataFrame:
    """The baseline's scored values: columns `dataset, system, metric, query_id, base, against`.

    `system` is the system of `evaluation` that the value is compared with, and `against` the name of the baseline that
    the value belongs to.

    Without a baseline, each cell has the first of these that has values of it: the baseline of the first gate on its
    metric, the baselines of the other gates in their order, and the first system that has the metric.
    """
    if baseline is not None:
        return _find_named(evaluation, baseline)
    found = [table for table in _list_usual(evaluation) if not table.is_empty()]
    chosen: list[pl.DataFrame] = []
    for table in found:
        for earlier in chosen:
            table = table.join(earlier.select(CELL).unique(), on=CELL, how="anti", maintain_order="left")
        chosen.append(table)
    return pl.concat(chosen) if chosen else _find_first_systems(evaluation)


def is_earlier(evaluation: Evaluation, name: str, baseline: BaselineValues | None = None) -> bool:
    """Whether the values that `find_base_values` names so are of an earlier evaluation, not of a system of this one."""
    if baseline is not None and baseline.evaluation is not None:
        return True
    return name not in evaluation.systems or not evaluation.base_values.filter(baseline=name).is_empty()


def list_baselines(evaluation: Evaluation) -> list[str]:
    """The names that gates compare with and whose values are known, each once, in the order of the gates."""
    kept = evaluation.base_values.get_column("baseline").unique(maintain_order=True).to_list()
    named = [gate.get("baseline") for gate in evaluation.provenance.spec.get("gates", ())]
    return [name for name in dict.fromkeys([*named, *kept]) if name in kept or name in evaluation.systems]


def _find_named(evaluation: Evaluation, baseline: BaselineValues) -> pl.DataFrame:
    if baseline.evaluation is None:
        return _find_of_gate(evaluation, baseline.name)
    pairs = match_systems(evaluation.systems, baseline.evaluation.systems)
    names = pl.DataFrame(
        {"of": list(pairs.values()), "system": list(pairs)}, schema=dict.fromkeys(("of", "system"), pl.String)
    )
    scored = _list_scored(baseline.evaluation).rename({"system": "of"})
    return _name(scored.join(names, on="of", maintain_order="left"), baseline.name)


def _list_usual(evaluation: Evaluation) -> Iterator[pl.DataFrame]:
    """Base values of the baselines of gates and of the first systems, those that go before others first."""
    tables = {name: _find_of_gate(evaluation, name) for name in list_baselines(evaluation)}
    first: dict[str, str] = {}
    for gate in evaluation.provenance.spec.get("gates", ()):
        if gate.get("baseline") in tables:
            first.setdefault(gate["metric"], gate["baseline"])
    for name, table in tables.items():
        yield table.filter(pl.col("metric").is_in([metric for metric, of in first.items() if of == name]))
    yield from tables.values()
    yield _find_first_systems(evaluation)


def _find_of_gate(evaluation: Evaluation, name: str) -> pl.DataFrame:
    """The values of a gate's baseline: an earlier evaluation, or a system of this one."""
    kept = evaluation.base_values.filter(baseline=name)
    if not kept.is_empty() or name not in evaluation.systems:
        return _name(kept.rename({"value": "base"}), name)
    cells = evaluation.values.select(CELL).unique(maintain_order=True)
    return _pair(evaluation, cells.filter(system=name), cells)


def _find_first_systems(evaluation: Evaluation) -> pl.DataFrame:
    """The values of the first system with each metric on each dataset, once for every other system with the metric."""
    place = {system: at for at, system in enumerate(evaluation.systems)}
    cells = evaluation.values.select(CELL).unique(maintain_order=True)
    ordered = cells.sort(pl.col("system").replace_strict(place, default=len(place), return_dtype=pl.Int64))
    return _pair(evaluation, ordered.unique(["dataset", "metric"], keep="first", maintain_order=True), cells)


def _pair(evaluation: Evaluation, base: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """The values of the base cells, once for every other cell of the same dataset and metric."""
    others = cells.join(base, on=CELL, how="anti", maintain_order="left")
    scored = _list_scored(evaluation).join(base, on=CELL, how="semi", maintain_order="left")
    paired = scored.rename({"system": "against"}).join(others, on=["dataset", "metric"], maintain_order="left")
    return paired.select(*CELL, "query_id", "base", pl.col("against"))


def _list_scored(evaluation: Evaluation) -> pl.DataFrame:
    return evaluation.values.filter(status="scored").select(*CELL, "query_id", base="value")


def _name(table: pl.DataFrame, name: str) -> pl.DataFrame:
    return table.select(*CELL, "query_id", "base", against=pl.lit(name))
