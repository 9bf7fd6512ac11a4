"""Writes what a shard computed to a folder, and reads it again where all shards are put together.

| file | content |
|---|---|
| `shard.json` | which shard it is of which evaluation, what it spent, and the facts behind its notes |
| `0.parquet`, ... | the answers, the run or the measurements of each step, in the order of `steps` in `shard.json` |
| `usage.parquet` | what each request to a model took |

`shard.json` is written first, as that of an incomplete shard, and again at the end, with the sha256 of every file: a
shard that was killed can be told from one that ended. Folders come from other machines, so nothing in them is trusted,
and what is damaged or of another shape is refused with the name of its file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from rageval_spec.data import tables
from rageval_spec.data.chat import LimitError, UnfinishedError
from rageval_spec.data.json_documents import dump_document, parse_document
from rageval_spec.data.outcomes import AnyNote, Fact, Note, Remark, TakenOver
from rageval_spec.data.samples import Part
from rageval_spec.dataclass import asdict, dataclass, field, replace
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.libraries import pl
from rageval_spec.pipeline.execution.shards import LoadedShard, StepName
from rageval_spec.pipeline.planning.plan import MeasuredPart, RunShare, StepKind, TaskResult, explain
from rageval_spec.pipeline.values.answer_values import measured_types
from rageval_spec.plugin.budget import UsageEntry
from rageval_spec.reading.formats.parquet import refuse_bomb
from rageval_spec.store.disk import write_or_explain

MANIFEST = "shard.json"
USAGE = "usage.parquet"
_WHAT = "the description of a shard"
_METRIC = "metric"
_JSON = frozenset({"details", "trace", tables.STEPS, tables.ANSWER_COLUMNS})


@dataclass(frozen=True)
class SavedError:
    """`is_limit` says whether a limit was reached, which is no failure."""

    message: str
    is_limit: bool = False


@dataclass(frozen=True)
class SavedRemark:
    """A `Remark`."""

    writer: str
    facts: list[Any]
    settings: list[Any]
    is_same: bool
    topic: str
    topics: int


@dataclass(frozen=True)
class SavedMeasurement:
    """What a metric measured, without its table."""

    notes: list[Note | SavedRemark]
    lacking: list[Part]
    error: SavedError | None


@dataclass(frozen=True)
class SavedResult:
    """The result of a step, without its table."""

    kind: StepKind
    dataset: str
    system: str
    notes: list[Note | SavedRemark]
    error: SavedError | None
    share: list[float] | None
    queries: int
    taken_over: TakenOver | None
    measured: dict[str, SavedMeasurement]


@dataclass(frozen=True)
class PlannedStep:
    """A step of the plan: its key, and the digest of its settings, which tells changed settings from changed files."""

    title: str
    key: str
    settings: str


@dataclass(frozen=True)
class ShardManifest:
    """What `shard.json` says.

    Attributes:
        total, questions: the number of all shards, and of the shard's questions over all datasets.
        spec, name, version: the path that the spec had, the evaluation's name, and the version of this package.
        limit, only, queries: what part of the spec was selected.
        plan, models: the steps of the evaluation on which the results depend, and the names of its models.
        began, seconds, commit, ci: when and where the shard was computed, as far as that is known.
        steps, files: the results, and the sha256 of the file of each table.
        spent: the counts of the budget by name, and `stopped`: why it was not computed to the end.
    """

    format_version: int
    shard: int
    total: int
    is_complete: bool
    name: str
    spec: str
    version: str
    seed: int
    plan: list[PlannedStep]
    models: list[str] = field(default_factory=list)
    limit: int | None = None
    only: list[str] = field(default_factory=list)
    queries: dict[str, list[str]] = field(default_factory=dict)
    began: str = ""
    seconds: float = 0.0
    commit: str | None = None
    ci: dict[str, str] = field(default_factory=dict)
    questions: int = 0
    steps: list[SavedResult] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)
    stopped: str | None = None


def write_manifest(folder: Path, manifest: ShardManifest) -> None:
    """Raises `RagevalError` if it cannot be written."""
    path = folder / MANIFEST
    write_or_explain(path, dump_document(asdict(manifest)), f"{path}: the shard could not be written")


def write_shard(
    folder: Path, manifest: ShardManifest, results: Mapping[StepName, TaskResult], log: Iterable[UsageEntry]
) -> ShardManifest:
    """Write the tables of a shard, then its complete manifest, which is returned."""
    written = {f"{place}.parquet": _build_table(name, one) for place, (name, one) in enumerate(results.items())}
    written[USAGE] = pl.DataFrame([*log], schema=_find_types("usage"), orient="row")
    files: dict[str, str] = {}
    for name, table in written.items():
        if table is not None:
            content = tables.dump_parquet(table)
            files[name] = hashlib.sha256(content).hexdigest()
            write_or_explain(folder / name, content, f"{folder / name}: the shard could not be written")
    saved = [_save(name, one) for name, one in results.items()]
    complete = replace(manifest, is_complete=True, steps=saved, files=files)
    write_manifest(folder, complete)
    return complete


def read_manifest(folder: Path, remedy: str = "run the shard again") -> ShardManifest:
    """Raises `DataError`, which ends with the remedy, if the file is damaged, or of another version of the format."""
    path = folder / MANIFEST
    content = _read(path, remedy)
    manifest: ShardManifest = parse_document(ShardManifest, content, str(path), _WHAT, remedy)
    if not all(math.isfinite(count) and count >= 0 for count in manifest.spent.values()):
        raise DataError(f"{path} is not {_WHAT}: what it spent is no count; {remedy}")
    if not all(one.share is None or len(one.share) == len(RunShare._fields) for one in manifest.steps):
        raise DataError(f"{path} is not {_WHAT}: a step has a share of another form; {remedy}")
    return manifest


def read_shard(folder: Path, manifest: ShardManifest, remedy: str) -> tuple[LoadedShard, list[UsageEntry]]:
    """Read the results of a complete shard. Raises `DataError`, which ends with the remedy, if a file is damaged."""
    results: dict[StepName, TaskResult] = {}
    for place, saved in enumerate(manifest.steps):
        name: StepName = (saved.kind, saved.dataset, saved.system)
        table = _read_table(folder, f"{place}.parquet", manifest.files, _find_types(saved.kind), remedy)
        results[name] = _restore(saved, table)
    usage = _read_table(folder, USAGE, manifest.files, _find_types("usage"), remedy)
    if usage is None:
        raise DataError(f"{folder / MANIFEST} is not {_WHAT}: it names no {USAGE}; {remedy}")
    return LoadedShard(str(folder), results, remedy), [UsageEntry(*row) for row in usage.iter_rows()]


def _find_types(kind: StepKind | Literal["usage"]) -> dict[str, Any]:
    """The columns of a step's table, and their types."""
    if kind == "usage":
        types = (pl.Boolean(), pl.String(), pl.Int64(), pl.Binary(), pl.Int64(), pl.Int64())
        return dict(zip(UsageEntry._fields, types, strict=True))
    if kind == "evaluate":
        return {_METRIC: pl.String(), **measured_types()}
    if kind == "retrieve":
        return {"query_id": pl.String(), "doc_id": pl.String(), "score": pl.Float64()}
    return {**tables.answers_table(()).schema, tables.UNFINISHED: pl.Boolean()}


