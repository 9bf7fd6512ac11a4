"""A small LangSmith: it keeps runs, feedback and datasets as the product's API takes and gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import pytest

from tests.endpoints.api_server import ApiServer, Asked
from tests.models.endpoint import Answer

KEY = "lsv2_pt_very-secret-4711"
_SPACE = UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
TENANT = str(uuid5(_SPACE, "tenant"))


def make_id(name: str) -> str:
    """The UUID that the tests use for a name."""
    return str(uuid5(_SPACE, name))


PROJECT = make_id("support")


def run(name: str, trace: str, kind: str, second: int, /, **fields: Any) -> dict[str, Any]:
    """A run, with the fields that both of LangSmith's endpoints give."""
    parents = [] if name == trace else [make_id(trace)]
    return {
        "id": make_id(name),
        "trace_id": make_id(trace),
        "name": kind,
        "run_type": kind,
        "status": "success",
        "start_time": f"2026-03-01T12:00:{second:02}.000000Z",
        "end_time": f"2026-03-01T12:00:{second:02}.500000Z",
        "inputs": {},
        "outputs": None,
        "parent_run_ids": parents,
        "project_id": PROJECT,
        "extra": {"metadata": {}},
        "tags": [],
        "feedback_stats": {},
        "dotted_order": f"20260301T1200{second:02}000000Z{make_id(name)}",
        **fields,
    }


def rag_trace(number: int) -> list[dict[str, Any]]:
    """The runs of a question that was answered from two documents."""
    trace, second = f"t{number}", 10 * number
    documents = [
        {"page_content": f"about {number}", "metadata": {"id": f"d{number}", "score": 0.9}, "type": "Document"},
        {"page_content": "elsewhere", "metadata": {"id": "d0", "score": 0.5}, "type": "Document"},
    ]
    about = {"metadata": {"user_id": f"u{number}", "thread_id": "s1", "lang": "en"}}
    model = {"metadata": {"ls_model_name": "gpt-5", "ls_provider": "openai"}}
    return [
        run(trace, trace, "chain", second, inputs={"question": f"What is {number}?"},
            outputs={"answer": f"It is {number}."}, extra=about, tags=["blue"], name="support",
            prompt_tokens=120, completion_tokens=30, total_cost=0.002),
        run(f"r{number}", trace, "retriever", second + 1, inputs={"query": "x"}, outputs={"documents": documents}),
        run(f"m{number}", trace, "llm", second + 2, inputs={"messages": []}, outputs={"text": "x"}, extra=model,
            prompt_tokens=120, completion_tokens=30, total_cost=0.002),
    ]  # fmt: skip


def feedback(name: str, of: str, key: str, **fields: Any) -> dict[str, Any]:
    """What was said of a run."""
    time = "2026-03-01T13:00:00+00:00"
    about = {
        "run_id": make_id(of),
        "trace_id": make_id(of),
        "session_id": PROJECT,
        "created_at": time,
        "modified_at": time,
    }
    return {
        "id": make_id(name),
        "key": key,
        "score": None,
        "value": None,
        "comment": None,
        "feedback_source": None,
        **about,
        **fields,
    }


