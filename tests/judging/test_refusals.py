from __future__ import annotations

import pytest

from rageval_spec.judging.refusal_phrases import REFUSAL_PHRASES
from rageval_spec.judging.refusals import find_bare_refusal, find_refusal


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


# One refusal per line, as a native speaker would write it; further down, texts that look like refusals but are not.
REFUSALS = {
    "de": [
        "Das weiß ich leider nicht.",
        "Leider weiß ich das nicht.",
        "Das kann ich Ihnen leider nicht sagen.",
        "Dazu liegen mir keine Informationen vor.",
        "Dazu habe ich leider keine Informationen.",
        "Keine Ahnung.",
        "Ich kann diese Frage anhand der Texte nicht beantworten.",
        "Entschuldigung, das ist mir nicht bekannt.",
        "Aus dem Kontext geht das Datum nicht hervor.",
        "Die Frage lässt sich mit den vorliegenden Dokumenten nicht beantworten.",
        "Da bin ich mir nicht sicher.",
        "Es tut mir leid, aber darauf habe ich keine Antwort.",
        "Wird im Text nicht erwähnt.",
    ],
    "fr": [
        "Je ne sais malheureusement pas.",
        "Désolé, je ne peux pas répondre à cette question.",
        "Malheureusement, je n'ai pas trouvé la réponse.",
        "Le texte ne mentionne pas cette date.",
        "Je n’en sais rien.",
        "Il n'y a aucune information à ce sujet dans les documents.",
        "Je ne dispose pas de cette information.",
        "Les documents fournis ne permettent pas de répondre.",
    ],
    "es": [
        "Lo siento, no lo sé.",
        "No sé cuándo nació.",
        "Lamentablemente, no tengo esa información.",
        "No puedo responder a esa pregunta.",
        "Los documentos no contienen esta información.",
        "No hay suficiente información para responder.",
        "Lo desconozco.",
        "No se menciona en el texto.",
    ],
    "it": [
        "Purtroppo non lo so.",
        "Mi dispiace, non so rispondere.",
        "Non saprei.",
        "Non ho informazioni su questo argomento.",
        "Non sono in grado di rispondere alla domanda.",
        "Il testo non fornisce queste informazioni.",
        "Nessuna informazione al riguardo.",
        "La data non è menzionata nei documenti.",
    ],
    "pt": [
        "Infelizmente, não sei.",
        "Desculpe, não tenho essa informação.",
        "Não consigo responder a essa pergunta.",
        "Não há informações sobre isso no texto.",
        "O documento não menciona a data.",
        "Não é possível responder com base no contexto.",
        "Desconheço.",
        "Não faço ideia.",
    ],
    "nl": [
        "Dat weet ik helaas niet.",
        "Ik weet het niet.",
        "Sorry, daar kan ik geen antwoord op geven.",
        "Ik heb daar geen informatie over.",
        "Er is geen informatie beschikbaar.",
        "Geen idee.",
        "Dat staat helaas niet in de tekst.",
        "De vraag kan op basis van de context niet worden beantwoord.",
    ],
    "pl": [
        "Niestety nie wiem.",
        "Przykro mi, nie mogę odpowiedzieć na to pytanie.",
        "Nie mam takich informacji.",
        "Brak informacji na ten temat w dokumentach.",
        "Nie znam odpowiedzi.",
        "Nie jestem w stanie tego określić.",
        "Tekst nie zawiera tych informacji.",
        "Nie można na to odpowiedzieć.",
    ],
    "ru": [
        "К сожалению, я этого не знаю.",
        "Не знаю.",
        "Извините, я не могу ответить на этот вопрос.",
        "У меня нет такой информации.",
        "В тексте не указана дата.",
        "В документах нет информации об этом.",
        "Мне это неизвестно.",
        "Недостаточно данных, чтобы ответить.",
    ],
    "zh": [
        "很抱歉，我不知道。",
        "对不起，我无法回答这个问题。",
        "不知道。",
        "根据提供的信息，无法确定。",
        "文中未提及出生日期。",
        "没有找到相关信息。",
        "抱歉，文档中没有关于此事的信息。",
        "對不起，資料不足，無法回答。",
    ],
    "ja": [
        "申し訳ございませんが、お答えできません。",
        "わかりません。",
        "その情報は記載されていません。",
        "すみません、分かりかねます。",
        "文書には言及がありません。",
        "該当する情報が見つかりませんでした。",
        "コンテキストからは判断できません。",
        "存じません。",
    ],
}
ANSWERS = {
    "de": [
        "Wir speichern keine Informationen über Ihre Zahlungen.",
        "Er sagte: „Das weiß ich nicht.“",
        "Wer „ich weiß nicht“ ankreuzt, bekommt keinen Punkt.",
        "Wird der Code nicht erwähnt, gilt der Listenpreis.",
        "Das weiß jeder: Berlin.",
        "Wenn ich es nicht weiß, frage ich den Support.",
        "Der Antrag wurde wegen nicht genügend Informationen abgelehnt.",
        "Kunden, die sagen, ich weiß nicht, fragen nach.",
    ],
    "fr": [
        "Aucune information n'est partagée avec des tiers.",
        "Il a répondu : « je ne sais pas ».",
        "Nous ne partageons aucune information sur nos clients.",
        "Si je ne trouve pas la facture, je la demande.",
        "Ce médicament n'est pas indiqué chez l'enfant.",
        "Le savoir ne s'achète pas.",
    ],
    "es": [
        "Casino lo sé es una canción.",
        "El testigo dijo: «no lo sé».",
        "Si no puedo responder, llamo al soporte.",
        "Ella respondió que no lo sé era su frase favorita.",
        "No vendemos información sobre clientes.",
        "Este medicamento no se indica en niños.",
    ],
    "it": [
        "Ha risposto: «non lo so».",
        "Nessuna informazione viene condivisa con terzi.",
        "Se non sono in grado di pagare, posso rateizzare.",
        "Il museo non è lontano.",
    ],
    "pt": [
        "Ele disse: «não sei».",
        "Nenhuma informação é partilhada com terceiros.",
        "Se não consigo responder, ligo ao suporte.",
        "O plano não tem limite.",
    ],
    "nl": [
        "Hij zei: 'ik weet het niet'.",
        "We verkopen geen informatie over klanten.",
        "Als ik de factuur niet kan vinden, bel ik.",
        "Het museum is niet ver.",
    ],
    "pl": [
        "Powiedział: „nie wiem”.",
        "Brak informacji o dochodach powoduje odrzucenie wniosku.",
        "Jeśli nie mogę znaleźć faktury, piszę do biura.",
        "Muzeum nie jest daleko.",
    ],
    "ru": [
        "Он ответил: «не знаю».",
        "Если я не могу найти счёт, я пишу в поддержку.",
        "Недостаточно информации в заявке приводит к отказу.",
        "Музей недалеко.",
    ],
    "zh": [
        "很多人不知道，巴黎不是最大的城市。",
        "他说：“我不知道”。",
        "申请因信息不足被拒绝。",
        "如果我不知道答案，我会问老师。",
        "他无法回答老师的问题。",
    ],
    "ja": [
        "「わかりません」と答えた人は三人です。",
        "彼はその答えを知りません。",
        "もし情報が不足している場合は、電話してください。",
        "東京です。",
    ],
}
HEDGED = {
    "de": [
        "Ich weiß es nicht genau, aber es war 1889.",
        "Er wurde in Ulm geboren. Wann, weiß ich nicht.",
    ],
    "fr": [
        "Je ne sais pas quand, mais il est né à Ulm.",
        "Il est né à Ulm. Je ne sais pas quand.",
    ],
    "es": [
        "No sé la fecha exacta, pero nació en Ulm.",
        "Nació en Ulm. No sé cuándo.",
    ],
    "it": [
        "Non so la data, ma è nato a Ulm.",
        "È nato a Ulm. Non so quando.",
    ],
    "pt": [
        "Não sei a data, mas nasceu em Ulm.",
        "Nasceu em Ulm. Não sei quando.",
    ],
    "nl": [
        "Ik weet niet wanneer, maar hij werd in Ulm geboren.",
        "Hij werd in Ulm geboren. Ik weet niet wanneer.",
    ],
    "pl": [
        "Nie wiem kiedy, ale urodził się w Ulm.",
        "Urodził się w Ulm. Nie wiem kiedy.",
    ],
    "ru": [
        "Не знаю когда, но он родился в Ульме.",
        "Он родился в Ульме. Не знаю когда.",
    ],
    "zh": [
        "我不确定日期，但他出生在乌尔姆。",
        "他出生在乌尔姆。我不知道日期。",
    ],
    "ja": [
        "日付は分かりませんが、彼はウルムで生まれました。",
        "彼はウルムで生まれました。日付は分かりません。",
    ],
}


def spread(texts: dict[str, list[str]]) -> list[tuple[str, str]]:
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
def test_refusals_in_ten_languages_claim_nothing(language: str, answer: str) -> None:
    assert find_bare_refusal(answer) is not None


@pytest.mark.parametrize(("language", "answer"), spread(ANSWERS))
def test_quotations_conditions_and_look_alikes_are_not_refusals(language: str, answer: str) -> None:
    assert find_refusal(answer) is None


@pytest.mark.parametrize(("language", "answer"), spread(HEDGED))
def test_a_refusal_that_also_answers_claims_something(language: str, answer: str) -> None:
    assert find_refusal(answer) is not None
    assert find_bare_refusal(answer) is None


def test_an_answer_of_the_users_own_phrases_is_bare_even_if_they_have_several_clauses() -> None:
    own = ["Out of scope; ask the desk."]
    assert find_bare_refusal("Out of scope;  ask the DESK.", own) == "out of scope; ask the desk."
    assert find_bare_refusal("Sorry. Out of scope; ask the desk.", own) is not None
    assert find_bare_refusal("It costs 5 EUR. Out of scope; ask the desk.", own) is None
    assert find_bare_refusal("Out of scope; ask the desk.") is None