def _build_table(name: StepName, result: TaskResult) -> pl.DataFrame | None:
    """The one table of a result. A column that is absent, such as that of answers not asked, is null."""
    types = _find_types(name[0])
    measured = [one.table.with_columns(pl.lit(metric).alias(_METRIC)) for metric, one in result.measured.items()]
    table = pl.concat(measured) if measured else result.table
    if table is None:
        return None
    absent = [pl.lit(None).alias(column) for column in types if column not in table.columns]
    return table.with_columns(absent).select(*types).cast(pl.Schema(types))


def _save(name: StepName, result: TaskResult) -> SavedResult:
    measured = {
        metric: SavedMeasurement(_save_notes(one.notes), [*one.lacking], _save_error(one.error))
        for metric, one in result.measured.items()
    }
    share = None if result.share is None else [*result.share]
    told = (_save_notes(result.notes), _save_error(result.error))
    return SavedResult(*name, *told, share, result.queries, result.taken_over, measured)


def _restore(saved: SavedResult, table: pl.DataFrame | None) -> TaskResult:
    measured: dict[str, MeasuredPart] = {}
    if table is not None and saved.kind == "evaluate":
        for metric, one in saved.measured.items():
            rows = table.filter(pl.col(_METRIC) == metric).drop(_METRIC)
            told = (_restore_notes(one.notes), tuple(one.lacking), _restore_error(one.error))
            measured[metric] = MeasuredPart(rows, *told)
        table = None
    return TaskResult(
        table,
        _restore_notes(saved.notes),
        error=_restore_error(saved.error),
        share=None if saved.share is None else RunShare(saved.share[0], int(saved.share[1]), int(saved.share[2])),
        queries=saved.queries,
        taken_over=saved.taken_over,
        measured=measured,
    )


def _save_error(error: Exception | None) -> SavedError | None:
    return None if error is None else SavedError(explain(error), isinstance(error, UnfinishedError))


def _restore_error(saved: SavedError | None) -> RagevalError | None:
    return None if saved is None else (LimitError if saved.is_limit else RagevalError)(saved.message)


def _save_notes(notes: Sequence[AnyNote]) -> list[Note | SavedRemark]:
    return [one if isinstance(one, Note) else SavedRemark(**asdict(one)) for one in notes]


def _restore_notes(saved: Sequence[Note | SavedRemark]) -> tuple[AnyNote, ...]:
    return tuple(
        one
        if isinstance(one, Note)
        else Remark(
            one.writer,
            tuple(map(_freeze, one.facts)),
            tuple(map(_freeze, one.settings)),
            one.is_same,
            one.topic,
            one.topics,
        )
        for one in saved
    )


def _freeze(content: Any) -> Fact:
    """Facts with tuples for lists. Raises `DataError` if it is an object."""
    if isinstance(content, dict):
        raise DataError("a fact of a shard is an object")
    return tuple(map(_freeze, content)) if isinstance(content, list | tuple) else content


def _read_table(
    folder: Path, name: str, files: Mapping[str, str], types: Mapping[str, Any], remedy: str
) -> pl.DataFrame | None:
    """A table, if the shard has it. Raises `DataError` if it is not as it was written."""
    path = folder / name
    if name not in files:
        return None
    content = _read(path, remedy)
    if hashlib.sha256(content).hexdigest() != files[name]:
        raise DataError(f"{path} is damaged: it has changed since it was written; {remedy}")
    refuse_bomb(path)
    try:
        table = pl.read_parquet(BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is not a table of a shard: {error}; {remedy}") from error
    if table.schema != pl.Schema(types):
        raise DataError(f"{path} is not a table of a shard: its columns are others; {remedy}")
    for column in _JSON.intersection(types):
        odd = table.filter(pl.col(column).is_not_null() & pl.col(column).str.json_path_match("$").is_null())
        try:
            list(map(json.loads, odd[column]))  # Python reads more, such as half of a surrogate pair
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is not a table of a shard: its {column} are no JSON; {remedy}") from error
    return table


def _read(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}; {remedy}") from error
