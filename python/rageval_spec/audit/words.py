"""Words of questions and gold answers, as audits compare them: without case, accents of form, and punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_WORD = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"  # scripts without spaces: each sign
    r"|\d+(?:[.,:]\d+)*%?"
    r"|(?:[^\W\d_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff][\u0300-\u036f\u0900-\u0dff]*)+"
    r"(?:['\u2019](?=\w)(?:[^\W\d_])+)?"
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?%?")
_ARTICLES = (
    "a an the please pls kindly der die das den dem des ein eine einen einem einer eines bitte le la les un une des "
    "el los las una unos unas il lo gli o os um uma uns umas de het een"
)
FILLERS = frozenset(_ARTICLES.split())
"""Articles and courtesies, which a question can have or lack and stay the same."""
_TRUTHS = (
    "yes no true false ja nein wahr falsch oui non vrai faux si sì sí sim não nee tak nie evet hayır да нет 是 否 是的"
)
_YES_NO = frozenset(_TRUTHS.split())
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_NUMBERS.split())}


@lru_cache(maxsize=200_000)
def split_words(text: str) -> tuple[str, ...]:
    """The words of a text, in lower case and without punctuation. Numbers keep their value: `1,200` is `1200`."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(_tidy(found) for found in _WORD.findall(folded))


def _tidy(word: str) -> str:
    if word[0].isdigit():
        return word.replace(",", "") if _GROUPED.fullmatch(word) else word
    return word[:-2] if word.endswith(("'s", "\u2019s")) and len(word) > 2 else word


def drop_fillers(words: Sequence[str]) -> tuple[str, ...]:
    """The words without articles and courtesies; all of them if nothing else is there."""
    return tuple(word for word in words if word not in FILLERS) or tuple(words)


def find_numbers(words: Sequence[str]) -> frozenset[str]:
    """The numbers among words; small ones can be written as English words."""
    return frozenset(word for word in write_digits(words) if word[0].isdigit())


def write_digits(words: Sequence[str]) -> tuple[str, ...]:
    """The words, with small English numbers in digits."""
    return tuple(_NUMBER_WORDS.get(word, word) for word in words)


def is_yes_or_no(words: Sequence[str]) -> bool:
    """Whether a text begins with yes or no, or true or false."""
    return bool(words) and words[0] in _YES_NO


def contains(words: Sequence[str], part: Sequence[str]) -> bool:
    """Whether `part` stands in `words`, in order and without gaps. An empty part stands nowhere."""
    length = len(part)
    first = part[0] if part else None
    return any(
        word == first and tuple(words[at : at + length]) == tuple(part) for at, word in enumerate(words)
    )  # fmt: skip


def find_overlap(first: Sequence[str], second: Sequence[str]) -> float:
    """The F1 score of the words that two texts share, each counted as often as it occurs; 0 if either is empty."""
    from collections import Counter

    shared = sum((Counter(first) & Counter(second)).values())
    return 2 * shared / (len(first) + len(second)) if shared else 0.0
