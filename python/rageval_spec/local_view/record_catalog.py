"""The records that can be looked at: those of the history, labels that are folders, and results folders."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.endpoints.http_server import Refusal
from rageval_spec.errors import RagevalError
from rageval_spec.history import database, saved_evaluations
from rageval_spec.history.evaluation_lookup import SearchPlaces
from rageval_spec.history.results_folder import RESULTS
from rageval_spec.history.saved_evaluations import RECORD, holds_results, list_candidates, load_record, read_kept

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

PER_PAGE = 100
"""The records of the history on a page of the list."""
_MOST_COMPARED = 20


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """What the list tells of a record. With a `folder` it has its questions and answers; without, only numbers.

    `problem` says why a folder cannot be read. Records of a folder without a time have the time of its file.
    `is_judged` is whether a metric asks a judge, as far as a folder tells.
    """

    id: str
    time: datetime
    name: str = ""
    outcome: str = ""
    labels: tuple[str, ...] = ()
    branch: str = ""
    commit: str = ""
    failed: int = 0
    spec_digest: str = ""
    folder: Path | None = None
    problem: str = ""
    is_judged: bool = False

    @property
    def address(self) -> str:
        """That of its report."""
        return f"/record/{quote(self.id)}/"

    @property
    def title(self) -> str:
        """What a reader calls it: its label, else its folder, else the beginning of its id."""
        if self.labels:
            return self.labels[0]
        return self.id[:8] if self.folder is None else self.folder.name


@dataclass(frozen=True)
class RecordCatalog:
    """Finds records. What is on the disk is read anew for each page, because evaluations go on meanwhile.

    Attributes:
        places: the labels and the database.
        folders: results folders that are shown too, if they are there.
    """

    places: SearchPlaces
    folders: Sequence[Path] = ()
    _ids: dict[str, str] = field(default_factory=dict)
    """The id of the record of a results folder, by the digest of its results."""

    def list_records(self, page: int = 0) -> tuple[list[KnownRecord], bool]:
        """The records of a page, newest first, and whether there are older ones. Folders are on the first page."""
        last = (page + 1) * PER_PAGE
        entries = self._list_entries(last + 1)
        shown = entries[page * PER_PAGE : last]
        of_folders = self._list_folders()
        with_folder = {one.id: one for one in of_folders}
        records = [_join(one, with_folder.pop(one.id, None)) for one in shown]
        older = {one.id for one in entries}
        if page == 0:
            records += [one for one in with_folder.values() if one.id not in older]
        return sorted(records, key=lambda one: one.time, reverse=True), len(entries) > last

    def find(self, record_id: str) -> KnownRecord:
        """The record with this id. Raises `Refusal`: there is none, or it cannot be read."""
        entries = self._list_entries(None)
        entry = next((one for one in entries if one.id == record_id), None)
        folder = next((one for one in self._list_folders() if one.id == record_id), None)
        if entry is None and folder is None:
            raise Refusal(404, f"There is no record {record_id[:8]}; it may have been removed or replaced meanwhile.")
        found = folder if entry is None else _join(entry, folder)
        assert found is not None
        if found.problem:
            raise Refusal(422, found.problem)
        return replace(found, id=record_id)

    def load(self, record: KnownRecord) -> Evaluation:
        """The evaluation of a record, without samples if it has no folder."""
        if record.folder is not None:
            return load_record(record.folder).evaluation
        from rageval_spec.history.evaluation_records import load_stored

        assert self.places.database is not None
        with database.open_history(self.places.database, create=False) as history:
            return load_stored(history, record.id).evaluation

    @contextmanager
    def open_history(self) -> Iterator[database.History | None]:
        """The history; None if there is none yet, or if it cannot be opened (`explain_history`)."""
        with ExitStack() as opened:
            history = None
            with suppress(database.HistoryError):
                history = opened.enter_context(self._open())
            yield history

    def explain_history(self) -> str:
        """Why the history cannot be opened; "" if it can, or if there is none."""
        try:
            with self._open():
                return ""
        except database.HistoryError as error:
            return str(error)

    def _open(self) -> AbstractContextManager[database.History | None]:
        place = self.places.database
        if place is None or not database.exists(place):
            return nullcontext()
        return database.open_history(place, create=False)

    def _list_entries(self, limit: int | None) -> list[KnownRecord]:
        with self.open_history() as history:
            entries = [] if history is None else history.entries(database.RecordFilter(limit=limit))
        return [_describe(one) for one in entries]

    def _list_folders(self) -> list[KnownRecord]:
        labels = saved_evaluations.labels(self.places.labels)
        labelled = (next(filter(holds_results, list_candidates(one, self.places.labels)), None) for one in labels)
        folders = [*filter(None, labelled), *filter(holds_results, self.folders)]
        found = [_describe_folder(one) for one in {one.resolve(): one for one in folders}.values()]
        with self.open_history() as history:
            return [one if one.labels or one.problem else self._identify(one, history) for one in found]

    def _identify(self, folder: KnownRecord, history: database.History | None) -> KnownRecord:
        """A results folder under the id of its record: the newest one with the same results."""
        if history is None or folder.id in self._ids:
            return replace(folder, id=self._ids.get(folder.id, folder.id))
        assert folder.folder is not None
        content = (folder.folder / RESULTS).read_bytes()
        of_spec = history.entries(database.RecordFilter(folder.name))
        for entry in [one for one in of_spec if one.spec_digest == folder.spec_digest][:_MOST_COMPARED]:
            if zlib.decompress(history.content(entry.id, RESULTS)) == content:
                self._ids[folder.id] = entry.id
                return replace(folder, id=entry.id)
        return folder


def _describe(entry: database.RecordSummary) -> KnownRecord:
    return KnownRecord(
        entry.id, entry.time, entry.name, entry.outcome, entry.labels, entry.branch or "",
        f"{(entry.commit or '')[:8]}{'*' if entry.is_dirty else ''}",
        sum(gate["outcome"] == "fail" for gate in entry.gates),
        entry.spec_digest,
    )  # fmt: skip


def _describe_folder(folder: Path) -> KnownRecord:
    path = folder / RESULTS
    try:
        content = path.read_bytes()
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        digest = hashlib.sha256(content).hexdigest()[:32]
    except OSError as error:
        return KnownRecord(hashlib.sha256(bytes(path)).hexdigest()[:32], datetime.fromtimestamp(0, UTC), folder=folder,
                           problem=f"{path}: {error.strerror or error}")  # fmt: skip
    try:
        found = json.loads(content)
        kept = read_kept(folder / RECORD)
        time = kept.get("time")
        return KnownRecord(
            kept.get("id") or digest,
            written if time is None else datetime.fromisoformat(time),
            str(found["name"]),
            str(found["verdict"]),
            tuple(filter(None, [kept.get("label")])),
            commit=(kept.get("commit") or "")[:8],
            failed=sum(gate["outcome"] == "fail" for gate in found["gates"]),
            spec_digest=str(found["spec_digest"]),
            folder=folder,
            is_judged=bool(list_judged(found.get("spec") or {})),
        )
    except RagevalError as error:
        return KnownRecord(digest, written, folder=folder, problem=str(error))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        told = f"{path}: this is not a whole file of results; evaluate again to write it anew"
        return KnownRecord(digest, written, folder=folder, problem=told)


def _join(entry: KnownRecord, folder: KnownRecord | None) -> KnownRecord:
    """A record of the database with the folder that has its questions."""
    return (
        entry
        if folder is None
        else replace(entry, folder=folder.folder, problem=folder.problem, is_judged=folder.is_judged)
    )


def list_judged(spec: Mapping[str, Any]) -> list[str]:
    """The metrics that ask a judge, by the spec that an evaluation recorded."""
    return [node.get("as") or node["use"] for node in spec.get("metrics") or () if node.get("judge")]
