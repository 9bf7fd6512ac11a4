""""""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers.families import BERT, DEBERTA, MPNET, XLM_ROBERTA
from onnx_from_checkpoints.tokenizers.families import FAMILIES as KNOWN_FAMILIES
from onnx_from_checkpoints.tokenizers.special_tokens import TokenizerSettings
from onnx_from_checkpoints.tokenizers.tokenizer_loading import find_family, read_tokenizer
from tests.onnx_from_checkpoints.folders import write_json
from tests.onnx_from_checkpoints.tokenizers.vocabularies import FAMILIES as GOLDEN_FAMILIES
from tests.onnx_from_checkpoints.tokenizers.vocabularies import GOLDEN, copy_golden


def test_a_family_that_is_not_known(tmp_path: Path) -> None:
    names = copy_golden("xlm_roberta", tmp_path, tokenizer_config={"tokenizer_class": "AlbertTokenizer"})
    assert read_tokenizer(tmp_path, names) is None


@pytest.mark.parametrize("family", GOLDEN_FAMILIES)
def test_tokens_become_text_again_because_other_programs_read_exports(family: str, tmp_path: Path) -> None:
    found = read_tokenizer(tmp_path, copy_golden(family, tmp_path))
    assert found is not None
    assert found.tokenizer.decode(found.tokenizer.encode("the quick brown fox").ids) == "the quick brown fox"


def test_a_missing_file(tmp_path: Path) -> None:
    names = copy_golden("roberta", tmp_path)
    names.remove("merges.txt")
    with pytest.raises(DamagedFile, match=r"its tokenizer needs vocab.json and merges.txt, but merges.txt is missing"):
        read_tokenizer(tmp_path, names)


WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "the", "Cat", "\u00e9", "e", "\u4f60", "\u4f60\u4f60")
CASED = normalizers.BertNormalizer(lowercase=False)
LOWER = normalizers.BertNormalizer(lowercase=True)


def write_bert(
    folder: Path, normalizer: Any = LOWER, *, template: bool = True, model_type: str = "bert", **config: Any
) -> Path:
    """A tokenizer.json of BERT's kind, with tokenizer_config.json and config.json."""
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(WORDS[:5]))
    if template:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", config)
    write_json(folder / "config.json", {"model_type": model_type})
    return folder


def spell(folder: Path, text: str | tuple[str, str]) -> list[str]:
    return [WORDS[number] for number in open_tokenizer(folder).encode(*([text] if isinstance(text, str) else text)).ids]


def open_tokenizer(folder: Path) -> Tokenizer:
    found = read_tokenizer(folder)
    assert found is not None
    return found.tokenizer


@pytest.mark.parametrize(
    ("normalizer", "config", "words"),
    [
        # What AutoTokenizer of transformers 4.57 and 5.23 gives for the same files.
        (CASED, {"do_lower_case": True}, ["cat", "e", "\u4f60", "\u4f60"]),
        (LOWER, {"do_lower_case": False}, ["Cat", "\u00e9", "\u4f60", "\u4f60"]),
        (LOWER, {"strip_accents": False}, ["cat", "\u00e9", "\u4f60", "\u4f60"]),
        (normalizers.BertNormalizer(strip_accents=False), {"strip_accents": None}, ["cat", "e", "\u4f60", "\u4f60"]),
        (LOWER, {"tokenize_chinese_chars": False}, ["cat", "e", "\u4f60\u4f60"]),
        (LOWER, {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False},
         ["cat", "e", "\u4f60", "\u4f60"]),
        (LOWER, {"tokenizer_class": "DistilBertTokenizerFast", "do_lower_case": False},
         ["Cat", "\u00e9", "\u4f60", "\u4f60"]),
        # Here transformers would lowercase, because its class does so unless it is told otherwise.
        (CASED, {}, ["Cat", "\u00e9", "\u4f60", "\u4f60"]),
    ],
)  # fmt: skip
def test_tokenizer_config_counts_more_than_the_normalizer(
    tmp_path: Path, normalizer: Any, config: dict[str, Any], words: list[str]
) -> None:
    write_bert(tmp_path, normalizer, **config)
    assert spell(tmp_path, "Cat \u00e9 \u4f60\u4f60") == ["[CLS]", *words, "[SEP]"]


