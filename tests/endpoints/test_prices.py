from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from rageval_spec.endpoints import prices
from rageval_spec.endpoints.prices import find_price


@pytest.mark.parametrize(
    ("host", "model", "price"),
    [
        ("api.openai.com", "gpt-4o-mini", (0.15, 0.6)),
        ("API.openai.com", "gpt-4o-mini-2024-07-18", (0.15, 0.6)),
        ("api.anthropic.com", "claude-haiku-4-5-20251001", (1.0, 5.0)),
        ("api.openai.com", "gpt-4o-mini-tts", None),
        ("api.openai.com", "claude-haiku-4-5", None),
        ("localhost", "gpt-4o-mini", None),
        ("api.openai.com.invalid", "gpt-4o-mini", None),
    ],
)
def test_a_price_is_for_exactly_one_host_and_model(host: str, model: str, price: tuple[float, float] | None) -> None:
    assert find_price(host, model) == price


def test_the_price_list_has_a_date_and_its_sources() -> None:
    content = json.loads(Path(prices.__file__).with_name("prices.json").read_text())
    assert date.fromisoformat(content["date"]) <= date.today()
    assert all(source.startswith("https://") for source in content["sources"])
    for models in content["hosts"].values():
        for sent, replied in models.values():
            assert 0 < sent < replied < 1000
