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


def test_a_pair_has_one_separator_between_its_texts(tmp_path: Path) -> None:
    assert read(tmp_path, "", "", golden="bert") == ["[CLS]", "[SEP]", "[SEP]"]


def test_case_is_kept_if_the_file_says_so(tmp_path: Path) -> None:
    lower, upper = (read(tmp_path, text, golden="bert") for text in ("the", "THE"))
    assert lower == upper
    kept = {"do_lower_case": False, "tokenizer_class": "BertTokenizer"}
    assert read(tmp_path, "THE", golden="bert", tokenizer_config=kept) != upper


def test_a_vocabulary_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    names = copy_golden("bert", tmp_path)
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe[PAD]\n")
    with pytest.raises(DamagedFile, match=r"vocab\.txt: cannot be read as a vocabulary with one token a line"):
        read_tokenizer(tmp_path, names)