def set_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the key of the server in the environment, and no other setting of LangSmith or of a proxy."""
    for name in ("http_proxy", "all_proxy", "LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT", "LANGSMITH_WORKSPACE_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGSMITH_API_KEY", KEY)


class LangSmithServer:
    """Answers as LangSmith does. `is_old`: without the newer endpoint for runs."""

    def __init__(self, *, is_old: bool = False, page: int = 1000) -> None:
        self.is_old = is_old
        self.page = page
        self.runs: dict[str, dict[str, Any]] = {}
        self.feedback: dict[str, dict[str, Any]] = {}
        self.sessions = {"support": {"id": PROJECT, "name": "support", **self._about_session()}}
        self.datasets: dict[str, list[dict[str, Any]]] = {}
        self.bodies: list[tuple[str, Any]] = []
        self.interrupt: Callable[[Asked], Answer | None] = lambda asked: None
        self._server = ApiServer(self.reply)
        self.url = self._server.url

    def add(self, *runs: dict[str, Any]) -> None:
        self.runs |= {one["id"]: one for one in runs}

    @property
    def asked(self) -> list[Asked]:
        return self._server.asked

    def close(self) -> None:
        self._server.close()

    def reply(self, asked: Asked) -> Answer:
        if (answer := self.interrupt(asked)) is not None:
            return answer
        if asked.headers.get("x-api-key") != KEY:
            return Answer({"detail": f"Invalid token {asked.headers.get('x-api-key')}"}, 401)
        query = {name: values[-1] for name, values in asked.parameters.items()}
        if asked.method == "GET":
            return self._give(asked, query)
        self.bodies.append((asked.route, asked.content))
        if asked.route in ("/api/v2/runs/query", "/runs/query"):
            return self._query(asked.route, asked.content)
        return self._take(asked)

    def _about_session(self) -> dict[str, Any]:
        return {"tenant_id": TENANT, "reference_dataset_id": None, "start_time": "2026-03-01T00:00:00Z"}

    def _give(self, asked: Asked, query: dict[str, str]) -> Answer:
        if asked.route == "/info":
            limits = {
                "use_multipart_endpoint": False,
                "size_limit": 100,
                "size_limit_bytes": 2**20,
                "scale_up_nthreads_limit": 1,
            }
            return Answer({"version": "0.13.0", "batch_ingest_config": limits, "instance_flags": {}})
        if asked.route == "/sessions":
            return Answer([one for one in self.sessions.values() if one["name"] == query["name"]])
        if asked.route == "/datasets":
            about = {"tenant_id": TENANT, "created_at": "2026-03-01T00:00:00Z", "data_type": "kv"}
            named = [{"id": make_id(name), "name": name, **about} for name in self.datasets if name == query["name"]]
            return Answer(named)
        if asked.route == "/examples":
            rows = next((rows for name, rows in self.datasets.items() if make_id(name) == query["dataset"]), [])
            return self._part(rows, query)
        if asked.route == "/feedback":
            wanted = set(asked.parameters.get("run", []))
            return self._part([one for one in self.feedback.values() if not wanted or one["run_id"] in wanted], query)
        return Answer({"detail": "Not Found"}, 404)

    def _part(self, rows: list[Any], query: dict[str, str]) -> Answer:
        begin, size = int(query.get("offset", "0")), int(query.get("limit", "100"))
        return Answer(rows[begin : begin + size])

    def _query(self, route: str, body: dict[str, Any]) -> Answer:
        is_new = route.startswith("/api/v2")
        if is_new and self.is_old:
            return Answer({"detail": "Not Found"}, 404)
        wanted = body["project_ids"] if is_new else body["session"]
        begin = body.get("min_start_time" if is_new else "start_time", "0001-01-01T00:00:00Z")
        end = body.get("max_start_time" if is_new else "end_time", "9999-01-01T00:00:00Z")
        parse = datetime.fromisoformat
        found = [
            one for one in self.runs.values()
            if one["project_id"] in wanted and parse(begin) <= parse(one["start_time"]) < parse(end)
        ]  # fmt: skip
        size = min(body.get("page_size" if is_new else "limit", 100), self.page)
        start = int(body.get("cursor") or 0)
        following = str(start + size) if start + size < len(found) else None
        part = found[start : start + size]
        if is_new:
            selected = {name.lower() for name in body.get("selects", ["ID"])}
            items = [{key: self._raise(key, value) for key, value in one.items() if key in selected} for one in part]
            return Answer({"items": items, "next_cursor": following})
        return Answer({"runs": [self._old(one) for one in part], "cursors": {"next": following}})

    def _raise(self, key: str, value: Any) -> Any:
        """The newer endpoint has the names of types and states in capitals."""
        return value.upper() if key in ("run_type", "status") else value

    def _old(self, one: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in one.items() if key != "project_id"}
        parents = one.get("parent_run_ids") or []
        return {**kept, "session_id": one["project_id"], "parent_run_id": parents[-1] if parents else None}

    def _take(self, asked: Asked) -> Answer:
        body = asked.content
        if asked.route == "/sessions":
            made = {**self._about_session(), **body}
            self.sessions.setdefault(body["name"], made)
            return Answer(self.sessions[body["name"]])
        if asked.route == "/runs/batch":
            if all(one["id"] in self.runs for one in body["post"]):
                return Answer({"detail": "runs exist"}, 409)
            for one in body["post"]:
                self.add({**one, "project_id": one["session_id"], "parent_run_ids": []})
            return Answer({}, 202)
        if asked.route == "/feedback":
            if round(body["score"], 4) != body["score"]:
                return Answer({"detail": "at most 4 decimal places"}, 422)
            if body["id"] in self.feedback:
                return Answer({"detail": "feedback exists"}, 409)
            times = {"created_at": "2026-03-01T13:00:00Z", "modified_at": "2026-03-01T13:00:00Z"}
            self.feedback[body["id"]] = {**times, **body}
            return Answer(self.feedback[body["id"]])
        found = re.fullmatch(r"/feedback/(.+)", asked.route)
        if found and asked.method == "PATCH":
            self.feedback[found[1]] |= body
            return Answer(self.feedback[found[1]])
        return Answer({"detail": f"no such path {json.dumps(asked.route)}"}, 404)
