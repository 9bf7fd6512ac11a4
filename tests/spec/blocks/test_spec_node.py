""""""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rageval_spec import registry
from rageval_spec.diagnostics import Position, SpecError
from rageval_spec.errors import UsageError
from rageval_spec.kernels.ranking_measures import RankingOptions
from rageval_spec.plugin.budget import CallLimits
from rageval_spec.spec import Spec, loads
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.spec.blocks.spec_node import (
    DEFAULT_IDS,
    DEFAULT_MODELS,
    LimitsNode,
    Name,
    RankingNode,
    StatisticsNode,
    default_block,
    default_blocks,
)

SPEC = """\
version: 1
datasets: {d: {use: trec, qrels: q.txt}}
systems: {s: {use: file, path: s.run}}
metrics: [map]
"""


def load(more: str = "") -> Spec:
    return loads(SPEC + more, check_files=False)


def fault(more: str) -> str:
    with pytest.raises(SpecError) as caught:
        load(more)
    (found,) = caught.value.diagnostics
    return found.message


NAME: TypeAdapter[str] = TypeAdapter(Name)


def is_name(text: str) -> bool:
    try:
        NAME.validate_python(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("text", ["a", "bm25 (k1=1.2)", "Näme 2", "v1.2", "文", "a" * 100, "-", "a~b#c"])
def test_names(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " a",
        "a ",
        ".a",
        "a.",
        "..",
        "a/b",
        "a\\b",
        "a:b",
        "a*",
        'a"b',
        "a|b",
        "$a",
        "a\n",
        "a\tb",
        "\x7f",
        "a" * 101,
    ],
)
def test_a_name_must_be_a_valid_file_name(text: str) -> None:
    assert not is_name(text)
    with pytest.raises(SpecError, match="is not a valid name"):
        loads(SPEC.replace("{s: {", f"{{{json.dumps(text)}: {{"), check_files=False)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=102))
def test_a_name_is_one_part_of_a_path(text: str) -> None:
    if is_name(text):
        assert Path(text).name == text
        assert text == text.strip(" .")
        assert not set('/\\:*?"<>|$\0\n') & set(text)


def test_a_spec_without_blocks_has_the_documented_settings() -> None:
    spec = load()
    assert spec.ranking == RankingNode()
    assert spec.statistics == StatisticsNode(confidence=0.95, resamples=10_000, permutations=10_000)
    assert (spec.limits.concurrency, spec.limits.threads, spec.limits.max_cost) == (16, None, None)
    assert [report.use for report in spec.reports] == ["terminal"]


def test_ranking_settings_become_options_of_the_kernel() -> None:
    node = load("ranking: {ties: ranx, depth: 5, relevance_level: 2, judged_only: true, missing: skip}").ranking
    assert node.options(drop_self=True) == RankingOptions(
        ties="ranx", depth=5, relevance_level=2, judged_only=True, missing="skip", drop_self=True, tie_range=True
    )
    assert node.options(drop_self=False, missing="zero").missing == "zero"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "relevance_level": st.integers(-1, 2**63 - 1),
            "depth": st.none() | st.integers(-1, 2**63 - 1),
            "ties": st.sampled_from(["trec_eval", "trec_eval_2023", "float64", "input", "ranx", "none"]),
        },
    )
)
def test_the_kernel_accepts_all_settings_that_a_spec_accepts(settings: dict[str, Any]) -> None:
    try:
        node = RankingNode(**settings)
    except ValidationError:
        with pytest.raises((UsageError, ValueError)):
            RankingOptions(**settings)
    else:
        options = node.options(drop_self=False)
        assert {key: getattr(options, key) for key in settings} == settings


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("ranking: {relevance_level: 0}", "'relevance_level' must be at least 1, not the number 0"),
        (
            "ranking: {relevance_level: 3000000000}",
            "'relevance_level' must be at most 2147483647, not the number 3000000000",
        ),
        ("ranking: {depth: 0}", "'depth' must be at least 1, not the number 0"),
        ("statistics: {confidence: 1}", "'confidence' must be below 1, not the number 1"),
        ("statistics: {confidence: 95%}", "expected a number, found the text '95%'"),
        ("statistics: {seed: -1}", "'seed' must be at least 0, not the number -1"),
        ("limits: {threads: 0}", "'threads' must be at least 1, not the number 0"),
        ("limits: {concurrency: 1025}", "'concurrency' must be at most 1024, not the number 1025"),
        ("limits: {max_cost: -0.01}", "'max_cost' must be at least 0, not the number -0.01"),
        ("gates: [{metric: map, min: 0.1, min_scored: 90}]", "'min_scored' must be at most 1, not the number 90"),
        (
            "gates: [{metric: map, max_drop: -1, baseline: m}]",
            "'max_drop': must be a number of 0 or more such as 0.02, or a share of the baseline's number such as 5%",
        ),
        (
            "statistics: {resamples: 200000000}",
            "'resamples' must be at most 100000000, not the number 200000000",
        ),
    ],
)
def test_bounds(more: str, message: str) -> None:
    assert fault(more) == message