def test_a_normalizer_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    write_bert(tmp_path, normalizers.Sequence([normalizers.Lowercase()]), do_lower_case=False)
    assert spell(tmp_path, "CAT") == ["[CLS]", "cat", "[SEP]"]


def test_special_tokens_in_a_text_are_split_if_the_file_says_so(tmp_path: Path) -> None:
    assert spell(write_bert(tmp_path), "[SEP]") == ["[CLS]", "[SEP]", "[SEP]"]
    assert spell(write_bert(tmp_path, split_special_tokens=True), "[SEP]") == [
        "[CLS]", "[UNK]", "[UNK]", "[UNK]", "[SEP]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "config", [{}, {"tokenizer_class": "BertTokenizer"}, {"tokenizer_class": "ElectraTokenizerFast"}]
)
def test_a_missing_template_is_that_of_the_class(tmp_path: Path, config: dict[str, Any]) -> None:
    write_bert(tmp_path, template=False, **config)
    assert spell(tmp_path, "the cat") == ["[CLS]", "the", "cat", "[SEP]"]
    assert spell(tmp_path, ("the", "cat")) == ["[CLS]", "the", "[SEP]", "cat", "[SEP]"]


def test_a_template_needs_its_tokens(tmp_path: Path) -> None:
    write_bert(tmp_path, template=False, sep_token="[END]")
    with pytest.raises(
        DamagedFile, match=r"tokenizer\.json: has no token \[END\], which .*tokenizer_config\.json: 'sep_token' names"
    ):
        read_tokenizer(tmp_path, ["tokenizer.json"])
    write_bert(tmp_path, template=False, tokenizer_class="RobertaTokenizer")
    with pytest.raises(DamagedFile, match=r"has no token <s>, which the model needs as its cls_token"):
        read_tokenizer(tmp_path, ["tokenizer.json"])


def test_a_generic_class_has_no_template(tmp_path: Path) -> None:
    write_bert(tmp_path, template=False, tokenizer_class="PreTrainedTokenizerFast")
    assert spell(tmp_path, "the cat") == ["the", "cat"]


def write_bytes(folder: Path, **config: object) -> Path:
    """A tokenizer.json of RoBERTa's kind."""
    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "\u0120", "\u0120a"]
    tokenizer = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, [("\u0120", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.add_special_tokens(words[:5])
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", config)
    return folder


@pytest.mark.parametrize(
    ("config", "ids"),
    [
        ({}, [0, 5, 2]),
        ({"add_prefix_space": True}, [0, 7, 2]),
        ({"add_prefix_space": True, "tokenizer_class": "PreTrainedTokenizerFast"}, [0, 5, 2]),
    ],
)
def test_a_space_is_put_first_if_tokenizer_config_says_so(
    tmp_path: Path, config: dict[str, Any], ids: list[int]
) -> None:
    write_bytes(tmp_path, **config)
    write_json(tmp_path / "config.json", {"model_type": "roberta"})
    assert open_tokenizer(tmp_path).encode("a").ids == ids


def test_padding_is_compared_where_positions_are_counted_from_it(tmp_path: Path) -> None:
    write_bytes(tmp_path)
    for config in ({"model_type": "roberta"}, {"model_type": "roberta", "pad_token_id": 1}, {"model_type": "bert"}):
        write_json(tmp_path / "config.json", config)
        write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": "RobertaTokenizer"})
        assert read_tokenizer(tmp_path, ["tokenizer.json"]) is not None
    write_json(tmp_path / "config.json", {"model_type": "roberta", "pad_token_id": 0})
    with pytest.raises(
        DamagedFile, match=r"config\.json: says that 'pad_token_id' is 0, but the id of <pad> in tokenizer\.json is 1"
    ):
        read_tokenizer(tmp_path, ["tokenizer.json"])


TEMPLATE = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 5)])


