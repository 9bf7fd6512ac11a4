"""Models and judges of a spec: those it declares, the embedded one, and their secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rageval_spec import registry
from rageval_spec.diagnostics import Position, SpecError
from rageval_spec.errors import UsageError
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.plugin import Context
from rageval_spec.spec import Spec, check_inputs, load, loads
from rageval_spec.spec.blocks.spec_node import DEFAULT_MODELS
from tests.spec import plugins

pytestmark = pytest.mark.usefixtures("installation")

DENSE = """\
version: 1
datasets: {support: {use: folder, path: data}}
systems:
  sparse: {use: sparse}
  dense:
    use: dense
    model: minilm
metrics: [ndcg@10]
"""
DECLARED = "models: {minilm: {use: onnx, model: minilm}}\n"


def read(text: str, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Spec:
    return loads(text, overrides=overrides, environment=environment or {}, check_files=False)


def test_the_default_model_exists_if_a_block_names_it() -> None:
    assert {name: node.model_dump() for name, node in read(DENSE).models.items()} == {
        "minilm": {"use": "onnx", "model": "minilm", "precision": "fp32", "max_length": None}
    }
    assert [*read(DENSE.replace("model: minilm", "depth: 5")).models] == ["minilm"]
    assert [*read(DENSE.replace("use: dense\n    model: minilm", "use: sparse")).models] == []


def test_each_embedded_model_needs_no_declaration() -> None:
    spec = read(DENSE.replace("model: minilm", "model: multilingual"))
    assert {name: node.model_dump()["model"] for name, node in spec.models.items()} == {"multilingual": "multilingual"}
    assert {*DEFAULT_MODELS} == {*EMBEDDED}


def test_the_default_model_comes_after_the_declared_ones() -> None:
    declared = "models: {e5: {use: onnx, model: e5}}\n"
    spec = read(DENSE.replace("  sparse: {use: sparse}", "  e5: {use: dense, model: e5}") + declared)
    assert [*spec.models] == ["e5", "minilm"]


def test_a_declaration_wins_over_the_default() -> None:
    spec = read(DENSE + DECLARED.replace("model: minilm", "model: minilm, precision: int8"))
    assert spec.models["minilm"].model_dump()["precision"] == "int8"


def test_declaring_the_default_does_not_change_the_digest() -> None:
    judged = DENSE.replace("[ndcg@10]", "[ndcg@10, {use: faithful, judge: a}]")
    judged += "judges: {a: {use: binary, model: minilm}}\n"
    assert read(DENSE).digest == read(DENSE + DECLARED).digest
    assert read(judged).digest == read(judged + DECLARED).digest
    assert read(DENSE).digest != read(DENSE + DECLARED.replace("minilm}}", "minilm, precision: int8}}")).digest


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("metric", DENSE.replace("ndcg@10", "ndcg@10, {use: faithful, judge: a, models: {en: minilm}}")),
        ("judge", DENSE.replace("ndcg@10", "ndcg@10, {use: faithful, judge: a}")),
    ],
)
def test_judges_and_metrics_can_name_the_default_too(key: str, text: str) -> None:
    text = text.replace("use: dense\n    model: minilm", "use: sparse")
    judge = "minilm" if key == "judge" else "e5"
    text += f"models: {{e5: {{use: onnx, model: e5}}}}\njudges: {{a: {{use: binary, model: {judge}}}}}\n"
    assert "minilm" in read(text).models


def test_a_value_of_the_default_model_can_be_set() -> None:
    spec = read(DENSE, ["models.minilm.precision=int8", "models.minilm.max_length=128"])
    assert spec.models["minilm"].model_dump() == {
        "use": "onnx",
        "model": "minilm",
        "precision": "int8",
        "max_length": 128,
    }
    assert spec.diagnose(("models", "minilm", "precision"), "slow", "speed").path == "--set"
    assert spec.warnings == ()
    assert [d.code for d in read(DENSE, ["systems.dense={use: sparse}", "models.minilm.max_length=8"]).warnings] == [
        "unused-block"
    ]


def test_a_missing_file_of_the_default_model_is_reported_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    (tmp_path / "data").mkdir()
    path.write_text(DENSE)
    spec = load(path, check_files=False)
    (found,) = check_inputs(spec)
    assert (found.code, found.position, found.hint) == (
        "missing-file",
        Position(7, 12, 6),
        "pip install 'rageval-spec[onnx]'",
    )
    path.write_text(DENSE.replace("\n    model: minilm", ""))
    (found,) = check_inputs(load(path, check_files=False))
    assert found.position == Position(5, 3, 5)
    with pytest.raises(SpecError, match="pip install"):
        load(path)


def test_a_default_model_that_cannot_be_built_is_diagnosed_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(plugins.PLUGINS["models"], "onnx")
    with pytest.raises(SpecError) as caught:
        read(DENSE)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.position == Position(7, 12, 6)
    assert diagnostic.message == "the model 'minilm' cannot be used: models: no 'onnx'"


def test_files_of_declared_models_are_checked(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "spec.yaml"
    path.write_text(DENSE + "models:\n  minilm: {use: onnx, model: ./e5}\n")
    (found,) = check_inputs(load(path, check_files=False))
    assert (found.code, found.position) == ("missing-file", Position(10, 30, 4))


REMOTE = DENSE + 'models: {minilm: {use: http, url: "https://example.org", model: e5, api_key: "${secret:KEY}"}}\n'


def test_a_models_secret_is_only_in_its_node() -> None:
    spec = read(REMOTE, environment={"KEY": "hunter2"})
    node = spec.models["minilm"]
    assert isinstance(node, plugins.HttpNode)
    assert node.api_key is not None
    assert node.api_key.reveal() == "hunter2"
    model = registry.load("models", "http")(node, Context("minilm"))
    shown = [
        repr(spec),
        repr(node),
        repr(model.content()),
        repr(model.describe()),
        repr(vars(model)),
        repr(spec.places),
    ]
    assert not [text for text in shown if "hunter2" in text]
    assert model.content()["node"]["api_key"] == "${secret:KEY}"


def test_digests_and_keys_contain_only_the_name_of_a_models_secret() -> None:
    def keys(text: str, **environment: str) -> tuple[str, str]:
        spec = read(text, environment=environment)
        return spec.digest, registry.load("models", "http")(spec.models["minilm"], Context("minilm")).key

    assert keys(REMOTE, KEY="one") == keys(REMOTE, KEY="two")
    other = keys(REMOTE.replace("secret:KEY", "secret:OTHER"), OTHER="one")
    assert not {*other} & {*keys(REMOTE, KEY="one")}


def test_a_models_secret_is_in_no_diagnostic() -> None:
    wrong = REMOTE.replace("model: e5", 'modle: "${secret:KEY}"').replace("model: minilm", "model: e6")
    with pytest.raises(SpecError) as caught:
        read(wrong, environment={"KEY": "hunter2"})
    assert len(caught.value.diagnostics) == 2
    assert "hunter2" not in f"{caught.value}{caught.value.diagnostics!r}"


def test_a_cycle_never_reaches_a_spec() -> None:
    circle = DENSE.replace("sparse: {use: sparse}", "a: {use: hybrid, systems: [dense, a]}")
    with pytest.raises(SpecError, match="the system 'a' names itself"):
        read(circle)


def test_an_override_of_an_undeclared_model_is_explained() -> None:
    with pytest.raises(SpecError, match=r"--set:1:21: the spec has no model 'foo'; there are minilm, multilingual"):
        read(DENSE, ["systems.dense.model=foo"])
    with pytest.raises(SpecError, match="there is no 'e5' under models; there are minilm, multilingual"):
        read(DENSE, ["models.e5.precision=int8"])


def test_a_model_of_the_wrong_kind_is_reported_when_it_is_used() -> None:
    context = Context("dense", models={})
    with pytest.raises(UsageError, match="there is no model 'minilm'"):
        context.model("minilm", plugins.Onnx)
