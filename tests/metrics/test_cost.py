from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec.data.samples import Sample
from tests.metrics.comparing import answer_metric, measure

PRICE = {"input": 2.5, "output": 10}


def test_the_cost_that_a_system_reports_is_the_value() -> None:
    known, unknown = measure(
        "cost", [Sample("q1", "?", cost=0.002), Sample("q2", "?", input_tokens=1, output_tokens=1)]
    )
    assert known.value == 0.002
    assert (unknown.value, unknown.status) == (None, "unscorable")
    assert "give the metric a 'price:'" in (unknown.reason or "")


def test_a_price_applies_to_every_answer() -> None:
    # 1000 x $2.5 / 1M + 200 x $10 / 1M = $0.0025 + $0.002
    samples = [
        Sample("q1", "?", input_tokens=1000, output_tokens=200),
        Sample("q2", "?", input_tokens=1000, output_tokens=200, cost=7.0),
        Sample("q3", "?", input_tokens=1000, cost=7.0),
    ]
    first, second, third = measure("cost", samples, price=PRICE)
    assert first.value == pytest.approx(0.0045)
    assert second.value == pytest.approx(0.0045)
    assert (third.value, third.status) == (None, "unscorable")


@pytest.mark.parametrize(
    ("price", "dollars"),
    [
        (PRICE, 0.0045),
        ({**PRICE, "cache_read": 0.25}, 0.0027),  # 800 of 1000 input tokens at a tenth of the price
        ({**PRICE, "cache_read": 0.25, "cache_write": 5}, 0.002950),
        ({**PRICE, "cache_read": 0}, 0.0025),
    ],
)
def test_tokens_of_the_cache_have_a_price_of_their_own(price: dict[str, float], dollars: float) -> None:
    sample = Sample("q1", "?", input_tokens=1000, output_tokens=200, cache_read_tokens=800, cache_write_tokens=100)
    (measurement,) = measure("cost", [sample], price=price)
    assert measurement.value == pytest.approx(dollars)


def test_input_tokens_that_leave_out_those_of_the_cache_are_not_priced() -> None:
    sample = Sample("q1", "?", input_tokens=10, output_tokens=2, cache_read_tokens=800)
    (measurement,) = measure("cost", [sample], price=PRICE)
    assert (measurement.value, measurement.status) == (None, "unscorable")
    assert measurement.reason == "the 10 input tokens do not include the 800 of the cache"


def test_a_price_of_zero_is_allowed() -> None:
    (measurement,) = measure("cost", [Sample("q1", "?", cost=0.0)])
    assert (measurement.value, measurement.status) == (0.0, "scored")


@pytest.mark.parametrize("price", [{"input": 1}, {"input": -1, "output": 1}, {"input": float("nan"), "output": 1}, 3])
def test_bad_prices_are_refused(price: object) -> None:
    with pytest.raises(ValidationError, match="price"):
        answer_metric("cost", price=price)


def test_name_and_direction() -> None:
    assert answer_metric("cost", price=PRICE).name == "cost"
    assert answer_metric("cost").higher_is_better is False
