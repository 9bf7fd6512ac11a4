"""Texts in any script are split into words."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.systems.bm25 import Language
from rageval_spec.systems.shared.lexical_tokens import (
    Words,
    choose_tokenizer,
    read_stop_words,
    split_unicode,
)
from tests.reference.bm25s_runs import WORDS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("全文検索 engine", ["全文", "文検", "検索", "engine"]),
        ("中", ["中"]),
        ("ＡＢＣ ｶﾞｷﾞ", ["ABC", "ガギ"]),
        ("서울에서", ["서울", "울에", "에서"]),
        ("ค้นหา", ["ค้น", "นห", "หา"]),
        ("हिन्दी खोज", ["हिन्दी", "खोज"]),
        ("كِتَاب", ["كتاب"]),
        ("naïve e\u0301te\u0301 a 12", ["naïve", "été", "12"]),
        ("", []),
        ("… — ·", []),
    ],
)
def test_words_by_hand(text: str, words: list[str]) -> None:
    assert split_unicode(text) == words


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_ascii_is_split_as_by_the_usual_pattern(text: str) -> None:
    assert split_unicode(text) == re.findall(WORDS, text)


@given(st.text())
def test_any_text_is_split_into_parts_of_itself(text: str) -> None:
    assert all(split_unicode(text))


@given(st.text(alphabet="検索全文日本", min_size=2))
def test_a_run_of_characters_becomes_its_overlapping_pairs(text: str) -> None:
    assert split_unicode(text) == [text[start : start + 2] for start in range(len(text) - 1)]


@pytest.mark.parametrize(
    ("texts", "tokenizer", "scripts"),
    [
        (["red fox", "hen"], "words", ()),
        ([], "words", ()),
        (["", "12"], "words", ()),
        (["Привет мир", "Ελλάδα", "العربية"], "words", ()),
        (["全文検索エンジン", "search"], "unicode", ("Han", "Katakana")),
        (["नमस्ते दुनिया"], "unicode", ("combining marks",)),
        (["แมวดำ"], "unicode", ("Thai",)),
    ],
)
def test_the_script_of_the_texts_decides(texts: list[str], tokenizer: str, scripts: tuple[str, ...]) -> None:
    choice = choose_tokenizer(texts)
    assert (choice.tokenizer, choice.scripts) == (tokenizer, scripts)


def test_a_few_foreign_names_do_not_change_the_tokenizer() -> None:
    assert choose_tokenizer(["The capital of Japan is Tokyo (東京), " + "a large city. " * 5]).tokenizer == "words"


def test_decomposed_accents_do_not_change_the_tokenizer() -> None:
    assert choose_tokenizer(["e\u0301te\u0301"]).tokenizer == "words"


MIXED = st.text(alphabet=st.sampled_from("aB 9_\n\t'.,äÉΣςİ東京都서울कि\u0301\u200dﬁ①Ⅷ\u3000\u00a0！ｶﾞ"), max_size=40)


@given(st.lists(MIXED, max_size=4))
def test_pieces_have_the_words_of_the_whole_text(texts: list[str]) -> None:
    assert Words("unicode").read(texts) == [split_unicode(text.lower()) for text in texts]
    assert Words("words").read(texts) == [re.findall(WORDS, text.lower()) for text in texts]


@given(st.lists(st.text(max_size=40), max_size=4))
def test_any_pieces_have_the_words_of_the_whole_text(texts: list[str]) -> None:
    assert Words("unicode").read(texts) == [split_unicode(text.lower()) for text in texts]


def test_a_stemmer_sees_each_word_once_and_no_stop_word() -> None:
    seen: list[str] = []

    def stem(word: str) -> str:
        seen.append(word)
        return word[:3]

    words = Words("words", frozenset({"the"}), stem)
    assert words.read(["The foxes", "the foxes", "hens"]) == [["fox"], ["fox"], ["hen"]]
    assert sorted(seen) == ["foxes", "hens"]


def test_stop_words_are_those_of_bm25s() -> None:
    from bm25s.tokenization import _infer_stopwords

    for language in get_args(Language):
        if language != "none":
            assert read_stop_words(language) == set(_infer_stopwords(language))
