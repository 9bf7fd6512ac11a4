from __future__ import annotations

from pathlib import Path

from onnx_from_checkpoints.tokenizers.tokenizer_loading import read_tokenizer
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden


def read(folder: Path, text: str, pair: str | None = None, *, golden: str, **files: object) -> list[str]:
    """The tokens of a text or of a pair."""
    found = read_tokenizer(folder, copy_golden(golden, folder, **files))
    assert found is not None
    return list(found.tokenizer.encode(text, pair).tokens)


def test_pieces_come_after_five_tokens_of_fairseq(tmp_path: Path) -> None:
    names = copy_golden("xlm_roberta", tmp_path, config={"model_type": "camembert"})
    found = read_tokenizer(tmp_path, names)
    assert found is not None
    first = [found.tokenizer.id_to_token(number) for number in range(5)]
    assert first == ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"]


def test_a_pair_has_two_ends_between_its_texts(tmp_path: Path) -> None:
    tokens = read(tmp_path, "a", "b", golden="xlm_roberta", config={"model_type": "camembert"})
    assert (tokens[0], tokens[-1], tokens.count("</s>")) == ("<s>", "</s>", 3)
