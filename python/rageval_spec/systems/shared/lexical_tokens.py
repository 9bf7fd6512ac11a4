"""Splits texts into words depending on their script, for lexical retrieval.

`words` does what most BM25 implementations do: it finds runs of two or more letters or digits. It finds no words in
Chinese or Thai, which put no spaces between words, and cuts Hindi words at vowel signs. `unicode` follows Lucene's
CJKAnalyzer in the first case (overlapping pairs of characters) and keeps combining marks with their letter in the
second.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal

from rageval_spec import kernels
from rageval_spec.dataclass import dataclass, field
from rageval_spec.libraries import compile_later

Tokenizer = Literal["words", "unicode"]

ENOUGH = 0.05
"""`unicode` is chosen if `words` cannot handle at least this share of the letters."""
LETTERS_READ = 400
"""How many characters of each text to check: a few are enough to recognise its script."""
_VOWEL_SIGNS = compile_later(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]"
)
"""Hebrew and Arabic vowel signs. Most texts omit them, so they must not make words differ."""

# Blocks of the scripts that are written without spaces. Korean has spaces but attaches particles to nouns; pairs of
# syllables still find these nouns (as in Lucene's CJKAnalyzer).
_UNSPACED = {
    "Han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Hiragana": "\u3041-\u309f",
    "Katakana": "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "Lao": "\u0e81-\u0ecd\u0edc-\u0edf",
    "Khmer": "\u1780-\u17d3\u17d7\u17dc\u17dd",
    "Myanmar": "\u1000-\u103f\u1050-\u109d",
}


@dataclass(frozen=True, slots=True)
class ChosenTokenizer:
    """The tokenizer that fits a set of texts, and the share of letters, 0 to 1, that `words` would miss.

    `scripts` are those without spaces among them, the most frequent first; "combining marks" stands for the rest.
    """

    tokenizer: Tokenizer
    share: float
    scripts: tuple[str, ...]


def choose_tokenizer(texts: Iterable[str]) -> ChosenTokenizer:
    """Choose the tokenizer that fits the script of the texts; `words` if there are no letters."""
    counts: Counter[str] = Counter()
    letters = 0
    for text in texts:
        beginning = text[:LETTERS_READ]
        if beginning.isascii():
            letters += sum(map(str.isalpha, beginning))
            continue
        beginning = unicodedata.normalize("NFC", beginning)
        letters += sum(map(str.isalpha, beginning))
        counts.update(_missed(beginning))
    share = counts.total() / letters if letters else 0.0
    scripts = tuple(name for name, _ in counts.most_common())
    return (
        ChosenTokenizer("unicode", min(share, 1.0), scripts)
        if share >= ENOUGH
        else ChosenTokenizer("words", share, scripts)
    )


def split_unicode(text: str) -> list[str]:
    """The words of a text in any script: combining marks stay with their letter, unspaced scripts become pairs.

    Full-width and half-width forms count as one (NFKC), and Hebrew and Arabic vowel signs do not count. A single
    character of an unspaced script is a word. Other words have two or more letters or digits, as with `words`.

    >>> split_unicode("全文検索 engine")
    ['全文', '文検', '検索', 'engine']
    """
    return list(_split(_VOWEL_SIGNS.sub("", unicodedata.normalize("NFKC", text))))


def _split(text: str) -> Iterator[str]:
    for found in _pattern().finditer(text):
        run = found["unspaced"]
        if run is None:
            yield found["word"]
            continue
        characters = _cluster().findall(run)
        if len(characters) == 1:
            yield run
        else:
            yield from (first + second for first, second in pairwise(characters))


def _missed(text: str) -> Iterator[str]:
    """The script of each letter that `words` cannot handle."""
    for found in _unspaced_letter().finditer(text):
        yield str(found.lastgroup)
    rest = _unspaced_letter().sub("", text)
    yield from ("combining marks" for character in rest if unicodedata.category(character) in ("Mn", "Mc"))


@cache
def _unspaced_letter() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}>[{block}])" for name, block in _UNSPACED.items()))


@cache
def _marks() -> str:
    """All combining marks, as a character class: Python's `\\w` leaves most of them out."""
    characters = map(chr, (*range(0x10000), *range(0x10A00, 0x12000)))
    return "".join(one for one in characters if unicodedata.category(one) in ("Mn", "Mc", "Me"))


@cache
def _pattern() -> re.Pattern[str]:
    unspaced, marks = "".join(_UNSPACED.values()), _marks()
    letter = rf"(?:(?![{unspaced}])\w[{marks}\u200c\u200d]*)"
    return re.compile(rf"(?P<unspaced>[{unspaced}][{unspaced}{marks}]*)|(?P<word>{letter}{{2,}})")


@cache
def _cluster() -> re.Pattern[str]:
    return re.compile(rf"[^{_marks()}][{_marks()}]*|[{_marks()}]+")


@dataclass(frozen=True)
class Words:
    """The words of texts, without stop words, as stems if there is a stemmer.

    Words in ASCII are found by the kernel. Python gets each distinct word at most once, for its stem, and with the
    tokenizer `unicode` each distinct stretch between white space that is not ASCII.
    """

    tokenizer: Tokenizer
    stop_words: frozenset[str] = frozenset()
    stem: Callable[[str], str] | None = None
    _known: dict[str, list[str]] = field(default_factory=dict)

    @property
    def split(self) -> kernels.Bm25Splitter:
        return "words" if self.tokenizer == "words" else "pieces"

    def expand(self, pieces: Sequence[str]) -> list[list[str]]:
        """The words that each piece stands for."""
        return [[*self._expand(piece)] for piece in pieces]

    def read(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text."""
        pieces = kernels.split_pieces(texts, self.split)
        self._known.update((piece, [*self._expand(piece)]) for piece in {*chain(*pieces)} - self._known.keys())
        return [[word for piece in some for word in self._known[piece]] for some in pieces]

    def _expand(self, piece: str) -> Iterator[str]:
        words = [piece] if piece.isascii() or self.tokenizer == "words" else split_unicode(piece.lower())
        kept = (word for word in words if word not in self.stop_words)
        return kept if self.stem is None else map(self.stem, kept)


@cache
def read_stop_words(language: str) -> frozenset[str]:
    """The stop words of a language: the lists of bm25s (from NLTK, and stopwords-iso for Korean).

    Only the file of the lists is read: importing the package would take longer than a small search.
    """
    package = importlib.util.find_spec("bm25s")
    assert package is not None and package.origin is not None, "it is a dependency"
    spec = importlib.util.spec_from_file_location("bm25s_stop_words", Path(package.origin).with_name("stopwords.py"))
    assert spec is not None and spec.loader is not None, "it is a Python file"
    lists = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lists)
    return frozenset(getattr(lists, f"STOPWORDS_{'EN' if language == 'english' else language.upper()}"))
