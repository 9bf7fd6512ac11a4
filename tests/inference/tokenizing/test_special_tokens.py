from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.tokenizing.loading import load_fast
from rageval_spec.inference.tokens import load_tokenizer
from tests.inference.tokenizing.vocabularies import copy_golden


def read(folder: Path, names: list[str], text: str) -> list[int]:
    found: list[int] = load_tokenizer(folder, names, max_length=None).read([text]).ids[0].tolist()
    return found


def test_added_tokens_are_found_in_a_text(tmp_path: Path) -> None:
    names = copy_golden("bert", tmp_path)
    size = len((tmp_path / "vocab.txt").read_text("utf-8").splitlines())
    copy_golden("bert", tmp_path, added_tokens={"[MORE]": size, "<even more>": size + 1})
    assert read(tmp_path, [*names, "added_tokens.json"], "[MORE]<even more>") == [2, size, size + 1, 3]


def test_other_special_tokens_are_used_in_the_template(tmp_path: Path) -> None:
    names = copy_golden("bert", tmp_path, special_tokens_map={"cls_token": "[SEP]", "sep_token": "[MASK]"})
    assert read(tmp_path, names, "") == [3, 4]


def test_mask_follows_the_pieces_of_deberta(tmp_path: Path) -> None:
    names = copy_golden("deberta", tmp_path)
    size = read(tmp_path, names, "[MASK]")[1]
    copy_golden("deberta", tmp_path, added_tokens={"[MASK]": size})
    assert read(tmp_path, names, "[MASK]") == [1, size, 2]
    copy_golden("deberta", tmp_path, added_tokens={"[MASK]": size + 1})
    with pytest.raises(
        DamagedFile,
        match=rf"added_tokens\.json: '\[MASK\]' gives \[MASK\] the id {size + 1}, but with the vocabulary in "
        rf"spm\.model its id is {size}; the files belong to different models",
    ):
        load_fast(tmp_path, names)


@pytest.mark.parametrize(
    ("family", "token", "role"),
    [("bert", "[SEP]", "sep_token"), ("bert", "[CLS]", "cls_token"), ("mpnet", "</s>", "sep_token")],
)
def test_a_vocabulary_without_a_special_token(tmp_path: Path, family: str, token: str, role: str) -> None:
    names = copy_golden(family, tmp_path)
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text("utf-8").replace(f"{token}\n", "[gone]\n"), "utf-8")
    with pytest.raises(DamagedFile) as caught:
        load_fast(tmp_path, names)
    assert str(caught.value).startswith(f"{vocabulary}: has no token {token}, which the model needs as its {role};")


def test_a_vocabulary_without_a_token_that_a_file_names(tmp_path: Path) -> None:
    names = copy_golden("deberta", tmp_path, tokenizer_config={"sep_token": "[END]"})
    with pytest.raises(
        DamagedFile, match=r"spm\.model: has no token \[END\], which .*tokenizer_config\.json: 'sep_token' names;"
    ):
        load_fast(tmp_path, names)


def test_a_special_token_that_is_null(tmp_path: Path) -> None:
    names = copy_golden("bert", tmp_path, tokenizer_config={"cls_token": None})
    with pytest.raises(DamagedFile, match=r"tokenizer_config\.json: 'cls_token' is null, but the model needs one"):
        load_fast(tmp_path, names)


def test_padding_is_compared_where_positions_are_counted_from_it(tmp_path: Path) -> None:
    names = copy_golden("xlm_roberta", tmp_path, config={"model_type": "xlm-roberta", "pad_token_id": 0})
    with pytest.raises(
        DamagedFile,
        match=r"config\.json: says that 'pad_token_id' is 0, but the id of <pad> in sentencepiece\.bpe\.model is 1",
    ):
        load_fast(tmp_path, names)
    # As in multilingual MiniLM: a BERT with XLM-RoBERTa's tokenizer and its own idea of padding.
    copy_golden(
        "xlm_roberta",
        tmp_path,
        config={"model_type": "bert", "pad_token_id": 0, "tokenizer_class": "XLMRobertaTokenizer"},
    )
    assert load_fast(tmp_path, names) is not None


def test_an_id_that_the_model_does_not_know(tmp_path: Path) -> None:
    names = copy_golden("bert", tmp_path)
    tokenizer = load_tokenizer(tmp_path, names, max_length=None, vocabulary=300)
    with pytest.raises(DataError, match=r"vocab\.txt: the tokenizer does not match the model: it gives the id \d+"):
        tokenizer.read(["the quick brown fox na\u00efve caf\u00e9 Z\u00fcrich"])
