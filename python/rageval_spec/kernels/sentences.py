"""Splits texts into sentences, finds names in them, and measures how many of a text's words another text contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rageval_spec import _core
from rageval_spec.kernels.inputs import check_threads
from rageval_spec.libraries import compile_later

if TYPE_CHECKING:
    from collections.abc import Sequence

_SURROGATES = compile_later("[\ud800-\udfff]")


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the sentences of a text as pairs `(start, end)`; `text[start:end]` is a sentence, trimmed and not empty.

    Sentences come in order, and together contain every character except white space; "" has none. Abbreviations,
    initials, decimals, URLs, lists, citations after a full stop, wrapped lines and the full stops of other scripts are
    recognised. A piece without letters or digits belongs to the sentence before it.
    """
    return _core.split_sentences(_replace_surrogates(text))


def names(text: str) -> list[str]:
    """Return the numbers, dates and capitalised names of a text, in order, each once. They are found by their form.

    Numbers are normalised (`1200`, `$3.5 million`, `15%`), and so are dates (`12 May 1999`, `May 1999`, `12 May`). In
    scripts without capitals, and in texts written only in capitals, only numbers are found.
    """
    return _core.names(_replace_surrogates(text))


class WordShare(NamedTuple):
    """How many of a text's words were found, in points.

    A number has 10 points, a content word 5, a function word 1, and a pair of neighbouring words 1; each distinct one
    counts once.
    """

    found: int
    total: int
    """0 if the text has no content words."""

    @property
    def share(self) -> float | None:
        """`found / total`, or None if `total` is 0."""
        return self.found / self.total if self.total else None


def word_support(
    texts: Sequence[str], sources: Sequence[Sequence[str]], *, threads: int | None = None
) -> list[list[WordShare]]:
    """Return the share of each text's words that each of its sources contains, and last that all of them contain.

    `sources` has one element for each text; the result for text i has `len(sources[i]) + 1` shares. Words are compared
    in lower case, without accents, possessives and the English endings of plurals, `-ed` and `-ing`: `1,200.50` is
    `1200.5`, `2nd` is `2`, `5km` is `5` and `km`, `U.S.` is `us`, `e-mail` is `email`. In scripts without spaces
    between words, and in Korean, pairs of characters are compared. A pair of neighbouring words is found if one source
    has the two side by side. If consecutive texts have equal sources, these are read only once.

    Raises:
        ValueError: `texts` and `sources` have different lengths.
    """
    if len(texts) != len(sources):
        raise ValueError(f"there are {len(texts)} texts, but sources for {len(sources)}")
    searches: list[tuple[list[str], list[str]]] = []
    last: Sequence[str] | None = None
    for text, found_in in zip(texts, sources, strict=True):
        if last is None or (found_in is not last and list(found_in) != list(last)):
            searches.append(([], [_replace_surrogates(source) for source in found_in]))
        last = found_in
        searches[-1][0].append(_replace_surrogates(text))
    support = _core.word_support(searches, check_threads(threads))
    return [[WordShare(*share) for share in shares] for search in support for shares in search]


class SentenceSupport(NamedTuple):
    """A sentence of a text, and how much of it its sources contain, in the points of `WordShare`.

    Attributes:
        start, end: its characters in the text.
        alone: what the best source contains, which is the first of several.
        together: what all sources together contain.
        source: the number of the best source; None if no source has any of its words.
        evidence: the characters of the best sentence of that source; None if none has any of its words.
    """

    start: int
    end: int
    alone: WordShare
    together: WordShare
    source: int | None
    evidence: tuple[int, int] | None


def sentence_support(
    texts: Sequence[str], sources: Sequence[Sequence[str]], *, threads: int | None = None
) -> list[list[SentenceSupport]]:
    """Split texts into sentences, as `split_sentences` does, and look their words up, as `word_support` does.

    Raises:
        ValueError: `texts` and `sources` have different lengths.
    """
    searches = [
        (_replace_surrogates(text), [_replace_surrogates(source) for source in found_in])
        for text, found_in in zip(texts, sources, strict=True)
    ]
    return [
        [
            SentenceSupport(*place, WordShare(*alone), WordShare(*together), *(best or (None, None)))
            for place, alone, together, best in sentences
        ]
        for sentences in _core.sentence_support(searches, check_threads(threads))
    ]


def _replace_surrogates(text: str) -> str:
    """The text with a replacement character for each lone surrogate, which no encoding can represent."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
