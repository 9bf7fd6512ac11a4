from __future__ import annotations

from pathlib import Path

from onnx_from_checkpoints.tokenizers.tokenizer_loading import read_tokenizer
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden


def read(folder: Path, text: str, pair: str | None = None, *, golden: str, **files: object) -> list[str]:
    """The tokens of a text or of a pair."""
    found = read_tokenizer(folder, copy_golden(golden, folder, **files))
    assert found is not None
    return list(found.tokenizer.encode(text, pair).tokens)


def test_padding_is_among_the_first_ids_and_the_mask_is_last(tmp_path: Path) -> None:
    found = read_tokenizer(tmp_path, copy_golden("xlm_roberta", tmp_path))
    assert found is not None
    assert [found.tokenizer.id_to_token(number) for number in range(4)] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert found.tokenizer.token_to_id("<mask>") == found.tokenizer.get_vocab_size() - 1


def test_a_pair_has_two_ends_between_its_texts(tmp_path: Path) -> None:
    tokens = read(tmp_path, "a", "b", golden="xlm_roberta")
    assert (tokens[0], tokens[-1], tokens.count("</s>")) == ("<s>", "</s>", 3)
