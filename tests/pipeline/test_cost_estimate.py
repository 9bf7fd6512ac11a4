"""Estimates of what an evaluation would ask, before any of it is paid for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.findings import Estimate, Reader, Tokens
from rageval_spec.judging.cosine_scale import list_unrelated
from rageval_spec.pipeline.cost_estimate import ExpectedCalls, LocalReads, ModelCalls, expect
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.plugin import Speed
from rageval_spec.runner import Options, plan, run
from rageval_spec.spec import load
from tests.answering import Brevity, BriefJudge, Canned
from tests.onnx_from_checkpoints.folders import write_cross_encoder, write_encoder
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


def estimate(folder: Path, limit: int | None = None, **sections: Any) -> ExpectedCalls:
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
    assert ExpectedCalls((CHEAP, IDLE)).cost == 0.25
    assert ExpectedCalls((CHEAP, UNPRICED)).cost is None
    assert ExpectedCalls(()).cost == 0


def test_the_text_shows_calls_tokens_and_cost() -> None:
    text = ExpectedCalls((CHEAP, UNPRICED, IDLE), {"bot": 2}).render()
    assert "bot    2 questions" in text
    assert "small  3 calls, about 1,500 tokens in and 300 out, about 0.25 USD" in text
    assert "large  1 call, " in text
    assert "idle   no calls" in text


def test_the_json_has_the_same_content() -> None:
    content = ExpectedCalls((CHEAP,), {"bot": 2}).to_json()
    assert content["questions"] == {"bot": 2}
    assert content["cost"] == 0.25
    assert content["models"] == [
        {"model": "small", "calls": 3, "input_tokens": 1500, "output_tokens": 300, "cost": 0.25}
    ]


PAIRS = Reader("nli", "pair")
SPEC = """
version: 1
name: local
datasets: {d: {use: jsonl, path: d.jsonl}}
systems: {s: {use: file, path: a.jsonl}}
models:
  small: {use: onnx, model: model}
judges:
  near: {use: embedding, model: small}
metrics:
  - {use: faithfulness, judge: near}
  - {use: faithfulness, judge: overlap, as: words}
reports: []
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "d.jsonl").write_text('{"id": "q1", "question": "Who sat?"}\n{"id": "q2", "question": "Who ran?"}\n')
    rows = (("q1", "The cat sat on the mat."), ("q2", "The dog ran on the mat. The cat sat."))
    answers = [{"id": key, "answer": answer, "contexts": ["The cat sat. The dog ran."]} for key, answer in rows]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path / "spec.yaml"


def list_local(spec: Path) -> dict[str, dict[str, object]]:
    content = json.loads(plan(spec, Options()).to_json())
    return {one["name"]: one for one in content["to_ask"]["local"]}


def test_seconds_follow_from_tokens_and_speed() -> None:
    reads = LocalReads(PAIRS, 1200, 240_000, Speed(6000.0, "2026-11-22"))
    assert reads.seconds == 40
    assert reads.render() == "about 40 s (1,200 pairs at 30 a second, measured here on 2026-11-22)"


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (500, "less than 1 s"),
        (1500, "about 1.5 s"),
        (99_000, "about 99 s"),
        (150_000, "about 2.5 min"),
        (5_000_000, "about 83 min"),
        (36_000_000, "about 10 h"),
    ],
)
def test_times_have_a_fitting_unit(tokens: int, told: str) -> None:
    assert LocalReads(PAIRS, 10, tokens, Speed(1000.0), "a guess").render().startswith(f"{told} (10 pairs at ")


def test_an_unknown_speed_says_why() -> None:
    reads = LocalReads(PAIRS, 1, 200, None, "'a/b' is not on this machine yet")
    assert reads.render() == "unknown: 'a/b' is not on this machine yet (1 pair, about 200 tokens)"
    assert reads.to_json()["seconds"] is None
    assert LocalReads(PAIRS, 0, 0, None).render() == "nothing to read"


def test_the_text_has_local_judges_with_and_without_calls() -> None:
    text = ExpectedCalls(local=(LocalReads(PAIRS, 2, 20, Speed(1.0), "a guess"),)).render()
    assert text == "judges on this machine:\n  nli  about 20 s (2 pairs at 0.1 a second, a guess)\n"
    both = ExpectedCalls(questions={"bot": 2}, local=(LocalReads(PAIRS, 2, 20, Speed(1.0), "a guess"),)).render()
    assert both.startswith("to ask:\n  bot  2 questions\njudges on this machine:\n  nli  ")


def test_estimates_unite_what_they_share() -> None:
    first, second = Estimate(reads={PAIRS: {"a": 1, "b": 2}}), Estimate(reads={PAIRS: {"b": 2, "c": 3}})
    assert (first | second).reads == {PAIRS: {"a": 1, "b": 2, "c": 3}}


def test_a_plan_counts_what_is_not_stored(spec: Path) -> None:
    write_encoder(spec.parent / "model")
    before = list_local(spec)
    # Three claims, one of them after its question, the two sentences of the contexts, and the texts of the scale.
    assert (before["small"]["unit"], before["small"]["count"]) == ("text", 5 + len(list_unrelated()))
    assert before["small"]["measured_on"] is None
    assert (before["overlap"]["unit"], before["overlap"]["count"]) == ("sample", 2)
    run(spec, Options(output=spec.parent / "out"))
    after = list_local(spec)
    assert (after["small"]["count"], after["overlap"]["count"]) == (0, 2)


def test_a_cascade_plans_only_what_its_free_steps_leave(spec: Path) -> None:
    write_cross_encoder(spec.parent / "model", config=NLI)
    found = {}
    for steps in (
        "[overlap, reader]",
        "[{judge: overlap, low: 0, high: 1}, reader]",
        "[{judge: overlap, high: 0}, reader]",
    ):
        judges = f"near: {{use: cascade, steps: {steps}}}\n  reader: {{use: nli, model: small}}"
        metrics = SPEC.replace("near: {use: embedding, model: small}", judges).splitlines()
        spec.write_text("\n".join(line for line in metrics if "as: words" not in line))
        found[steps] = list_local(spec)["small"]["count"]
    # Three claims are each read with one window, unless the step before is sure of their answer.
    assert [*found.values()] == [3, 3, 0]


def test_a_model_that_is_not_here_has_no_seconds(spec: Path) -> None:
    spec.write_text(
        SPEC.replace("model: model", "model: owner/absent").replace(
            "{use: embedding, model: small}", "{use: nli, model: small}"
        )
    )
    found = list_local(spec)["small"]
    assert (found["unit"], found["count"], found["seconds"]) == ("pair", 3, None)
    assert "unknown: 'owner/absent' is not on this machine yet (3 pairs, about " in plan(spec, Options()).render()


NLI = {
    "architectures": ["BertForSequenceClassification"],
    "model_type": "bert",
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "hidden_act": "gelu",
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
    "id2label": {"0": "entailment", "1": "contradiction", "2": "neutral"},
}
