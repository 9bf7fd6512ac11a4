"""Faults of a question that its words alone show: it points at a text nobody has, or says its own answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from rageval_spec.generation.prompts import FOLDER
from rageval_spec.judging.frequent_words import FREQUENT_WORDS

PHRASES = "unanchored.toml"
_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\U00020000-\U0003ffff]+")
"""Scripts without spaces between words; a pair of neighbouring characters counts as a word."""
_FEWEST_IN_A_ROW = 4
_SHARE_IN_A_ROW = 0.6
_CHOOSING = frozenset({"comparative"})
"""Types of questions that name the possible answers: "Which is longer, A or B?"."""


def find_unanchored(question: str) -> str | None:
    """The words of a question that point at a text that nobody who asks has, such as "in this passage"."""
    found = _unanchored().search(" ".join(question.split()))
    return None if found is None else found.group()


@cache
def _unanchored() -> re.Pattern[str]:
    import tomllib

    phrases: dict[str, list[str]] = tomllib.loads((FOLDER / PHRASES).read_text("utf-8"))
    every = (phrase for language in phrases.values() for phrase in language)
    return re.compile(rf"\b(?:{'|'.join(f'(?:{phrase})' for phrase in every)})\b", re.IGNORECASE)


def find_leak(question: str, answer: str, kind: str, language: str = "") -> str | None:
    """The part of the answer that gives it away, if the question contains it; None if it does not.

    That is an answer all of whose telling words stand in the question, or most of whose words stand there in a row.

    Args:
        question: the question.
        answer: its answer; "" for none.
        kind: the type of the question. A comparative one may name its answer.
        language: the code of its language, whose frequent words do not count; "" if it is not known.
    """
    if kind in _CHOOSING:
        return None
    asked, said = split_words(question), split_words(answer)
    run = _find_longest_run(said, asked)
    if len(run) >= _FEWEST_IN_A_ROW and len(run) >= _SHARE_IN_A_ROW * len(said):
        return " ".join(run)
    frequent = _frequent_words(language)
    telling = [word for word in said if word not in frequent]
    return " ".join(telling) if telling and set(telling) <= set(asked) else None


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, without marks; pairs of characters in scripts without spaces."""
    words = list[str]()
    for word in _WORD.findall(text.casefold()):
        if _WIDE.search(word) is None:
            words.append(word)
        else:
            words += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
    return words


def _find_longest_run(words: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """The longest sequence of words that stands in both texts."""
    best, end, lengths = 0, 0, [0] * (len(others) + 1)
    for at, word in enumerate(words, 1):
        row = [0] * (len(others) + 1)
        for place, other in enumerate(others, 1):
            if word == other:
                row[place] = lengths[place - 1] + 1
                if row[place] > best:
                    best, end = row[place], at
        lengths = row
    return words[end - best : end]


@cache
def _frequent_words(language: str) -> frozenset[str]:
    code = language.split("-")[0]
    return frozenset(word for lists in FREQUENT_WORDS.values() for word in lists.get(code, "").split())
