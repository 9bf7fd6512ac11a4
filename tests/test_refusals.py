from __future__ import annotations

import pytest

from rageval_spec.refusals import REFUSAL_PHRASES, find_refusal


@pytest.mark.parametrize(
    "answer",
    [
        "I don’t know the answer to this question.",
        "Sorry, but I CANNOT ANSWER that.",
        "The provided documents do not contain the release date.",
        "The context [3] does not explicitly mention it.",
        "The information provided doesn't say who won.",
        "Her name is not present in any of the sources.",
        "Insufficient information",
        "Das geht aus den Texten nicht hervor: keine Angaben.",
        "Je ne sais pas.",
        "Los documentos no mencionan la fecha.",
        "Non lo so.",
        "Não sei.",
        "Ik weet het niet.",
        "Я не знаю.",
        "根据文档,信息不足,无法回答。",
        "申し訳ありませんが、わかりません。",
        "죄송하지만 모르겠습니다.",
        "लगता है, मुझे नहीं पता।",
        "عذرا، لا أعرف.",
    ],
)
def test_refusals_are_found(answer: str) -> None:
    assert find_refusal(answer) is not None


@pytest.mark.parametrize(
    "answer",
    [
        "Paris.",
        "The mountain does contain gold.",
        "The free plan does not provide priority support.",
        "If you can't find the invoice, ask the owner.",
        "No information is shared with third parties.",
        "A document does not expire.",
        "Der Tarif enthält keine Werbung.",
        "Casino lo sé is a song.",  # "no lo sé" stands inside a word
        "Das weiß jeder: Berlin.",
        "",
        "Es gibt Informationen dazu auf Seite 3.",
        "No, it was built in 1889.",
    ],
)
def test_answers_are_no_refusals(answer: str) -> None:
    assert find_refusal(answer) is None


def test_every_phrase_of_the_list_finds_itself() -> None:
    assert len(REFUSAL_PHRASES) == 16
    for phrases in REFUSAL_PHRASES.values():
        for phrase in phrases:
            assert find_refusal(f"({phrase.capitalize()})") is not None


def test_own_phrases_count_beside_the_list() -> None:
    assert find_refusal("Sorry: [no  answer]!", ["", "[NO ANSWER]"]) == "[no answer]"
    assert find_refusal("I don't know", ["[NO ANSWER]"]) == "i don't know"
    assert find_refusal("42", ["[NO ANSWER]", " "]) is None