@pytest.mark.parametrize(
    ("written", "errors"),
    [("0", 0), ("10", 10), ("0%", 0.0), ("1%", 0.01), ("12.5 %", 0.125), ("100%", 1.0), ("", None)],
)
def test_errors_are_a_number_or_a_share(written: str, errors: float | None) -> None:
    budget = load(f"limits: {{max_errors: {written}}}").limits.budget()
    assert budget.max_errors == errors
    assert type(budget.max_errors) is type(errors)  # a whole number is a number of questions, a fraction is a share


@pytest.mark.parametrize("written", ["-1", "101%", "1.5", "'1'", "-1%", "1%%", "true", "ten"])
def test_errors_that_are_neither_are_refused(written: str) -> None:
    assert fault(f"limits: {{max_errors: {written}}}")


def test_a_budget_has_the_limits_and_is_unspent() -> None:
    budget = LimitsNode(max_calls=5, max_cost=2.5).budget(retry_failed=True)
    assert (budget.max_calls, budget.max_cost, budget.max_errors, budget.retry_failed) == (
        CallLimits(5, 5),
        2.5,
        None,
        True,
    )
    assert (budget.calls, budget.cost, budget.stopped) == (0, 0.0, None)


@pytest.mark.parametrize("node", [RankingNode(), StatisticsNode(), LimitsNode(), GateNode(metric="map")])
def test_blocks_are_frozen_and_know_their_keys(node: Any) -> None:
    name = next(iter(type(node).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(node, name, getattr(node, name))
    with pytest.raises(ValidationError, match="surplus"):
        type(node).model_validate({**node.model_dump(), "surplus": 1})


def test_a_spec_diagnoses_at_the_nearest_key_it_has() -> None:
    spec = load("gates:\n  - {metric: map, min: 0.5}\n")
    at = {
        key: spec.diagnose(key, "m", "c").position
        for key in [("gates", 0, "min"), ("gates", 0, "max"), ("gates", 7), ("limits", "threads"), ()]
    }
    assert at == {
        ("gates", 0, "min"): Position(6, 24, 3),
        ("gates", 0, "max"): Position(6, 5, 1),
        ("gates", 7): Position(5, 1, 5),
        ("limits", "threads"): Position(1, 1, 1),
        (): Position(1, 1, 1),
    }


def test_newer_keys_of_a_gate_enter_its_content_only_if_they_are_set() -> None:
    gate = {"metric": "map", "min": 0.1}
    assert "decide" not in GateNode.model_validate(gate).content()
    assert GateNode.model_validate(gate | {"decide": "certain"}).content()["decide"] == "certain"


SHORT_SPEC = """\
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
    names = default_blocks("judges")
    assert "overlap" in names
    for name in names:
        spec = loads(SHORT_SPEC % name, check_files=False)
        assert spec.judges[name].use == name
        assert spec.warnings == ()


def test_a_judge_with_a_required_key_is_not_a_default() -> None:
    needing = {"nli", "claims", "cascade", "panel"}
    assert needing <= set(registry.words("judges"))
    assert needing.isdisjoint(default_blocks("judges"))
    assert all(default_block("judges", word) is None for word in needing)


@pytest.mark.parametrize("name", ["", "minilm", "faithfulness", "bm25", "../overlap", "Overlap"])
def test_other_names_are_not_default_judges(name: str) -> None:
    assert default_block("judges", name) is None


def test_only_models_and_judges_have_defaults() -> None:
    models = ("minilm", "multilingual")
    assert default_blocks("models") == {name: {"use": "onnx", "model": name} for name in models}
    assert default_blocks("judges")["overlap"] == {"use": "overlap"}
    for section in ("datasets", "systems", "metrics", "gates", ""):
        assert default_blocks(section) == {}


def test_callers_cannot_change_a_default() -> None:
    for section in ("models", "judges"):
        for block in default_blocks(section).values():
            with pytest.raises(TypeError):
                block["use"] = "other"  # type: ignore[index]
