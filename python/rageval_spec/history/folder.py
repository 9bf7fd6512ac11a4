"""Earlier evaluations: saved under a label, or left in a results folder, to compare a new one with.

A record is a folder with the evaluation as JSON, its values and samples as Parquet, and its time, commit and label.
A results folder holds the same but for the last, where the reports `json` and `parquet` (and `samples`) were written.
A record is written under another name and renamed, so that a label has a whole one or none.
"""

from __future__ import annotations

import glob
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from uuid import uuid4

from rageval_spec.data import tables
from rageval_spec.data.evaluation import Evaluation, Note
from rageval_spec.data.fingerprints import METADATA_KEY, Fingerprints
from rageval_spec.data.record import Record
from rageval_spec.data.results import Results
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history.commit import find_commit
from rageval_spec.store.disk import sweep, write_flushed

if TYPE_CHECKING:
    import polars as pl

FOLDER = Path(".rageval") / "history"
RESULTS = "results.json"
VALUES = "values.parquet"
SAMPLES = "samples.parquet"
RECORD = "record.json"
_LONGEST_NAME = 200
_PREVIOUS = ".previous"


def save_evaluation(evaluation: Evaluation, label: str, history: Path = FOLDER) -> Path:
    """Keep `evaluation` under `label`, in place of what was there; gives the folder.

    A label may be any text, such as a branch name; what a file name cannot hold is percent-encoded. A process that is
    killed on the way leaves the label as it was before. The record names the commit of the repository that `history`
    is in.

    Raises:
        UsageError: an empty label, or one too long for a file name.
        DataError: the folder cannot be written.
    """
    _check_label(label)
    target = history / _folder_name(label)
    draft = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        draft.mkdir(parents=True)
        try:
            record = Record(uuid4().hex, datetime.now(UTC), find_commit(history), label, evaluation)
            write_record(record, draft)
            _replace_folder(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            _remove_abandoned(target)
    except OSError as error:
        raise DataError(f"{target}: the evaluation could not be saved: {error.strerror or error}") from error
    return target


def write_record(record: Record, folder: Path) -> None:
    """Write into an existing folder what `load_record` reads."""
    evaluation = record.evaluation
    fingerprints = {METADATA_KEY: evaluation.fingerprints.dump()}
    write_flushed(folder / VALUES, tables.dump_parquet(evaluation.values, fingerprints))
    if evaluation.samples.height:
        write_flushed(folder / SAMPLES, tables.dump_parquet(evaluation.samples))
    time = None if record.time is None else record.time.isoformat(timespec="seconds")
    kept = {"id": record.id, "time": time, "commit": record.commit, "label": record.label}
    write_flushed(folder / RECORD, f"{json.dumps(kept, indent=2)}\n".encode())
    write_flushed(folder / RESULTS, Results.of(evaluation).dump())


def _replace_folder(draft: Path, target: Path) -> None:
    """Rename `draft` to `target`. Where a kill falls between the two renames, readers find `previous`."""
    previous = _previous(target)
    if target.exists():
        shutil.rmtree(previous, ignore_errors=True)
        target.rename(previous)
    draft.rename(target)
    shutil.rmtree(previous, ignore_errors=True)


def _remove_abandoned(target: Path) -> None:
    """Remove drafts that killed processes left; a younger one may belong to a process that is still writing."""
    sweep(target.parent.glob(f"{glob.escape(f'.{target.name}.')}{'[0-9a-f]' * 32}"))


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}{_PREVIOUS}")


def _check_label(label: str) -> None:
    if not label.strip():
        raise UsageError("a label must not be empty")
    if len(_folder_name(label)) > _LONGEST_NAME:
        raise UsageError(f"the label '{label[:40]}...' is too long for the name of a folder")


def _folder_name(label: str) -> str:
    name = quote(label, safe="@+=, ")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def labels(history: Path = FOLDER) -> tuple[str, ...]:
    """All labels, sorted."""
    if not history.is_dir():
        return ()
    names = {path.name for path in history.iterdir() if path.is_dir() and not path.name.startswith(".")}
    hidden = {path.name for path in history.glob(f".*{_PREVIOUS}") if path.is_dir()}
    names |= {name.removeprefix(".").removesuffix(_PREVIOUS) for name in hidden}
    return tuple(sorted(unquote(name) for name in names))


