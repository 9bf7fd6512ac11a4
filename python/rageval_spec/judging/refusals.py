"""Finds answers that decline to answer, by their phrases.

The list is imported when the first answer is read: its patterns take milliseconds to compile, and `validate` reads no
answers.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from rageval_spec import kernels
from rageval_spec.libraries import compile_later

PHRASES_TEXT = (
    "Phrases that count as refusals besides the built-in list (16 languages), such as the words that the system "
    "is told to use when it does not know the answer."
)
"""The description of the key `phrases` in all nodes."""
REFUSES = "the answer refuses"
"""How the reason of an answer begins that claims nothing, so that nothing of it can be wrong."""

_PIECE = 4
"""Characters. Shorter pieces are shared by more phrases but occur in more answers."""
_QUESTION = compile_later(r"[?？؟][\"'»”) ]*\Z")
_LONGEST_CLAUSE = 40
"""Words. A longer clause says more than its refusal."""


_GAP = r"(?:[^\s.,;:!?،؛؟।]+ ){0,5}"
_NARROW_GAP = r"[^\s.,;:!?。、！？]{0,12}"
_CLAUSE_START = r"(?:(?<=[.,;:!?()\[\]。、！？」』\"'“„«،؛؟।-])|(?<=[.,;:!?。、！？،؛؟।] )|^)"
_MARKS = "\u0900-\u0903\u093a-\u094f"
"""The vowel signs of Devanagari, which regular expressions do not count as part of a word."""
_INVISIBLE: dict[int, None] = dict.fromkeys(
    [
        *[0xAD, 0x640, 0x670, 0xFEFF],
        *range(0x64B, 0x660),
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x206A),
    ]
)
"""Soft hyphens, joiners, marks of direction, and the vowel signs and the long stroke of Arabic."""
_ALIKE = str.maketrans({**dict.fromkeys("’‘ʼ´`′＇", "'"), **dict.fromkeys("أإآٱ", "ا"), "ى": "ي", "ؤ": "و", "ئ": "ي"})
"""Characters that people type for one another."""
_ODD = f"[{''.join(map(chr, [*_INVISIBLE, *_ALIKE]))}]"
_NOT_LATIN = "[\u0400-\u052f\u0600-\u06ff\u0900-\u097f\u3040-\u9fff\uac00-\ud7af]"
_OPENING_VERBS = ("wird ", "werden ", "kann ", "können ", "lässt ", "lassen ", "geht ", "enthält ", "liegen ", "wordt ")
"""In German and Dutch a condition can begin with its verb: "Wird der Code nicht erwähnt, gilt der Listenpreis"."""


def find_bare_refusal(answer: str, phrases: Sequence[str] = ()) -> str | None:
    """As `find_refusal`, but only for answers that do nothing but refuse: no clause claims anything.

    Besides the refusal, the answer may hold an apology, a request or a question. "I'm not sure, but it may be Paris"
    and "He was born in Ulm. I don't know when." claim something, so they do not count.
    """
    from rageval_spec.judging.refusal_wording import TURN

    found = find_refusal(answer, phrases)
    if found is None:
        return None
    rest = _remove(phrases, answer)
    sentences = [rest[start:end] for start, end in kernels.split_sentences(rest)]
    clauses = (
        clause for sentence in sentences if not _QUESTION.search(sentence) for clause in TURN.split(_fold(sentence))
    )
    return found if all(map(_claims_nothing, clauses)) else None


def _remove(phrases: Sequence[str], answer: str) -> str:
    """The answer without the user's own phrases, each of which can be several clauses or sentences."""
    for phrase in filter(str.strip, phrases):
        words = (re.escape(word) for word in phrase.split())
        answer = re.sub(r"\s+".join(words), " ", answer, flags=re.IGNORECASE)
    return answer


def _claims_nothing(clause: str) -> bool:
    from rageval_spec.judging.refusal_wording import MANNERS

    bare = re.sub(rf"^[^\w{_MARKS}]+|[^\w{_MARKS}]+$", "", clause)
    return not bare or (
        len(bare.split()) <= _LONGEST_CLAUSE if find_refusal(bare) is not None else bool(MANNERS.fullmatch(bare))
    )


def find_refusal(answer: str, phrases: Sequence[str] = ()) -> str | None:
    """The words that make an answer a refusal, from the list or the user's own `phrases`; None if there are none.

    In scripts with white space a phrase must begin at a word; case and the kind of apostrophe do not matter. A phrase
    of the list does not count if the answer quotes others, states a condition ("if you don't know ..."), or is
    about answering calls.
    """
    from rageval_spec.judging.refusal_wording import SILENT_SOURCE

    text = _fold(answer)
    found = _find_own(phrases, text) or _search_list(text)
    if found is None and (" not " in text or "n't " in text):
        found = SILENT_SOURCE.search(text)
    return found.group().strip() if found else None


def _find_own(phrases: Sequence[str], text: str) -> re.Match[str] | None:
    folded = [folded for phrase in phrases if (folded := _fold(phrase)) and folded in text]
    pattern = "|".join(_begin(phrase) + re.escape(phrase) for phrase in folded)
    return re.search(pattern, text) if folded else None


