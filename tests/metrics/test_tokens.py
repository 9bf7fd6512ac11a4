from __future__ import annotations

import pytest

from rageval_spec.data.samples import Sample
from tests.metrics.comparing import answer_metric, measure

WHOLE = Sample("q1", "?", input_tokens=900, output_tokens=100)
HALF = Sample("q2", "?", input_tokens=900)
NONE = Sample("q3", "?", answer="yes")


@pytest.mark.parametrize(
    ("of", "values"),
    [("total", [1000.0, None, None]), ("input", [900.0, 900.0, None]), ("output", [100.0, None, None])],
)
def test_tokens_are_counted(of: str, values: list[float | None]) -> None:
    assert [m.value for m in measure("tokens", [WHOLE, HALF, NONE], of=of)] == values


def test_missing_token_counts_are_named() -> None:
    _, half, none = measure("tokens", [WHOLE, HALF, NONE])
    assert (half.status, half.reason) == ("unscorable", "the system does not report its output tokens")
    assert none.reason == "the system does not report its input and output tokens"


def test_zero_tokens_are_a_value() -> None:
    (measurement,) = measure("tokens", [Sample("q1", "?", input_tokens=0, output_tokens=0)])
    assert (measurement.value, measurement.status) == (0.0, "scored")


def test_name_and_direction() -> None:
    assert answer_metric("tokens").name == "tokens"
    assert answer_metric("tokens", of="output").name == "tokens(of=output)"
    assert answer_metric("tokens").higher_is_better is False
