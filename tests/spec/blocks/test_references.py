""""""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import registry
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import UsageError
from rageval_spec.spec import Spec, loads
from rageval_spec.spec.text.places import list_hint

TEXT = """\
version: 1
datasets: {d: {use: folder, path: p}}
models: {%s}
judges: {%s}
systems: {%s}
metrics: [%s]
"""
ONNX = "e5: {use: onnx, model: e5}"


def load(models: str = "", judges: str = "", systems: str = "sparse: {use: sparse}", metrics: str = "map") -> Spec:
    return loads(TEXT % (models, judges, systems, metrics), check_files=False)


def found(
    models: str = "", judges: str = "", systems: str = "sparse: {use: sparse}", metrics: str = "map"
) -> list[str]:
    """Errors, or warnings if there are no errors, as `column: message; hint`."""
    try:
        diagnostics = load(models, judges, systems, metrics).warnings
    except SpecError as error:
        diagnostics = error.diagnostics
    return [f"{d.position.column}: {d.message}; {d.hint}" for d in diagnostics]


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize(
    ("names", "hint"),
    [
        ([], None),
        (["a"], "there is a"),
        (["a", "b"], "there are a, b"),
        ([*"abcdefghijklm"], "there are a, b, c, d, e, f, g, h, i, j, k, l, ..."),
    ],
)
def test_names_are_listed_up_to_a_dozen(names: list[str], hint: str | None) -> None:
    assert list_hint(names) == hint


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize(
    ("models", "systems", "expected"),
    [
        ("", "s: {use: dense, model: minlm}", "the spec has no model 'minlm'; did you mean 'minilm'?"),
        (ONNX, "s: {use: dense, model: gpt}", "the spec has no model 'gpt'; there are e5, minilm, multilingual"),
        (ONNX, "s: {use: dense, model: onnx}", "the spec has no model 'onnx'; the block with 'use: onnx' is called e5"),
        (
            "",
            "s: {use: dense, model: onnx}",
            "the spec has no model 'onnx'; declare it: models: {onnx: {use: onnx, ...}}",
        ),
        (
            "",
            "s: {use: dense, model: All/All-MiniLM-L6-V2}",
            "the spec has no model 'All/All-MiniLM-L6-V2'; the embedded model is called 'minilm'",
        ),
        (
            "",
            "s: {use: dense, model: BAAI/BGE-M3}",
            "the spec has no model 'BAAI/BGE-M3'; declare it: models: {bge-m3: {use: onnx, model: BAAI/BGE-M3}}",
        ),
        (
            "",
            "s: {use: dense, model: /}",
            "the spec has no model '/'; declare it: models: {embedder: {use: onnx, model: /}}",
        ),
        (ONNX, "s: {use: dense, model: d}", "the spec has no model 'd'; it is the name of a dataset"),
    ],
)
def test_an_undeclared_model_says_what_to_write(models: str, systems: str, expected: str) -> None:
    (diagnostic,) = found(models, "", systems)
    assert diagnostic.partition(": ")[2] == expected


@pytest.mark.usefixtures("own_plugins")
def test_an_undeclared_system_points_to_the_key_or_the_entry() -> None:
    systems = "a: {use: sparse}, h: {use: hybrid, systems: [a, q], weights: {a: 1, zz: 2}}"
    line = f"systems: {{{systems}}}"
    assert found("", "", systems) == [
        f"{line.index(' q]') + 2}: the spec has no system 'q'; there is a",
        f"{line.index('zz') + 1}: the spec has no system 'zz'; there is a",
    ]


@pytest.mark.usefixtures("own_plugins")
def test_a_model_named_as_a_system_says_what_to_write() -> None:
    (diagnostic,) = found(ONNX, "", "r: {use: rerank, system: minilm, model: e5}")
    assert diagnostic.endswith("it is a model; add a system {use: dense, model: minilm} and name that system")


@pytest.mark.usefixtures("own_plugins")
def test_a_block_does_not_suggest_itself() -> None:
    (diagnostic,) = found("", "", "hybrid: {use: hybrid, systems: [hybrd, hybrd2]}, sparse: {use: sparse}")[:1]
    assert "did you mean 'hybrid'" not in diagnostic


@pytest.mark.usefixtures("own_plugins")
def test_a_long_or_hostile_name_is_shown_short_and_visible() -> None:
    (diagnostic,) = found("", "", 's: {use: dense, model: "%s"}' % ("\\e[31m" + "x" * 5000))
    assert "\x1b" not in diagnostic
    assert len(diagnostic) < 300


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize(
    ("systems", "expected"),
    [
        ("r: {use: rerank, system: r, model: minilm}", "the system 'r' names itself; name another system"),
        (
            "a: {use: hybrid, systems: [s, b]}, b: {use: rerank, system: a, model: minilm}, s: {use: sparse}",
            "these systems refer to each other in a cycle: a -> b -> a; "
            "change one of them so that it does not refer to the others",
        ),
    ],
)
def test_cycles_are_refused(systems: str, expected: str) -> None:
    (diagnostic,) = found("", "", systems)
    assert diagnostic.partition(": ")[2] == expected


