"""Writes the results folder of an evaluation: what it measured and what it measured it on.

| file | content |
|---|---|
| `results.json` | aggregates, comparisons, gates, notes and where the numbers come from (`data/results.py`) |
| `values.parquet` | the value of every query |
| `baselines.parquet` | what these values were in the earlier evaluations that gates compare with, if any |
| `samples.parquet` | each question with its answer, and with the numbers of its contexts' documents |
| `findings.parquet` | what judges decided about each claim |
| `documents.parquet` | the text of each document that is a context, once |

`docs/results.md` describes every column. Tables of samples are written block by block, so that they need not be in
memory. All files are written under temporary names first and renamed at the end, so that each of them is complete, and
a killed process leaves the earlier results. If it is killed while it renames, readers notice (`history/marks.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.data.design import METADATA_KEY as DESIGNS_KEY
from rageval_spec.data.design import dump_designs
from rageval_spec.data.documents import NUMBERS, DocumentNumbers, empty_documents
from rageval_spec.data.findings import empty_findings
from rageval_spec.data.fingerprints import METADATA_KEY
from rageval_spec.data.results import Results
from rageval_spec.data.tables import empty_samples
from rageval_spec.errors import RagevalError
from rageval_spec.history.marks import make_mark
from rageval_spec.plugin.report import RESULTS_FILES
from rageval_spec.store.disk import flush_folder, sweep, sync, write_flushed

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

RESULTS, VALUES, SAMPLES, FINDINGS, DOCUMENTS, BASELINES = RESULTS_FILES
EVIDENCE = (SAMPLES, FINDINGS, DOCUMENTS)
FILES = (RESULTS, VALUES, *EVIDENCE)
"""The files that a results folder always has, unless the samples are left out."""
ALL_FILES = (*FILES, BASELINES)
TABLES = ALL_FILES[1:]
_OPTIONAL = (BASELINES, *EVIDENCE)
_ROWS_IN_GROUP = 16384
_FEW_VALUES = 20_000
"""Up to this number of values, the samples are built once and held. A larger table is built anew for each file, block
by block, so that it is never whole in memory."""


def write_results(evaluation: Evaluation, folder: Path, *, with_samples: bool = True) -> tuple[Path, ...]:
    """Write the results folder, and return its files. `results.json` is the first.

    Without samples, the tables of questions, claims and documents are left out, and without an earlier evaluation in a
    gate, so is the table of its values. What another evaluation left of them is removed.

    Raises:
        RagevalError: a file cannot be written; the folder keeps its earlier files.
    """
    writers = _list_writers(evaluation, with_samples=with_samples)
    if with_samples and is_small(evaluation):
        _ = evaluation.samples  # three tables are made from it, and reports read it too
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_together(folder, writers)
        for name in _OPTIONAL:
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
        write(folder / name)
        sync(folder / name)


def _list_writers(evaluation: Evaluation, *, with_samples: bool) -> dict[str, Callable[[Path], None]]:
    """How to write each file, in the order in which they take their names: a reader begins with the last one."""
    writers: dict[str, Callable[[Path], None]] = {}
    results = Results.of(evaluation).dump()
    mark = make_mark(results)
    if with_samples:
        writers[DOCUMENTS] = lambda path: _stream(evaluation.iterate_documents, empty_documents(), path, mark)
        writers[FINDINGS] = lambda path: _stream(evaluation.iterate_findings, empty_findings(), path, mark)
        writers[SAMPLES] = lambda path: _stream(lambda: _number_samples(evaluation), _empty_numbered(), path, mark)
    if not evaluation.base_values.is_empty():
        writers[BASELINES] = lambda path: evaluation.base_values.write_parquet(path, metadata=mark)
    metadata = {METADATA_KEY: evaluation.fingerprints.dump(), **mark}
    if evaluation.designs:
        metadata[DESIGNS_KEY] = dump_designs(evaluation.question_designs)
    writers[VALUES] = lambda path: evaluation.values.write_parquet(path, metadata=metadata)
    writers[RESULTS] = lambda path: write_flushed(path, results)
    return writers


def _write_together(folder: Path, writers: dict[str, Callable[[Path], None]]) -> None:
    """Write every file under a temporary name, then rename all."""
    sweep(part for name in writers for part in folder.glob(f".{name}.*.part"))
    token = uuid.uuid4().hex
    parts = {name: folder / f".{name}.{token}.part" for name in writers}
    try:
        for name, write in writers.items():
            write(parts[name])
            sync(parts[name])
        for name, part in parts.items():
            part.replace(folder / name)
    except BaseException:
        for part in parts.values():
            part.unlink(missing_ok=True)
        raise
    flush_folder(folder)


def _stream(
    blocks: Callable[[], Iterator[pl.DataFrame]], empty: pl.DataFrame, path: Path, metadata: dict[str, str]
) -> None:
    """Write blocks as one Parquet file. Equal rows give equal bytes, however many threads there are.

    A table of one row group is written at once: to start the streaming engine takes longer than to write it.
    """
    import polars as pl

    waiting = blocks()
    first, rows = [empty], 0
    for block in waiting:
        first.append(block)
        rows += block.height
        if rows > _ROWS_IN_GROUP:
            break
    try:
        if rows > _ROWS_IN_GROUP:
            _sink(chain(first, waiting), empty, path, metadata)
        else:
            pl.concat(first).write_parquet(path, metadata=metadata)
    except pl.exceptions.PolarsError as error:
        raise RagevalError(f"{path.name}: the table could not be written: {error}") from error


def _sink(blocks: Iterator[pl.DataFrame], empty: pl.DataFrame, path: Path, metadata: dict[str, str]) -> None:
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        assert columns is None and predicate is None and rows is None, "a sink wants everything"
        yield from blocks

    rows = register_io_source(read, schema=empty.schema)
    rows.sink_parquet(path, row_group_size=_ROWS_IN_GROUP, maintain_order=True, metadata=dict(metadata))


def _number_samples(evaluation: Evaluation) -> Iterator[pl.DataFrame]:
    """The samples with the numbers of their documents in place of the texts."""
    numbering, columns = DocumentNumbers(), _empty_numbered().columns
    for block in evaluation.iterate_samples():
        yield block.with_columns(numbering.take(block)[0]).select(columns)


def _empty_numbered() -> pl.DataFrame:
    empty = empty_samples()
    numbered = empty.with_columns(DocumentNumbers().take(empty)[0])
    return numbered.select(NUMBERS if name == "contexts" else name for name in empty.columns)
