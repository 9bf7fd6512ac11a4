"""Finds the evaluation that a name means: a label, a results folder, or a record of the database.

A label can be in the database, and it can be a folder that `--save-as` wrote; the one that was set last counts. If
both are the same record, the folder is read, because it has the samples too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history import folder as saved
from rageval_spec.history.database import FILE, SHORTEST_ID, HistoryError
from rageval_spec.history.opening import exists, locate, open_history
from rageval_spec.history.results_folder import RESULTS, VALUES

if TYPE_CHECKING:
    from rageval_spec.data.record import Record
    from rageval_spec.history.database import History
    from rageval_spec.spec.nodes import Spec


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look for evaluations.

    Attributes:
        labels: the folder of labels that are folders.
        database: the file or the address of the database; None for no database.
        folder: where relative paths start.
    """

    labels: Path = saved.FOLDER
    database: str | Path | None = FILE
    folder: Path = Path()

    @classmethod
    def of(cls, spec: Spec) -> Places:
        """The places of a spec."""
        return cls(spec.folder / saved.FOLDER, locate(spec.history, spec.folder), spec.folder)


def find_record(name: str, places: Places) -> Record:
    """The record that `name` means: a label, else a results folder at this path, else a record by its id.

    An id can be cut to its first characters, at least four.

    Raises:
        DataError: there is none, or it cannot be read.
        HistoryError: the database cannot be reached.
    """
    from rageval_spec.history.recording import load_stored

    labelled, folder = _find_label_folder(name, places), _find_results(name, places)
    if not exists(places.database):
        if found := labelled or folder:
            return saved.load_record(found)
        raise _explain(name, places)
    assert places.database is not None
    with open_history(places.database, create=False) as history:
        set_last = history.labels().get(name)
        if set_last is not None and (labelled is None or _is_newer(set_last, labelled)):
            return load_stored(history, set_last[0])
        if found := labelled or folder:
            return saved.load_record(found)
        if (record_id := _look_up(history, name)) is not None:
            return load_stored(history, record_id)
    raise _explain(name, places)


def list_labels(places: Places) -> tuple[str, ...]:
    """All labels, sorted: those of folders and those of the database. A database that cannot be read has none."""
    names = {*saved.labels(places.labels)}
    if exists(places.database):
        assert places.database is not None
        try:
            with open_history(places.database, create=False) as history:
                names.update(history.labels())
        except (HistoryError, UsageError):
            pass
    return tuple(sorted(names))


def _find_label_folder(name: str, places: Places) -> Path | None:
    return next(filter(saved.holds_results, saved.list_candidates(name, places.labels)), None)


def _find_results(name: str, places: Places) -> Path | None:
    try:
        path = places.folder / Path(name).expanduser()
    except (RuntimeError, ValueError):  # an unknown home folder, or a null character
        return None
    return path if saved.holds_results(path) else None


def _is_newer(set_last: tuple[str, datetime], folder: Path) -> bool:
    """Whether a label of the database was set after the folder of the same label was saved, to another record."""
    record_id, time = set_last
    kept = saved.read_kept(folder / saved.RECORD)
    if kept.get("id") == record_id:
        return False
    written = kept.get("time")
    return written is None or time >= datetime.fromisoformat(written)


def _look_up(history: History, name: str) -> str | None:
    return history.look_up(name) if len(name) >= SHORTEST_ID else None


def _explain(name: str, places: Places) -> DataError:
    known = list_labels(places)
    hint = suggest(name, known) or (f"known are {', '.join(known)}" if known else "none has been saved yet")
    return DataError(
        f"baseline '{name}' is neither a label in {places.labels} ({hint}), nor a record, nor a folder with "
        f"{RESULTS} and {VALUES}; create the label with: rageval-spec run SPEC --save-as {name} "
        "--set 'gates=[]'"
    )
