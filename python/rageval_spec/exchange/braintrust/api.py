"""Reads and writes rows of Braintrust's experiments, logs and datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from rageval_spec.endpoints.service import Service, ServiceError, quote_part
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.pages import list_row_pages

Kind = Literal["experiment", "project_logs", "dataset"]
_PAGE = 1000


class Api:
    """One organisation's projects."""

    def __init__(self, service: Service, where: str) -> None:
        """Ask nothing yet. `where` begins messages about replies that make no sense."""
        self._service = service
        self._where = where

    def find(self, kind: Kind, project: str, name: str | None) -> str:
        """The id of what has rows: an experiment or a dataset by its name, or the logs of a project.

        Raises:
            DataError: there is none.
            ServiceError: Braintrust does not answer.
        """
        if kind == "project_logs":
            path, what, asked = "/project", f"project '{project}'", [("project_name", project)]
        else:
            path, what = f"/{kind}", f"{kind} '{name}' in the project '{project}'"
            asked = [("project_name", project), (f"{kind}_name", name or "")]
        found = self._service.get(path, asked)
        objects = found.get("objects") if isinstance(found, Mapping) else None
        if not isinstance(objects, list):
            raise ServiceError(f"{self._where}: {path}: the reply has no list 'objects', as Braintrust's replies do")
        for one in objects:
            if isinstance(one, Mapping) and isinstance(one.get("id"), str):
                return str(one["id"])
        raise DataError(f"{self._where}: there is no {what}")

    def open_experiment(self, project: str, name: str) -> str:
        """The id of an experiment, which is created unless it is there, with its project."""
        owner = self._create("/project", {"name": project})
        return self._create("/experiment", {"project_id": owner, "name": name, "ensure_new": False})

    def rows(self, kind: Kind, identity: str) -> Iterator[list[Any]]:
        """Pages of rows, newest first.

        Raises:
            ServiceError: Braintrust does not answer, or its answer has no rows.
        """
        path = f"/{kind}/{quote_part(identity)}/fetch"

        def fetch(cursor: str | None) -> tuple[list[Any], str | None]:
            more = {} if cursor is None else {"cursor": cursor}
            found = self._service.post(path, {"limit": _PAGE, **more})
            events = found.get("events") if isinstance(found, Mapping) else None
            if not isinstance(events, list):
                raise ServiceError(f"{self._where}: {path}: the reply has no list 'events', as Braintrust's replies do")
            following = found.get("cursor")
            return events, following if isinstance(following, str) and events else None

        yield from list_row_pages(fetch, f"{self._where}: {path}")

    def insert(self, kind: Kind, identity: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows: new ones, replaced ones, and, with `_is_merge`, parts of those that are there.

        Raises:
            ServiceError: Braintrust did not take all of them.
        """
        found = self._service.post(f"/{kind}/{quote_part(identity)}/insert", {"events": list(rows)})
        taken = found.get("row_ids") if isinstance(found, Mapping) else None
        if not isinstance(taken, list) or len(taken) != len(rows):
            number = len(taken) if isinstance(taken, list) else 0
            raise ServiceError(f"{self._where}: Braintrust took {number} of {len(rows)} rows")

    def _create(self, path: str, body: Mapping[str, Any]) -> str:
        found = self._service.post(path, body)
        if not isinstance(found, Mapping) or not isinstance(found.get("id"), str):
            raise ServiceError(f"{self._where}: {path}: the reply has no id")
        return str(found["id"])