def _search_list(text: str) -> re.Match[str] | None:
    """The first phrase of the list that refuses."""
    listed = _group_all()[: 2 if _compile_once(_NOT_LATIN).search(text) else 1]
    groups = (group for script in listed for piece, group in script if piece in text)
    held = [phrase for group in groups for part, phrase in group if part in text]
    held.sort()
    refusing = (
        found for one in held for found in _compile(one.text).finditer(text) if _refuses(found, text, one.language)
    )
    return min(refusing, key=lambda found: found.start(), default=None)


def _refuses(found: re.Match[str], text: str, language: str) -> bool:
    """Whether the phrase is the answer's own and is about the question."""
    from rageval_spec.judging.refusal_wording import (
        ASIDES,
        ASIDES_IN_ENGLISH,
        CONTINUATIONS,
        NO_QUESTION,
        QUOTED,
        QUOTED_BEHIND,
    )

    before = text[: found.start()]
    if QUOTED.search(before) and QUOTED_BEHIND.match(text, found.end()):
        return False
    if language == "en":
        is_of_calls = found.group().endswith("answer") and NO_QUESTION.match(text, found.end())
        return not is_of_calls and not any(guard.search(before) for guard in ASIDES_IN_ENGLISH)
    if any(guard.search(before) for guard in ASIDES) or any(one.match(text, found.end()) for one in CONTINUATIONS):
        return False
    opens = found.group().startswith(_OPENING_VERBS) and not before.strip(" \"'“„(").rstrip(".!?")
    return not (opens and re.match(r"[^.;:!?]*,", text[found.end() :]))


class _Phrase(NamedTuple):
    number: int
    language: str
    text: str


@cache
def _list_all() -> tuple[tuple[str, _Phrase], ...]:
    """Every phrase of the list with its longest part, which every text with the phrase contains."""
    from rageval_spec.judging.refusal_wording import REFUSAL_PHRASES

    listed = ((language, phrase) for language, phrases in REFUSAL_PHRASES.items() for phrase in phrases)
    return tuple(
        (max(map(_fold, phrase.removeprefix("^").split("*")), key=len), _Phrase(number, language, phrase))
        for number, (language, phrase) in enumerate(listed)
    )


_Groups = tuple[tuple[str, tuple[tuple[str, _Phrase], ...]], ...]


@cache
def _group_all() -> tuple[_Groups, _Groups]:
    """The phrases in Latin script, and the others, in groups with a few characters that all phrases of one contain.

    There are hundreds of phrases, and an answer contains few of the pieces that they share. Searching for the pieces
    first takes a fifth of the time.
    """
    counts = Counter(piece for part, _ in _list_all() for piece in set(_cut_pieces(part)))
    scripts: tuple[dict[str, list[tuple[str, _Phrase]]], dict[str, list[tuple[str, _Phrase]]]] = ({}, {})
    for part, phrase in _list_all():
        groups = scripts[_compile_once(_NOT_LATIN).search(part) is not None]
        groups.setdefault(max(_cut_pieces(part), key=lambda piece: counts[piece]), []).append((part, phrase))
    latin, others = (tuple((piece, tuple(group)) for piece, group in groups.items()) for groups in scripts)
    return latin, others


def _cut_pieces(part: str) -> list[str]:
    return [part[start : start + _PIECE] for start in range(max(1, len(part) - _PIECE + 1))]


@cache
def _compile(phrase: str) -> re.Pattern[str]:
    """The pattern of a phrase: `*` is a gap, and a leading `^` is the beginning of a clause.

    Compiled when an answer contains the phrase's longest part: compiling all 500 takes 25 ms.
    """
    parts = [_fold(part) for part in phrase.removeprefix("^").split("*")]
    begin = _CLAUSE_START if phrase.startswith("^") else _begin(parts[0])
    gap = " " + _GAP if " * " in phrase else _NARROW_GAP
    return re.compile(begin + gap.join(map(re.escape, parts)))


@cache
def _compile_once(pattern: str) -> re.Pattern[str]:
    """A pattern, compiled on first use, because `validate` reads no answers."""
    return re.compile(pattern)


def _begin(phrase: str) -> str:
    """The pattern of a place at which a phrase may begin: a word's start, except in scripts without white space.

    In Arabic, "and" and "so" are written as a letter before the next word.
    """
    if "\u0600" <= phrase[0] <= "\u06ff":
        return r"(?:(?<!\w)|(?<=(?<!\w)[وف]))"
    return rf"(?<![\w{_MARKS}])" if phrase[0] < "\u3000" else ""


def _fold(text: str) -> str:
    """The text without case, accents of Arabic, invisible characters, softening words and surplus white space."""
    from rageval_spec.judging.refusal_wording import SOFTENERS

    folded = text.casefold().replace("`", "'") if text.isascii() else _fold_letters(text)
    for softener in SOFTENERS:
        if softener in folded:
            folded = re.sub(rf",?\s*(?<!\w){softener}(?!\w),?", " ", folded)
    return " ".join(folded.split())


def _fold_letters(text: str) -> str:
    if _compile_once(_ODD).search(text):
        text = text.translate(_ALIKE).translate(_INVISIBLE)
    folded = unicodedata.normalize("NFKC", text).casefold()
    return folded.translate(_ALIKE).translate(_INVISIBLE) if _compile_once(_ODD).search(folded) else folded
