from __future__ import annotations

import pytest

from rageval_spec.judging.refusals import REFUSAL_PHRASES, find_bare_refusal, find_refusal


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
        "The error 'page not found' means I don't know the address.",
        "Users who say I don't know are shown help.",
        "Whoever replied: “I cannot answer” was asked again.",
        "She told him that I don't know the way.",
        "I cannot answer calls after 6 pm; leave a message and I will call you back.",
        "We are unable to answer the phone on Sundays.",
    ],
)
def test_answers_are_no_refusals(answer: str) -> None:
    assert find_refusal(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I am sorry, I could not find anything about that.",
        "I'm sorry, but I cannot answer that. Please ask the support team! Can I help with something else?",
        "Unfortunately, the provided documents do not contain the release date; I can't determine it.",
        "Based on the given context, it cannot be determined when the bridge was built.",
        "I do not know: the sources do not say.",
        "Es tut mir leid, aber das weiß ich nicht.",
        "Je suis désolé, mais je ne sais pas.",
        "根据文档,信息不足,无法回答。",
        "Sorry, I cannot answer that based on the context.",
        "The context does not say.",
        "I have to say I don't know.",
        "I must say that I cannot answer this question.",
        "There is no date in it, which means I cannot answer the question.",
        "I'm unable to answer your question.",
    ],
)
def test_a_bare_refusal_says_nothing_else(answer: str) -> None:
    assert find_bare_refusal(answer) == find_refusal(answer) is not None


@pytest.mark.parametrize(
    "answer",
    [
        "I'm not sure, but it may be Paris.",
        "He was born in Ulm. I don't know when.",
        "I don't know when he was born. He lived in Zurich.",
        "He was born in Ulm, but I do not know when.",
        "The plan has five seats; the documents do not mention its price.",
        "Ich weiß es nicht genau, aber Berlin ist die Hauptstadt.",
        "The document does not mention Ulm" + " and neither Bern" * 20 + ".",
        "Paris.",
        "Sorry about that.",
        "",
    ],
)
def test_a_refusal_with_an_answer_is_no_bare_one(answer: str) -> None:
    assert find_bare_refusal(answer) is None


def test_every_phrase_of_the_list_finds_itself() -> None:
    assert len(REFUSAL_PHRASES) == 16
    for phrases in REFUSAL_PHRASES.values():
        for phrase in phrases:
            assert find_refusal(f"({phrase.capitalize()})") is not None


def test_a_refusal_behind_a_reported_one_is_found() -> None:
    assert find_refusal("The manual says I don't know is no answer, but I cannot find more.") == "i cannot find"


def test_own_phrases_count_beside_the_list() -> None:
    assert find_refusal("Sorry: [no  answer]!", ["", "[NO ANSWER]"]) == "[no answer]"
    assert find_refusal("I don't know", ["[NO ANSWER]"]) == "i don't know"
    assert find_refusal("42", ["[NO ANSWER]", " "]) is None
