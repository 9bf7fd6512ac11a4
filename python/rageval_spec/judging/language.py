"""Tells the language of a text by its script and by frequent words; a text that could be in several has none.

This is for comparing groups of answers, so a wrong language does more harm than none: of 2,380 questions of XQuAD in
English and German, none gets a wrong one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache

_SCRIPTS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "Latin": ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF)),
    "Cyrillic": ((0x400, 0x52F),),
    "Greek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Hebrew": ((0x590, 0x5FF),),
    "Arabic": ((0x600, 0x6FF), (0x750, 0x77F)),
    "Devanagari": ((0x900, 0x97F),),
    "Thai": ((0xE00, 0xE7F),),
    "Kana": ((0x3041, 0x30FF),),
    "Han": ((0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    "Hangul": ((0xAC00, 0xD7AF), (0x1100, 0x11FF)),
}
_ONLY: Mapping[str, str] = {"Greek": "el", "Hebrew": "he", "Thai": "th", "Han": "zh", "Kana": "ja", "Hangul": "ko"}
"""The language of a script, if it has one that nearly all its texts are in."""
_KANA_SHARE = 0.05
"""Japanese has at least this share of kana among its characters; Chinese may quote some."""
_BEGINNING = 2000
"""Characters that are read. More do not make a language clearer."""
_FIRST_LETTERS = 500
"""Characters by which the script is told."""
_FEWEST = 1.2
"""The least evidence: a word that only one language has counts 1, a word that n languages share 1 / n."""
_LEAD = 2.0
"""How many times the evidence for the second-best language the best needs."""
_COVERAGE = 0.15
"""The least share of words that are frequent ones of the language."""

NAMES: Mapping[str, str] = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean",
    "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "th": "Thai", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The English names of languages by their code."""


def find_language(text: str) -> str | None:
    """The text's language as its code (ISO 639-1); None if it is not clear, as in "Paris, 1911"."""
    text = text[:_BEGINNING]
    script = _find_script(text[:_FIRST_LETTERS])
    if script is None or script in _ONLY:
        return None if script is None else _ONLY[script]
    return _compare_words(text, script)


def _find_script(text: str) -> str | None:
    """The script of more than half of the letters."""
    counts = Counter(script for letter in text if (script := _script_of(letter)) is not None)
    letters = counts.total()
    if counts["Kana"] >= _KANA_SHARE * (counts["Kana"] + counts["Han"]) > 0:
        counts["Kana"] += counts.pop("Han", 0)
    script, most = max(counts.items(), key=lambda item: item[1], default=("", 0))
    return script if script in _SCRIPTS and 2 * most > letters else None


@cache
def _script_of(letter: str) -> str | None:
    code = ord(letter)
    if not letter.isalpha():
        return None
    return next((name for name, spans in _SCRIPTS.items() if any(low <= code <= high for low, high in spans)), "other")


def _compare_words(text: str, script: str) -> str | None:
    """The language that the frequent words of the text belong to, if it is clear."""
    words = re.findall(r"[^\W\d_]+(?:[\u0900-\u0903\u093a-\u094f]+[^\W\d_]*)*", text)
    known, letters = _list_languages(script), _list_letters()
    evidence: dict[str, float] = defaultdict(float)
    hits: Counter[str] = Counter()
    for word, count in Counter(words).items():
        languages = known.get(word.lower()) or _find_rare(word, letters)
        for language in languages:
            evidence[language] += count / len(languages)
            hits[language] += count
    best, *others = sorted(evidence, key=lambda language: evidence[language], reverse=True) or [""]
    second = evidence[others[0]] if others else 0.0
    is_clear = evidence[best] >= max(_FEWEST, _LEAD * second) and hits[best] >= _COVERAGE * len(words)
    return best if best and is_clear else None


def _find_rare(word: str, letters: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The languages of a word's rarest letter. Names do not count, as they come from anywhere."""
    if word[0].isupper():
        return ()
    return min((letters[letter] for letter in word if letter in letters), key=len, default=())


@cache
def _list_letters() -> Mapping[str, tuple[str, ...]]:
    """The languages of each letter that few have."""
    from rageval_spec.judging.frequent_words import LETTERS

    languages: dict[str, list[str]] = defaultdict(list)
    for language, letters in LETTERS.items():
        for letter in letters:
            languages[letter].append(language)
    return {letter: tuple(of) for letter, of in languages.items()}


@cache
def _list_languages(script: str) -> Mapping[str, tuple[str, ...]]:
    """The languages of each frequent word."""
    from rageval_spec.judging.frequent_words import FREQUENT_WORDS

    languages: dict[str, list[str]] = defaultdict(list)
    for language, words in FREQUENT_WORDS[script].items():
        for word in dict.fromkeys(words.split()):
            languages[word].append(language)
    return {word: tuple(of) for word, of in languages.items()}
