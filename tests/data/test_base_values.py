"""The values of earlier evaluations beside those of an evaluation."""

from __future__ import annotations

from rageval_spec.data.base_values import BASE_VALUES, collect_base_values, empty_base_values
from tests.answered_evaluation import answered, value


def test_values_of_the_same_cell_and_query_are_kept_for_each_earlier_evaluation() -> None:
    now = answered([value("q1", "token_f1", 0.5), value("q2", "token_f1", None)]).values
    main = answered([value("q1", "token_f1", 0.6), value("q2", "token_f1", 0.7), value("q9", "token_f1", 0.8)]).values
    older = answered([value("q1", "token_f1", 0.1), value("q1", "ndcg@10", 0.2), value("q2", "token_f1", None)]).values
    table = collect_base_values(now, {"main": main, "previous": older})
    assert table.columns == [*BASE_VALUES]
    assert table.drop("dataset", "system").rows() == [
        ("main", "token_f1", "q1", 0.6),
        ("main", "token_f1", "q2", 0.7),
        ("previous", "token_f1", "q1", 0.1),
    ]


def test_without_an_earlier_evaluation_there_are_none() -> None:
    assert collect_base_values(answered([value("q1", "token_f1", 0.5)]).values, {}).equals(empty_base_values())
