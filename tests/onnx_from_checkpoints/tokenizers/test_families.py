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


def test_a_pair_of_bert_has_one_separator_between_its_texts(tmp_path: Path) -> None:
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


def test_pieces_come_after_five_tokens_of_fairseq(tmp_path: Path) -> None:
    names = copy_golden("xlm_roberta", tmp_path, config={"model_type": "camembert"})
    found = read_tokenizer(tmp_path, names)
    assert found is not None
    first = [found.tokenizer.id_to_token(number) for number in range(5)]
    assert first == ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"]


def test_a_pair_of_camembert_has_two_ends_between_its_texts(tmp_path: Path) -> None:
    tokens = read(tmp_path, "a", "b", golden="xlm_roberta", config={"model_type": "camembert"})
    assert (tokens[0], tokens[-1], tokens.count("</s>")) == ("<s>", "</s>", 3)


def test_a_pair_of_deberta_has_one_separator_between_its_texts(tmp_path: Path) -> None:
    tokens = read(tmp_path, "a", "b", golden="deberta")
    assert (tokens[0], tokens[-1], tokens.count("[SEP]")) == ("[CLS]", "[SEP]", 2)


def test_several_spaces_count_as_one(tmp_path: Path) -> None:
    assert read(tmp_path, "a   b ", golden="deberta") == read(tmp_path, "a b", golden="deberta")


def test_texts_of_deberta_are_lowercased_only_if_the_file_says_so(tmp_path: Path) -> None:
    config = {"tokenizer_class": "DebertaV2Tokenizer"}
    upper, lower = (read(tmp_path, text, golden="deberta", tokenizer_config=config) for text in ("THE", "the"))
    assert upper != lower
    assert read(tmp_path, "THE", golden="deberta", tokenizer_config=config | {"do_lower_case": True}) == lower


def test_a_pair_of_mpnet_has_the_special_tokens_of_roberta(tmp_path: Path) -> None:
    assert read(tmp_path, "", "", golden="mpnet") == ["<s>", "</s>", "</s>", "</s>"]


def test_texts_of_mpnet_are_lowercased(tmp_path: Path) -> None:
    assert read(tmp_path, "THE", golden="mpnet") == read(tmp_path, "the", golden="mpnet")


def test_a_pair_of_roberta_has_two_ends_between_its_texts(tmp_path: Path) -> None:
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


def test_each_text_of_a_pair_has_an_end_and_no_start(tmp_path: Path) -> None:
    assert read(tmp_path, "", "", golden="t5") == ["</s>", "</s>"]


def test_sentinels_count_down_to_the_last_id(tmp_path: Path) -> None:
    found = read_tokenizer(tmp_path, copy_golden("t5", tmp_path))
    assert found is not None
    last = found.tokenizer.token_to_id("<extra_id_0>")
    assert last is not None
    assert found.tokenizer.token_to_id("<extra_id_99>") == last - 99
    assert read(tmp_path, "<extra_id_7>", golden="t5")[-2:] == ["<extra_id_7>", "</s>"]


def test_padding_is_among_the_first_ids_and_the_mask_is_last(tmp_path: Path) -> None:
    found = read_tokenizer(tmp_path, copy_golden("xlm_roberta", tmp_path))
    assert found is not None
    assert [found.tokenizer.id_to_token(number) for number in range(4)] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert found.tokenizer.token_to_id("<mask>") == found.tokenizer.get_vocab_size() - 1


def test_a_pair_of_xlm_roberta_has_two_ends_between_its_texts(tmp_path: Path) -> None:
    tokens = read(tmp_path, "a", "b", golden="xlm_roberta")
    assert (tokens[0], tokens[-1], tokens.count("</s>")) == ("<s>", "</s>", 3)
