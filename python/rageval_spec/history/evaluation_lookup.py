"""Finds the evaluation that a name means: a label, a results folder, or a record of the database.

A label can be in the database, and it can be a folder that `--save-as` wrote; the one that was set last counts. If
both are the same record, the folder is read, because it has the samples too.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError, expand_home
from rageval_spec.history import saved_evaluations
from rageval_spec.history.database import (
    FILE,
    SHORTEST_ID,
    History,
    HistoryError,
    RecordFilter,
    exists,
    locate,
    open_history,
)
from rageval_spec.history.results_folder import RESULTS, VALUES

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.results import Record
    from rageval_spec.spec.blocks.spec_node import Spec

PREVIOUS, BRANCH, COMMIT = "previous", "branch", "commit"
"""Words that mean the newest record of a kind: `previous`, `branch:main`, `commit:abc123`."""
_PASSING = ("pass", "warn")
"""The outcomes of evaluations that passed: those whose exit code is 0. A gate that is inconclusive counts as what its
`on_inconclusive` says, so a record with one can pass. Otherwise no evaluation could become a baseline after an edit of
the references, because none would be comparable with the last one before."""


class NoRecordYetError(DataError):
    """The history has no record yet that `previous` or `branch:` could mean; the evaluation is the first."""


@dataclass(frozen=True, slots=True)
class SearchPlaces:
    """Where to look for evaluations.

    Attributes:
        labels: the folder of labels that are folders.
        database: the file or the address of the database; None for no database.
        folder: where relative paths start.
        name: the evaluation that `previous`, `branch:` and `commit:` are about; None for any.
        later: the evaluation that `previous` comes before, which can have been recorded; None for a new one.
    """

    labels: Path = saved_evaluations.FOLDER
    database: str | Path | None = FILE
    folder: Path = Path()
    name: str | None = None
    later: Evaluation | None = None

    @classmethod
    def of(cls, spec: Spec) -> SearchPlaces:
        return cls(spec.folder / saved_evaluations.FOLDER, locate(spec.history, spec.folder), spec.folder, spec.name)


def find_record(name: str, places: SearchPlaces) -> Record:
    """The record that `name` means: a label, else a results folder at this path, else a record of the database.

    A record is named by its id or the first characters of it (at least four), or is the newest of its evaluation:
    `previous` of all, `branch:main` of those on a branch that passed or warned, `commit:abc123` of those at a commit.

    Raises:
        NoRecordYetError: there is none yet for `previous` or `branch:`.
        DataError: there is none, or it cannot be read.
        HistoryError: the database cannot be reached, and no folder has this name.
    """
    candidates = saved_evaluations.list_candidates(name, places.labels)
    labelled = next(filter(saved_evaluations.holds_results, candidates), None)
    folder = _find_results(name, places)
    try:
        if exists(places.database):
            return _find_in_both(name, places, labelled, folder)
    except HistoryError:
        if labelled is None and folder is None:
            raise
    if found := labelled or folder:
        return saved_evaluations.load_record(found)
    raise _explain(name, places)


def _find_in_both(name: str, places: SearchPlaces, labelled: Path | None, folder: Path | None) -> Record:
    """The record that `name` means, in the database or in one of these folders, if there are any."""
    from rageval_spec.history.evaluation_records import load_stored

    assert places.database is not None
    with open_history(places.database, create=False) as history:
        set_last = history.labels().get(name)
        if set_last is not None and (labelled is None or _is_newer(set_last, labelled)):
            return load_stored(history, set_last[0])
        if found := labelled or folder:
            return saved_evaluations.load_record(found)
        record_id = history.look_up(name) or find_newest(history, name, places)
        if record_id is not None:
            return load_stored(history, record_id)
    raise _explain(name, places)


def check_label(label: str) -> None:
    """Check a new label, before anything is spent on what it names."""
    saved_evaluations.check_folder_label(label)
    if label == PREVIOUS or label.startswith((f"{BRANCH}:", f"{COMMIT}:")):
        raise UsageError(f"the label '{label}' already means the newest record of its kind; choose another")


def list_labels(places: SearchPlaces) -> tuple[str, ...]:
    """All labels, sorted: those of folders and those of the database. A database that cannot be read has none."""
    names = {*saved_evaluations.labels(places.labels)}
    if exists(places.database):
        assert places.database is not None
        try:
            with open_history(places.database, create=False) as history:
                names.update(history.labels())
        except (HistoryError, UsageError):
            pass
    return tuple(sorted(names))


def _find_results(name: str, places: SearchPlaces) -> Path | None:
    try:
        path = places.folder / expand_home(name)
    except ValueError:  # an unknown home folder, or a null character
        return None
    return path if saved_evaluations.holds_results(path) else None


def _is_newer(set_last: tuple[str, datetime], folder: Path) -> bool:
    """Whether a label of the database was set after the folder of the same label was saved, to another record."""
    record_id, time = set_last
    kept = saved_evaluations.read_kept(folder / saved_evaluations.RECORD)
    if kept.get("id") == record_id:
        return False
    written = kept.get("time")
    return written is None or time >= datetime.fromisoformat(written)


def find_newest(history: History, name: str, places: SearchPlaces) -> str | None:
    """The id of the newest record that `previous`, `branch:NAME` or `commit:HASH` means, or None."""
    kind, _, value = name.partition(":")
    if name == PREVIOUS:
        from rageval_spec.history.evaluation_records import holds_results_of

        found = history.entries(RecordFilter(places.name, limit=2))
        if found and places.later is not None and holds_results_of(history, found[0], places.later):
            del found[0]
    elif kind == BRANCH and value:
        found = [one for one in history.entries(RecordFilter(places.name, value)) if one.outcome in _PASSING]
    elif kind == COMMIT and len(value) >= SHORTEST_ID:
        found = [one for one in history.entries(RecordFilter(places.name)) if (one.commit or "").startswith(value)]
    else:
        found = []
    return found[0].id if found else None


def _explain_newest(name: str, places: SearchPlaces) -> str | None:
    """Why there is no record for `previous`, `branch:NAME` or `commit:HASH`; None for any other name."""
    kind, _, value = name.partition(":")
    of_name = f" of the evaluation '{places.name}'" if places.name else ""
    if name == PREVIOUS:
        return f"the history has no earlier record{of_name}"
    if kind == BRANCH and value:
        return f"the history has no record{of_name} on the branch '{value}' that passed"
    if kind == COMMIT and len(value) >= SHORTEST_ID:
        return f"the history has no record{of_name} at the commit '{value}'"
    return None


def _explain(name: str, places: SearchPlaces) -> DataError:
    if (reason := _explain_newest(name, places)) is not None:
        if places.database is None:
            return DataError(f"baseline '{name}': the spec has 'history: none', so no evaluation is recorded")
        kind = NoRecordYetError if name.partition(":")[0] in (PREVIOUS, BRANCH) else DataError
        return kind(f"baseline '{name}': {reason}; record one with: rageval-spec run SPEC --set 'gates=[]'")
    known = list_labels(places)
    hint = suggest(name, known) or (f"known are {', '.join(known)}" if known else "none has been saved yet")
    return DataError(
        f"baseline '{name}' is neither a label in {places.labels} ({hint}), nor a record, nor a folder with "
        f"{RESULTS} and {VALUES}; create the label with: rageval-spec run SPEC --save-as {name} "
        "--set 'gates=[]'"
    )
