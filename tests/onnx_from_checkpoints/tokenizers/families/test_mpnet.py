from __future__ import annotations

from pathlib import Path

from onnx_from_checkpoints.tokenizers.tokenizer_loading import read_tokenizer
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden


def read(folder: Path, text: str, pair: str | None = None, *, golden: str, **files: object) -> list[str]:
    """The tokens of a text or of a pair."""
    found = read_tokenizer(folder, copy_golden(golden, folder, **files))
    assert found is not None
    return list(found.tokenizer.encode(text, pair).tokens)


def test_a_pair_has_the_special_tokens_of_roberta(tmp_path: Path) -> None:
    assert read(tmp_path, "", "", golden="mpnet") == ["<s>", "</s>", "</s>", "</s>"]


def test_texts_are_lowercased(tmp_path: Path) -> None:
    assert read(tmp_path, "THE", golden="mpnet") == read(tmp_path, "the", golden="mpnet")
