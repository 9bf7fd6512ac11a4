from __future__ import annotations

from pathlib import Path

from onnx_from_checkpoints.tokenizers.tokenizer_loading import read_tokenizer
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden


def read(folder: Path, text: str, pair: str | None = None, *, golden: str, **files: object) -> list[str]:
    """The tokens of a text or of a pair."""
    found = read_tokenizer(folder, copy_golden(golden, folder, **files))
    assert found is not None
    return list(found.tokenizer.encode(text, pair).tokens)


def test_each_text_of_a_pair_has_an_end_and_no_start(tmp_path: Path) -> None:
    assert read(tmp_path, "", "", golden="t5") == ["</s>", "</s>"]


def test_sentinels_count_down_to_the_last_id(tmp_path: Path) -> None:
    found = read_tokenizer(tmp_path, copy_golden("t5", tmp_path))
    assert found is not None
    last = found.tokenizer.token_to_id("<extra_id_0>")
    assert last is not None
    assert found.tokenizer.token_to_id("<extra_id_99>") == last - 99
    assert read(tmp_path, "<extra_id_7>", golden="t5")[-2:] == ["<extra_id_7>", "</s>"]
