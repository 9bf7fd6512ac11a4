"""Connects to LangSmith with an API key, and reads its runs, feedback and examples, page by page."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.contracts import require_url
from rageval_spec.exchange.shared.row_groups import list_row_pages
from rageval_spec.plugin.secrets import Secret

if TYPE_CHECKING:
    from rageval_spec.endpoints.service import Service


FIELDS = (
    "id", "name", "run_type", "status", "start_time", "end_time", "error", "inputs", "outputs", "extra",
    "parent_run_ids", "trace_id", "thread_id", "tags", "prompt_tokens", "completion_tokens", "total_cost",
    "feedback_stats", "reference_example_id",
)  # fmt: skip
"""What is read of each run, as the newer endpoint calls it, in lower case."""
_ABSENT = frozenset({404, 405, 501})
_PAGE, _OLD_PAGE, _LIST = 1000, 100, 100
_RUNS_AT_ONCE = 50
_BEGINNING = "2000-01-01T00:00:00Z"
"""Before the first run of all; the newer endpoint gives only the last day without a beginning."""


class LangSmithApi:
    """The reading side; asks the older endpoint for runs where the newer one is absent."""

    def __init__(self, paths: Paths, where: str) -> None:
        """Ask nothing yet. `where` begins messages about replies that make no sense."""
        self._service, self._older, self._newer = paths
        self._where = where
        self.is_old = False

    def find_project(self, name: str) -> str:
        """The id of a tracing project.

        Raises:
            DataError: there is none of that name.
            ServiceError: LangSmith does not answer.
        """
        return self._find("sessions", name, "tracing project")

    def find_dataset(self, name: str) -> str:
        """The id of a dataset; raises the same errors as `find_project`."""
        return self._find("datasets", name, "dataset")

    def runs(self, project: str, window: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of the runs of a project that began in the window: `from` and `to`, ISO 8601 times that may be absent.

        Raises:
            ServiceError: LangSmith does not answer, or its answer has no runs.
        """
        from rageval_spec.endpoints.service import ServiceError

        asked: dict[str, Any] = {
            "project_ids": [project],
            "min_start_time": window.get("from", _BEGINNING),
            "selects": [*map(str.upper, FIELDS), "PROJECT_ID"],
            "page_size": _PAGE,
        }
        if "to" in window:
            asked["max_start_time"] = window["to"]
        try:
            yield from self._pages(f"{self._newer}/runs/query", asked, "items", lambda found: found.get("next_cursor"))
        except ServiceError as error:
            if self.is_old or error.status not in _ABSENT:
                raise
            self.is_old = True
            yield from self._old_runs(project, window)

    def feedback(self, runs: Sequence[str]) -> Iterator[Any]:
        """The feedback on some runs.

        Raises:
            ServiceError: LangSmith does not answer, or its answer is no list.
        """
        for begin in range(0, len(runs), _RUNS_AT_ONCE):
            yield from self._list("/feedback", [("run", run) for run in runs[begin : begin + _RUNS_AT_ONCE]])

    def examples(self, dataset: str) -> Iterator[Any]:
        """The examples of a dataset, by its id; raises the same errors as `feedback`."""
        yield from self._list("/examples", [("dataset", dataset)])

    def _old_runs(self, project: str, window: Mapping[str, str]) -> Iterator[list[Any]]:
        asked: dict[str, Any] = {"session": [project], "limit": _OLD_PAGE}
        asked["select"] = [*(name for name in FIELDS if name != "thread_id"), "session_id", "parent_run_id"]
        if "from" in window:
            asked["start_time"] = window["from"]
        if "to" in window:
            asked["end_time"] = window["to"]

        def find_next(found: Mapping[str, Any]) -> Any:
            cursors = found.get("cursors")
            return cursors.get("next") if isinstance(cursors, Mapping) else None

        yield from self._pages(f"{self._older}/runs/query", asked, "runs", find_next)

    def _pages(self, path: str, asked: Mapping[str, Any], key: str, find_next: Any) -> Iterator[list[Any]]:
        from rageval_spec.endpoints.service import ServiceError

        def fetch(cursor: str | None) -> tuple[list[Any], str | None]:
            found = self._service.post(path, {**asked, **({} if cursor is None else {"cursor": cursor})})
            rows = found.get(key) if isinstance(found, Mapping) else None
            if not isinstance(rows, list):
                raise ServiceError(f"{self._where}: {path}: the reply has no list '{key}', as LangSmith's replies do")
            following = find_next(found)
            return rows, following if isinstance(following, str) else None

        yield from list_row_pages(fetch, f"{self._where}: {path}")

    def _find(self, path: str, name: str, what: str) -> str:
        rows = self._read_list(f"/{path}", [("name", name), ("limit", "1")])
        for row in rows:
            if isinstance(row, Mapping) and row.get("name") == name and isinstance(row.get("id"), str):
                return str(row["id"])
        raise DataError(f"{self._where}: there is no {what} '{name}' in this workspace")

    def _list(self, path: str, asked: Sequence[tuple[str, str]]) -> Iterator[Any]:
        """The rows of a path with offsets; a row that comes again ends it, for servers that ignore the offset."""
        offset, seen = 0, set[str]()
        while True:
            rows = self._read_list(path, [*asked, ("limit", str(_LIST)), ("offset", str(offset))])
            fresh = [row for row in rows if not isinstance(row, Mapping) or str(row.get("id")) not in seen]
            yield from fresh
            seen.update(str(row.get("id")) for row in fresh if isinstance(row, Mapping))
            if len(rows) < _LIST or not fresh:
                return
            offset += len(rows)

    def _read_list(self, path: str, asked: Sequence[tuple[str, str]]) -> list[Any]:
        from rageval_spec.endpoints.service import ServiceError

        found = self._service.get(f"{self._older}{path}", asked)
        if not isinstance(found, list):
            raise ServiceError(f"{self._where}: {path}: the reply is not a list, as LangSmith's replies are")
        return found


