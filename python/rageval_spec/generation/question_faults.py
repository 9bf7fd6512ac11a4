"""Finds what is wrong with questions: repeats, faulty wording, and quotes that are not in their source.

A repeat asks the same as an earlier question, by its words or, with a model, by its meaning. The wording is faulty if
a question points at a text nobody has, or says its own answer.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.generation.model_requests import FOLDER
from rageval_spec.judging.cosine_scale import find_scale
from rageval_spec.judging.language import FREQUENT_WORDS
from rageval_spec.judging.segments import list_shingles
from rageval_spec.libraries import compile_later, np
from rageval_spec.wording import format_percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.plugin import EmbeddingModel


SHINGLES = 0.8
"""The least share of shingles that two questions with the same meaning have in common (Jaccard)."""
_TELLING = 4
"""Letters of the shortest word that tells two questions apart."""
_ALIKE = 75
"""The least likeness of two spellings of one word, of 100."""
COSINE = 0.95
"""The least cosine of the embeddings of two questions with the same meaning, on the scale of MiniLM."""


class Duplicate(NamedTuple):
    """The number of an earlier question, and how alike the two are: `87% of the shingles` or `cosine 0.97`."""

    number: int
    likeness: str


class AcceptedQuestions:
    """Questions that were accepted, and whether another one would repeat one of them."""

    def __init__(self, model: EmbeddingModel[Any] | None = None) -> None:
        self._model = model
        self._texts: list[str] = []
        self._shingles: list[frozenset[str]] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._vectors: list[NDArray[np.float32]] = []

    def __len__(self) -> int:
        return len(self._shingles)

    def add(self, question: str) -> None:
        """Add a question, whose number is how many there were before."""
        shingles = list_shingles(" ".join(split_question_words(question)))
        for shingle in shingles:
            self._places[shingle].append(len(self))
        self._texts.append(question)
        self._shingles.append(shingles)
        if self._model is not None:
            self._vectors.append(self._embed([question])[0])

    def find(self, question: str) -> Duplicate | None:
        shingles = list_shingles(" ".join(split_question_words(question)))
        shared = Counter(place for shingle in shingles for place in self._places.get(shingle, ()))
        for place, count in sorted(shared.items()):
            likeness = count / (len(shingles) + len(self._shingles[place]) - count)
            if likeness >= SHINGLES and not _differ(question, self._texts[place]):
                return Duplicate(place, f"{format_percent(likeness)} of the shingles")
        return self._find_by_meaning(question)

    def _find_by_meaning(self, question: str) -> Duplicate | None:
        if self._model is None or not self._vectors:
            return None
        cosines = np.stack(self._vectors) @ self._embed([question])[0]
        near = np.flatnonzero(cosines >= find_scale(self._model, "query", "query").find_cosine(COSINE))
        return Duplicate(int(near[0]), f"cosine {cosines[near[0]]:.2f}") if len(near) else None

    def _embed(self, questions: Sequence[str]) -> NDArray[np.float32]:
        assert self._model is not None, "only called with a model"
        vectors = self._model.embed(questions, "query").vectors
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32)


def _differ(first: str, second: str) -> bool:
    """Whether each has a telling word that the other lacks; words spelled nearly alike are one, unless with digits."""
    words, others = split_question_words(first), split_question_words(second)
    return _has_own(words, others) and _has_own(others, words)


def _has_own(words: Sequence[str], others: Sequence[str]) -> bool:
    from rapidfuzz.fuzz import ratio

    for word in words:
        has_digit = any(map(str.isdigit, word))
        is_telling = word not in others and (has_digit or len(word) >= _TELLING)
        if is_telling and (has_digit or all(ratio(word, other) < _ALIKE for other in others)):
            return True
    return False


PHRASES = "unanchored.toml"
_WORD = compile_later(r"[^\W_]+")
_WIDE = compile_later("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\U00020000-\U0003ffff]+")
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
    A question whose `kind` is comparative may name its answer. Frequent words of the language do not count.
    """
    if kind in _CHOOSING:
        return None
    asked, said = split_question_words(question), split_question_words(answer)
    longest = SequenceMatcher(None, said, asked, autojunk=False).find_longest_match()
    run = said[longest.a : longest.a + longest.size]
    if len(run) >= _FEWEST_IN_A_ROW and len(run) >= _SHARE_IN_A_ROW * len(said):
        return " ".join(run)
    frequent = _frequent_words(language)
    telling = [word for word in said if word not in frequent]
    return " ".join(telling) if telling and set(telling) <= set(asked) else None


def split_question_words(text: str) -> list[str]:
    """The words of a text in lower case, without marks; pairs of characters in scripts without spaces."""
    words = list[str]()
    for word in _WORD.findall(text.casefold()):
        if _WIDE.search(word) is None:
            words.append(word)
        else:
            words += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
    return words


@cache
def _frequent_words(language: str) -> frozenset[str]:
    code = language.split("-")[0]
    return frozenset(word for lists in FREQUENT_WORDS.values() for word in lists.get(code, "").split())


_SAME = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "`": "'",
                       "–": "-", "—": "-", "‑": "-", "−": "-", "\u00ad": " ", "\u00a0": " "})  # fmt: skip
"""Characters that models write in place of one another. Each is replaced by one character, so offsets stay."""
_OUTER = " \t\r\n\"'.…"
_GAP = compile_later(r"\s*(?:\.\.\.|…|\[\.\.\.\]|\[…\])\s*")


class TextSpan(NamedTuple):
    """A part of a text: `texts[place][start:end]`."""

    place: int
    start: int
    end: int


def find_quote(quote: str, texts: Sequence[str], place: int | None = None) -> list[TextSpan] | None:
    """Where a quote stands; None if it is in none of the texts. The text at `place` is looked through first.

    Case, white space and the kind of quotation marks and dashes may differ. A quote with gaps (`A ... B`) has a span
    for each part, in this order and all in one text.
    """
    parts = [part for part in _GAP.split(quote) if part.strip(_OUTER)]
    order = sorted(range(len(texts)), key=lambda number: number != place)
    return next((spans for number in order if (spans := _find_parts(parts, texts[number], number))), None)


def _find_parts(parts: Sequence[str], text: str, number: int) -> list[TextSpan] | None:
    spans, at = list[TextSpan](), 0
    for part in parts:
        found = _find(part, text, at)
        if found is None:
            return None
        spans.append(TextSpan(number, *found))
        at = found[1]
    return spans


def _find(part: str, text: str, at: int) -> tuple[int, int] | None:
    words = part.strip(_OUTER).translate(_SAME).split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    found = pattern.search(text.translate(_SAME), at)
    return None if found is None else found.span()
