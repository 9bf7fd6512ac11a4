""""""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken, TokenizerSettings
from onnx_from_checkpoints.tokenizers.tokenizer_loading import read_tokenizer
from tests.onnx_from_checkpoints.folders import write_json
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden

MASK = {"content": "[MASK]", "lstrip": True, "normalized": False, "rstrip": False, "single_word": False}


def settings_of(folder: Path, **files: object) -> TokenizerSettings:
    for name, content in files.items():
        write_json(folder / f"{name}.json", content)
    return TokenizerSettings(folder)


def test_a_folder_without_files(tmp_path: Path) -> None:
    settings = TokenizerSettings(tmp_path)
    assert (settings.classes, settings.extra(), settings.added) == ((), [], ())
    assert settings.config.flag("do_lower_case", True) and settings.config.whole("extra_ids", 100, least=0) == 100
    assert settings.role("cls_token", SpecialToken("[CLS]")) == SpecialToken("[CLS]")
    assert settings.role("cls_token", None) is None


def test_the_class_of_the_tokenizer_is_named_before_that_of_the_model(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path, tokenizer_config={"tokenizer_class": "ATokenizerFast"}, config={"tokenizer_class": "BTokenizer"}
    )
    assert settings.classes == ("ATokenizer", "BTokenizer")


def test_a_role_is_a_text_or_an_object(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        tokenizer_config={"mask_token": {"__type": "AddedToken", **MASK}, "cls_token": "<c>", "sep_token": None},
    )
    mask, cls = settings.role("mask_token", None), settings.role("cls_token", SpecialToken("[CLS]", lstrip=True))
    assert mask is not None and (mask.content, mask.lstrip, mask.special) == ("[MASK]", True, True)
    assert cls is not None and (cls.content, cls.lstrip) == ("<c>", True)
    assert cls.named == f"{tmp_path / 'tokenizer_config.json'}: 'cls_token'"
    assert settings.role("sep_token", SpecialToken("[SEP]")) is None


def test_the_older_files_count_only_without_added_tokens_decoder(tmp_path: Path) -> None:
    older = {
        "special_tokens_map": {"cls_token": "<old>", "additional_special_tokens": ["<extra>"]},
        "added_tokens": {"<extra>": 8, "<more>": 7, "<old>": 6},
    }
    settings = settings_of(tmp_path, tokenizer_config={"cls_token": "<new>"}, **older)
    found = settings.role("cls_token", None)
    assert found is not None and found.content == "<old>"
    assert [(token.content, token.id, token.special) for token in settings.added] == [
        ("<old>", 6, True),
        ("<more>", 7, False),
        ("<extra>", 8, True),
    ]
    decoder = {"9": {**MASK, "special": True}, "8": {"content": "<x>", "normalized": True}}
    settings = settings_of(tmp_path, tokenizer_config={"cls_token": "<new>", "added_tokens_decoder": decoder}, **older)
    found = settings.role("cls_token", None)
    assert found is not None and found.content == "<new>"
    assert [(token.content, token.id, token.special, token.lstrip) for token in settings.added] == [
        ("<x>", 8, False, False),
        ("[MASK]", 9, True, True),
    ]


