"""A finished test set, and the corpus that it is made from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.generation.chunks import Chunk, cut_documents
from rageval_spec.generation.documents import DocumentSet, read_documents
from rageval_spec.generation.making import Corpus, Made
from rageval_spec.generation.mixes import Mix
from rageval_spec.generation.neighbours import find_groups
from rageval_spec.generation.rows import Origin, Row, write_chunk, write_rejected, write_row, write_title
from rageval_spec.generation.search import make_search

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rageval_spec.plugin import Context, EmbeddingModel
    from rageval_spec.reading.layouts import CorpusColumns

FORMAT = 1


_FAR = 0.05
"""A share that is off by more than this part of all questions, and by more than one question, is worth a word."""


@dataclass(frozen=True)
class Share:
    """How many questions of one sort there are, and how many there should be."""

    column: str
    name: str
    made: int
    wanted: float

    def is_far(self, questions: int) -> bool:
        """Whether it is so far off in a set of so many questions that a reader should know."""
        return abs(self.made - self.wanted) > max(1.0, _FAR * questions)

    def describe(self) -> str:
        """`difficulty hard: only 2 instead of 18`."""
        made = f"{'only ' if self.made < self.wanted else ''}{self.made:,}" if self.made else "none"
        return f"{self.column} {self.name}: {made} instead of {self.wanted:,.0f}"


@dataclass(frozen=True)
class QuestionSet:
    """A test set.

    Attributes:
        rows: its questions; see `rows.write_row`.
        rejected: the questions that failed a check, each with its reason.
        shortages: why there are fewer questions than were ordered.
        stopped: why it is not finished; None if it is.
    """

    rows: Sequence[Row]
    rejected: Sequence[Row] = ()
    shortages: Sequence[str] = ()
    stopped: str | None = None

    @classmethod
    def of(cls, made: Made, origin: Origin) -> QuestionSet:
        """The rows of what was made."""
        rows, rejected = (write_row(one, origin) for one in made.accepted), map(write_rejected, made.rejected)
        return cls(tuple(rows), tuple(rejected), tuple(made.shortages), made.stopped)

    @property
    def reasons(self) -> Mapping[str, int]:
        """How many questions were rejected for each reason, the most frequent first."""
        counts = Counter(row["reason"] for row in self.rejected)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def count_shares(self, mix: Mix) -> list[Share]:
        """The made and the wanted number of questions of each type, difficulty, style and kind.

        The wanted numbers are those of as many questions as there are. Difficulties are counted as they were measured,
        over the questions that have an answer.
        """
        return list(self._list_shares(mix))

    def list_differences(self, mix: Mix) -> list[str]:
        """What is not as it was ordered: missing questions, and shares that are far from the wanted ones."""
        far = [share.describe() for share in self.count_shares(mix) if share.is_far(len(self.rows))]
        mixed = [f"their mix is not as ordered: {'; '.join(far)}"] if far else []
        return [*map(_tell_shortage, self.shortages), *mixed]

    def _list_shares(self, mix: Mix) -> Any:
        shares = mix.shares
        columns = {"type": shares["type"], "difficulty": shares["difficulty"], "kind": shares["kind"]}
        if len(shares["style"]) > 1:
            columns["style"] = shares["style"]
        for column, wanted in columns.items():
            counted = [row[column] for row in self.rows if row[column] is not None]
            made = Counter(counted)
            for name, share in wanted.items():
                yield Share(column, name, made[name], share * len(counted) / 100)
            yield from (Share(column, name, made[name], 0.0) for name in sorted(made.keys() - wanted.keys()))

    def pack(self) -> bytes:
        """The test set in the form in which it is stored."""
        content = {"format": FORMAT, **asdict(self)}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    @classmethod
    def unpack(cls, content: bytes) -> QuestionSet | None:
        """A stored test set; None if it is damaged or of another format."""
        try:
            parts = json.loads(content)
            if parts.pop("format") != FORMAT:
                return None
            return cls(**parts)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


def _tell_shortage(shortage: str) -> str:
    """`1 question: no chunk is left` as a sentence."""
    what, _, why = shortage.partition(": ")
    return f"{what} {'is' if what.startswith('1 ') else 'are'} missing: {why}"


@dataclass(frozen=True)
class Source:
    """The documents of a test set, read when they are first needed.

    Attributes:
        path: a folder, a file or a corpus.
        columns: the names of a corpus's keys.
        size: the words of a chunk.
    """

    path: Path
    columns: CorpusColumns
    size: int
    _context: Context = field(repr=False)

    @cached_property
    def documents(self) -> DocumentSet:
        """The documents.

        Raises:
            DataError: nothing can be read.
        """
        return read_documents(self.path, self.columns)

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The chunks of all documents."""
        return cut_documents(self.documents.documents, self.size)

    @cached_property
    def origin(self) -> Mapping[str, Any]:
        """The documents by id."""
        return {document.doc_id: document for document in self.documents.documents}

    def list_rows(self) -> list[Row]:
        """The chunks as rows of a corpus."""
        return [write_chunk(chunk, self.origin[chunk.doc_id]) for chunk in self.chunks]

    def tabulate(self) -> pl.DataFrame:
        """The chunks as a table: `doc_id`, `title`, `text`."""
        import polars as pl

        rows = [(chunk.chunk_id, write_title(chunk, self.origin[chunk.doc_id]), chunk.text) for chunk in self.chunks]
        return pl.DataFrame(rows, schema=dict.fromkeys(("doc_id", "title", "text"), pl.String), orient="row")

    def tabulate_documents(self) -> pl.DataFrame:
        """The documents as a table: `doc_id`, `title`, `text`."""
        import polars as pl

        rows = [(one.doc_id, one.title, one.text) for one in self.documents.documents]
        return pl.DataFrame(rows, schema=dict.fromkeys(("doc_id", "title", "text"), pl.String), orient="row")

    def prepare(self, model: EmbeddingModel[Any] | None, depth: int) -> Corpus:
        """The corpus to make questions from. Chunks are embedded when groups of them are first asked for."""
        name = None if model is None else model.context.name

        def group(count: int) -> list[tuple[int, ...]]:
            vectors: NDArray[np.float32] | None = None
            if model is not None:
                vectors = model.embed([chunk.text for chunk in self.chunks], "document").vectors
            return [found.chunks for found in find_groups(self.chunks, vectors, count)]

        titles = {one.doc_id: one.title for one in self.documents.documents}
        return Corpus(self.chunks, titles, group, make_search(self.tabulate(), name, depth, self._context))
