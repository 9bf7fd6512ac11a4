"""What was learned about a judge is used for no other one, and the message says what differs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import registry
from rageval_spec.plugin import Context
from rageval_spec.plugin.judge_identity import (
    Surroundings,
    digest_criterion,
    digest_identity,
    explain_difference,
    identify_judge,
)
from tests.judges.fakes import FAITHFULNESS, RUBRIC

CHAT = {"use": "chat", "base_url": "http://localhost:1/v1", "model": "llama3.1:8b", "temperature": 0.2}
MODELS = {"local": CHAT}
JUDGES: dict[str, dict[str, Any]] = {
    "words": {"use": "overlap"},
    "strict": {"use": "claims", "model": "local"},
    "tiers": {"use": "cascade", "steps": ["words", {"judge": "strict"}]},
}


def build(section: registry.Section, blocks: Mapping[str, Mapping[str, Any]], **around: Any) -> dict[str, Any]:
    built: dict[str, Any] = {}
    for name, block in blocks.items():
        plugin = registry.load(section, str(block["use"]))
        built[name] = plugin(plugin.node_type.model_validate(block), Context(name, Path(), **around))
    return built


def identify(
    name: str = "tiers", judges: Mapping[str, Any] = JUDGES, models: Mapping[str, Any] = MODELS, **around: Any
) -> dict[str, Any]:
    built_models = build("models", models)
    built = build("judges", judges, models=built_models)
    return identify_judge(built[name], Surroundings(built, built_models, **around))


def explain(name: str = "tiers", **now: Any) -> str | None:
    return explain_difference(identify(name, **now), identify(name))


def test_the_same_judge_has_the_same_identity_under_other_names_and_at_another_address() -> None:
    renamed = {
        "a": {"use": "overlap"},
        "b": {"use": "claims", "model": "m"},
        "c": {"use": "cascade", "steps": ["a", {"judge": "b"}]},
    }
    moved = {"m": {**CHAT, "base_url": "http://other:2/v1", "timeout": 5, "retries": 1, "api_key": "${secret:KEY}"}}
    now = identify("c", renamed, moved)
    assert digest_identity(now) == digest_identity(identify())
    assert explain_difference(now, identify()) is None


def test_no_key_of_an_endpoint_reaches_the_identity() -> None:
    secret = {"local": {**CHAT, "api_key": "sk-123", "headers": {"x": "sk-456"}}}
    assert "sk-" not in str(identify(models=secret))


def test_a_default_that_is_written_changes_nothing() -> None:
    assert explain("words", judges={"words": {"use": "overlap", "threshold": None}}) is None


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "strict",
            {"models": {"local": {**CHAT, "model": "llama3.2:3b"}}},
            "made with model llama3.1:8b of the model 'local', this spec has llama3.2:3b",
        ),
        (
            "strict",
            {"models": {"local": {**CHAT, "temperature": 0.7}}},
            "made with temperature 0.2 of the model 'local', this spec has 0.7",
        ),
        (
            "tiers",
            {"models": {"local": {**CHAT, "model": "gpt-5"}}},
            "made with model llama3.1:8b of the model 'local', this spec has gpt-5",
        ),
        (
            "words",
            {"judges": {"words": {"use": "overlap", "threshold": 0.5}}},
            "made with threshold the default, this spec has 0.5",
        ),
        (
            "words",
            {"judges": {"words": {"use": "embedding"}}, "models": {"minilm": {"use": "onnx"}}},
            "made with the kind overlap, this spec has embedding",
        ),
        (
            "tiers",
            {"judges": {**JUDGES, "tiers": {"use": "cascade", "steps": [{"judge": "words", "low": 0.1}, "strict"]}}},
            'made with steps [0, {"judge": 1, "low": null, "high": null}], this spec has '
            '[{"judge": 0, "low": 0.1, "high": null}, 1]',
        ),
    ],
)
def test_what_differs_is_said(name: str, changes: dict[str, Any], message: str) -> None:
    assert explain(name, **changes) == message
    assert digest_identity(identify(name, **changes)) != digest_identity(identify(name))


def test_another_prompt_is_named() -> None:
    before = identify("strict", prompts={"strict.verify": "aa", "strict.split": "bb"})
    now = identify("strict", prompts={"strict.verify": "cc", "strict.split": "bb"})
    assert explain_difference(now, before) == "made with another prompt: verify"


def test_the_calibration_of_a_member_counts() -> None:
    now = identify(calibrations={"words": "probability:d2"})
    assert explain_difference(now, identify()) == "made with another calibration of the judge 'words', or none"


def test_recorded_prompts_are_those_that_the_judge_sends() -> None:
    models = build("models", MODELS)
    judges = build("judges", JUDGES, models=models)
    sent = {f"strict.{key}": digest for key, digest in judges["strict"].prompt_digests().items()}
    recorded = identify_judge(judges["tiers"], Surroundings(judges, models, sent))
    assert recorded == identify_judge(judges["tiers"], Surroundings(judges, models))


def test_criteria_differ_by_everything_that_a_judge_reads() -> None:
    assert digest_criterion(FAITHFULNESS) != digest_criterion(RUBRIC)
    assert len(digest_criterion(FAITHFULNESS)) == 64
