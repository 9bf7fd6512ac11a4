from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.commands.benchmark.models import Models, describe_model
from rageval_spec.commands.benchmark.pieces import RefusedError, read_pieces
from rageval_spec.spec.reading import YamlMapping, to_data


def name(models: Models, text: str) -> str:
    (piece,) = read_pieces("--system", [text])
    return models.name(piece)


def test_each_model_is_declared_once_and_minilm_needs_no_declaration() -> None:
    models = Models()
    assert [name(models, text) for text in ("minilm", "a/e5", "a/e5", "b/e5")] == ["minilm", "e5", "e5", "e5-2"]
    blocks = {key: to_data(entry.value) for key, entry in models.blocks.items()}
    assert blocks == {"e5": {"use": "onnx", "model": "a/e5"}, "e5-2": {"use": "onnx", "model": "b/e5"}}
    assert all(isinstance(entry.value, YamlMapping) for entry in models.blocks.values())


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "the name of a model is missing"), ("gone.onnx", "there is no file"), ("minilmm", "did you mean 'minilm'")],
)
def test_text_that_is_not_a_model_is_refused(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError) as refused:
        name(Models(), text)
    assert told in str(refused.value.diagnostics[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("intfloat/e5-small-v2", "e5-small-v2"),
        ("models/ours/onnx/model.onnx", "ours"),
        ("models/model.onnx", "model"),
        ("cache/ours/snapshots/" + "0a" * 20, "ours"),
    ],
)
def test_a_model_is_named_after_the_distinctive_part_of_its_path(text: str, expected: str) -> None:
    assert describe_model(text) == expected
