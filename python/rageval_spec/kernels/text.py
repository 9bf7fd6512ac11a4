"""Sentences, words and names of texts, and how far one text's words are found in another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec import _core
from rageval_spec.kernels.arguments import check_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

_SURROGATES = re.compile("[\ud800-\udfff]")


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the sentences of a text as `(start, end)`, so that `text[start:end]` is one, trimmed and not empty.

    They come in order and together hold every character that is no white space; "" has none. Abbreviations, initials,
    decimals, URLs, lists, citations behind a full stop, wrapped lines and the full stops of other scripts are known.
    A piece without letter or digit belongs to the sentence before it.
    """
    return _core.split_sentences(_replace_surrogates(text))


def names(text: str) -> list[str]:
    """Return the numbers, dates and capitalised names of a text, in order, each once, as far as their looks tell.

    Numbers are in one form (`1200`, `$3.5 million`, `15%`), and so are dates (`12 May 1999`, `May 1999`, `12 May`).
    Scripts without capitals, and texts in capitals alone, have no names but numbers.
    """
    return _core.names(_replace_surrogates(text))


class WordShare(NamedTuple):
    """How much of a text's words was found: points, of a number 10, a content word 5, a function word 1 and a pair of
    neighbours 1, each distinct one once.
    """

    found: int
    total: int
    """0 where the text has no content word."""

    @property
    def share(self) -> float | None:
        """`found / total`, or None where there is nothing to find."""
        return self.found / self.total if self.total else None


def word_support(
    texts: Sequence[str], sources: Sequence[Sequence[str]], *, threads: int | None = None
) -> list[list[WordShare]]:
    """Return how far the words of each text are found in each of its sources, and last in all of them together.

    `sources` has as many elements as `texts`; the list of text number i has `len(sources[i]) + 1` shares. Words are
    compared in lower case, without accents, possessives and the English endings of plurals, `-ed` and `-ing`:
    `1,200.50` is `1200.5`, `2nd` is `2`, `5km` is `5` and `km`, `U.S.` is `us`, `e-mail` is `email`. In scripts without
    spaces between words, and in Korean, pairs of characters are compared. A pair of neighbouring words is found where
    one source has the two side by side. Neighbouring texts with equal sources cost one reading of these sources.

    Raises:
        ValueError: another number of texts than of sources.
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


def _replace_surrogates(text: str) -> str:
    """The text, with a replacement character for each half of a surrogate pair, which is in no encoding."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