CLOUD = "https://api.smith.langchain.com"


class LangSmithConnection(BaseModel):
    """The keys that say which LangSmith and which workspace."""

    url: str | None = Field(
        default=None,
        description="The URL of LangSmith's API. Default: `$LANGSMITH_ENDPOINT`, else `$LANGCHAIN_ENDPOINT`, else "
        f"{CLOUD}.",
    )
    api_key: Secret | None = Field(
        default=None,
        description="The API key: `${secret:VAR}`. Default: `$LANGSMITH_API_KEY`, else `$LANGCHAIN_API_KEY`.",
    )
    workspace: str | None = Field(
        default=None,
        description="The id of the workspace, if the key has several. Default: `$LANGSMITH_WORKSPACE_ID`.",
    )


class Paths(NamedTuple):
    """A connected service, and what its paths begin with."""

    service: Service
    older: str
    newer: str


def find_url(node: LangSmithConnection, environment: Mapping[str, str] = os.environ) -> str:
    """The URL of the node, of the environment, or of LangSmith's cloud, without a slash at the end."""
    names = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
    named = node.url or next((environment[name] for name in names if environment.get(name)), CLOUD)
    return named.rstrip("/")


def split_url(url: str) -> tuple[str, str]:
    """The URL of the host, and what the older paths begin with: a self-hosted API is below `/api` or `/api/v1`."""
    for suffix in ("/api/v1", "/api"):
        if urlsplit(url).path.endswith(suffix):
            return url[: -len(suffix)], suffix
    return url, ""


def connect(node: LangSmithConnection, where: str) -> Paths:
    """A service for LangSmith's paths; opens nothing yet.

    Raises:
        UsageError: there is no key, or the URL cannot be used.
    """
    from rageval_spec.endpoints.service import Service

    host, older = split_url(find_url(node))
    require_url(host, where)
    headers = {"X-Api-Key": _find_key(node, where)}
    if workspace := node.workspace or os.environ.get("LANGSMITH_WORKSPACE_ID", ""):
        headers["X-Tenant-Id"] = Secret(workspace, workspace)
    return Paths(Service(host, where, headers=headers), older, "/api/v2")


def _find_key(node: LangSmithConnection, where: str) -> Secret:
    if node.api_key is not None and node.api_key.reveal():
        return node.api_key
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
        if key := os.environ.get(name, "").strip():
            return Secret(key, f"${{{name}}}")
    raise UsageError(f"{where}: there is no API key; set the environment variable LANGSMITH_API_KEY")
