from math import log

import numpy as np
import pytest

from rageval_spec import kernels
from tests.metrics.scoring import missing_value, plugin, value_of, values_of


def test_hand_worked() -> None:
    # AP = 1/2 and 1/8: exp((ln 0.5 + ln 0.125) / 2) = sqrt(1/16) = 0.25
    values = values_of("gm_map", {"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": "xa", "q2": "stuvwxya"})
    assert values == {"q1": pytest.approx(log(0.5)), "q2": pytest.approx(log(0.125))}
    assert kernels.aggregate_measure("gm_map", np.array(list(values.values()))) == pytest.approx(0.25, rel=1e-14)


def test_floor() -> None:
    assert value_of("gm_map", {"a": 1}, "x") == log(0.00001)
    assert value_of("gm_map", {"a": 0, "b": -1}, "ab") == log(0.00001)
    assert missing_value("gm_map", {"a": 1}) == log(0.00001)


def test_measure() -> None:
    assert plugin("gm_map", judged_only=True).name == "gm_map(judged_only=true)"
