"""Which answers are worth a person's look, and how much: the judge is unsure, or says that they are bad."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rageval_spec.errors import UsageError
from rageval_spec.judges.shared.routing import TO_A_PERSON
from rageval_spec.reports.shared.changes import Baseline
from rageval_spec.reports.shared.worst import Filter, rank_questions, rate_values
from rageval_spec.review.tasks import KEY, Key

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

NEAR = 0.1
"""How near to the threshold a judge's value is unsure."""
CONFIDENT = 0.7
"""A judge that says it is less confident than this is unsure."""
APART = 0.3
"""From which difference on the steps of a cascade disagree."""
_HALF = 0.5


def list_judged_metrics(evaluation: Evaluation) -> tuple[str, ...]:
    """The metrics whose values a judge decided, in their order; without any, those of answers that lie in [0, 1]."""
    import polars as pl

    values = evaluation.values
    if "details" in values.columns:
        judged = values.filter(pl.col("details").str.contains(r'"(judge|claims|decided_by|confidence)":'))
        found = set(judged["metric"].unique().to_list())
        if found:
            return tuple(metric for metric in evaluation.metrics if metric in found)
    answered = evaluation.select_samples(*KEY, "answer").filter(pl.col("answer").is_not_null()).select(KEY)
    scored = values.join(answered, on=KEY, how="semi").drop_nulls("value").group_by("metric")
    inside = scored.agg(pl.col("value").is_between(0, 1).all().alias("inside")).filter("inside")["metric"].to_list()
    return tuple(name for name in evaluation.metrics if name in inside and name not in evaluation.units)


def rate_low(evaluation: Evaluation, metrics: Sequence[str], below: float) -> dict[Key, float]:
    """How bad the worst value of each answer is, from 0 to 1, where it is below a bound.

    For a metric whose low values are good, the bound is mirrored: values above `1 - below` count. Values that do not
    lie in [0, 1] are placed between the lowest and the highest of their metric.
    """
    import polars as pl

    rated = pl.concat([rate_values(evaluation, metric) for metric in metrics])
    bad = rated.filter(pl.col("badness") > 1 - below + 1e-9).group_by(KEY).agg(pl.col("badness").max())
    return _to_dict(bad)


def rate_regressed(evaluation: Evaluation, metrics: Sequence[str], baseline: Baseline | None) -> dict[Key, float]:
    """How far each answer fell below the baseline on any of the metrics, where it did.

    Metrics that the baseline does not have are left out.

    Raises:
        NoBaselineError: there is nothing to compare with.
        UsageError: the baseline has none of the metrics.
    """
    falls: dict[Key, float] = {}
    lacking: list[UsageError] = []
    for metric in metrics:
        try:
            fallen = rank_questions(evaluation, Filter(metric=metric, regressed=True), baseline)
        except UsageError as error:
            lacking.append(error)
            continue
        for key, fall in _to_dict(fallen.select(*KEY, "fall")).items():
            falls[key] = max(fall, falls.get(key, 0.0))
    if len(lacking) == len(metrics):
        raise lacking[0]
    return falls


def rate_person(evaluation: Evaluation, metrics: Sequence[str]) -> dict[Key, float]:
    """The answers that a `waterfall` sent to a person; all are rated 1."""
    import polars as pl

    sent = pl.col("reason").str.contains(TO_A_PERSON, literal=True) & pl.col("metric").is_in(list(metrics))
    return dict.fromkeys(_to_dict(evaluation.values.filter(sent).select(KEY).unique().with_columns(rating=1.0)), 1.0)


def rate_unsure(evaluation: Evaluation, metrics: Sequence[str], threshold: float) -> dict[Key, float]:
    """How unsure the judges are of each answer, where they are.

    A judge is unsure if its value, or the score of a claim, lies within `NEAR` of the threshold; if it says that its
    confidence is below `CONFIDENT` (a panel's confidence is how far its members agree); or if the step of a `cascade`
    that decided lies at least `APART` from the step before. Where it is not known how far, it is unsure if a step
    decided that is not the first, because the first was unsure.
    """
    import polars as pl

    first_steps = _find_first_steps(evaluation)
    rows = evaluation.values.filter(pl.col("metric").is_in(list(metrics)))
    details = pl.col("details") if "details" in rows.columns else pl.lit(None, dtype=pl.String).alias("details")
    found: dict[Key, float] = {}
    for *key, metric, value, text in rows.select(*KEY, "metric", "value", details).iter_rows():
        told = json.loads(text) if text else {}
        rating = max(
            _rate(value, told if isinstance(told, dict) else {}, threshold, first_steps.get(metric)), default=0
        )
        if rating > 0:
            found[tuple(key)] = max(rating, found.get(tuple(key), 0.0))
    return found


def _rate(value: float | None, details: Mapping[str, Any], threshold: float, first: str | None) -> Iterator[float]:
    """Each sign that the judge is unsure, in (0, 1]."""
    scores = [claim["score"] for claim in details.get("claims") or () if _has_score(claim)]
    for score in scores or [value]:
        distance = abs(score - threshold) if score is not None else NEAR
        if distance < NEAR:
            yield _HALF + _HALF * (1 - distance / NEAR)
    confidence = details.get("confidence")
    if isinstance(confidence, int | float) and confidence < CONFIDENT:
        yield 1 - confidence
    decided_by, apart = details.get("decided_by"), details.get("apart")
    if isinstance(apart, int | float):
        yield apart if apart >= APART else 0.0
    elif first is not None and decided_by is not None and decided_by != first:
        yield _HALF


def _has_score(claim: Any) -> bool:
    return isinstance(claim, dict) and isinstance(claim.get("score"), int | float) and 0 < claim["score"] < 1


def _find_first_steps(evaluation: Evaluation) -> dict[str, str]:
    """The first step of each cascade that a metric asks, by the metric."""
    judges = evaluation.spec.get("judges") or {}
    found: dict[str, str] = {}
    for node in evaluation.spec.get("metrics") or ():
        judge = judges.get(node.get("judge"), {})
        if judge.get("use") == "cascade" and (steps := judge.get("steps")):
            found[node.get("as") or node["use"]] = steps[0]["judge"] if isinstance(steps[0], dict) else steps[0]
    return found


def _to_dict(rows: pl.DataFrame) -> dict[Key, float]:
    return {(dataset, system, query_id): rating for dataset, system, query_id, rating in rows.iter_rows()}
