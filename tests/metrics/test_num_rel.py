import numpy as np

from rageval_spec import kernels
from tests.metrics.scoring import missing_value, plugin, value_of, values_of

GRADES = {"a": 2, "b": 1, "n": 0, "m": -1}


def test_hand_worked() -> None:
    # a and b; none: 2 in all
    values = values_of("num_rel", {"q1": GRADES, "q2": {"a": 0}}, {"q1": "x", "q2": "a"})
    assert values == {"q1": 2.0, "q2": 0.0}
    assert kernels.aggregate_measure("num_rel", np.array(list(values.values()))) == 2.0


def test_relevance_level() -> None:
    assert value_of("num_rel(rel=2)", GRADES, "x") == 1.0
    assert value_of("num_rel", GRADES, "x", relevance_level=2) == 1.0


def test_missing_query_counts() -> None:
    assert missing_value("num_rel", GRADES) == 2.0


def test_measure() -> None:
    assert plugin("num_rel", rel=2).name == "num_rel(rel=2)"
