from __future__ import annotations

import pytest

from rageval_spec import registry
from rageval_spec.spec import loads
from rageval_spec.spec.defaults import DEFAULT_IDS, DEFAULT_MODELS, default_block, default_blocks, default_names

SPEC = """\
version: 1
datasets: {d: {use: jsonl, path: gold.jsonl}}
systems: {s: {use: file, path: answers.jsonl}}
metrics: [{use: faithfulness, judge: %s}]
"""


def test_every_default_model_is_a_block_that_its_plugin_accepts() -> None:
    for name, block in DEFAULT_MODELS.items():
        node = registry.load("models", block["use"]).node_type.model_validate(dict(block))
        assert node.model == block["model"], name
    assert set(DEFAULT_IDS.values()) <= set(DEFAULT_MODELS)


def test_every_default_judge_can_be_named_without_a_declaration() -> None:
    names = default_names("judges")
    assert "overlap" in names
    for name in names:
        spec = loads(SPEC % name, check_files=False)
        assert spec.judges[name].use == name
        assert spec.warnings == ()


def test_a_judge_with_a_required_key_is_not_a_default() -> None:
    needing = {"nli", "claims", "cascade", "panel"}
    assert needing <= set(registry.words("judges"))
    assert needing.isdisjoint(default_names("judges"))
    assert all(default_block("judges", word) is None for word in needing)


@pytest.mark.parametrize("name", ["", "minilm", "faithfulness", "bm25", "../overlap", "Overlap"])
def test_other_names_are_not_default_judges(name: str) -> None:
    assert default_block("judges", name) is None


def test_only_models_and_judges_have_defaults() -> None:
    assert default_blocks("models") == {"minilm": {"use": "onnx", "model": "minilm"}}
    assert default_blocks("judges")["overlap"] == {"use": "overlap"}
    for section in ("datasets", "systems", "metrics", "gates", ""):
        assert default_blocks(section) == {}


def test_callers_cannot_change_a_default() -> None:
    for section in ("models", "judges"):
        for block in default_blocks(section).values():
            with pytest.raises(TypeError):
                block["use"] = "other"  # type: ignore[index]
