"""A project with records, its view in this process, and a client that has the cookie."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rageval_spec.commands.view.command import list_addresses
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.results import Record
from rageval_spec.endpoints.http_server import Server
from rageval_spec.history.database import FILE, open_history
from rageval_spec.history.evaluation_lookup import SearchPlaces
from rageval_spec.history.saved_evaluations import FOLDER, write_record
from rageval_spec.local_view.application import make_view_app
from rageval_spec.local_view.record_catalog import RecordCatalog
from tests.answered_evaluation import bridges
from tests.history.records import NOON, make_id, make_record

TOKEN = "t0ken"


@dataclass
class Client:
    """A browser without scripts: it has the cookie, and an origin of its own."""

    url: str
    token: str = TOKEN

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the text of a page."""
        return self._send(path, None, headers)

    def post(self, path: str, content: Any, **headers: str) -> tuple[int, Any]:
        """The status and the JSON that an action answers."""
        status, text = self._send(path, json.dumps(content).encode(), {"origin": self.url, **headers})
        return status, json.loads(text)

    def _send(self, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, str]:
        cookie = f"rageval-view-{self.url.rpartition(':')[2]}={self.token}"
        request = urllib.request.Request(self.url + path, body, {"cookie": cookie, **headers})
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def enter(page: Any, address: str) -> None:
    """Open a page with the token, which the view leaves out of the address at once."""
    page.goto(f"{address}?token={TOKEN}")
    page.wait_for_url(address)


def make_project(folder: Path) -> list[str]:
    """Three records of one evaluation: two labels that are folders, and one with numbers only; their ids."""
    evaluations = [bridges(), bridges(shift=-0.3), bridges(shift=0.1)]
    for number, (label, evaluation) in enumerate(zip(("main", "next"), evaluations, strict=False), 1):
        save(evaluation, folder / FOLDER / label, number, label)
    with open_history(folder / FILE) as history:
        history.add([make_record(number, one) for number, one in enumerate(evaluations, 1)])
    return [make_id(number) for number in (1, 2, 3)]


def save(evaluation: Evaluation, folder: Path, number: int, label: str) -> None:
    """Save an evaluation under a label, as the record of a number."""
    folder.mkdir(parents=True)
    write_record(Record(make_id(number), NOON, None, label, evaluation), folder)


@contextmanager
def viewing(folder: Path, *results: Path, spec: Path | None = None, scale: str = "yes_no") -> Iterator[Client]:
    """The view of a project, and of results folders."""
    kept = folder / "kept"
    kept.mkdir(exist_ok=True)
    places = SearchPlaces(folder / FOLDER, folder / FILE, folder)
    addresses = list_addresses(RecordCatalog(places, results), kept, folder / "labels.csv", spec, scale)
    server = Server(make_view_app(addresses, TOKEN), "127.0.0.1", 0)
    try:
        yield Client(server.url)
    finally:
        server.close()