def test_further_special_tokens(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        special_tokens_map={"additional_special_tokens": ["<a>", MASK]},
        tokenizer_config={"extra_special_tokens": {"image_token": "<b>"}, "additional_special_tokens": ["<a>"]},
    )
    assert [token.content for token in settings.extra()] == ["<a>", "[MASK]", "<b>"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tokenizer_config", {"do_lower_case": "no"}, "'do_lower_case' must be true or false, but is 'no'"),
        ("tokenizer_config", {"extra_ids": -1}, "'extra_ids' must be a whole number from 0 up, but is -1"),
        ("tokenizer_config", {"extra_ids": True}, "'extra_ids' must be a whole number from 0 up, but is True"),
        ("tokenizer_config", {"cls_token": 7}, "'cls_token' must be a token, but is 7"),
        ("tokenizer_config", {"cls_token": {"lstrip": True}}, "'cls_token' must be a token"),
        ("tokenizer_config", {"added_tokens_decoder": []}, "'added_tokens_decoder' must be an object"),
        ("tokenizer_config", {"added_tokens_decoder": {"x": MASK}}, "'added_tokens_decoder.x' must be an id as its"),
        ("tokenizer_config", {"added_tokens_decoder": {"\u00b2": MASK}}, "must be an id as its name, but is"),
        ("tokenizer_config", {"added_tokens_decoder": {"1": 5}}, "'added_tokens_decoder.1' must be a token"),
        ("tokenizer_config", {"additional_special_tokens": "<a>"}, "'additional_special_tokens' must be a list of"),
        ("tokenizer_config", [], "must be an object"),
        ("special_tokens_map", {"cls_token": ""}, "'cls_token' must be a token, but is ''"),
        ("added_tokens", {"<a>": "7"}, "'<a>' must be an id, but is '7'"),
    ],
)
def test_values_of_another_kind(tmp_path: Path, file: str, content: object, message: str) -> None:
    with pytest.raises(DamagedFile) as caught:
        settings = settings_of(tmp_path, **{file: content})
        settings.config.flag("do_lower_case", True)
        settings.config.whole("extra_ids", 0, least=0)
        list(settings.added)
        settings.extra()
        settings.role("cls_token", None)
    assert str(caught.value).startswith(f"{tmp_path / file}.json:") and message in str(caught.value)


def read(folder: Path, names: list[str], text: str) -> list[int]:
    found = read_tokenizer(folder, names)
    assert found is not None
    return list(found.tokenizer.encode(text).ids)


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
        read_tokenizer(tmp_path, names)


@pytest.mark.parametrize(
    ("family", "token", "role"),
    [("bert", "[SEP]", "sep_token"), ("bert", "[CLS]", "cls_token"), ("mpnet", "</s>", "sep_token")],
)
def test_a_vocabulary_without_a_special_token(tmp_path: Path, family: str, token: str, role: str) -> None:
    names = copy_golden(family, tmp_path)
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text("utf-8").replace(f"{token}\n", "[gone]\n"), "utf-8")
    with pytest.raises(DamagedFile) as caught:
        read_tokenizer(tmp_path, names)
    assert str(caught.value).startswith(f"{vocabulary}: has no token {token}, which the model needs as its {role};")


def test_a_vocabulary_without_a_token_that_a_file_names(tmp_path: Path) -> None:
    names = copy_golden("deberta", tmp_path, tokenizer_config={"sep_token": "[END]"})
    with pytest.raises(
        DamagedFile, match=r"spm\.model: has no token \[END\], which .*tokenizer_config\.json: 'sep_token' names;"
    ):
        read_tokenizer(tmp_path, names)


def test_a_special_token_that_is_null(tmp_path: Path) -> None:
    names = copy_golden("bert", tmp_path, tokenizer_config={"cls_token": None})
    with pytest.raises(DamagedFile, match=r"tokenizer_config\.json: 'cls_token' is null, but the model needs one"):
        read_tokenizer(tmp_path, names)


def test_padding_is_compared_where_positions_are_counted_from_it(tmp_path: Path) -> None:
    names = copy_golden("xlm_roberta", tmp_path, config={"model_type": "xlm-roberta", "pad_token_id": 0})
    with pytest.raises(
        DamagedFile,
        match=r"config\.json: says that 'pad_token_id' is 0, but the id of <pad> in sentencepiece\.bpe\.model is 1",
    ):
        read_tokenizer(tmp_path, names)
    # As in multilingual MiniLM: a BERT with XLM-RoBERTa's tokenizer and its own idea of padding.
    copy_golden(
        "xlm_roberta",
        tmp_path,
        config={"model_type": "bert", "pad_token_id": 0, "tokenizer_class": "XLMRobertaTokenizer"},
    )
    assert read_tokenizer(tmp_path, names) is not None