def find_baseline(name: str, history: Path = FOLDER, folder: Path = Path()) -> Record:
    """The record that `baseline: name` means: the one saved under that label, else the results folder of that path.

    Args:
        name: a label, or a path (relative to `folder`, the spec's own).
        history: where labels are kept.
        folder: where a relative path starts.

    Raises:
        DataError: there is neither, or what is there cannot be read.
    """
    for candidate in _candidates(name, history, folder):
        if _holds_results(candidate):
            return load_record(candidate)
    known = labels(history)
    hint = suggest(name, known) or (f"known are {', '.join(known)}" if known else "none is saved yet")
    raise DataError(
        f"baseline '{name}' is neither a label in {history} ({hint}) nor a folder with {RESULTS} and {VALUES}; "
        f"make the label with: rageval-spec run SPEC --save-as {name} --set 'gates=[]'"
    )


def _candidates(name: str, history: Path, folder: Path) -> Iterator[Path]:
    if len(_folder_name(name)) <= _LONGEST_NAME:
        labelled = history / _folder_name(name)
        yield from (labelled, _previous(labelled))
    yield folder / Path(name).expanduser()


def _holds_results(folder: Path) -> bool:
    try:
        return (folder / RESULTS).is_file()
    except (OSError, ValueError):  # too long for a path, or with a null character: no folder has such a name
        return False


def load_record(folder: Path) -> Record:
    """Read a record, or an evaluation that reports left in a results folder, which has no time, commit or label.

    Samples are read when somebody asks for them; a folder may be without.

    Raises:
        DataError: a file is absent or cannot be read; the message names it.
    """
    path = folder / RESULTS
    content = _read(path)
    results = Results.parse(content, str(path))
    values, fingerprints = folder / VALUES, partial(_load_fingerprints, folder / VALUES)
    evaluation = results.evaluation(_load_values(values), partial(_load_samples, folder / SAMPLES), fingerprints)
    kept = _read_kept(folder / RECORD)
    time = kept.get("time")
    return Record(
        id=kept.get("id") or hashlib.sha256(content).hexdigest()[:32],
        time=None if time is None else datetime.fromisoformat(time),
        commit=kept.get("commit"),
        label=kept.get("label"),
        evaluation=evaluation,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error


def _read_kept(path: Path) -> Mapping[str, str | None]:
    """What a record says beside its evaluation; empty where nobody wrote it down."""
    if not path.is_file():
        return {}
    try:
        kept = json.loads(_read(path))
        texts = {key: kept[key] for key in ("id", "time", "commit", "label")}
        if texts["time"] is not None:
            datetime.fromisoformat(texts["time"])
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path}: not a record of rageval-spec: {error}") from error
    return texts


def _load_samples(path: Path) -> pl.DataFrame:
    """The table of samples; without rows where there is no file, as in folders of earlier versions."""
    import polars as pl

    empty = tables.empty_samples()
    if not path.is_file():
        return empty
    try:
        return pl.read_parquet(path).select(empty.columns).cast(empty.schema)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: not a table of samples: {error}") from error


def _load_fingerprints(path: Path) -> Fingerprints:
    """Those in the metadata of the values; none in files of earlier versions."""
    import polars as pl

    try:
        return Fingerprints.parse(pl.read_parquet_metadata(path).get(METADATA_KEY))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: not a Parquet file: {error}") from error


def _load_values(path: Path) -> pl.DataFrame:
    import polars as pl

    if not path.is_file():
        raise DataError(
            f"{path}: there is no such file; a comparison needs the per-query values: add the report parquet"
        )
    try:
        values = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: not a Parquet file: {error}") from error
    absent = [column for column in tables.VALUES if column not in values.columns]
    if absent:
        raise DataError(f"{path}: the column {', '.join(map(repr, absent))} is missing")
    if values.select("dataset", "system", "metric", "query_id").is_duplicated().any():
        raise DataError(f"{path}: a query has several values of one metric")
    return values


def compare_settings(evaluation: Evaluation, earlier: Evaluation, baseline: str) -> tuple[Note, ...]:
    """Notes on settings under which the values of `earlier` came about otherwise: they compare unlike things.

    Settings of `statistics` make no value, so they may differ.
    """
    now, before = ({**of.settings, "statistics": None} for of in (evaluation, earlier))
    changes = _changes(now, before, "")
    return tuple(
        Note("other_settings", f"the baseline {baseline} was evaluated with {key}: {old}, this one with {new}")
        for key, new, old in changes
    )


def _changes(new: Mapping[str, Any], old: Mapping[str, Any], prefix: str) -> Sequence[tuple[str, str, str]]:
    changes: list[tuple[str, str, str]] = []
    for key in sorted({*new, *old}):
        here, there = new.get(key), old.get(key)
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            changes += _changes(here, there, f"{prefix}{key}.")
        elif here != there:
            changes.append((f"{prefix}{key}", str(here), str(there)))
    return changes
