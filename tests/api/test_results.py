"""The results of `rageval_spec.evaluate`."""

from __future__ import annotations

from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rageval_spec import evaluate
from rageval_spec.errors import NothingScoredError, UsageError
from tests.api.forms import (
    FORMS,
    as_polars,
)
from tests.rankings import SMALL, Collection, Qrels, Run


def test_results() -> None:
    results = evaluate(*SMALL, (name for name in ("NDCG@10", "recip_rank", "P_2")))
    assert list(results.means) == ["NDCG@10", "recip_rank", "P_2"]
    assert results["recip_rank"] == results.means["recip_rank"] == pytest.approx((1 / 3 + 1 / 2 + 1) / 3)
    assert repr(results).startswith("Results(NDCG@10=0.")
    assert repr(results).endswith(", queries=3)")
    per_query = results.per_query()
    assert list(per_query) == ["q1", "q2", "ünï 文"]
    assert all(list(values) == list(results.means) for values in per_query.values())
    assert all(type(value) is float for values in per_query.values() for value in values.values())
    frame = results.to_polars()
    assert frame.schema == {"query_id": pl.String, "NDCG@10": pl.Float64, "recip_rank": pl.Float64, "P_2": pl.Float64}
    assert frame.rows_by_key("query_id", named=True, unique=True) == per_query
    assert frame["P_2"].mean() == results["P_2"]


def test_measures_can_be_objects_of_ir_measures() -> None:
    chosen = [ir_measures.nDCG @ 3, ir_measures.AP(rel=2), ir_measures.RR]
    results = evaluate(*SMALL, chosen)
    assert results.means == evaluate(*SMALL, ["nDCG@3", "AP(rel=2)", "RR"]).means
    assert results[ir_measures.nDCG @ 3] == results["nDCG@3"]
    assert evaluate(*SMALL, ir_measures.RR).means == {"RR": results["RR"]}


@pytest.mark.parametrize("measures", [[5], [None], 5])
def test_a_measure_of_another_type_is_refused(measures: Any) -> None:
    with pytest.raises(UsageError, match=r"measure (5|None) is of type \w+; write a name like 'ndcg@10'"):
        evaluate(*SMALL, measures)


def test_a_lazy_frame_error_names_collect() -> None:
    lazy = as_polars(SMALL.run, "score").lazy()
    with pytest.raises(UsageError, match=r"run is a polars LazyFrame, which holds no rows yet; call \.collect\(\)"):
        evaluate(SMALL.qrels, lazy, "rr")  # type: ignore[arg-type]


def test_a_single_measure_can_be_a_bare_name() -> None:
    assert evaluate(*SMALL, "map").means == evaluate(*SMALL, ["map"]).means


def test_the_aggregate_is_the_mean_the_geometric_mean_or_the_sum() -> None:
    results = evaluate(*SMALL, ["map", "gm_map", "num_rel"], missing="zero")
    maps = results.to_polars()["map"].to_list()
    assert results["map"] == pytest.approx(sum(maps) / 4)
    assert results["gm_map"] == pytest.approx(float(np.exp(np.log(np.maximum(maps, 1e-5)).mean())))
    assert results["num_rel"] == 6.0


EMPTY: list[tuple[Qrels, Run, str]] = [
    ({}, {}, "the qrels are empty"),
    (SMALL.qrels, {}, "the run is empty"),
    ({}, SMALL.run, "the qrels are empty"),
    (SMALL.qrels, {"other": {"a": 1.0}}, "no query of the qrels is in the run.*; check that their ids agree"),
]


@pytest.mark.parametrize("form", ["dicts", "polars", "pandas", "pyarrow", "polars categorical", "pandas category"])
def test_empty_input_has_no_means(form: str) -> None:
    for qrels, run, why in EMPTY:
        empty = evaluate(FORMS[form](qrels, "relevance"), FORMS[form](run, "score"), ["rr", "gm_map"], tie_range=True)
        assert (len(empty), repr(empty), empty.per_query()) == (0, "Results(no means, queries=0)", {})
        with pytest.raises(NothingScoredError, match=why):
            _ = empty.means
        assert empty.to_polars().schema == {"query_id": pl.String, "rr": pl.Float64, "gm_map": pl.Float64}
        with pytest.raises(NothingScoredError):
            _ = empty.tie_range
    assert evaluate(FORMS[form](SMALL.qrels, "relevance"), FORMS[form]({}, "score"), "rr", missing="zero")["rr"] == 0


UNTYPED: dict[str, Any] = {
    "polars": pl.DataFrame({"query_id": [], "doc_id": [], "score": []}),
    "pandas": pd.DataFrame({"query_id": [], "doc_id": [], "score": []}),
    "lists": {"query_id": [], "doc_id": [], "score": []},
    "pyarrow": pa.table({"query_id": pa.nulls(0), "doc_id": pa.nulls(0), "score": pa.nulls(0)}),
    "dictionary": pa.table(
        {
            "query_id": pa.array([], pa.dictionary(pa.int8(), pa.string())),
            "doc_id": pa.array([], pa.dictionary(pa.int32(), pa.large_string())),
            "score": pa.array([], pa.float64()),
        }
    ),
    "no chunk": pa.table({"query_id": [], "doc_id": [], "score": []}).slice(0, 0),
}


@pytest.mark.parametrize("name", UNTYPED)
def test_tables_without_rows_need_no_types(name: str, files: Collection) -> None:
    for qrels in (SMALL.qrels, as_polars(SMALL.qrels, "relevance"), files.qrels):
        assert len(evaluate(qrels, UNTYPED[name], "rr")) == 0


def test_one_document() -> None:
    assert evaluate({"q": {"a": 1}}, {"q": {"a": 0}}, ["ndcg", "map", "P@5"]).means == {
        "ndcg": 1.0,
        "map": 1.0,
        "P@5": 0.2,
    }
