"""Connects to LangSmith with an API key, and reads its runs, feedback and examples, page by page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from rageval_spec.endpoints.service import Service, ServiceError
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.connections import (
    ABSENT,
    ToolApi,
    choose_url,
    list_row_pages,
    read_key,
    require_key,
    require_url,
)
from rageval_spec.plugin.secrets import Secret

FIELDS = (
    "id", "name", "run_type", "status", "start_time", "end_time", "error", "inputs", "outputs", "extra",
    "parent_run_ids", "trace_id", "thread_id", "tags", "prompt_tokens", "completion_tokens", "total_cost",
    "feedback_stats", "reference_example_id",
)  # fmt: skip
"""What is read of each run, as the newer endpoint calls it, in lower case."""
_PAGE, _OLD_PAGE, _LIST = 1000, 100, 100
_RUNS_AT_ONCE = 50
_BEGINNING = "2000-01-01T00:00:00Z"
"""Before the first run of all; the newer endpoint gives only the last day without a beginning."""


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


def find_url(node: LangSmithConnection) -> str:
    """The URL of the node, of the environment, or of LangSmith's cloud."""
    return choose_url(node.url, ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"), CLOUD)


def split_url(url: str) -> tuple[str, str]:
    """The URL of the host, and what the older paths begin with: a self-hosted API is below `/api` or `/api/v1`."""
    for suffix in ("/api/v1", "/api"):
        if urlsplit(url).path.endswith(suffix):
            return url[: -len(suffix)], suffix
    return url, ""


class LangSmithApi(ToolApi):
    """One workspace; asks the older endpoint for runs where the newer one is absent."""

    def __init__(self, node: LangSmithConnection, where: str) -> None:
        host, self.older = split_url(find_url(node))
        require_url(host, where)
        headers = {"X-Api-Key": require_key(node.api_key, where, "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")}
        if workspace := node.workspace or os.environ.get("LANGSMITH_WORKSPACE_ID", ""):
            headers["X-Tenant-Id"] = Secret(workspace, workspace)
        super().__init__(Service(host, where, headers=headers), where)
        self.is_old = False

    def find_project(self, name: str) -> str:
        """The id of a tracing project."""
        return self._find("sessions", name, "tracing project")

    def find_dataset(self, name: str) -> str:
        """The id of a dataset."""
        return self._find("datasets", name, "dataset")

    def runs(self, project: str, window: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of the runs of a project that began in the window: `from` and `to`, which may be absent."""
        asked: dict[str, Any] = {
            "project_ids": [project],
            "min_start_time": window.get("from", _BEGINNING),
            "selects": [*map(str.upper, FIELDS), "PROJECT_ID"],
            "page_size": _PAGE,
        }
        if "to" in window:
            asked["max_start_time"] = window["to"]
        try:
            yield from self._pages("/api/v2/runs/query", asked, "items", lambda found: found.get("next_cursor"))
        except ServiceError as error:
            if self.is_old or error.status not in ABSENT:
                raise
            self.is_old = True
            yield from self._old_runs(project, window)

    def feedback(self, runs: Sequence[str]) -> Iterator[Any]:
        """The feedback on some runs."""
        for begin in range(0, len(runs), _RUNS_AT_ONCE):
            yield from self._list("/feedback", [("run", run) for run in runs[begin : begin + _RUNS_AT_ONCE]])

    def examples(self, dataset: str) -> Iterator[Any]:
        """The examples of a dataset, by its id."""
        yield from self._list("/examples", [("dataset", dataset)])

    def _old_runs(self, project: str, window: Mapping[str, str]) -> Iterator[list[Any]]:
        asked: dict[str, Any] = {"session": [project], "limit": _OLD_PAGE}
        asked["select"] = [*(name for name in FIELDS if name != "thread_id"), "session_id", "parent_run_id"]
        asked |= {name: window[end] for end, name in (("from", "start_time"), ("to", "end_time")) if end in window}

        def find_next(found: Mapping[str, Any]) -> Any:
            cursors = found.get("cursors")
            return cursors.get("next") if isinstance(cursors, Mapping) else None

        yield from self._pages(f"{self.older}/runs/query", asked, "runs", find_next)

    def _pages(
        self, path: str, asked: Mapping[str, Any], key: str, find_next: Callable[[Mapping[str, Any]], Any]
    ) -> Iterator[list[Any]]:
        def fetch(cursor: dict[str, str]) -> tuple[list[Any], Any]:
            found = self.service.post(path, {**asked, **cursor})
            message = f"{self.where}: {path}: the reply has no list '{key}', as LangSmith's replies do"
            return read_key(found, key, list, message), find_next(found)

        return list_row_pages(fetch, f"{self.where}: {path}")

    def _find(self, path: str, name: str, what: str) -> str:
        for row in self._read_list(f"/{path}", [("name", name), ("limit", "1")]):
            if isinstance(row, Mapping) and row.get("name") == name and isinstance(row.get("id"), str):
                return str(row["id"])
        raise DataError(f"{self.where}: there is no {what} '{name}' in this workspace")

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
        found = self.service.get(f"{self.older}{path}", asked)
        if not isinstance(found, list):
            raise ServiceError(f"{self.where}: {path}: the reply is not a list, as LangSmith's replies are")
        return found
