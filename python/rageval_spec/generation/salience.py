"""Which words and sentences of a text say what it is about, by how often words stand in the whole corpus."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import log
from typing import NamedTuple

from rageval_spec import kernels
from rageval_spec.judging.frequent_words import FREQUENT_WORDS
from rageval_spec.judging.language import find_language

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\U00020000-\U0003ffff]")
_COMMON = 0.15
"""A word in a greater share of the texts does not tell them apart."""
_FEWEST_TEXTS = 20
"""In a smaller corpus, that share says little, and only lists of frequent words count."""
_SAMPLED = 200


class Word(NamedTuple):
    """A word at its place in a text. `term` is what counts as the same word: lower case, without an English plural."""

    term: str
    start: int
    end: int


def find_words(text: str) -> list[Word]:
    """The words of a text; in scripts without spaces, pairs of characters that overlap."""
    found = list[Word]()
    for match in _WORD.finditer(text):
        if _WIDE.search(match[0]) is None:
            found.append(Word(fold(match[0]), match.start(), match.end()))
        else:
            places = range(match.start(), max(match.start() + 1, match.end() - 1))
            found += [Word(text[at : at + 2], at, min(at + 2, match.end())) for at in places]
    return found


@lru_cache(maxsize=1 << 16)
def fold(word: str) -> str:
    """A word without case, possessive and the `s` of an English plural, so that forms of it are one term."""
    word = re.sub(r"['’]s?\Z", "", word.casefold())
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


class Vocabulary:
    """The words of a corpus: in how many texts each stands, and in which."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Count the words of `texts`, the units that a retriever finds."""
        self.size = len(texts)
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for term in dict.fromkeys(word.term for word in find_words(text)):
                self._places[term].append(place)
        self.language = _find_language(texts)
        self._frequent = {fold(word) for word in list_frequent(self.language)}

    def count_texts(self, term: str) -> int:
        """In how many texts a term stands."""
        return len(self._places.get(term, ()))

    def weigh(self, term: str) -> float:
        """How much a term tells: its inverse document frequency; 0 for words that stand everywhere, and for letters."""
        if self.is_common(term):
            return 0.0
        return log((self.size + 1) / (self.count_texts(term) + 0.5))

    def is_common(self, term: str) -> bool:
        """Whether a word tells nothing: a frequent one of the language, one in very many texts, or a single letter."""
        if term in self._frequent or (len(term) < 2 and not term.isdigit()):
            return True
        return self.size >= _FEWEST_TEXTS and self.count_texts(term) > _COMMON * self.size

    def find_texts(self, terms: Iterable[str], share: float) -> list[int]:
        """The positions of texts that have at least this share of the terms' weight, ascending."""
        weights = {term: weight for term in set(terms) if (weight := self.weigh(term)) > 0}
        totals: Counter[int] = Counter()
        for term, weight in weights.items():
            for place in self._places.get(term, ()):
                totals[place] += weight  # type: ignore[assignment]
        least = share * sum(weights.values()) - 1e-9
        return sorted(place for place, total in totals.items() if total >= least)


def list_frequent(language: str | None) -> Iterator[str]:
    """The frequent words of a language; none if it is not known."""
    for lists in FREQUENT_WORDS.values():
        yield from lists.get(language or "", "").split()


def _find_language(texts: Sequence[str]) -> str | None:
    """The language of most texts."""
    chosen = texts[:: max(1, len(texts) // _SAMPLED)]
    told = Counter(language for text in chosen if (language := find_language(text)) is not None)
    return min(told, key=lambda language: (-told[language], language)) if told else None


class Sentence(NamedTuple):
    """A sentence of a text: `text[start:end]`, its words, and how well it says what the text is about."""

    text: str
    start: int
    end: int
    words: tuple[Word, ...]
    salience: float


def rank_sentences(text: str, spans: Sequence[tuple[int, int]], vocabulary: Vocabulary) -> list[Sentence]:
    """The sentences within parts of a text, the most telling first.

    A sentence tells much if its words are rare in the corpus and frequent in the text: what the text is about.
    """
    counts = Counter(word.term for word in find_words(text))
    found = list[Sentence]()
    for first, last in spans:
        for start, end in kernels.split_sentences(text[first:last]):
            sentence = text[first + start : first + end]
            words = tuple(find_words(sentence))
            telling = {word.term for word in words}
            weights = [vocabulary.weigh(term) * (1 + log(counts[term])) for term in telling if counts[term]]
            mean = sum(weights) / max(1, sum(weight > 0 for weight in weights))
            found.append(Sentence(sentence, first + start, first + end, words, mean))
    return sorted(found, key=lambda one: (-one.salience, one.start))
