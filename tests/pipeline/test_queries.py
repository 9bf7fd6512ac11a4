"""The queries of a dataset that are evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.pipeline.queries import asked_ids, judged_ids, judged_queries, queries_to_ask

QUERIES = {"q1": "one", "q2": "two", "q3": "three"}


def collect(
    judged: Sequence[str] | None, references: Sequence[str] | None = None, queries: Mapping[str, str] = QUERIES
) -> Collection:
    asked = pl.DataFrame({"query_id": list(queries), "text": list(queries.values())}, schema=["query_id", "text"])
    qrels = None if judged is None else pl.DataFrame({"query_id": judged, "doc_id": "d", "relevance": 1})
    gold = None if references is None else pl.DataFrame({"query_id": references})
    return Collection(
        "golden",
        load_queries=lambda: asked,
        load_qrels=None if qrels is None else lambda: qrels,
        load_references=None if gold is None else lambda: gold,
        why_no_qrels="qrels.tsv is not there",
    )


def asked(collection: Collection) -> list[str]:
    assert collection.queries is not None
    return collection.queries["query_id"].to_list()


def test_rankings_are_evaluated_on_judged_queries_in_the_order_of_the_qrels() -> None:
    judged = judged_queries(collect(["q3", "q1", "q3", "q9"]))
    assert judged_ids(judged)["query_id"].to_list() == ["q1", "q3", "q9"]
    assert asked(judged) == ["q1", "q3"]
    first = judged_queries(collect(["q3", "q1", "q3", "q9"]), 1)
    assert judged_ids(first)["query_id"].to_list() == ["q3"]
    assert asked(first) == ["q3"]


def test_without_judgements_there_is_nothing_to_rank() -> None:
    with pytest.raises(DataError, match=r"'golden' has no relevance judgements; qrels\.tsv is not there"):
        judged_queries(collect(None))


@pytest.mark.parametrize(
    ("judged", "references", "expected"),
    [
        (None, None, ["q1", "q2", "q3"]),
        (["q2"], None, ["q2"]),
        ([], None, ["q1", "q2", "q3"]),
        (["q2"], ["q1"], ["q1", "q2", "q3"]),
        (None, ["q1"], ["q1", "q2", "q3"]),
    ],
)
def test_with_gold_answers_all_queries_are_asked_else_the_judged_ones_else_all(
    judged: list[str] | None, references: list[str] | None, expected: list[str]
) -> None:
    assert asked(queries_to_ask(collect(judged, references))) == expected
    assert asked(queries_to_ask(collect(judged, references), 1)) == expected[:1]


def test_asked_ids_are_sorted() -> None:
    assert asked_ids(collect(None, queries={"b": "", "a": ""}))["query_id"].to_list() == ["a", "b"]


def test_a_dataset_without_queries_has_nothing_to_ask() -> None:
    with pytest.raises(DataError, match="dataset 'golden' has no queries to ask"):
        queries_to_ask(collect(["q1"], queries={}))
