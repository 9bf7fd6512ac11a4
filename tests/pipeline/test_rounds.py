"""The state of a dataset between two rounds of questions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl

from rageval_spec import registry
from rageval_spec.data.cell import Cell
from rageval_spec.data.fingerprints import Evaluated
from rageval_spec.data.tables import Collection
from rageval_spec.pipeline.rounds import Round, Scored, list_values
from rageval_spec.plugin import Context, Metric

QUERIES = pl.DataFrame({"query_id": ["a", "b", "c", "d"], "text": ["?"] * 4})
QRELS = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["1", "2"], "relevance": [1, 1]})
ORDER = ("c", "a", "d", "b")


def metric(word: str) -> Metric[Any]:
    plugin = registry.load("metrics", word)
    made: Metric[Any] = plugin(plugin.node_type(use=word), Context(word, Path()))
    return made


def make_round(count: int, **systems: dict[str, float | None]) -> Round:
    rows = [
        ("golden", system, "exact_match", query_id, value, "error" if value is None else "scored")
        for system, values in systems.items()
        for query_id, value in values.items()
    ]
    names = ("dataset", "system", "metric", "query_id", "value", "status")
    values = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String) | {"value": pl.Float64}, orient="row")
    whole = Collection("golden", load_queries=lambda: QUERIES, load_qrels=lambda: QRELS)
    asked, judged = frozenset(QUERIES["query_id"]), frozenset(QRELS["query_id"])
    return Round(Evaluated(whole, QUERIES["query_id"]), asked, judged, ORDER, count, values)


def test_values_are_in_the_order_in_which_they_were_drawn() -> None:
    done = make_round(3, app={"a": 1.0, "c": 0.0, "d": None})
    column = done.read("app", "exact_match")
    assert column == {"c": Scored("scored", 0.0), "a": Scored("scored", 1.0), "d": Scored("error", None)}
    values = list_values([*(column or {}).values()])
    assert values[:2] == [0.0, 1.0]
    assert math.isnan(values[2])
    assert done.read("app", "other") is None


def test_metrics_of_answers_and_of_rankings_have_values_of_different_questions() -> None:
    done = make_round(1, app={"c": 1.0})
    assert done.list_all(metric("exact_match")) == {"a", "b", "c", "d"}
    assert done.list_all(metric("ndcg")) == {"a", "b"}
    assert not done.has_judged
    assert make_round(2, app={"c": 1.0, "a": 1.0}).has_judged


def test_differences_are_of_questions_with_a_value_in_both() -> None:
    done = make_round(3, app={"c": 1.0, "a": 1.0, "d": 0.0}, base={"c": 0.5, "a": None, "d": 1.0})
    pairs = done.pair(Cell("golden", "app", "exact_match"), metric("exact_match"), "base", {})
    assert pairs.values == {"c": (1.0, 0.5), "a": None, "d": (0.0, 1.0)}
    assert (pairs.shared, pairs.population, pairs.has_baseline) == (2, 4, True)
    assert (pairs.subtract()["c"], pairs.subtract(2)["d"]) == (0.5, -2.0)
    assert math.isnan(pairs.subtract()["a"])


def test_a_round_adds_to_those_before_it() -> None:
    first, second = make_round(2, app={"c": 1.0, "a": None}), make_round(4, app={"d": 1.0, "b": 0.0})
    done = first.extend(4, second.values, frozenset({("app", "exact_match")}))
    assert [*(done.read("app", "exact_match") or {})] == ["c", "a", "d", "b"]
    assert done.failed is not None
    assert [*done.failed] == [("app", "exact_match")]
    assert done.extend(4, second.values, frozenset()).failed == frozenset()
