from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import pytest

from rageval_spec.judging.refusal_wording import REFUSAL_PHRASES
from rageval_spec.judging.refusals import find_bare_refusal, find_refusal
from tests.judging.refusal_texts import ANSWERS, HEDGED, REFUSALS


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
def test_answers_are_not_refusals(answer: str) -> None:
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
def test_a_refusal_with_an_answer_is_not_a_bare_one(answer: str) -> None:
    assert find_bare_refusal(answer) is None


def test_every_phrase_of_the_list_is_found() -> None:
    assert len(REFUSAL_PHRASES) == 16
    for phrases in REFUSAL_PHRASES.values():
        for phrase in phrases:
            said = phrase.removeprefix("^").replace(" * ", " a b ").replace("*", "一")
            assert find_refusal(f"({said.capitalize()})") is not None, phrase


def test_a_refusal_after_a_quoted_one_is_found() -> None:
    assert find_refusal("The manual says I don't know is no answer, but I cannot find more.") == "i cannot find"


def test_the_users_own_phrases_count_as_well_as_the_list() -> None:
    assert find_refusal("Sorry: [no  answer]!", ["", "[NO ANSWER]"]) == "[no answer]"
    assert find_refusal("I don't know", ["[NO ANSWER]"]) == "i don't know"
    assert find_refusal("42", ["[NO ANSWER]", " "]) is None


def spread(texts: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(language, text) for language, several in texts.items() for text in several]


@pytest.mark.parametrize(
    "answer",
    [
        *["I do not have that information.", "Not mentioned in the context.", "Aucune idée.", "Понятия не имею."],
        *["Je ne connais pas la réponse.", "El contexto no menciona ese dato.", "很抱歉，我没有这方面的信息。"],
        *["Il contesto non fornisce questa informazione.", "それについての情報は持っていません。"],
    ],
)
def test_further_ways_to_refuse_claim_nothing(answer: str) -> None:
    assert find_bare_refusal(answer) is not None


@pytest.mark.parametrize(("language", "answer"), spread(REFUSALS))
def test_refusals_claim_nothing(language: str, answer: str) -> None:
    assert find_bare_refusal(answer) is not None


@pytest.mark.parametrize(("language", "answer"), spread(ANSWERS))
def test_quotations_conditions_and_look_alikes_are_not_refusals(language: str, answer: str) -> None:
    assert find_refusal(answer) is None


@pytest.mark.parametrize(("language", "answer"), spread(HEDGED))
def test_a_refusal_that_also_answers_claims_something(language: str, answer: str) -> None:
    assert find_refusal(answer) is not None
    assert find_bare_refusal(answer) is None


def test_every_language_has_enough_texts() -> None:
    for language in ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "zh", "ja", "ko", "ar", "hi"):
        assert min(len(REFUSALS[language]), len(ANSWERS[language])) >= 8, language


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_the_form_of_its_letters_does_not_matter(form: str) -> None:
    for _, answer in spread(REFUSALS):
        assert find_bare_refusal(unicodedata.normalize(form, answer)) is not None, answer  # type: ignore[arg-type]
    for _, answer in spread(ANSWERS):
        assert find_refusal(unicodedata.normalize(form, answer)) is None, answer  # type: ignore[arg-type]


@pytest.mark.parametrize("apostrophe", "'’ʼ´`＇‘")
def test_the_kind_of_apostrophe_does_not_matter(apostrophe: str) -> None:
    for answer in ("I don't know.", "It isn't mentioned in the text.", "Je n'en sais rien."):
        assert find_bare_refusal(answer.replace("'", apostrophe)) is not None


@pytest.mark.parametrize("mark", ["\u200f", "\u200e", "\u202b", "\u2067", "\u200b", "\ufeff", "\u00ad"])
def test_invisible_characters_do_not_matter(mark: str) -> None:
    for _, answer in spread(REFUSALS):
        assert find_bare_refusal(f"{mark}{answer[:-1].replace(' ', f' {mark}')}{mark}{answer[-1]}") is not None, answer


def test_full_width_letters_are_letters() -> None:
    wide = "I cannot answer.".translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    assert find_bare_refusal(wide) is not None


@pytest.mark.parametrize("said", ["لا أعرف", "لا اعرف", "لا أعْرِفُ", "لا أعـــرف", "ولا أعرف"])
def test_arabic_may_be_written_with_or_without_its_small_signs(said: str) -> None:
    assert find_bare_refusal(f"عذرًا، {said}.") is not None


def test_an_answer_of_the_users_own_phrases_is_bare_even_if_they_have_several_clauses() -> None:
    own = ["Out of scope; ask the desk."]
    assert find_bare_refusal("Out of scope;  ask the DESK.", own) == "out of scope; ask the desk."
    assert find_bare_refusal("Sorry. Out of scope; ask the desk.", own) is not None
    assert find_bare_refusal("It costs 5 EUR. Out of scope; ask the desk.", own) is None
    assert find_bare_refusal("Out of scope; ask the desk.") is None
