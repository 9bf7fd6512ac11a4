from __future__ import annotations

from pathlib import Path

import pytest

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers.tokenizer_loading import read_tokenizer
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden


def read(folder: Path, text: str, pair: str | None = None, *, golden: str, **files: object) -> list[str]:
    """The tokens of a text or of a pair."""
    found = read_tokenizer(folder, copy_golden(golden, folder, **files))
    assert found is not None
    return list(found.tokenizer.encode(text, pair).tokens)


def test_a_pair_has_two_ends_between_its_texts(tmp_path: Path) -> None:
    assert read(tmp_path, "", "", golden="roberta") == ["<s>", "</s>", "</s>", "</s>"]


def test_a_space_before_the_text_is_added_only_if_the_file_says_so(tmp_path: Path) -> None:
    plain, spaced = (read(tmp_path, text, golden="roberta") for text in ("the", " the"))
    assert plain != spaced
    assert read(tmp_path, "the", golden="roberta", tokenizer_config={"add_prefix_space": True}) == spaced


def test_damaged_merges_are_named(tmp_path: Path) -> None:
    names = copy_golden("roberta", tmp_path)
    (tmp_path / "merges.txt").write_text("no such pair at all\n", "utf-8")
    with pytest.raises(
        DamagedFile, match=r"vocab\.json: cannot be read as a vocabulary with the merges in merges\.txt"
    ):
        read_tokenizer(tmp_path, names)
