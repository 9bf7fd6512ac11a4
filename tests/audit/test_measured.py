from __future__ import annotations

import polars as pl

from rageval_spec.audit.measured import combine, read_outputs
from rageval_spec.data.tables import empty_samples, type_samples


def test_only_questions_with_a_value_of_every_system_count() -> None:
    columns = {"a": {"q1": 0.0, "q2": 1.0, "q3": 0.5}, "b": {"q2": 1.0, "q1": 0.0}}
    found = combine("ndcg@10", columns, 1.0, 0.0)
    assert (found.systems, found.query_ids) == (("a", "b"), ("q1", "q2"))
    assert found.values.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert (found.failed, found.solved) == ([0], [1])
    assert combine("m", {}, None, 0.0).failed == combine("m", columns, None, 0.0).solved == []


def test_outputs_are_the_documents_answers_and_ranks_of_samples() -> None:
    judged = [{"doc_id": "d1", "relevance": 1, "rank": 12}, {"doc_id": "d9", "relevance": 0, "rank": None}]
    rows = [
        {"system": "s", "query_id": "q1", "answer": None, "context_ids": ["d2"], "relevant": judged},
        {"system": "s", "query_id": "q2", "answer": "so", "context_ids": None, "relevant": None},
    ]
    block = type_samples(pl.concat([empty_samples(), pl.DataFrame(rows)], how="diagonal_relaxed"))
    found = read_outputs([(" (main)", block)])
    (first,), (second,) = found["q1"], found["q2"]
    assert (first.system, first.doc_ids, first.answer) == ("s (main)", ("d2",), None)
    assert (first.ranks, first.relevant) == ({"d1": 12}, {"d1": 1, "d9": 0})
    assert (second.doc_ids, second.answer, second.relevant) == (None, "so", {})
