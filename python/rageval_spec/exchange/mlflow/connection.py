"""Requests to the REST API of MLflow's tracking server."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pydantic import Field

from rageval_spec.diagnostics import suggest
from rageval_spec.endpoints.service import Service, ServiceError
from rageval_spec.errors import UsageError
from rageval_spec.exchange.shared.connections import ToolApi, check_url, list_cursor_pages, read_key
from rageval_spec.plugin.secrets import Secret

LOCAL = "http://localhost:5000"
URL = Field(
    default=None,
    description="The URL of the tracking server, such as `https://mlflow.example.org`. Default: the environment's "
    f"MLFLOW_TRACKING_URI, else `{LOCAL}`.",
)
TOKEN = Field(
    default=None,
    description="The token, as `${secret:MLFLOW_TRACKING_TOKEN}`. Default: the environment's MLFLOW_TRACKING_TOKEN, or "
    "its MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.",
)
V2, V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
_NOT_THERE = 404
_SHOWN = 20


def find_url(url: str | None) -> str:
    """The URL of the node, of the environment, or of this machine."""
    if url is not None:
        return url
    try:
        return str(check_url(os.environ.get("MLFLOW_TRACKING_URI", "").strip() or LOCAL))
    except ValueError as error:
        raise UsageError(f"MLFLOW_TRACKING_URI: {error}; start a server with: mlflow server") from None


def find_headers(token: Secret | None) -> dict[str, Secret]:
    """The header with the token of the node, or with the environment's token or user; {} without any."""
    text = token.reveal() if token is not None else os.environ.get("MLFLOW_TRACKING_TOKEN", "")
    if text.strip():
        return {"authorization": Secret(f"Bearer {text.strip()}")}
    user, password = (os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
    basic = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return {"authorization": Secret(f"Basic {basic}")} if user else {}


class MlflowServer(ToolApi):
    """Asks one tracking server."""

    def __init__(self, url: str | None, token: Secret | None, where: str) -> None:
        super().__init__(Service(find_url(url), where, headers=find_headers(token)), where)

    def find_experiment(self, name: str) -> str:
        """The id of an experiment.

        Raises:
            UsageError: there is no experiment of that name; the message has the names of those that are there.
        """
        try:
            content = self.service.get(f"{V2}/experiments/get-by-name", [("experiment_name", name)])
        except ServiceError as error:
            if not is_missing(error):
                raise
            raise self._explain_missing(name) from None
        return str(self.read(self.read(content, "experiment", dict, "experiment"), "experiment_id", str, "experiment"))

    def open_experiment(self, name: str) -> str:
        """The id of an experiment, which is created if it is not there."""
        try:
            return self.find_experiment(name)
        except UsageError:
            content = self.service.post(f"{V2}/experiments/create", {"name": name})
            return str(self.read(content, "experiment_id", str, "experiment"))

    def search(self, path: str, body: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
        """The objects of a search, page by page; a page without `key` is empty."""

        def fetch(cursor: dict[str, str]) -> tuple[list[dict[str, Any]], Any]:
            content = self.service.post(path, {**body, **cursor})
            found = content.get(key, []) if isinstance(content, dict) else None
            if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
                raise ServiceError(f"{self.where}: {path} answered without the list {key!r}; is url that of MLflow?")
            return found, content.get("next_page_token")

        return chain.from_iterable(list_cursor_pages(fetch, self.where, "page_token"))

    def read(self, content: Any, key: str, kind: type[Any], what: str) -> Any:
        return read_key(content, key, kind, f"{self.where}: the {what} has no {key!r}; is url that of MLflow?")

    def _explain_missing(self, name: str) -> UsageError:
        found = self.search(f"{V2}/experiments/search", {"max_results": 1000}, "experiments")
        names = [str(one.get("name")) for one in found]
        hint = suggest(name, names) or f"the experiments are {', '.join(names[:_SHOWN])}"
        return UsageError(f"{self.where}: there is no experiment {name!r}; {hint}")


def is_missing(error: ServiceError) -> bool:
    """Whether the server said that something does not exist, not that it does not know the path."""
    return error.status == _NOT_THERE and b"RESOURCE_DOES_NOT_EXIST" in error.content
