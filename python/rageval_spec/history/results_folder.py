"""Writes and reads the results folder of an evaluation: what it measured and what it measured it on.

| file | content |
|---|---|
| `results.json` | aggregates, comparisons, gates, notes and where the numbers come from (`data/results.py`) |
| `values.parquet` | the value of every query |
| `baselines.parquet` | what these values were in the earlier evaluations that gates compare with, if any |
| `samples.parquet` | each question with its answer, and with the numbers of its contexts' documents |
| `findings.parquet` | what judges decided about each claim |
| `documents.parquet` | the text of each document that is a context, once |
| `fingerprints.parquet` | digests of each question and its data, if they are too many for the metadata of the values |

`docs/results.md` describes every column. Tables of samples are written and read block by block, so that they need not
be in memory. A file of an earlier version has fewer columns; those that it lacks are null.

All files are written under temporary names first and renamed at the end, so that each of them is complete, and a
killed process leaves the earlier results. Several files cannot be replaced in one step. So each table carries the
digest of the `results.json` that was written with it, and a reader notices if a run was killed after it had replaced
only some of them.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.data import tables
from rageval_spec.data.datasets import DESIGN_KEY as DESIGNS_KEY
from rageval_spec.data.datasets import FINGERPRINTS_KEY, dump_designs
from rageval_spec.data.findings import empty_findings
from rageval_spec.data.results import dump_results
from rageval_spec.data.tables import NUMBERS, DocumentNumbers, empty_documents, empty_samples, restore_contexts
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.kernels.inputs import name_special
from rageval_spec.libraries import pl
from rageval_spec.plugin.report import MANIFEST, RESULTS_FILES, STATEMENT
from rageval_spec.reading.formats.parquet import refuse_bomb
from rageval_spec.store.disk import flush_folder, sweep, sync, write_flushed

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


RESULTS, VALUES, SAMPLES, FINDINGS, DOCUMENTS, BASELINES, FINGERPRINTS = RESULTS_FILES
EVIDENCE = (SAMPLES, FINDINGS, DOCUMENTS)
FILES = (RESULTS, VALUES, *EVIDENCE)
"""The files that a results folder always has, unless the samples are left out."""
ALL_FILES = (*FILES, BASELINES, FINGERPRINTS)
TABLES = ALL_FILES[1:]
_OPTIONAL = (BASELINES, FINGERPRINTS, *EVIDENCE)
_ROWS_IN_GROUP = 16384
VALUES_IN_GROUP = 2**15
"""Rows are sorted by dataset, system and metric, so that a reader of some of them skips the other groups."""
_FEW_FINGERPRINTS = 20_000
"""Up to this number of questions, fingerprints are in the metadata of the values, which every reader reads whole."""
_FEW_VALUES = 20_000
"""Up to this number of values, the samples are built once and held. A larger table is built anew for each file, block
by block, so that it is never whole in memory."""


def write_results(evaluation: Evaluation, folder: Path, *, with_samples: bool = True) -> tuple[Path, ...]:
    """Write the results folder, and return its files. `results.json` is the first.

    Without samples, the tables of questions, claims and documents are left out, and without an earlier evaluation in a
    gate, so is the table of its values. What another evaluation left of them is removed.
    """
    writers = _list_writers(evaluation, with_samples=with_samples)
    if with_samples and is_small(evaluation):
        _ = evaluation.samples  # three tables are made from it, and reports read it too
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_together(folder, writers)
        for name in (*_OPTIONAL, MANIFEST, STATEMENT):  # the last two are of the earlier files
            if name not in writers:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise RagevalError(f"{folder}: the results could not be written: {error.strerror or error}") from error
    return tuple(folder / name for name in reversed(writers))


def is_small(evaluation: Evaluation) -> bool:
    """Whether the samples are built once and held, because they need little memory."""
    return evaluation.values.height <= _FEW_VALUES


def write_files(evaluation: Evaluation, folder: Path, *, with_samples: bool) -> None:
    """Write the files of a results folder into an existing folder that nobody reads yet."""
    for name, write in _list_writers(evaluation, with_samples=with_samples).items():
        _write_one(write, folder / name, folder / name)


def _list_writers(evaluation: Evaluation, *, with_samples: bool) -> dict[str, Callable[[Path], None]]:
    """How to write each file, in the order in which they take their names: a reader begins with the last one."""
    writers: dict[str, Callable[[Path], None]] = {}
    results = dump_results(evaluation)
    mark = make_mark(results)
    if with_samples:
        writers[DOCUMENTS] = lambda path: _stream(evaluation.iterate_documents, empty_documents(), path, mark)
        writers[FINDINGS] = lambda path: _stream(evaluation.iterate_findings, empty_findings(), path, mark)
        writers[SAMPLES] = lambda path: _stream(lambda: _number_samples(evaluation), _empty_numbered(), path, mark)
    if not evaluation.base_values.is_empty():
        writers[BASELINES] = lambda path: evaluation.base_values.write_parquet(path, metadata=mark)
    metadata, fingerprints = {**mark}, evaluation.fingerprints
    if fingerprints.count <= _FEW_FINGERPRINTS:
        metadata = {FINGERPRINTS_KEY: fingerprints.dump(), **mark}
    else:
        writers[FINGERPRINTS] = lambda path: fingerprints.tabulate().write_parquet(path, metadata=mark)
    if evaluation.designs:
        metadata[DESIGNS_KEY] = dump_designs(evaluation.question_designs)
    values = evaluation.values
    blocks = partial(values.iter_slices, VALUES_IN_GROUP)
    writers[VALUES] = lambda path: _stream(blocks, values.clear(), path, metadata, VALUES_IN_GROUP)
    writers[RESULTS] = lambda path: write_flushed(path, results)
    return writers


def _write_together(folder: Path, writers: dict[str, Callable[[Path], None]]) -> None:
    """Write every file under a temporary name, then rename all."""
    sweep(part for name in writers for part in folder.glob(f".{name}.*.part"))
    token = uuid.uuid4().hex
    parts = {name: folder / f".{name}.{token}.part" for name in writers}
    try:
        for name, write in writers.items():
            _write_one(write, parts[name], folder / name)
        for name, part in parts.items():
            part.replace(folder / name)
    except BaseException:
        for part in parts.values():
            part.unlink(missing_ok=True)
        raise
    flush_folder(folder)


def _write_one(write: Callable[[Path], None], path: Path, target: Path) -> None:
    try:
        write(path)
        sync(path)
    except pl.exceptions.PolarsError as error:  # a full disk has no type of its own, and not always a message
        raise RagevalError(f"{target}: the table could not be written; is the disk full? {error}") from error


def _stream(
    blocks: Callable[[], Iterator[pl.DataFrame]],
    empty: pl.DataFrame,
    path: Path,
    metadata: dict[str, str],
    group: int = _ROWS_IN_GROUP,
) -> None:
    """Write blocks as one Parquet file. Equal rows give equal bytes, however many threads there are.

    A table of one row group is written at once: to start the streaming engine takes longer than to write it.
    """
    waiting = blocks()
    first, rows = [empty], 0
    for block in waiting:
        first.append(block)
        rows += block.height
        if rows > group:
            break
    if rows > group:
        _sink(chain(first, waiting), empty, path, metadata, group)
    else:
        pl.concat(first).write_parquet(path, metadata=metadata)


def _sink(
    blocks: Iterator[pl.DataFrame], empty: pl.DataFrame, path: Path, metadata: dict[str, str], group: int
) -> None:
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        assert columns is None and predicate is None and rows is None, "a sink wants everything"
        yield from blocks

    rows = register_io_source(read, schema=empty.schema)
    rows.sink_parquet(path, row_group_size=group, maintain_order=True, metadata=dict(metadata))


def _number_samples(evaluation: Evaluation) -> Iterator[pl.DataFrame]:
    """The samples with the numbers of their documents in place of the texts."""
    numbering, columns = DocumentNumbers(), _empty_numbered().columns
    for block in evaluation.iterate_samples():
        yield block.with_columns(numbering.take(block)[0]).select(columns)


def _empty_numbered() -> pl.DataFrame:
    empty = empty_samples()
    numbered = empty.with_columns(DocumentNumbers().take(empty)[0])
    return numbered.select(NUMBERS if name == "contexts" else name for name in empty.columns)


_KEY = "rageval-spec:results"


def make_mark(results: bytes) -> dict[str, str]:
    """The metadata of the tables that belong to these results: a digest of the JSON, whatever its layout."""
    content = json.dumps(json.loads(results), sort_keys=True, separators=(",", ":"))
    return {_KEY: hashlib.sha256(content.encode()).hexdigest()}


def check_kinds(folder: Path) -> None:
    """Check that each file of a results folder is one: a reader waits for ever for a pipe, and a device has no end."""
    for name in ALL_FILES:
        path = folder / name
        if (kind := name_special(path)) is not None or path.is_dir():
            raise DataError(f"{path}: this is {kind or 'a folder'}, not a file of results")


def check_marks(results: bytes, tables: Iterable[Path]) -> None:
    """Check that tables belong to the results. Absent tables and those of earlier versions, without a mark, pass."""
    expected = make_mark(results)[_KEY]
    for path in tables:
        if not path.is_file():
            continue
        try:
            found = pl.read_parquet_metadata(path).get(_KEY)
        except (pl.exceptions.PolarsError, OSError):
            continue  # who reads the table says what is wrong with it
        if found not in (None, expected):
            raise DataError(
                f"{path.parent}: {path.name} is not of the evaluation in results.json; a run was killed while it "
                "replaced the files of another one, or is doing so now; run the spec again"
            )


_ROWS_AT_ONCE = 4096
_FEW_ROWS = 100
"""Up to this number of rows, each is read by its place."""
_DERIVED = ("error", "status")
"""The status of a file of an earlier version comes from its errors."""


class StoredSamples(tables.SampleTable):
    """The samples of a folder. Nothing is read until a method is called; without a file there are no rows.

    Every method raises `DataError` if a file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(self._read_blocks)
        self._path = folder / SAMPLES
        self._documents = folder / DOCUMENTS

    @cached_property
    def whole(self) -> pl.DataFrame:
        if not self._columns:
            return tables.empty_samples()
        with self._explained():
            found = pl.read_parquet(self._path)
            documents = pl.read_parquet(self._documents) if NUMBERS in found.columns else None
            return _complete(found if documents is None else restore_contexts(found, documents))

    def select(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns, without reading the others."""
        known = [name for name in tables.SAMPLES if name in columns]
        if self.is_held or not self._columns or "contexts" in known:
            return super().select(known)
        with self._explained():
            names = [name for name in self._columns if name in (*known, *_DERIVED)]
            return _complete(pl.read_parquet(self._path, columns=names)).select(known)

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """The rows that share the columns of `wanted`, without holding the others."""
        if self.is_held or not self._columns:
            return super().find(wanted)
        with self._explained():
            keys = pl.read_parquet(self._path, columns=wanted.columns).with_row_index("row")
            rows = keys.join(wanted, on=wanted.columns, how="semi", maintain_order="left").get_column("row").to_list()
            scan = pl.scan_parquet(self._path)
            if len(rows) > _FEW_ROWS:
                return self._restore(scan.with_row_index("row").filter(pl.col("row").is_in(rows)).drop("row").collect())
            return self._restore(pl.concat([scan.head(0).collect(), *(scan.slice(row, 1).collect() for row in rows)]))

    def _read_blocks(self) -> Iterator[pl.DataFrame]:
        """All rows in blocks, with the texts of only these rows in memory."""
        if not self._columns:
            return
        scan = pl.scan_parquet(self._path)
        with self._explained():
            total = int(scan.select(pl.len()).collect().item())
            for start in range(0, total, _ROWS_AT_ONCE):
                yield self._restore(scan.slice(start, _ROWS_AT_ONCE).collect())

    def _restore(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of the file with the texts of their contexts."""
        if NUMBERS not in rows.columns:
            return _complete(rows)
        numbers = rows.get_column(NUMBERS).explode().drop_nulls().unique()
        texts = pl.scan_parquet(self._documents).filter(
            pl.col("document").is_between(numbers.min(), numbers.max()) & pl.col("document").is_in(numbers.implode())
        )
        return _complete(restore_contexts(rows, texts.collect()))

    @cached_property
    def _columns(self) -> list[str]:
        """The columns of the file; empty without one."""
        if not self._path.is_file():
            return []
        for path in (self._path, self._documents):
            if path.is_file():
                refuse_bomb(path)
        with self._explained():
            present = [*pl.read_parquet_schema(self._path)]
        missing = [name for name in tables.FIRST_SAMPLES if name not in present and name != "contexts"]
        if missing:
            raise DataError(f"{self._path}: the column {', '.join(map(repr, missing))} is missing")
        return present

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (pl.exceptions.PolarsError, OSError, LookupError, TypeError, ValueError) as error:
            raise DataError(f"{self._path}: not a table of samples: {error}") from error


def _complete(found: pl.DataFrame) -> pl.DataFrame:
    """The rows with all columns of samples and their types."""
    empty = tables.empty_samples()
    added = [pl.lit(None).alias(name) for name in empty.columns if name not in found.columns]
    return tables.type_samples(found.with_columns(added))
