import numpy as np

from rageval_spec import kernels
from tests.metrics.scoring import missing_value, plugin, value_of, values_of

GRADES = {"a": 2, "b": 1, "n": 0, "m": -1}


def test_hand_worked() -> None:
    # a and b at ranks 2 and 4; b at rank 1: 3 in all
    values = values_of("num_rel_ret", {"q1": GRADES, "q2": GRADES}, {"q1": "xanbm", "q2": "bx"})
    assert values == {"q1": 2.0, "q2": 1.0}
    assert kernels.aggregate_measure("num_rel_ret", np.array(list(values.values()))) == 3.0


def test_edges() -> None:
    assert value_of("num_rel_ret", {"a": 0, "b": -1}, "ab") == 0.0
    assert value_of("num_rel_ret(rel=2)", GRADES, "ab") == 1.0
    assert value_of("num_rel_ret", GRADES, "xab", depth=2) == 1.0


def test_missing_query() -> None:
    assert missing_value("num_rel_ret", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("num_rel_ret").name == "num_rel_ret"
