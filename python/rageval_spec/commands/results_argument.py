"""Opens the results that a command is given: a results folder, or a label or a record of the history."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.commands.console import PROGRAM
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.diagnostics import suggest
from rageval_spec.drawing.question_order import BaselineValues, list_baselines
from rageval_spec.errors import DataError, UsageError, expand_home
from rageval_spec.history.database import exists, open_history
from rageval_spec.history.evaluation_lookup import SearchPlaces, find_newest, find_record, list_labels
from rageval_spec.history.results_folder import RESULTS, VALUES
from rageval_spec.history.saved_evaluations import FOLDER, load_record
from rageval_spec.plugin.report import RESULTS_FOLDER

if TYPE_CHECKING:
    import polars as pl


HISTORY = "RAGEVAL_HISTORY"
"""The environment variable that holds the file or the address of the history."""
_SPECS = (".yaml", ".yml")


class NamedResults(NamedTuple):
    """An evaluation, and the name that the user gave it."""

    name: str
    evaluation: Evaluation
    folder: Path | None = None


def is_results(name: str) -> bool:
    """Whether this is the path of a results folder, or of the `results.json` in one."""
    try:
        path = expand_home(name)
        return (path / RESULTS).is_file() or (path.name == RESULTS and path.is_file())
    except (OSError, ValueError):  # too long for a path, a null character, or an unknown home folder
        return False


def is_spec(name: str) -> bool:
    """Whether this is the path of a spec: a YAML file."""
    try:
        path = expand_home(name)
        return path.suffix in _SPECS and path.is_file()
    except (OSError, ValueError):
        return False


def open_results(
    name: str | None = None,
    later: Evaluation | None = None,
    load_values: Callable[[Path], pl.DataFrame] | None = None,
) -> NamedResults:
    """Open a results folder, a label or a record.

    Args:
        name: a path, a label, or the id of a record (its first characters are enough); None for the folder that `run`
            writes to by default.
        later: the evaluation that is compared with this one. `previous`, `branch:` and `commit:` then mean a record
            of the same name, and `previous` not its own record.
        load_values: reads those values of a folder that are needed; all of them by default.

    Raises:
        UsageError: there is no such folder, label or record; the message says what to do.
        DataError: the results cannot be read.
    """
    if name is None and not is_results(RESULTS_FOLDER):
        raise UsageError(f"there are no results in {RESULTS_FOLDER}; make them with: {PROGRAM} run spec.yaml")
    name = RESULTS_FOLDER if name is None else name
    if is_results(name):
        path = expand_home(name)
        folder = path.parent if path.is_file() else path
        return NamedResults(name, _load(folder, load_values), folder)
    places = find_places() if later is None else replace(find_places(), name=later.name, later=later)
    if name in list_labels(places) or _is_record(name, places):
        return NamedResults(name, find_record(name, places).evaluation)
    raise _explain(name, places)


def open_results_of(spec: str, name: str | None, command: str) -> Evaluation:
    """The evaluation of some results, or of the last ones, if they are of this spec.

    Args:
        spec: the spec's name.
        name: as for `open_results`; None for the last results.
        command: what to write to name the results.

    Raises:
        UsageError: there are no such results, or the last ones are of another spec.
    """
    evaluation = open_results(name).evaluation
    if name is None and evaluation.name != spec:
        raise UsageError(
            f"the last results are of '{evaluation.name}', not of '{spec}'; run the spec first, or name its results: "
            f"{command}"
        )
    return evaluation


def open_baseline(name: str, evaluation: Evaluation) -> BaselineValues:
    """The baseline of this name: results or a label, else a gate's baseline or a system of the evaluation itself.

    Raises:
        UsageError: it is none of these.
    """
    try:
        return BaselineValues(*open_results(name, evaluation)[:2])
    except UsageError:
        if name in (*list_baselines(evaluation), *evaluation.systems):
            return BaselineValues(name)
        raise


def find_places() -> SearchPlaces:
    """Where commands look for labels and records: under the current folder, or where `RAGEVAL_HISTORY` says.

    Labels that are folders lie beside the file that it names.
    """
    named = os.environ.get(HISTORY)
    if not named:
        return SearchPlaces()
    return SearchPlaces(database=named) if "://" in named else SearchPlaces(Path(named).parent / FOLDER.name, named)


def _is_record(name: str, places: SearchPlaces) -> bool:
    if not exists(places.database):
        return False
    assert places.database is not None
    with open_history(places.database, create=False) as records:
        return records.look_up(name) is not None or find_newest(records, name, places) is not None


def _load(folder: Path, load_values: Callable[[Path], pl.DataFrame] | None = None) -> Evaluation:
    if not (folder / VALUES).is_file():
        raise DataError(
            f"{folder} has no {VALUES}, which holds the value of each question; run the spec again to write it"
        )
    return load_record(folder, load_values).evaluation


def _explain(name: str, places: SearchPlaces) -> UsageError:
    """What is wrong with a name that is neither results, a label nor a record."""
    try:
        path = expand_home(name)
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError):
        is_folder = is_file = False
    if is_file and path.suffix in _SPECS:
        return UsageError(f"{name} looks like a spec, not results; make its results with: {PROGRAM} run {name}")
    if is_folder:
        return UsageError(
            f"{name} is not a results folder: it has no {RESULTS}; make results with: {PROGRAM} run spec.yaml -o {name}"
        )
    if Path(name).suffix in _SPECS:
        return UsageError(f"{name}: no such file")
    known = list_labels(places)
    hint = suggest(name, known) or (f"the labels are {', '.join(known)}" if known else "")
    told = f"'{name}' is neither a results folder nor a label or record of the history"
    return UsageError(f"{told}; {hint or f'make results with: {PROGRAM} run spec.yaml'}")
