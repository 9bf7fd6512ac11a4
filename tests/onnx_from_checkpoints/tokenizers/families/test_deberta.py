from __future__ import annotations

from pathlib import Path

from onnx_from_checkpoints.tokenizers.tokenizer_loading import read_tokenizer
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden


def read(folder: Path, text: str, pair: str | None = None, *, golden: str, **files: object) -> list[str]:
    """The tokens of a text or of a pair."""
    found = read_tokenizer(folder, copy_golden(golden, folder, **files))
    assert found is not None
    return list(found.tokenizer.encode(text, pair).tokens)


def test_a_pair_has_one_separator_between_its_texts(tmp_path: Path) -> None:
    tokens = read(tmp_path, "a", "b", golden="deberta")
    assert (tokens[0], tokens[-1], tokens.count("[SEP]")) == ("[CLS]", "[SEP]", 2)


def test_several_spaces_count_as_one(tmp_path: Path) -> None:
    assert read(tmp_path, "a   b ", golden="deberta") == read(tmp_path, "a b", golden="deberta")


def test_texts_are_lowercased_only_if_the_file_says_so(tmp_path: Path) -> None:
    config = {"tokenizer_class": "DebertaV2Tokenizer"}
    upper, lower = (read(tmp_path, text, golden="deberta", tokenizer_config=config) for text in ("THE", "the"))
    assert upper != lower
    assert read(tmp_path, "THE", golden="deberta", tokenizer_config=config | {"do_lower_case": True}) == lower
