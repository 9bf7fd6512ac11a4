"""Answers that decline to answer, found by what they say."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from rageval_spec import kernels

REFUSAL_PHRASES: Mapping[str, tuple[str, ...]] = {
    "en": (
        "i don't know", "i do not know", "i don't have enough", "i do not have enough", "i'm not sure",
        "i am not sure", "i cannot answer", "i can't answer", "unable to answer", "i cannot find", "i can't find",
        "i could not find", "i couldn't find", "i cannot determine", "i can't determine", "unable to determine",
        "cannot be answered", "can't be answered", "cannot be determined", "can't be determined",
        "there is no information", "there is no relevant information", "no information about", "no information on",
        "no information regarding", "no relevant information", "not enough information", "insufficient information",
        "is not present in any of the", "are not present in any of the",
        "is not mentioned in", "are not mentioned in", "not provided in the", "is not specified in the",
        "not possible to answer", "unanswerable",
    ),
    "de": (
        "ich weiß es nicht", "ich weiß nicht", "weiß ich nicht", "ich kann die frage nicht",
        "ich kann diese frage nicht", "kann nicht beantwortet werden", "lässt sich nicht beantworten",
        "lässt sich nicht bestimmen", "keine informationen zu", "keine informationen über", "keine informationen dazu",
        "keine angaben", "nicht genügend informationen", "nicht genug informationen", "geht nicht hervor",
        "wird nicht erwähnt", "werden nicht erwähnt", "enthält keine information", "enthalten keine information",
    ),
    "fr": (
        "je ne sais pas", "je ne peux pas répondre", "je ne suis pas en mesure", "aucune information",
        "pas d'information sur", "pas assez d'information", "informations insuffisantes", "n'est pas mentionné",
        "ne mentionne pas", "ne mentionnent pas", "ne contient pas d'information", "ne contiennent pas d'information",
        "ne permet pas de répondre", "ne permettent pas de répondre",
    ),
    "es": (
        "no lo sé", "no sé la respuesta", "no puedo responder", "no es posible responder", "no hay información",
        "no hay suficiente información", "información insuficiente", "no se menciona", "no mencionan",
        "no contiene información", "no contienen información", "no se especifica",
    ),
    "it": (
        "non lo so", "non posso rispondere", "non sono in grado di rispondere", "non è possibile rispondere",
        "nessuna informazione", "non ci sono informazioni", "informazioni insufficienti", "non è menzionato",
        "non contiene informazioni", "non contengono informazioni",
    ),
    "pt": (
        "não sei", "não posso responder", "não consigo responder", "não é possível responder", "nenhuma informação",
        "não há informaç", "informações insuficientes", "não é mencionad", "não contém informaç",
    ),
    "nl": (
        "ik weet het niet", "ik kan deze vraag niet", "ik kan de vraag niet", "geen informatie",
        "niet genoeg informatie", "onvoldoende informatie", "niet vermeld", "niet te beantwoorden",
    ),
    "pl": ("nie wiem", "nie mogę odpowiedzieć", "brak informacji", "nie ma informacji", "nie zawiera informacji"),
    "sv": ("jag vet inte", "jag kan inte svara", "ingen information", "otillräcklig information"),
    "ru": (
        "я не знаю", "не могу ответить", "нет информации", "недостаточно информации", "не содержит информации",
        "не упоминается", "невозможно ответить",
    ),
    "tr": ("bilmiyorum", "cevap veremem", "yanıtlayamam", "yeterli bilgi yok", "bilgi bulunmamaktadır"),
    "zh": (
        "不知道", "无法回答", "不能回答", "信息不足", "没有相关信息", "没有足够的信息", "未提及", "没有提到",
        "無法回答", "資訊不足",
    ),
    "ja": (
        "わかりません", "分かりません", "答えられません", "回答できません", "情報がありません", "情報が不足",
        "記載されていません",
    ),
    "ko": ("모르겠습니다", "알 수 없습니다", "답변할 수 없", "대답할 수 없", "정보가 없습니다", "정보가 부족"),
    "ar": ("لا أعرف", "لا أعلم", "لا يمكنني الإجابة", "لا توجد معلومات", "معلومات غير كافية"),
    "hi": ("मुझे नहीं पता", "मैं नहीं जानता", "उत्तर नहीं दे सकता", "कोई जानकारी नहीं", "पर्याप्त जानकारी नहीं"),
}  # fmt: skip
"""What refusals say, by language: an answer that holds one of these may be one."""

_SOURCE = r"(?:context|document|passage|text|source|article|excerpt|snippet|search result|material)s?|information"
_SAYING = r"contain|mention|provide|include|specify|state|say|answer|address|indicate|give|discuss|have"
_SILENT_SOURCE = re.compile(
    rf"(?<!\w)(?:{_SOURCE})(?: (?:provided|given|above|available|retrieved|\[[\d, ]+\]))*"
    rf" (?:do|does|did)(?: not|n't) (?:\w+ly )?(?:{_SAYING})(?!\w)"
)
"""English for "the documents do not mention"; without its subject, plain answers say as much of other things."""

_REPORTED = re.compile(
    r"(?:(?<!\bi )(?<!\bi'd )(?<!\bto )(?<!\bmust )(?<!\bonly )(?<!\bwould )\b"
    r"(?:say|says|said|saying|replies|replied|answers|answered|responds|responded|writes|wrote|thinks?|thought"
    r"|tells? \w+|told \w+)"
    r"|(?<!\bwhich )(?<!\bthis )(?<!\bthat )\bmeans)(?: that)?[:,]? [\"'“„«]?$"
)
"""What stands before a phrase that somebody else says, or that explains something: "users who say I don't know"."""
_NO_QUESTION = re.compile(
    r" (?:(?:the|your|our|any|all|more|incoming|phone|telephone) )*"
    r"(?:calls?|phones?|telephones?|doors?|doorbells?|e-?mails|letters|tickets)(?!\w)"
)
"""What else can be answered, behind "I cannot answer"."""

_TURN = re.compile(
    r"[;:—–]|,?\s\b(?:but|however|though|although|aber|jedoch|doch|mais|cependant|pero|ma|però|mas|porém|maar|ale|men)\b"
    r"|\band(?= i\b)|,?\s\b(?:но|однако|ama|fakat)\b|但|しかし|が、|하지만|لكن|लेकिन"
)
"""Where a sentence may turn from refusing to answering, or back."""
_MANNERS = re.compile(
    r"(?:(?:i(?:'m| am) |we(?:'re| are) )?(?:very |so |really |truly )?(?:sorry|afraid)(?: (?:for|about) [^,]*)?"
    r"|unfortunately|i apologi[sz]e[^,]*|my apologies[^,]*|please .*|let me know .*|feel free .*|thank you.*|thanks.*"
    r"|(?:es )?tut mir leid|leider|entschuldigung|bitte .*|(?:je suis )?désolée?|malheureusement"
    r"|lo siento(?: mucho)?|lamentablemente|mi dispiace|purtroppo|desculpe|infelizmente|helaas|het spijt me"
    r"|niestety|przykro mi|tyvärr|к сожалению|извините|üzgünüm|maalesef"
    r"|很?抱歉|对不起|申し訳ありません|すみません|죄송합니다|죄송하지만|عذرا|क्षमा करें)"
)
"""What refusals say besides, and what claims nothing."""
_LONGEST_CLAUSE = 40
"""Words; a longer clause says something besides its refusal."""


def find_bare_refusal(answer: str) -> str | None:
    """As `find_refusal`, of an answer that does nothing else: no clause of it says anything about the matter.

    What is left beside the refusal may be an apology, a request or a question. "I'm not sure, but it may be Paris"
    and "He was born in Ulm. I don't know when." claim something, and are none.
    """
    found = find_refusal(answer)
    if found is None:
        return None
    sentences = [answer[start:end] for start, end in kernels.split_sentences(answer)]
    clauses = (
        clause for sentence in sentences if not _is_question(sentence) for clause in _TURN.split(_fold(sentence))
    )
    return found if all(map(_claims_nothing, clauses)) else None


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"'»”) ").endswith(("?", "？", "؟"))


def _claims_nothing(clause: str) -> bool:
    bare = re.sub(r"^\W+|\W+$", "", clause)
    return not bare or (
        len(bare.split()) <= _LONGEST_CLAUSE if find_refusal(bare) is not None else bool(_MANNERS.fullmatch(bare))
    )


def find_refusal(answer: str, phrases: Sequence[str] = ()) -> str | None:
    """The words of an answer that make it a refusal, by the list or by phrases of one's own; None where there are none.

    They count wherever they begin a word, in scripts with white space, whatever their case and apostrophes. Those of
    the list do not count where English reports that others say them, or speaks of answering calls.
    """
    text = _fold(answer)
    own = next(_search([_fold(phrase) for phrase in phrases if phrase.strip()], text), None)
    found = own or _search_list(text) or _search_silent_source(text)
    return found.group() if found else None


def _search(phrases: Sequence[str], text: str) -> Iterator[re.Match[str]]:
    """The places of any of the phrases, folded; those that the text holds are found without an expression."""
    held = [phrase for phrase in phrases if phrase in text]
    return _compile(held).finditer(text) if held else iter(())


def _search_list(text: str) -> re.Match[str] | None:
    return next((found for found in _search(_list_all(), text) if _refuses(found, text)), None)


def _refuses(found: re.Match[str], text: str) -> bool:
    """Whether the one who answers says the phrase, and of the question."""
    is_of_calls = found.group().endswith("answer") and _NO_QUESTION.match(text, found.end())
    return not is_of_calls and _REPORTED.search(text[: found.start()]) is None


def _search_silent_source(text: str) -> re.Match[str] | None:
    return _SILENT_SOURCE.search(text) if " not " in text or "n't " in text else None


@cache
def _list_all() -> tuple[str, ...]:
    return tuple(_fold(phrase) for of_language in REFUSAL_PHRASES.values() for phrase in of_language)


def _compile(phrases: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(_begin(phrase) + re.escape(phrase) for phrase in phrases))


def _begin(phrase: str) -> str:
    """Where a phrase may begin: where a word does; scripts without white space have no such place."""
    return r"(?<!\w)" if phrase[0] < "\u3000" else ""


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‘", "'")
    return " ".join(folded.split())
