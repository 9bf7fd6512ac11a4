"""Estimates of what an evaluation would ask, before any of it is paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.assessment import Tokens
from rageval_spec.pipeline.estimate import Expectation, ModelCalls, expect
from rageval_spec.pipeline.parts import build_parts
from rageval_spec.spec import load
from tests.answering import Brevity, BriefJudge, Canned
from tests.tiny import Install, install, write_spec

__all__ = ["install"]

CHEAP = ModelCalls("small", 3, Tokens(1500, 300), 0.25)
UNPRICED = ModelCalls("large", 1, Tokens(10, 5), None)
IDLE = ModelCalls("idle", 0, Tokens(0, 0), 0.0)


@pytest.fixture
def words(install: Install) -> None:
    install("systems", "canned", Canned)
    install("judges", "briefly", BriefJudge)
    install("metrics", "brevity", Brevity)


def estimate(folder: Path, limit: int | None = None, **sections: Any) -> Expectation:
    base: dict[str, Any] = {
        "systems": {"bot": {"use": "canned", "answers": {"q1": "red apple"}}},
        "metrics": [{"use": "brevity", "judge": "briefly"}],
        "models": {"chatty": {"use": "chat", "base_url": "http://127.0.0.1:9", "model": "m"}},
    }
    return expect(build_parts(load(write_spec(folder, **{**base, **sections}))), limit)


def test_only_queries_without_stored_answers_are_counted_as_questions(tmp_path: Path, words: None) -> None:
    Canned.asked.clear()
    assert estimate(tmp_path).questions == {"bot": 3}
    assert estimate(tmp_path, 2).questions == {"bot": 1}
    assert Canned.asked == []


def test_systems_that_only_retrieve_are_asked_nothing(tmp_path: Path) -> None:
    found = estimate(tmp_path, systems={"bm25": {"use": "bm25"}}, metrics=["rr"])
    assert (found.models, dict(found.questions or {})) == ((), {})
    assert found.render() == ""


def test_costs_add_up_and_are_unknown_if_one_price_is() -> None:
    assert Expectation((CHEAP, IDLE)).cost == 0.25
    assert Expectation((CHEAP, UNPRICED)).cost is None
    assert Expectation(()).cost == 0


def test_the_text_shows_calls_tokens_and_cost() -> None:
    text = Expectation((CHEAP, UNPRICED, IDLE), {"bot": 2}).render()
    assert "bot    2 questions" in text
    assert "small  3 calls, about 1,500 tokens in and 300 out, about 0.25 USD" in text
    assert "large  1 call, " in text
    assert "idle   no calls" in text


def test_the_json_has_the_same_content() -> None:
    content = Expectation((CHEAP,), {"bot": 2}).to_json()
    assert content["questions"] == {"bot": 2}
    assert content["cost"] == 0.25
    assert content["models"] == [
        {"model": "small", "calls": 3, "input_tokens": 1500, "output_tokens": 300, "cost": 0.25}
    ]
