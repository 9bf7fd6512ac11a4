"""Builds BM25 indexes in bounded memory, reads them in place, and searches them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rageval_spec import _core
from rageval_spec.errors import DataError
from rageval_spec.kernels.inputs import check_count, check_threads
from rageval_spec.libraries import np, pl

if TYPE_CHECKING:
    from mmap import mmap

    from numpy.typing import NDArray

Bm25Method: TypeAlias = Literal["lucene", "robertson", "atire", "bm25+", "bm25l"]
Bm25Splitter: TypeAlias = Literal["words", "pieces"]
"""`words` gives runs of two or more letters, digits or underscores in lower case, as the pattern `\\b\\w\\w+\\b` finds
them. `pieces` gives what stands between ASCII white space, as it is, and words where that is ASCII."""
_CHARACTERS = 0x110000
_BLOCK = 256


class _Characters(NamedTuple):
    """What Python knows of characters.

    `special` are those whose lower-case form depends on their neighbours, or is not one character.
    """

    alphabet: _core.Alphabet
    special: frozenset[str]


@cache
def _ascii() -> _Characters:
    return _Characters(_core.Alphabet([], []), frozenset())


@cache
def _unicode() -> _Characters:
    every = np.arange(_CHARACTERS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    blocks = [every[start : start + _BLOCK] for start in range(0, _CHARACTERS, _BLOCK)]
    changed = [one for block in blocks if block.lower() != block for one in block if one.lower() != one]
    special = {one for one in changed if len(one.lower()) != 1} | {"\N{GREEK CAPITAL LETTER SIGMA}"}
    lowered = [(ord(one), ord(one.lower())) for one in changed if one not in special]
    return _Characters(
        _core.Alphabet([found.span() for found in re.finditer(r"\w+", every)], lowered), frozenset(special)
    )


def _prepare(texts: pl.Series, split: Bm25Splitter) -> tuple[pl.Series, _core.Alphabet]:
    """The texts with special characters in lower case, and the alphabet that they need. Most need only ASCII's."""
    if split == "pieces" or texts.str.len_bytes().sum() == texts.str.len_chars().sum():
        return texts, _ascii().alphabet
    alphabet, special = _unicode()
    found = texts.str.contains_any(sorted(special))
    if found.any():
        texts = texts.clone().scatter(found.arg_true(), [text.lower() for text in texts.filter(found)])
    return texts, alphabet


def split_pieces(texts: Sequence[str], split: Bm25Splitter) -> list[list[str]]:
    """The pieces of each text."""
    prepared, alphabet = _prepare(pl.Series(texts, dtype=pl.String), split)
    return _core.split_pieces(prepared.to_list(), split, alphabet)


class Bm25Builder:
    """Takes a corpus in batches and writes its index."""

    def __init__(
        self,
        split: Bm25Splitter,
        stop_words: Sequence[str],
        expand: Callable[[Sequence[str]], list[list[str]]],
        *,
        stems: bool,
        folder: Path | None = None,
        threads: int | None = None,
    ) -> None:
        """Start without documents.

        `expand` gives the words that pieces stand for; it is asked about each distinct piece once, and only about
        those that are not ASCII if there are no stems. Postings that exceed 256 MB are spilled to files in `folder`,
        which are removed in the end; without a folder, everything stays in memory.
        """
        self._split: Bm25Splitter = split
        self._expand = expand
        self._inner = _core.Bm25Builder(split, list(stop_words), stems, folder, check_threads(threads))

    def add(self, doc_ids: pl.Series, texts: pl.Series) -> None:
        """Add documents. Raises `DataError` if a temporary file cannot be written."""
        prepared, alphabet = _prepare(texts, self._split)
        self._inner.add(pl.DataFrame({"doc_id": doc_ids, "text": prepared}), alphabet, self._expand)

    def finish(self, note: bytes, proceed: Callable[[int, int], object], path: Path | None = None) -> Bm25Index:
        """The index of all documents, in memory or in a new file, with a note to keep with it.

        `proceed` is called now and then with how many of how many words are done.
        """
        content = self._inner.finish(path, note, proceed)
        if path is not None:
            return Bm25Index.open(path)
        return Bm25Index(np.empty(0, np.uint8) if content is None else content, Path("index"))


class Bm25Index:
    """A finished index, in memory or in a file that is mapped and not read."""

    def __init__(self, content: NDArray[np.uint8], path: Path) -> None:
        """Use the bytes of an index; `path` is for messages. Raises `DataError` if they are not a whole index."""
        self._inner = _core.Bm25Index(content, path)
        self._mapped: mmap | None = None

    @classmethod
    def open(cls, path: Path) -> Bm25Index:
        """Map a file.

        Raises:
            DataError: it cannot be read or is not a whole index. A damaged page shows when it is first used.
        """
        from mmap import ACCESS_READ, mmap

        try:
            with path.open("rb") as file:
                mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error
        index = cls(np.frombuffer(mapped, np.uint8), path)
        index._mapped = mapped
        return index

    def release(self) -> None:
        """Give the pages of a mapped file back, so that they do not count as this process's memory.

        The system keeps them cached; a search that needs one again gets it from there.
        """
        import mmap

        if self._mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return self._inner.documents

    @property
    def note(self) -> bytes:
        """What was kept with the index. Raises `DataError` if it is damaged."""
        return self._inner.note

    def search(
        self,
        queries: Sequence[Sequence[str]],
        depth: int,
        *,
        method: Bm25Method = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 0.5,
        threads: int | None = None,
    ) -> pl.DataFrame:
        """The best `depth` documents for each query: `query: u32` (its number), `doc_id: str, score: f64`, best first.

        A query is its words. Those that no document has do not count; one that is there twice counts twice. Documents
        that share no word with it are not found, nor those with a score of 0. Scores are float32 sums in the order of
        the words, the same bits as those of bm25s 0.3; equal ones come in descending order of ids.

        Raises:
            DataError: the index is damaged.
            ValueError: a parameter is out of range.
        """
        words = [[*query] for query in queries]
        found = self._inner.search(words, method, k1, b, delta, check_count("depth", depth), check_threads(threads))
        return pl.DataFrame(found)
