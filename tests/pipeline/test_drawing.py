"""The random order of questions."""

from __future__ import annotations

import polars as pl
import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.pipeline.drawing import list_ids, restrict, shuffle

IDS = [f"q{number}" for number in range(200)]


def test_each_question_has_one_place_that_depends_on_the_seed_alone() -> None:
    order = shuffle([*IDS, "q3"], seed=1)
    assert sorted(order) == sorted(IDS)
    assert shuffle(reversed(IDS), seed=1) == order
    assert shuffle(IDS, seed=2) != order
    assert shuffle(["\ud800", "ü"], seed=1)


def test_new_questions_do_not_change_the_order_of_the_others() -> None:
    order = shuffle([*IDS, "new"], seed=1)
    assert tuple(query_id for query_id in order if query_id != "new") == shuffle(IDS, seed=1)


def test_every_place_is_as_likely() -> None:
    """The mean place of a question over many seeds is in the middle, and neighbours are not drawn together."""
    orders = [shuffle(IDS[:20], seed) for seed in range(400)]
    places = [sum(order.index(query_id) for order in orders) / 400 for query_id in IDS[:20]]
    assert places == pytest.approx([9.5] * 20, abs=1.5)
    together = sum(abs(order.index("q0") - order.index("q1")) == 1 for order in orders) / 400
    assert together == pytest.approx(0.1, abs=0.05)


def test_a_restricted_collection_keeps_the_order_of_the_dataset() -> None:
    queries = pl.DataFrame({"query_id": ["a", "b", "c"], "text": ["A", "B", "C"]})
    qrels = pl.DataFrame({"query_id": ["c", "b", "a"], "doc_id": ["1", "2", "3"], "relevance": [1, 1, 1]})
    part = restrict(Collection("golden", load_qrels=lambda: qrels, load_queries=lambda: queries), ["c", "a"])
    assert part.queries is not None and part.qrels is not None
    assert part.queries["query_id"].to_list() == ["a", "c"]
    assert part.qrels["query_id"].to_list() == ["c", "a"]
    assert restrict(Collection("empty"), ["a"]).queries is None
    assert list_ids(queries, None, qrels) == ["a", "b", "c", "c", "b", "a"]
