"""A file of documents as a corpus that is read in batches, and its size, found without reading all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.data.tables import CorpusReader, CorpusSize
from rageval_spec.errors import DataError
from rageval_spec.kernels.inputs import expanded_size
from rageval_spec.libraries import np, pl
from rageval_spec.reading.formats.parquet import count_rows
from rageval_spec.reading.formats.records import Records, refuse, refuse_missing, refuse_twice
from rageval_spec.reading.formats.text_files import text_lines
from rageval_spec.reading.rows import RowFormat

if TYPE_CHECKING:
    from numpy.typing import NDArray


def open_corpus(path: Path, form: RowFormat, read: Callable[[], Iterator[Records]]) -> CorpusReader:
    """The corpus of a file; `read` gives the records of its documents from the start, some megabytes at a time."""
    return CorpusReader(partial(corpus_tables, read), partial(_measure, path, form, read))


def _measure(path: Path, form: RowFormat, read: Callable[[], Iterator[Records]]) -> CorpusSize:
    batches = read()
    first = next(batches)
    rows, frame = first.frame.height, first.frame
    mean = sum(frame[name].str.len_bytes().sum() or 0 for name in frame.columns) / rows
    if form == "parquet":
        return CorpusSize(count := count_rows(path), round(mean * count), is_exact=count == rows)
    more = next(batches, None) if form in ("json", "csv") else None
    if more is None:
        total = rows + sum(later.frame.height for later in batches)
        return CorpusSize(total, round(mean * total), is_exact=True)
    last = int(first.locate(rows - 1).rpartition(":")[2])
    taken = sum(len(text.encode()) + 1 for _, text in islice(text_lines(path), last))
    total = max(round(expanded_size(path) * rows / taken), rows + more.frame.height)
    return CorpusSize(total, round(mean * total), is_exact=False)


def corpus_tables(read: Callable[[], Iterator[Records]]) -> Iterator[pl.DataFrame]:
    """`doc_id, title, text`, "" if one of both is missing, in batches; `read` gives the records from the start.

    Of earlier ids only hashes are kept, 8 bytes each. Where one is met again, the file is read again up to there, to
    see whether it is the same id. Raises DataError: no id, neither title nor text, an id twice.
    """
    seen = _SeenHashes()
    for number, records in enumerate(read()):
        refuse_missing(records, "doc_id")
        bare = pl.col("title").is_null() & pl.col("text").is_null()
        refuse(records, bare, "the document {doc_id!r} has neither title nor text")
        known = seen.add(_hash(records.frame["doc_id"]))
        if known is not None:
            _refuse_known(records, records.frame["doc_id"].filter(known), islice(read(), number))
        refuse_twice(records, ("doc_id",), "the document {doc_id!r} is listed twice")
        yield records.frame.select("doc_id", pl.col("title", "text").fill_null(""))


def _hash(ids: pl.Series) -> pl.Series:
    return ids.hash()


def _refuse_known(records: Records, ids: pl.Series, earlier: Iterator[Records]) -> None:
    """Raise an error for the first row with one of `ids` that an earlier batch has, too."""
    first: dict[str, str] = {}
    for batch in earlier:
        rows = batch.frame["doc_id"].is_in(ids.implode()).arg_true()
        first |= {doc_id: batch.locate(row) for row in rows if (doc_id := batch.frame["doc_id"][row]) not in first}
    if first:
        row = records.frame["doc_id"].is_in([*first]).arg_true()[0]
        doc_id = records.frame["doc_id"][row]
        raise DataError(f"{records.locate(row)}: the document {doc_id!r} is listed twice, first at {first[doc_id]}")


class _SeenHashes:
    """The hashes of a stream, as a few sorted arrays of growing size."""

    def __init__(self) -> None:
        self._arrays: list[NDArray[np.uint64]] = []

    def add(self, hashes: pl.Series) -> pl.Series | None:
        """Take in a batch; whether each hash was in an earlier one, None if none was."""
        added = hashes.to_numpy()
        known = np.zeros(len(added), dtype=bool)
        for array in self._arrays:
            places = np.searchsorted(array, added)
            known |= array[np.minimum(places, len(array) - 1)] == added
        self._arrays.append(np.sort(added))
        while len(self._arrays) > 1 and len(self._arrays[-2]) <= 2 * len(self._arrays[-1]):
            last = self._arrays.pop()
            self._arrays[-1] = np.sort(np.concatenate([self._arrays[-1], last]), kind="stable")
        return pl.Series(known) if known.any() else None