@pytest.mark.parametrize(
    "processor",
    [
        processors.BertProcessing(("[SEP]", 5), ("[CLS]", 2)),
        TEMPLATE,
        processors.Sequence([processors.ByteLevel(), TEMPLATE]),
    ],
)
def test_a_template_has_the_ids_of_the_vocabulary(tmp_path: Path, processor: Any) -> None:
    path = write_bert(tmp_path) / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.post_processor = processor
    tokenizer.save(str(path))
    with pytest.raises(
        DamagedFile, match=r"'post_processor' gives \[SEP\] the id 5, but the vocabulary gives it 3; write the id"
    ):
        read_tokenizer(tmp_path, ["tokenizer.json"])


TEXTS: list[str] = json.loads((GOLDEN / "texts.json").read_text("ascii"))


@pytest.mark.parametrize("name", GOLDEN_FAMILIES)
def test_the_tokens_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    expected: dict[str, Any] = json.loads((GOLDEN / name / "expected.json").read_text("ascii"))
    copy_golden(name, tmp_path)
    tokenizer = open_tokenizer(tmp_path)
    pairs = list(zip(TEXTS, [*TEXTS[1:], *TEXTS[:1]], strict=True))[-len(expected["pair"]) :]
    assert [one.ids for one in tokenizer.encode_batch(TEXTS)] == expected["single"]
    read = tokenizer.encode_batch(pairs)
    assert [one.ids for one in read] == expected["pair"]
    assert [one.type_ids for one in read] == expected["types"]
    tokenizer.enable_truncation(expected["most"])
    assert [one.ids for one in tokenizer.encode_batch(TEXTS[-len(expected["cut"]) :])] == expected["cut"]


def test_there_are_texts_in_many_scripts() -> None:
    assert len(TEXTS) > 150
    assert all(any(first <= character <= last for text in TEXTS for character in text) for first, last in (
        "\u0370\u03ff", "\u0400\u04ff", "\u0530\u058f", "\u0590\u05ff", "\u0600\u06ff", "\u0700\u074f", "\u0780\u07bf",
        "\u0900\u097f", "\u0980\u09ff", "\u0a00\u0a7f", "\u0a80\u0aff", "\u0b80\u0bff", "\u0c00\u0c7f", "\u0c80\u0cff",
        "\u0d00\u0d7f", "\u0d80\u0dff", "\u0e00\u0e7f", "\u0e80\u0eff", "\u0f00\u0fff", "\u1000\u109f", "\u10a0\u10ff",
        "\u1200\u137f", "\u13a0\u13ff", "\u1780\u17ff", "\u1800\u18af", "\u3040\u309f", "\u30a0\u30ff", "\u4e00\u9fff",
        "\uac00\ud7a3",
    ))  # fmt: skip


def test_the_class_of_the_tokenizer_counts_more_than_the_type_of_the_model(tmp_path: Path) -> None:
    found = {
        ("XLMRobertaTokenizerFast", "bert"): XLM_ROBERTA,
        ("PreTrainedTokenizerFast", "deberta-v2"): DEBERTA,
        ("AlbertTokenizer", "bert"): None,
        (None, "electra"): BERT,
        (None, "mpnet"): MPNET,
        (None, "gpt2"): None,
    }
    for (kind, model_type), family in found.items():
        write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": kind})
        write_json(tmp_path / "config.json", {"model_type": model_type})
        assert find_family(TokenizerSettings(tmp_path)) is family


def test_no_class_or_type_belongs_to_two_families() -> None:
    for names in ([family.classes for family in KNOWN_FAMILIES], [family.model_types for family in KNOWN_FAMILIES]):
        assert sum(map(len, names)) == len(set().union(*names))


def test_camembert_has_the_pieces_of_xlm_roberta_three_ids_later(tmp_path: Path) -> None:
    copy_golden("xlm_roberta", tmp_path / "other")
    copy_golden("xlm_roberta", tmp_path / "camembert", config={"model_type": "camembert"})
    texts = [text for text in TEXTS if "<" not in text and text.isprintable()]
    other, found = (
        open_tokenizer(tmp_path / name).encode_batch([*texts, ("a", "b")]) for name in ("other", "camembert")
    )
    for one, shifted in zip(other, found, strict=True):
        start, *inner, end = one.ids
        assert (start, end) == (0, 2)
        moved = {0: 5, 2: 6, 3: 3}
        assert shifted.ids == [5, *(moved.get(number, number + 3) for number in inner), 6]
