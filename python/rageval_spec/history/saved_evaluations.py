"""Saves evaluations under a label, and loads them again as baselines.

A record is a folder with the evaluation as JSON, its values and samples as Parquet, and its time, commit and label.
A results folder with the reports `json` and `parquet` (and `samples`) can be loaded too; it has no time, commit or
label. A record is written under a temporary name and renamed, so that a label has a complete record or none.
"""

from __future__ import annotations

import glob
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from rageval_spec.data import tables
from rageval_spec.data.datasets import DESIGN_KEY as DESIGNS_KEY
from rageval_spec.data.datasets import FINGERPRINTS_KEY, Design, DesignSummary, Fingerprints, parse_designs
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import BASE_VALUES, LABEL, LABEL_WEIGHT, Note, empty_base_values
from rageval_spec.data.results import Record, parse_results
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history import results_folder
from rageval_spec.libraries import pl
from rageval_spec.reading.formats.parquet import refuse_bomb
from rageval_spec.store.checkout import find_commit
from rageval_spec.store.disk import sweep, write_flushed

FOLDER = Path(".rageval") / "history"
RECORD = "record.json"
_LONGEST_NAME = 200
_PREVIOUS = ".previous"


def save_evaluation(evaluation: Evaluation, label: str, history: Path = FOLDER, record_id: str | None = None) -> Path:
    """Save `evaluation` under `label`, replacing what was there, and return the record's folder.

    A label can be any text, for example the name of a branch; characters that a file name cannot hold are
    percent-encoded. If the process is killed meanwhile, the label stays as it was. The record names the commit of the
    repository that contains `history`. Its id is `record_id`, or a new one.
    """
    check_folder_label(label)
    target = history / _folder_name(label)
    draft = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        draft.mkdir(parents=True)
        try:
            record = Record(record_id or uuid4().hex, datetime.now(UTC), find_commit(history), label, evaluation)
            write_record(record, draft)
            _replace_folder(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            _remove_abandoned(target)
    except OSError as error:
        raise DataError(f"{target}: the evaluation could not be saved: {error.strerror or error}") from error
    return target


def write_record(record: Record, folder: Path) -> None:
    """Write a record into an existing folder; `load_record` reads it."""
    evaluation = record.evaluation
    with_samples = any(block.height for block in evaluation.iterate_samples())
    results_folder.write_files(evaluation, folder, with_samples=with_samples)
    time = None if record.time is None else record.time.isoformat(timespec="seconds")
    kept = {"id": record.id, "time": time, "commit": record.commit, "label": record.label}
    write_flushed(folder / RECORD, f"{json.dumps(kept, indent=2)}\n".encode())


def _replace_folder(draft: Path, target: Path) -> None:
    """Rename `draft` to `target`. If the process is killed between the two renames, readers find `previous`."""
    previous = _previous(target)
    if target.exists():
        shutil.rmtree(previous, ignore_errors=True)
        target.rename(previous)
    draft.rename(target)
    shutil.rmtree(previous, ignore_errors=True)


def _remove_abandoned(target: Path) -> None:
    """Remove the drafts of killed processes; recent ones stay, because a process could still be writing them."""
    sweep(target.parent.glob(f"{glob.escape(f'.{target.name}.')}{'[0-9a-f]' * 32}"))


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}{_PREVIOUS}")


def check_folder_label(label: str) -> None:
    """Check that a label can name a folder."""
    if not label.strip():
        raise UsageError("a label must not be empty")
    if len(_folder_name(label)) > _LONGEST_NAME:
        raise UsageError(f"the label '{label[:40]}...' is too long for the name of a folder")


def _folder_name(label: str) -> str:
    name = quote(label, safe="@+=, ")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def labels(history: Path = FOLDER) -> tuple[str, ...]:
    """All labels in the history, sorted; none if there is no such folder."""
    if not history.is_dir():
        return ()
    names = {path.name for path in history.iterdir() if path.is_dir() and not path.name.startswith(".")}
    hidden = {path.name for path in history.glob(f".*{_PREVIOUS}") if path.is_dir()}
    names |= {name.removeprefix(".").removesuffix(_PREVIOUS) for name in hidden}
    return tuple(sorted(unquote(name) for name in names))


def list_candidates(name: str, history: Path) -> Iterator[Path]:
    """The folders that can hold a label's record: its own, and the one that a killed process left behind."""
    if len(_folder_name(name)) <= _LONGEST_NAME:
        labelled = history / _folder_name(name)
        yield from (labelled, _previous(labelled))


