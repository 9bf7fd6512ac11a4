"""Answers that decline to answer, found by what they say."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

REFUSAL_PHRASES: Mapping[str, tuple[str, ...]] = {
    "en": (
        "i don't know", "i do not know", "i'm not sure", "i am not sure", "i cannot answer", "i can't answer",
        "i am unable to answer", "i'm unable to answer", "cannot be answered", "can't be answered",
        "unable to find", "could not find", "couldn't find", "cannot find", "can't find", "no information",
        "not enough information", "insufficient information", "no relevant information", "does not contain",
        "doesn't contain", "do not contain", "don't contain", "does not mention", "doesn't mention",
        "do not mention", "don't mention", "does not provide", "doesn't provide", "do not provide",
        "don't provide", "is not mentioned", "is not specified", "not provided in the", "unanswerable",
        "cannot be determined", "can't be determined", "cannot determine", "can't determine",
    ),
    "de": (
        "ich weiß es nicht", "ich weiß nicht", "weiss ich nicht", "weiß ich nicht", "ich kann die frage nicht",
        "ich kann diese frage nicht", "kann nicht beantwortet werden", "lässt sich nicht beantworten",
        "keine informationen", "keine angaben", "nicht genügend informationen", "nicht genug informationen",
        "geht nicht hervor", "nicht erwähnt", "enthalten keine", "enthält keine", "nicht bestimmen",
    ),
    "fr": (
        "je ne sais pas", "je ne peux pas répondre", "je ne suis pas en mesure", "aucune information",
        "pas d'information", "pas assez d'information", "informations insuffisantes", "n'est pas mentionné",
        "ne mentionne pas", "ne mentionnent pas", "ne contient pas", "ne contiennent pas", "ne permet pas de répondre",
        "ne permettent pas de répondre",
    ),
    "es": (
        "no lo sé", "no sé la respuesta", "no puedo responder", "no es posible responder", "no hay información",
        "no hay suficiente información", "información insuficiente", "no se menciona", "no menciona",
        "no mencionan", "no contiene información", "no contienen información", "no se especifica",
    ),
    "it": (
        "non lo so", "non posso rispondere", "non sono in grado di rispondere", "non è possibile rispondere",
        "nessuna informazione", "non ci sono informazioni", "informazioni insufficienti", "non è menzionato",
        "non menziona", "non contiene informazioni", "non contengono informazioni",
    ),
    "pt": (
        "não sei", "não posso responder", "não consigo responder", "não é possível responder", "nenhuma informação",
        "não há informaç", "informações insuficientes", "não é mencionad", "não menciona", "não contém informaç",
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


def find_refusal(answer: str, phrases: Sequence[str] = ()) -> str | None:
    """The first phrase of the list, or of those given, that an answer holds; None where it holds none."""
    text = _fold(answer)
    known = (*phrases, *(phrase for of_language in REFUSAL_PHRASES.values() for phrase in of_language))
    return next((phrase for phrase in known if _holds(text, _fold(phrase))), None)


def _holds(text: str, phrase: str) -> bool:
    """Whether a phrase begins in a text where a word begins; scripts without white space have no such place."""
    if not phrase:
        return False
    return re.search((r"(?<!\w)" if phrase[0] < "\u3000" else "") + re.escape(phrase), text) is not None


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‘", "'")
    return " ".join(folded.split())
