"""The language of texts: by script, by words, and none where it is not clear.

The lists of frequent words are lists that the detector can use.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.judging.language import FREQUENT_WORDS, LETTERS, NAMES, find_language


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The warranty lasts for two years after the purchase."),
        ("de", "Die Garantie gilt zwei Jahre und beginnt mit dem Kauf."),
        ("fr", "La garantie dure deux ans et commence avec l'achat du produit."),
        ("es", "La garantía dura dos años y también cubre los gastos del envío."),
        ("it", "La garanzia dura due anni e comincia quando il prodotto è stato comprato."),
        ("pt", "A garantia não cobre o envio, mas também começa quando você recebe o produto."),
        ("nl", "De garantie wordt niet verlengd en geldt ook voor het toestel."),
        ("pl", "Gwarancja nie obejmuje wysyłki, ale może być przedłużona."),
        ("sv", "Garantin gäller i två år och inte för det som har köpts begagnat."),
        ("ro", "Garanția este de doi ani și nu acoperă transportul."),
        ("tr", "Garanti iki yıl için geçerli ve bu ürün ile birlikte verilir."),
        ("ru", "Гарантия действует два года, но не для всех товаров."),
        ("uk", "Гарантія діє два роки, але не для всіх товарів, що є в каталозі."),
        ("ar", "الضمان لمدة سنتين من تاريخ الشراء على كل المنتجات"),
        ("fa", "ضمانت از زمان خرید به مدت دو سال است و این برای همه است"),
        ("hi", "यह वारंटी दो साल के लिए है और खरीद से शुरू होती है।"),
        ("zh", "保修期为两年，从购买之日起计算。"),
        ("ja", "保証期間は購入日から二年間です。"),
        ("ko", "보증 기간은 구매일로부터 2년입니다."),
        ("el", "Η εγγύηση ισχύει για δύο χρόνια."),
        ("th", "การรับประกันมีระยะเวลาสองปี"),
    ],
)
def test_a_sentence_has_its_language(language: str, text: str) -> None:
    assert find_language(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1911",
        "Paris",
        "Paris, 12 km",
        "OK",
        "def f(x): return x",
        "Los Angeles Rams",
        "12.5 % !?",
        "🙂🙂",
        "ΑΒ ab cd",
    ],
)
def test_a_text_that_could_be_in_any_language_has_none(text: str) -> None:
    assert find_language(text) is None


def test_quoted_words_do_not_change_the_language() -> None:
    assert (
        find_language("The novel 'Die Leiden des jungen Werthers' was written by Goethe in the 18th century.") == "en"
    )
    assert find_language("使用 API 需要一个有效的密钥，请参阅文档中的说明。") == "zh"


def test_a_long_text_is_read_as_fast_as_its_beginning() -> None:
    assert find_language("the cat of the house is in it " * 100_000) == "en"


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_question_of_xquad_gets_a_wrong_language(shared_data: Path, language: str) -> None:
    folder = shared_data / "retrieval" / f"xquad_{language}"
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    lines += (folder / "corpus.jsonl").read_text("utf-8").splitlines()
    found = [find_language(json.loads(line)["text"]) for line in lines]
    assert set(found) <= {language, None}
    assert found.count(language) >= 0.9 * len(found)


def test_all_words_are_lower_case_and_no_two_languages_have_the_same() -> None:
    for languages in FREQUENT_WORDS.values():
        for words in languages.values():
            assert words == words.lower()
            assert len(words.split()) >= 15
        assert len(set(languages.values())) == len(languages)


def test_rare_letters_are_of_languages_with_words() -> None:
    known = {language for languages in FREQUENT_WORDS.values() for language in languages}
    assert LETTERS.keys() <= known


def test_the_languages_whose_refusals_are_known_have_names() -> None:
    assert {"en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "zh", "ja", "ko", "ar", "hi"} <= NAMES.keys()
