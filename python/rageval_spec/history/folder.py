"""Earlier evaluations: saved under a label, or left in a results folder, to compare a new one with.

A saved evaluation is a folder with the JSON report and the per-query values as Parquet, which is what a results
folder holds too. It is written under another name and renamed, so that a label has a whole evaluation or none.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from uuid import uuid4

from rageval_spec.data import tables
from rageval_spec.data.evaluation import Evaluation, Note
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.plugin import Context
from rageval_spec.reports.json import JsonNode, JsonReport, Results
from rageval_spec.reports.parquet import ParquetNode, ParquetReport
from rageval_spec.store.disk import sweep, write_flushed

if TYPE_CHECKING:
    import polars as pl

FOLDER = Path(".rageval") / "history"
RESULTS = "results.json"
VALUES = "values.parquet"
_LONGEST_NAME = 200
_PREVIOUS = ".previous"


def save_evaluation(evaluation: Evaluation, label: str, history: Path = FOLDER) -> Path:
    """Keep `evaluation` under `label`, in place of what was there; gives the folder.

    A label may be any text, such as a branch name; what a file name cannot hold is percent-encoded. A process that is
    killed on the way leaves the label as it was before.

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
            write_evaluation(evaluation, draft)
            _replace_folder(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            _remove_abandoned(target)
    except OSError as error:
        raise DataError(f"{target}: the evaluation could not be saved: {error.strerror or error}") from error
    return target


def write_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """Write into an existing folder what `load_evaluation` reads."""
    for name, report in (
        (VALUES, ParquetReport(ParquetNode(use="parquet"), Context("parquet"))),
        (RESULTS, JsonReport(JsonNode(use="json"), Context("json"))),
    ):
        write_flushed(folder / name, report.render(evaluation))


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


def find_baseline(name: str, history: Path = FOLDER, folder: Path = Path()) -> Evaluation:
    """The evaluation that `baseline: name` means: the one saved under that label, else the results folder of that path.

    Args:
        name: a label, or a path (relative to `folder`, the spec's own).
        history: where labels are kept.
        folder: where a relative path starts.

    Raises:
        DataError: there is neither, or what is there cannot be read.
    """
    for candidate in _candidates(name, history, folder):
        if _holds_results(candidate):
            return load_evaluation(candidate)
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


def load_evaluation(folder: Path) -> Evaluation:
    """Read an evaluation from a folder that holds its JSON report and its values as Parquet.

    Raises:
        DataError: a file is absent or cannot be read; the message names it.
    """
    path = folder / RESULTS
    try:
        results = Results.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    return results.evaluation(_load_values(folder / VALUES))


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
