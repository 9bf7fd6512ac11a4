"""The statistics of cells, worked by hand."""

from __future__ import annotations

import math
from array import array

import pytest

from rageval_spec.statistics.summaries import summarize


@pytest.mark.parametrize(
    ("statistic", "numbers", "expected"),
    [
        ("mean", [1.0, 0.0, 0.5], 0.5),
        ("sum", [3.0, 4.0], 7.0),
        ("geometric mean", [math.log(0.5), math.log(0.125)], 0.25),
        ("p50", [3.0, 1.0, 2.0], 2.0),
        ("p75", [0.0, 1.0], 0.75),
    ],
)
def test_statistics(statistic: str, numbers: list[float], expected: float) -> None:
    assert summarize(statistic, array("d", numbers)) == pytest.approx(expected)