def holds_results(folder: Path) -> bool:
    try:
        return (folder / results_folder.RESULTS).is_file()
    except (OSError, ValueError):  # too long for a path, or with a null character: no folder has such a name
        return False


def load_record(folder: Path, load_values: Callable[[Path], pl.DataFrame] | None = None) -> Record:
    """Read a record, or a results folder, whose record has no time, commit or label.

    Samples are read when they are first used; the folder need not have any. `load_values` takes the file of values,
    and may return only those that somebody looks at.
    """
    path = folder / results_folder.RESULTS
    results_folder.check_kinds(folder)
    content = _read(path)
    results = parse_results(content, str(path))
    results_folder.check_marks(content, (folder / name for name in results_folder.TABLES))
    values = folder / results_folder.VALUES
    evaluation = replace(
        results,
        values=_load_values(values) if load_values is None else load_values(values),
        sample_table=results_folder.StoredSamples(folder),
        load_fingerprints=partial(_load_fingerprints, folder),
        load_base_values=partial(_load_base_values, folder / results_folder.BASELINES),
        load_question_designs=partial(_load_designs, values, results.designs),
    )
    kept = read_kept(folder / RECORD)
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


def read_kept(path: Path) -> Mapping[str, str | None]:
    """A record's id, time, commit and label; empty if the folder has no such file."""
    if not path.is_file():
        return {}
    try:
        kept = json.loads(_read(path))
        texts = {key: kept[key] for key in ("id", "time", "commit", "label")}
        if texts["time"] is not None:
            datetime.fromisoformat(texts["time"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(f"{path}: not a record of rageval-spec: {error}") from error
    return texts


def _load_fingerprints(folder: Path) -> Fingerprints:
    """The fingerprints of a file of their own, or in the metadata of the values; old files can have none."""
    path = folder / results_folder.FINGERPRINTS
    if not path.is_file():
        return Fingerprints.parse(_read_metadata(folder / results_folder.VALUES).get(FINGERPRINTS_KEY))
    refuse_bomb(path)
    with _explained(path, "a table of fingerprints"):
        return Fingerprints.read(pl.read_parquet(path))


def _load_designs(path: Path, summaries: Mapping[str, DesignSummary]) -> dict[str, Design]:
    """The clusters and weights in the metadata of the values file; only evaluations with a design have any."""
    return parse_designs(_read_metadata(path).get(DESIGNS_KEY), summaries) if summaries else {}


def _read_metadata(path: Path) -> Mapping[str, str]:
    with _explained(path, "a Parquet file"):
        return pl.read_parquet_metadata(path)


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: not {what}: {error}") from error


def _load_base_values(path: Path) -> pl.DataFrame:
    """The values of earlier evaluations; no rows without the file, which only folders with such a gate have."""
    if not path.is_file():
        return empty_base_values()
    refuse_bomb(path)
    with _explained(path, "a table of base values"):
        return pl.read_parquet(path, columns=[*BASE_VALUES]).match_to_schema(empty_base_values().schema)


_VALUE_KEYS = ("dataset", "system", "metric", "query_id", "status")
_TEXTS = ("reason", "details", tables.ASKED)
_NUMBERS = ("value", "tie_low", "tie_high", LABEL, LABEL_WEIGHT)


def _type_values(path: Path, values: pl.DataFrame) -> pl.DataFrame:
    """The values with the types that their columns must have."""
    nothing = {name: pl.String if name in _TEXTS else pl.Float64 for name in (*_TEXTS, *_NUMBERS)}
    known = [name for name in nothing if name in values.columns]
    values = values.with_columns(
        pl.col(name).cast(nothing[name])
        for name in known
        if values.schema[name] == pl.Null or (name in _NUMBERS and values.schema[name].is_integer())
    )
    for names, wanted, told in (((*_VALUE_KEYS, *_TEXTS), pl.String, "text"), (_NUMBERS, pl.Float64, "numbers")):
        wrong = next((name for name in names if values.schema.get(name, wanted) != wanted), None)
        if wrong is not None:
            raise DataError(f"{path}: the column '{wrong}' must hold {told}, not {values.schema[wrong]}")
    lacking = next((name for name in _VALUE_KEYS if values[name].null_count()), None)
    if lacking is not None:
        raise DataError(f"{path}: a row has no {lacking}")
    is_scored = pl.col("status") == "scored"
    if not values.select((~is_scored | pl.col("value").is_finite().fill_null(False)).all()).item():
        raise DataError(f"{path}: a row with the status 'scored' has no finite value")
    if "details" in values.columns:
        details = pl.col("details").str
        if not values.select((details.starts_with("{") & details.ends_with("}")).fill_null(True).all()).item():
            raise DataError(f"{path}: the details of a row are not a JSON object")
    return values


def load_numbers(path: Path) -> pl.DataFrame:
    """The values of a file without their details, which are most of it."""
    return _load_values(path, told=False)


def scan_values(folder: Path) -> pl.LazyFrame:
    """The values of a results folder, of which nothing is read yet."""
    return pl.scan_parquet(folder / results_folder.VALUES)


def load_values_of(path: Path, query_ids: Sequence[str]) -> pl.DataFrame:
    """The values of some queries, and of those with the lowest and the highest value of metrics beyond 0 to 1.

    The others are not held: only the row groups that have the queries are read whole.
    """
    return _load_values(path, query_ids)


def _load_values(path: Path, query_ids: Sequence[str] | None = None, *, told: bool = True) -> pl.DataFrame:
    if not path.is_file():
        raise DataError(
            f"{path}: there is no such file; a comparison needs the per-query values: add 'parquet' to 'reports'"
        )
    refuse_bomb(path, beside=path.with_name(results_folder.FINGERPRINTS))
    with _explained(path, "a Parquet file"):
        rows = pl.scan_parquet(path)
        names = [name for name in rows.collect_schema().names() if told or name != "details"]
        rows = rows.select(names)
        if query_ids is not None:
            rows = _keep(rows, query_ids)
        values = rows.collect()
    absent = [column for column in tables.VALUES if column not in values.columns]
    if absent:
        raise DataError(f"{path}: the column {', '.join(map(repr, absent))} is missing")
    values = _type_values(path, values)
    if values.select("dataset", "system", "metric", "query_id").is_duplicated().any():
        raise DataError(f"{path}: a query has several values of one metric")
    return values


def _keep(rows: pl.LazyFrame, query_ids: Sequence[str]) -> pl.LazyFrame:
    """The rows of queries, and for metrics whose scale is their values', a query with the lowest and the highest."""
    value, wanted = pl.col("value"), [*query_ids]
    ends = rows.group_by("metric").agg(low=value.min(), high=value.max()).collect(engine="streaming")
    for metric, *of_metric in ends.filter((pl.col("low") < 0) | (pl.col("high") > 1)).iter_rows():
        for end in of_metric:
            found = rows.filter((pl.col("metric") == metric) & (value == end)).select("query_id").head(1).collect()
            wanted += found["query_id"].to_list()
    return rows.filter(pl.col("query_id").is_in(wanted))


def compare_settings(evaluation: Evaluation, earlier: Evaluation, baseline: str) -> tuple[Note, ...]:
    """A note for each setting, and each model of a system, that differs and affects values: they compare unlike things.

    Settings under `statistics` do not affect values, so they are not compared.
    """
    return tuple(
        Note("other_settings", f"the baseline {baseline} was evaluated with {key}: {old}, this one with {new}")
        for key, new, old in list_setting_changes(evaluation, earlier)
    )


def list_setting_changes(evaluation: Evaluation, earlier: Evaluation) -> Sequence[tuple[str, str, str]]:
    """The settings that differ and affect values: the key, the value in `evaluation`, the value in `earlier`."""
    now, before = ({**of.provenance.settings, "statistics": None} for of in (evaluation, earlier))
    return [*_changes(now, before, ""), *_list_model_changes(evaluation.provenance.spec, earlier.provenance.spec)]


def _list_model_changes(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The models of systems of the same name that differ, whatever the blocks under `models:` are called."""
    for name, system in now.get("systems", {}).items():
        was = before.get("systems", {}).get(name, {})
        new, old = system.get("model"), was.get("model")
        if None in (new, old):
            continue
        block, earlier = (of.get("models", {}).get(model, {}) for of, model in ((now, new), (before, old)))
        if new == old:
            yield from _changes(block, earlier, f"models.{new}.")
        elif block != earlier:
            yield f"systems.{name}.model", new, old


def _changes(new: Mapping[str, Any], old: Mapping[str, Any], prefix: str) -> Sequence[tuple[str, str, str]]:
    changes: list[tuple[str, str, str]] = []
    for key in sorted({*new, *old}):
        here, there = new.get(key), old.get(key)
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            changes += _changes(here, there, f"{prefix}{key}.")
        elif here != there:
            changes.append((f"{prefix}{key}", str(here), str(there)))
    return changes
