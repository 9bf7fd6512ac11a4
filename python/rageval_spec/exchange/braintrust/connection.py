"""Connects to Braintrust with an API key, and reads and writes rows of experiments, logs and datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from rageval_spec.endpoints.service import Service, ServiceError, quote_part
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.connections import (
    ToolApi,
    choose_url,
    list_row_pages,
    read_key,
    require_key,
    require_url,
)
from rageval_spec.plugin.secrets import Secret

Kind = Literal["experiment", "project_logs", "dataset"]
_PAGE = 1000
CLOUD = "https://api.braintrust.dev"


class BraintrustConnection(BaseModel):
    """The keys that say which Braintrust."""

    url: str | None = Field(
        default=None, description=f"The URL of Braintrust's API. Default: `$BRAINTRUST_API_URL`, else {CLOUD}."
    )
    api_key: Secret | None = Field(
        default=None, description="The API key: `${secret:VAR}`. Default: `$BRAINTRUST_API_KEY`."
    )


def find_url(node: BraintrustConnection) -> str:
    """The URL of the node, of the environment, or of Braintrust's cloud."""
    return choose_url(node.url, ("BRAINTRUST_API_URL",), CLOUD)


class BraintrustApi(ToolApi):
    """One organisation's projects, below `/v1`."""

    def __init__(self, node: BraintrustConnection, where: str) -> None:
        url = require_url(find_url(node), where)
        key = require_key(node.api_key, where, "BRAINTRUST_API_KEY").reveal()
        headers = {"Authorization": Secret(f"Bearer {key}", "Bearer ${API_KEY}")}
        super().__init__(Service(f"{url}/v1", where, headers=headers), where)

    def find(self, kind: Kind, project: str, name: str | None) -> str:
        """The id of what has rows: an experiment or a dataset by its name, or the logs of a project."""
        if kind == "project_logs":
            path, what, asked = "/project", f"project '{project}'", [("project_name", project)]
        else:
            path, what = f"/{kind}", f"{kind} '{name}' in the project '{project}'"
            asked = [("project_name", project), (f"{kind}_name", name or "")]
        for one in self._read(self.service.get(path, asked), "objects", path):
            if isinstance(one, Mapping) and isinstance(one.get("id"), str):
                return str(one["id"])
        raise DataError(f"{self.where}: there is no {what}")

    def open_experiment(self, project: str, name: str) -> str:
        """The id of an experiment, which is created unless it is there, with its project."""
        owner = self._create("/project", {"name": project})
        return self._create("/experiment", {"project_id": owner, "name": name, "ensure_new": False})

    def rows(self, kind: Kind, identity: str) -> Iterator[list[Any]]:
        """Pages of rows, newest first."""
        path = f"/{kind}/{quote_part(identity)}/fetch"

        def fetch(cursor: dict[str, str]) -> tuple[list[Any], Any]:
            found = self.service.post(path, {"limit": _PAGE, **cursor})
            return self._read(found, "events", path), found.get("cursor")

        return list_row_pages(fetch, f"{self.where}: {path}")

    def insert(self, kind: Kind, identity: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows: new ones, replaced ones, and, with `_is_merge`, parts of those that are there."""
        found = self.service.post(f"/{kind}/{quote_part(identity)}/insert", {"events": list(rows)})
        taken = found.get("row_ids") if isinstance(found, Mapping) else None
        if not isinstance(taken, list) or len(taken) != len(rows):
            number = len(taken) if isinstance(taken, list) else 0
            raise ServiceError(f"{self.where}: Braintrust took {number} of {len(rows)} rows")

    def _create(self, path: str, body: Mapping[str, Any]) -> str:
        return str(read_key(self.service.post(path, body), "id", str, f"{self.where}: {path}: the reply has no id"))

    def _read(self, found: Any, key: str, path: str) -> list[Any]:
        message = f"{self.where}: {path}: the reply has no list '{key}', as Braintrust's replies do"
        listed: list[Any] = read_key(found, key, list, message)
        return listed
