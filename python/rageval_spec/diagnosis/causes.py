"""Sorts the questions of systems that answer by what went wrong, and counts the causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, get_args

from rageval_spec.data.diagnosis import JUDGED_DOCUMENTS, Cause, CauseCount
from rageval_spec.statistics.designed import find_share
from rageval_spec.statistics.layout import lay_out
from rageval_spec.statistics.proportions import find_wilson_interval

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.design import Design
    from rageval_spec.data.interval import Interval
    from rageval_spec.diagnosis.evidence import Choice
    from rageval_spec.spec.nodes import DiagnosisNode

_KEY = ("dataset", "system", "query_id")
CAUSES: tuple[Cause, ...] = get_args(Cause)


def find_causes(
    values: pl.DataFrame, choice: Choice, node: DiagnosisNode, judged: Mapping[tuple[str, str], pl.DataFrame]
) -> pl.DataFrame:
    """The cause of each question of each system that has the metric of correctness.

    Args:
        values: columns `tables.VALUES`.
        choice: the metrics that decide.
        node: the thresholds.
        judged: for each dataset and system, `find_judged_contexts`; read if `choice.retrieval` says so.

    Returns:
        `dataset, system, query_id, cause, is_refusal`, in the order of `values`. `is_refusal` says that the answer has
        no value of faithfulness because it makes no claim.
    """
    import polars as pl

    table = values.filter(pl.col("metric") == choice.correctness).select(*_KEY, right=_decide(node))
    found = (
        _read_judged(judged) if choice.retrieval == JUDGED_DOCUMENTS else _read_metric(values, choice.retrieval, node)
    )
    faithful = _read_metric(values, choice.faithfulness, node, with_status=True)
    table = table.join(found.rename({"decided": "found"}), on=_KEY, how="left", maintain_order="left")
    table = table.join(faithful.rename({"decided": "faithful"}), on=_KEY, how="left", maintain_order="left")
    return table.select(*_KEY, cause=_name_cause(), is_refusal=(pl.col("status") == "unscorable").fill_null(False))


def _decide(node: DiagnosisNode) -> pl.Expr:
    """True from `right_from`, False below `wrong_below`, null between them and without a value."""
    import polars as pl

    value = pl.col("value")
    return pl.when(value >= node.right_from).then(True).when(value < node.wrong_below).then(False)


def _read_metric(
    values: pl.DataFrame, metric: str | None, node: DiagnosisNode, *, with_status: bool = False
) -> pl.DataFrame:
    import polars as pl

    rows = values.filter(pl.col("metric") == (metric or ""))
    return rows.select(*_KEY, *(["status"] if with_status else []), decided=_decide(node))


def _read_judged(judged: Mapping[tuple[str, str], pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    empty = pl.DataFrame(schema={**dict.fromkeys(_KEY, pl.String), "decided": pl.Boolean})
    frames = [
        table.select(dataset=pl.lit(dataset), system=pl.lit(system), query_id="query_id", decided="found")
        for (dataset, system), table in judged.items()
    ]
    return pl.concat([empty, *frames])


def _name_cause() -> pl.Expr:
    import polars as pl

    found, right, faithful = pl.col("found"), pl.col("right"), pl.col("faithful")
    cause = (
        pl.when(~found & ~right & ~faithful).then(pl.lit("both"))
        .when(~found & ~right).then(pl.lit("retrieval"))
        .when(~found & right).then(pl.lit("lucky"))
        .when(found & (~right | ~faithful)).then(pl.lit("generation"))
        .when(found & right).then(pl.lit("fine"))
    )  # fmt: skip
    return cause.otherwise(pl.lit("undecided"))


def count_causes(
    causes: pl.DataFrame,
    confidence: float,
    slice_name: str | None = None,
    designs: Mapping[str, Design] | None = None,
) -> Iterator[CauseCount]:
    """The questions of each dataset and system with each cause that occurs, in the order of `Cause`.

    The shares on a dataset that is in `designs` are weighted, and their intervals are of whole clusters.
    """
    for (dataset, system), rows in causes.group_by("dataset", "system", maintain_order=True):
        found = dict(rows["cause"].value_counts().iter_rows())
        for cause in CAUSES:
            if count := found.get(cause, 0):
                design = (designs or {}).get(str(dataset))
                interval = find_wilson_interval(count, rows.height, confidence)
                share = count / rows.height
                if design is not None:
                    share, interval = _weigh(rows, cause, design, confidence)
                yield CauseCount(str(dataset), str(system), cause, count, rows.height, share, interval, slice_name)


def _weigh(rows: pl.DataFrame, cause: Cause, design: Design, confidence: float) -> tuple[float, Interval | None]:
    query_ids = rows["query_id"].to_list()
    hits = (rows["cause"] == cause).to_numpy().astype(float)
    return find_share(hits, lay_out(design, query_ids, query_ids), confidence)
