import numpy as np

from rageval_spec import kernels
from tests.metrics.scoring import missing_value, plugin, value_of, values_of


def test_hand_worked() -> None:
    # 3 and 2 documents: 5 in all
    values = values_of("num_ret", {"q1": {"a": 1}, "q2": {"a": 0}}, {"q1": "xya", "q2": "xy"})
    assert values == {"q1": 3.0, "q2": 2.0}
    assert kernels.aggregate_measure("num_ret", np.array(list(values.values()))) == 5.0


def test_depth_and_judged_only() -> None:
    assert value_of("num_ret", {"a": 1}, "xyza", depth=2) == 2.0
    assert value_of("num_ret(judged_only=true)", {"a": 1, "n": 0, "m": -1}, "xmna") == 2.0


def test_missing_query() -> None:
    assert missing_value("num_ret", {"a": 1}) == 0.0


def test_measure() -> None:
    assert plugin("num_ret").name == "num_ret"
