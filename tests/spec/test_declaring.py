from __future__ import annotations

from typing import Any

import pytest

from rageval_spec import registry
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import UsageError
from rageval_spec.spec import Spec, loads

SPEC = """\
version: 1
datasets: {d: {use: jsonl, path: gold.jsonl}}
systems: {s: {use: file, path: answers.jsonl}}
metrics:
  - exact_match
  - {use: faithfulness, judge: %s}
"""


def load(judge: str, more: str = "") -> Spec:
    return loads(SPEC % judge + more, check_files=False)


def faults(text: str) -> list[tuple[int, str]]:
    with pytest.raises(SpecError) as caught:
        loads(text, check_files=False)
    return [(d.position.line, d.message) for d in caught.value.diagnostics]


def test_unnamed_defaults_are_not_declared() -> None:
    spec = loads(SPEC.replace("  - {use: faithfulness, judge: %s}\n", ""), check_files=False)
    assert (dict(spec.judges), dict(spec.models)) == ({}, {})


def test_defaults_named_by_judges_are_declared_too() -> None:
    spec = load("waterfall")
    assert [*spec.judges] == ["waterfall", "overlap", "embedding"]
    assert [*spec.models] == ["minilm"]


def test_a_default_has_the_place_where_it_is_first_named() -> None:
    spec = load("embedding", "  - {use: answerability, judge: embedding}\n")
    for path in (("judges", "embedding"), ("models", "minilm")):
        found = spec.diagnose(path, "slow", "model")
        assert (found.position.line, found.source_line) == (6, "  - {use: faithfulness, judge: embedding}")


def test_a_declared_block_of_the_same_name_is_kept() -> None:
    spec = load("overlap", "judges: {overlap: {use: embedding, threshold: 0.5}}\n")
    assert spec.judges["overlap"].use == "embedding"
    assert [*spec.judges] == ["overlap"]


def test_the_digest_equals_that_of_the_spec_with_the_blocks_written_out() -> None:
    written = "judges: {embedding: {use: embedding}}\nmodels: {minilm: {use: onnx, model: minilm}}\n"
    assert load("embedding").digest == load("embedding", written).digest
    assert load("embedding").digest != load("overlap").digest


def test_defaults_come_after_declared_blocks() -> None:
    mine = "judges: {mine: {use: embedding, model: e5}}\nmodels: {e5: {use: onnx, model: e5}}\n"
    spec = load("mine", mine + "gates: []\n")
    assert ([*spec.judges], [*spec.models]) == (["mine"], ["e5"])
    both = loads(SPEC % "overlap" + "  - {use: completeness, judge: mine}\n" + mine, check_files=False)
    assert [*both.judges] == ["mine", "overlap"]


@pytest.mark.parametrize("section", ["judges", "models"])
def test_a_section_that_cannot_be_read_gets_nothing_added(section: str) -> None:
    ((line, message),) = faults(SPEC % "embedding" + f"{section}: 7\n")
    assert (line, message) == (7, "expected a mapping, found the number 7")


def test_a_default_that_cannot_be_built_is_reported_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load_plugin: Any = registry.load

    def fail(section: registry.Section, word: str) -> Any:
        if (section, word) == ("models", "onnx"):
            raise UsageError("models: no module named 'onnxruntime'")
        return load_plugin(section, word)

    monkeypatch.setattr(registry, "load", fail)
    assert faults(SPEC % "embedding") == [
        (
            6,
            "the model 'minilm' cannot be used: models: no module named 'onnxruntime'",
        )
    ]
