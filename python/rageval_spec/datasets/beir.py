"""`beir`: a folder in the layout of the BEIR benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.evidence.nuggets import NUGGETS
from rageval_spec.data.tables import Collection
from rageval_spec.datasets.shared.row_dataset import NUGGETS_FILE
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.plugin import Dataset, DatasetNode, InputFile
from rageval_spec.reading.column_names import CORPUS, QUERIES
from rageval_spec.reading.corpus_files import open_corpus
from rageval_spec.reading.formats.json_files import json_objects, read_json_batches, read_json_lines
from rageval_spec.reading.formats.records import queries_table
from rageval_spec.reading.formats.text_files import find_file
from rageval_spec.reading.nugget_banks import attach_banks, check_banks
from rageval_spec.reading.question_files import find_twice, other_columns_table
from rageval_spec.reading.row_sources import QUICKLY_READ
from rageval_spec.reading.rows import read_rows

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.samples import Part
    from rageval_spec.data.tables import CorpusReader


class BeirNode(DatasetNode):
    """A BEIR folder: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`, each plain, `.gz` or `.zst`.

    A retrieved document with the same id as the query is dropped, as BEIR does, unless their texts show that they
    differ.
    """

    path: str = Field(description="The folder.")
    split: str = Field(
        default="test",
        min_length=1,
        description="Which judgements to use: `qrels/<split>.tsv`. Only queries with judgements are evaluated.",
    )
    nuggets: str | None = NUGGETS_FILE


class Beir(Dataset[BeirNode]):
    """Reads a BEIR folder. It needs the corpus and the queries only if a system reads them."""

    known_as = ("mteb", "ir_datasets")

    def inputs(self) -> Sequence[InputFile]:
        """The folder if it is missing; otherwise the judgements, and the queries and corpus if they exist."""
        if not self._folder.is_dir():
            return (InputFile(self._folder, ("path",), kind="folder"),)
        qrels = InputFile(self._qrels, ("split",), hint=self._splits())
        banks = [InputFile(self._nuggets, (NUGGETS,))] if self._nuggets else []
        return (qrels, *(InputFile(path, ("path",)) for path in (self._queries, self._corpus) if path.exists()), *banks)

    @property
    def parts(self) -> frozenset[str]:
        """The parts whose file is in the folder; both if the folder itself is missing."""
        if not self._folder.is_dir():
            return super().parts
        files = {"queries": self._queries, "corpus": self._corpus}
        return frozenset(part for part, path in files.items() if path.exists())

    def open(self) -> Collection:
        """The collection. Its queries and corpus are None if the folder does not have them."""
        collection = Collection(
            name=self.context.name,
            load_qrels=self._load_qrels,
            load_queries=self._load_queries if self._queries.exists() else None,
            load_corpus=self._load_corpus if self._corpus.exists() else None,
            load_columns=self._load_columns if self._queries.exists() else None,
            drops_self_retrieval=True,
        )
        return attach_banks(collection, self._nuggets) if self._nuggets else collection

    def check_files(self) -> Iterator[FileFault]:
        """Report a query that is listed twice, and nuggets that cannot be read."""
        yield from check_banks(self._nuggets) if self._nuggets else ()
        rows = self.iterate_questions()
        if rows is not None and (twice := find_twice(self._queries, rows, QUERIES[0].known)) is not None:
            yield FileFault(("path",), twice, "give each query an id of its own")

    def list_other_columns(self) -> Sequence[str] | None:
        """The keys of the queries besides id and text, including those in `metadata`; None if the file is long."""
        if not self._queries.is_file():
            return ()
        if self._queries.stat().st_size > QUICKLY_READ:
            return None
        return [*dict.fromkeys(name for _, row in json_objects(self._queries) for name in _other_values(row))]

    def find_parts(self) -> frozenset[Part]:
        return frozenset({"relevant", "nuggets"} if self._nuggets else {"relevant"})

    def iterate_questions(self) -> Iterator[tuple[str, Mapping[str, Any]]] | None:
        return read_rows(self._queries, "json") if self._queries.is_file() else None

    @property
    def _folder(self) -> Path:
        return self.context.resolve(self.node.path)

    @property
    def _nuggets(self) -> Path | None:
        return None if self.node.nuggets is None else self.context.resolve(self.node.nuggets)

    @property
    def _corpus(self) -> Path:
        return find_file(self._folder / "corpus.jsonl")

    @property
    def _queries(self) -> Path:
        return find_file(self._folder / "queries.jsonl")

    @property
    def _qrels(self) -> Path:
        return find_file(self._folder / "qrels" / f"{self.node.split}.tsv")

    def _splits(self) -> str:
        found = {path.name.partition(".tsv")[0] for path in (self._folder / "qrels").glob("*.tsv*")}
        return f"the splits there are: {', '.join(sorted(found))}" if found else "there is no split at all"

    def _load_qrels(self) -> pl.DataFrame:
        if not self._qrels.exists():
            raise DataError(f"{self._qrels}: no such file; {self._splits()}")
        return kernels.read_qrels(self._qrels)

    def _load_queries(self) -> pl.DataFrame:
        return queries_table(read_json_lines(self._queries, QUERIES))

    def _load_columns(self) -> pl.DataFrame | None:
        names = dict.fromkeys(name for _, row in json_objects(self._queries) for name in _other_values(row))
        rows = zip(self._load_queries()["query_id"], json_objects(self._queries), strict=True)
        return other_columns_table(((query_id, _other_values(row)) for query_id, (_, row) in rows), names)

    def _load_corpus(self) -> CorpusReader:
        return open_corpus(self._corpus, "json", lambda: read_json_batches(self._corpus, CORPUS))


def _other_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """The values besides id and text, including those in `metadata` unless the row itself has the same key."""
    taken = {name for column in QUERIES for name in column.known}
    metadata = row.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    own = {name: value for name, value in row.items() if name not in taken and value is not inner}
    return {**inner, **own}


PLUGIN = Beir
