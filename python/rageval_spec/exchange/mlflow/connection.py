"""Requests to the REST API of MLflow's tracking server."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import Field

from rageval_spec.endpoints.service import Service, ServiceError, list_pages
from rageval_spec.errors import UsageError
from rageval_spec.exchange.shared.contracts import check_url
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


class MlflowAddress(NamedTuple):
    """Where the server is, and what authenticates its caller."""

    url: str
    authorization: Secret | None

    @classmethod
    def of(cls, url: str | None, token: Secret | None) -> MlflowAddress:
        """The settings, completed from the environment.

        Raises:
            UsageError: the environment names no server that can be asked over HTTP.
        """
        if url is None:
            url = os.environ.get("MLFLOW_TRACKING_URI", "").strip() or LOCAL
            try:
                url = str(check_url(url))
            except ValueError as error:
                raise UsageError(f"MLFLOW_TRACKING_URI: {error}; start a server with: mlflow server") from None
        return cls(url, _authorize(token))


def _authorize(token: Secret | None) -> Secret | None:
    text = token.reveal() if token is not None else os.environ.get("MLFLOW_TRACKING_TOKEN", "")
    if text.strip():
        return Secret(f"Bearer {text.strip()}")
    user, password = (os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
    if not user:
        return None
    return Secret(f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}")


class MlflowServer:
    """Asks one tracking server."""

    def __init__(self, address: MlflowAddress, where: str) -> None:
        """Open nothing yet; `where` begins every message."""
        headers = {} if address.authorization is None else {"authorization": address.authorization}
        self.service = Service(address.url, where, headers=headers)
        self.where = where

    def find_experiment(self, name: str) -> str:
        """The id of an experiment.

        Raises:
            UsageError: there is no experiment of that name; the message has the names of those that are there.
            ServiceError: the server cannot be asked.
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
        """The objects of a search, page by page; a page without `key` is empty.

        Raises:
            ServiceError: a page cannot be read.
        """

        def fetch(token: str | None) -> tuple[list[dict[str, Any]], str | None]:
            content = self.service.post(path, {**body, **({} if token is None else {"page_token": token})})
            found = content.get(key, []) if isinstance(content, dict) else None
            if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
                raise ServiceError(f"{self.where}: {path} answered without the list {key!r}; is url that of MLflow?")
            following = content.get("next_page_token")
            return found, following if isinstance(following, str) else None

        for page in list_pages(fetch, self.where):
            yield from page

    def read(self, content: Any, key: str, kind: type[Any], what: str) -> Any:
        """The value of a key of a reply.

        Raises:
            ServiceError: it is not there, or of another type.
        """
        value = content.get(key) if isinstance(content, Mapping) else None
        if not isinstance(value, kind):
            raise ServiceError(f"{self.where}: the {what} has no {key!r}; is url that of MLflow?")
        return value

    def close(self) -> None:
        """End the calls under way."""
        self.service.close()

    def _explain_missing(self, name: str) -> UsageError:
        from rageval_spec.diagnostics import suggest

        found = self.search(f"{V2}/experiments/search", {"max_results": 1000}, "experiments")
        names = [str(one.get("name")) for one in found]
        hint = suggest(name, names) or f"the experiments are {', '.join(names[:_SHOWN])}"
        return UsageError(f"{self.where}: there is no experiment {name!r}; {hint}")


def is_missing(error: ServiceError) -> bool:
    """Whether the server said that something does not exist, not that it does not know the path."""
    return error.status == _NOT_THERE and b"RESOURCE_DOES_NOT_EXIST" in error.content
