"""The JSON of `calibrate`: it has a version, and everything in it can be read back."""

from __future__ import annotations

import json

import numpy as np

from rageval_spec.calibration.bias import Biases
from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.calibration.measuring import measure_judge, promise
from rageval_spec.commands.calibrate.structure import VERSION, Found, Group, dump
from rageval_spec.statistics.maps import read_map


def test_the_map_is_written_so_that_it_can_be_applied() -> None:
    random = np.random.default_rng(1)
    values = random.random(200)
    labels = (random.random(200) < values**3) * 1.0
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(200)]
    joined = Joined("faithfulness", tuple(items), tuple(values.tolist()), tuple(labels.tolist()), (), {})
    calibration = measure_judge(joined, resamples=100)
    groups = [Group([Found(joined, calibration, Biases(), promise(joined, 0.5, 0.95))])]
    content = json.loads(dump(groups, {"fluency": 3}))
    assert content["criteria_without_metric"] == {"fluency": 3}
    (found,) = content["calibrations"]
    assert content["version"] == VERSION
    assert calibration.map.chosen is not None
    assert read_map(found["map"]["chosen"]) == calibration.map.chosen
    assert found["reliability"]["bins"][0]["low"] == 0.0
    assert found["promise"]["items"] == 200
    assert found["biases"] == []
    assert content["comparisons"] == []
    assert "joined" not in found
