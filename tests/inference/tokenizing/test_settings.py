from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.tokenizing.settings import Settings, Token
from tests.inference.folders import write_json

MASK = {"content": "[MASK]", "lstrip": True, "normalized": False, "rstrip": False, "single_word": False}


def settings_of(folder: Path, **files: object) -> Settings:
    for name, content in files.items():
        write_json(folder / f"{name}.json", content)
    return Settings(folder)


def test_a_folder_without_files(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    assert (settings.classes, settings.model_type, settings.extra(), settings.added) == ((), "", [], ())
    assert settings.flag("do_lower_case", True) and settings.count("extra_ids", 100) == 100
    assert settings.role("cls_token", Token("[CLS]")) == Token("[CLS]")
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
    mask, cls = settings.role("mask_token", None), settings.role("cls_token", Token("[CLS]", lstrip=True))
    assert mask is not None and (mask.content, mask.lstrip, mask.special) == ("[MASK]", True, True)
    assert cls is not None and (cls.content, cls.lstrip) == ("<c>", True)
    assert cls.named == f"{tmp_path / 'tokenizer_config.json'}: 'cls_token'"
    assert settings.role("sep_token", Token("[SEP]")) is None


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
        ("tokenizer_config", {"extra_ids": -1}, "'extra_ids' must be a number, 0 or more, but is -1"),
        ("tokenizer_config", {"extra_ids": True}, "'extra_ids' must be a number, 0 or more, but is True"),
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
        settings.flag("do_lower_case", True)
        settings.count("extra_ids", 0)
        list(settings.added)
        settings.extra()
        settings.role("cls_token", None)
    assert str(caught.value).startswith(f"{tmp_path / file}.json:") and message in str(caught.value)