@pytest.mark.usefixtures("own_plugins")
@given(st.lists(st.sampled_from("abcde"), min_size=5, max_size=5))
def test_only_rerankers_in_cycles_are_reported(targets: list[str]) -> None:
    """Five systems that each name one of the five: following the names always leads into a cycle."""
    systems = ", ".join(
        f"{own}: {{use: rerank, system: {to}, model: minilm}}" for own, to in zip("abcde", targets, strict=True)
    )
    diagnostics = found("", "", systems)
    circles = set()
    for start in "abcde":
        seen: list[str] = []
        while start not in seen:
            seen.append(start)
            start = targets["abcde".index(start)]
        circles.add(frozenset(seen[seen.index(start) :]))
    assert len(diagnostics) == len(circles)
    assert all(" names itself; " in text or " in a cycle: " in text for text in diagnostics)


@pytest.mark.usefixtures("own_plugins")
def test_unused_models_and_judges_draw_a_warning() -> None:
    warnings = load(ONNX, "j: {use: binary, model: minilm}").warnings
    assert [(d.code, d.severity, d.message) for d in warnings] == [
        ("unused-block", "warning", "no system, judge or metric names the model 'e5'"),
        ("unused-block", "warning", "no judge or metric names the judge 'j'"),
    ]


@pytest.mark.usefixtures("own_plugins")
def test_a_system_that_no_other_names_draws_no_warning() -> None:
    assert load("", "", "a: {use: sparse}, b: {use: dense}").warnings == ()


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize(
    ("systems", "metrics"),
    [
        ("s: {use: dense, model: e6}", "map"),
        ("s: {use: dense, modell: e5}", "map"),
        ("s: {use: sparse}", "{use: faithful, judge: 7}"),
    ],
    ids=["a dangling name", "a wrong block", "a wrong metric"],
)
def test_a_spec_with_other_errors_draws_no_warning_of_unused_blocks(systems: str, metrics: str) -> None:
    assert not [text for text in found(ONNX, "", systems, metrics) if "names the model" in text]


@pytest.mark.usefixtures("own_plugins")
def test_a_secret_is_not_a_name() -> None:
    text = TEXT % ("", "", 's: {use: dense, model: "${secret:KEY}"}', "map")
    with pytest.raises(SpecError) as caught:
        loads(text, environment={"KEY": "hunter2"}, check_files=False)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "misplaced-secret"
    assert "hunter2" not in str(diagnostic)


SPEC = """\
version: 1
datasets: {d: {use: jsonl, path: gold.jsonl}}
systems: {s: {use: file, path: answers.jsonl}}
metrics:
  - exact_match
  - {use: faithfulness, judge: %s}
"""


def load_declared(judge: str, more: str = "") -> Spec:
    return loads(SPEC % judge + more, check_files=False)


def faults(text: str) -> list[tuple[int, str]]:
    with pytest.raises(SpecError) as caught:
        loads(text, check_files=False)
    return [(d.position.line, d.message) for d in caught.value.diagnostics]


def test_unnamed_defaults_are_not_declared() -> None:
    spec = loads(SPEC.replace("  - {use: faithfulness, judge: %s}\n", ""), check_files=False)
    assert (dict(spec.judges), dict(spec.models)) == ({}, {})


def test_defaults_named_by_judges_are_declared_too() -> None:
    spec = load_declared("waterfall")
    assert [*spec.judges] == ["waterfall", "overlap", "embedding"]
    assert [*spec.models] == ["minilm"]


def test_a_default_has_the_place_where_it_is_first_named() -> None:
    spec = load_declared("embedding", "  - {use: answerability, judge: embedding}\n")
    for path in (("judges", "embedding"), ("models", "minilm")):
        found = spec.diagnose(path, "slow", "model")
        assert (found.position.line, found.source_line) == (6, "  - {use: faithfulness, judge: embedding}")


def test_a_declared_block_of_the_same_name_is_kept() -> None:
    spec = load_declared("overlap", "judges: {overlap: {use: embedding, threshold: 0.5}}\n")
    assert spec.judges["overlap"].use == "embedding"
    assert [*spec.judges] == ["overlap"]


def test_the_digest_equals_that_of_the_spec_with_the_blocks_written_out() -> None:
    written = "judges: {embedding: {use: embedding}}\nmodels: {minilm: {use: onnx, model: minilm}}\n"
    assert load_declared("embedding").digest == load_declared("embedding", written).digest
    assert load_declared("embedding").digest != load_declared("overlap").digest


def test_defaults_come_after_declared_blocks() -> None:
    mine = "judges: {mine: {use: embedding, model: e5}}\nmodels: {e5: {use: onnx, model: e5}}\n"
    spec = load_declared("mine", mine + "gates: []\n")
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
