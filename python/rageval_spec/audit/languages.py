"""Tells the language of a question by its script and its function words.

A short question can have words that several languages share, so a language is only told if it clearly leads. A wrong
language would be worse than none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

from rageval_spec.audit.words import split_words

NAMES: Mapping[str, str] = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese",
    "nl": "Dutch", "pl": "Polish", "sv": "Swedish", "ru": "Russian", "uk": "Ukrainian", "tr": "Turkish",
    "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "ar": "Arabic", "fa": "Persian", "hi": "Hindi",
    "el": "Greek", "he": "Hebrew", "th": "Thai", "vi": "Vietnamese", "ro": "Romanian", "cs": "Czech",
}  # fmt: skip
_WORDS: Mapping[str, str] = {
    "en": "the of and is are was were what who when where which how why does did do in on at for to with from by that "
    "this these those have has had can could should would will it its his her their there been an",
    "de": "der die das den dem des ein eine einen einem einer und oder ist sind war waren wurde wurden wie was wer wo "
    "wann warum welche welcher welches welchen welchem wieviel viele nicht mit von zu zum zur auf für im in aus bei "
    "nach über hat haben hatte kann man sich es ich wir sie werden wird dass beim zwischen gegen seine ihre",
    "fr": "le la les un une des du de et ou est sont était étaient quel quelle quels quelles qui que quoi quand où "
    "comment pourquoi combien dans sur pour par avec au aux ne pas ce cette ces il elle ont été dont se sa son ses "
    "est-ce qu'est-ce l' d'",
    "es": "el la los las un una de del y o es son fue fueron era qué quién quiénes cuál cuáles cuándo dónde cómo cuánto "
    "cuántos cuántas por para con en al no se su sus que ha han como más este esta",
    "it": "il lo la gli le un uno una di del della dei delle degli e o è sono era erano fu quale quali chi che cosa "
    "quando dove come perché quanto quanti quante nel nella nei per con da dal dalla si non ha hanno",
    "pt": "o a os as um uma de do da dos das e ou é são foi foram era qual quais quem que quando onde como quanto "
    "quantos quantas por para com em no na nos nas não se seu sua ao aos pelo pela",
    "nl": "de het een en of is zijn was waren wat wie wanneer waar welke welk hoe hoeveel waarom van voor met op aan "
    "in bij naar uit door niet er te dat die heeft hebben werd werden",
    "pl": "i w na z do jest są był była było były jaki jaka jakie który która które kto co kiedy gdzie jak ile dlaczego "
    "nie się o od po dla przez przy oraz to",
    "sv": "och i på av är var som en ett det den vad vem vilka vilken vilket hur många när varför till för med från "
    "om inte har hade blev finns att",
    "tr": "ve bir bu ne kim nerede nasıl neden kaç hangi ile için olarak olan da de mi mı mu mü en çok kadar nedir "
    "kimdir ne zaman hangisi",
    "ro": "și în este sunt a fost au ce cine când unde cum care câte câți pe din la cu de pentru nu se un o al ale",
    "cs": "a v na je jsou byl byla bylo byly co kdo kdy kde jak kolik který která které proč ze do pro se z od nebo",
    "vi": "là của và có ai gì khi nào ở đâu bao nhiêu như thế nào tại sao được trong những các một cho với",
    "ru": "и в на с по из что кто когда где как какой какая какие каком сколько почему это был была было были является "
    "не для от до к о об при или чем он она они",
    "uk": "і в у на з що хто коли де як який яка які скільки чому це був була було були є не для від до та або про",
    "ar": "في من على إلى ما ماذا هل هو هي متى أين كيف كم التي الذي هذا هذه أن عن مع كان كانت",
    "fa": "در از به که چه است کدام چند کجا کی چگونه این آن را با برای بود شد می های",
}  # fmt: skip
_LETTERS: Mapping[str, str] = {
    "de": "ß", "es": "ñ¿¡", "tr": "ğış", "pl": "łąęśźżćń", "pt": "ãõ", "cs": "ěřů", "ro": "șță", "uk": "іїєґ",
    "ru": "ыэъё", "sv": "å", "fa": "پچژگ", "vi": "ơưđạảấầẩậắằẵặẹẻẽếềểễệịỉọỏốồổộớờởợụủứừửữựỳỵỷỹ",
}  # fmt: skip
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u4e00-\u9fff\u3400-\u4dbf]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
)
_CYRILLIC, _ARABIC = ("ru", "uk"), ("ar", "fa")
_ENOUGH = 2.0
_LEAD = 1.5
"""The leading language needs that many times the points of the next."""


def tell_language(text: str) -> str | None:
    """The code of a text's language; None if it cannot be told."""
    letters = [character for character in text if character.isalpha()]
    if not letters:
        return None
    if (script := _tell_script("".join(letters))) is not None:
        return script
    points = _count_points(text)
    (first, most), (_, next_most) = (points.most_common(2) + [("", 0.0), ("", 0.0)])[:2]
    return first if most >= _ENOUGH and most >= _LEAD * next_most else None


def _tell_script(letters: str) -> str | None:
    """The language of a script that only one language here uses, if at least half of the letters belong to it."""
    counts = {code: len(pattern.findall(letters)) for code, pattern in _SCRIPTS}
    if counts["ja"] and 2 * (counts["ja"] + counts["zh"]) >= len(letters):
        return "ja"
    return next((code for code, count in counts.items() if 2 * count >= len(letters)), None)


def _count_points(text: str) -> Counter[str]:
    """A point for each distinct function word, shared among the languages that have it, and one for a letter."""
    words, points = set(split_words(text)), Counter[str]()
    for word in words:
        for code in (having := _find_languages().get(word, ())):
            points[code] += 1 / len(having)
    lowered = text.lower()
    for code, letters in _LETTERS.items():
        if any(letter in lowered for letter in letters):
            points[code] += 1
    return points


@cache
def _find_languages() -> Mapping[str, tuple[str, ...]]:
    """The languages that have a function word, by the word."""
    found: dict[str, tuple[str, ...]] = {}
    for code, words in _WORDS.items():
        for word in split_words(words):
            if code not in found.get(word, ()):
                found[word] = (*found.get(word, ()), code)
    return found
