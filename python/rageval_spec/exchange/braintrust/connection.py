"""Connects to Braintrust with an API key, and reads and writes rows of experiments, logs and datasets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.contracts import require_url
from rageval_spec.exchange.shared.row_groups import list_row_pages
from rageval_spec.plugin.secrets import Secret

if TYPE_CHECKING:
    from rageval_spec.endpoints.service import Service

Kind = Literal["experiment", "project_logs", "dataset"]
_PAGE = 1000


class BraintrustApi:
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
        from rageval_spec.endpoints.service import ServiceError

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
        from rageval_spec.endpoints.service import ServiceError, quote_part

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
        from rageval_spec.endpoints.service import ServiceError, quote_part

        found = self._service.post(f"/{kind}/{quote_part(identity)}/insert", {"events": list(rows)})
        taken = found.get("row_ids") if isinstance(found, Mapping) else None
        if not isinstance(taken, list) or len(taken) != len(rows):
            number = len(taken) if isinstance(taken, list) else 0
            raise ServiceError(f"{self._where}: Braintrust took {number} of {len(rows)} rows")

    def _create(self, path: str, body: Mapping[str, Any]) -> str:
        from rageval_spec.endpoints.service import ServiceError

        found = self._service.post(path, body)
        if not isinstance(found, Mapping) or not isinstance(found.get("id"), str):
            raise ServiceError(f"{self._where}: {path}: the reply has no id")
        return str(found["id"])


CLOUD = "https://api.braintrust.dev"


class BraintrustConnection(BaseModel):
    """The keys that say which Braintrust."""

    url: str | None = Field(
        default=None, description=f"The URL of Braintrust's API. Default: `$BRAINTRUST_API_URL`, else {CLOUD}."
    )
    api_key: Secret | None = Field(
        default=None, description="The API key: `${secret:VAR}`. Default: `$BRAINTRUST_API_KEY`."
    )


def find_url(node: BraintrustConnection, environment: Mapping[str, str] = os.environ) -> str:
    """The URL of the node, of the environment, or of Braintrust's cloud, without a slash at the end."""
    return (node.url or environment.get("BRAINTRUST_API_URL") or CLOUD).rstrip("/")


def connect(node: BraintrustConnection, where: str) -> Service:
    """A service for the paths below `/v1`; opens nothing yet.

    Raises:
        UsageError: there is no key, or the URL cannot be used.
    """
    from rageval_spec.endpoints.service import Service

    url = find_url(node)
    require_url(url, where)
    key = node.api_key.reveal() if node.api_key is not None else os.environ.get("BRAINTRUST_API_KEY", "").strip()
    if not key:
        raise UsageError(f"{where}: there is no API key; set the environment variable BRAINTRUST_API_KEY")
    return Service(f"{url}/v1", where, headers={"Authorization": Secret(f"Bearer {key}", "Bearer ${API_KEY}")})
