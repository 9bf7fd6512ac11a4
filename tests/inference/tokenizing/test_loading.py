from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.tokenizing.loading import load_fast
from tests.inference.tokenizing.vocabularies import FAMILIES, copy_golden


def test_a_family_that_is_not_known(tmp_path: Path) -> None:
    names = copy_golden("xlm_roberta", tmp_path, tokenizer_config={"tokenizer_class": "AlbertTokenizer"})
    assert load_fast(tmp_path, names) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_become_text_again_because_other_programs_read_exports(family: str, tmp_path: Path) -> None:
    found = load_fast(tmp_path, copy_golden(family, tmp_path))
    assert found is not None
    assert found.tokenizer.decode(found.tokenizer.encode("the quick brown fox").ids) == "the quick brown fox"


def test_a_missing_file(tmp_path: Path) -> None:
    names = copy_golden("roberta", tmp_path)
    names.remove("merges.txt")
    with pytest.raises(DamagedFile, match=r"its tokenizer needs vocab.json and merges.txt, but merges.txt is missing"):
        load_fast(tmp_path, names)
