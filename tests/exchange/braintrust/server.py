"""A small Braintrust: it keeps rows of experiments, logs and datasets as the product's API takes and gives them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.endpoints.api_server import ApiServer, Asked
from tests.models.endpoint import Answer

KEY = "sk-bt-very-secret-4711"


def row(identity: str, root: str, kind: str, second: int, /, **fields: Any) -> dict[str, Any]:
    """A row of an experiment or of logs, as `fetch` gives it."""
    start = 1_772_366_400 + second
    metrics = {"start": float(start), "end": start + 0.5, **fields.pop("metrics", {})}
    return {
        "id": identity,
        "_xact_id": "1",
        "created": f"2026-03-01T12:00:{second:02}.000Z",
        "span_id": f"span-{identity}",
        "root_span_id": f"span-{root}",
        "span_parents": None if identity == root else [f"span-{root}"],
        "is_root": identity == root,
        "span_attributes": {"name": kind, "type": kind},
        "input": None,
        "output": None,
        "expected": None,
        "error": None,
        "scores": None,
        "metadata": None,
        "tags": None,
        "metrics": metrics,
        **fields,
    }


def rag_trace(number: int) -> list[dict[str, Any]]:
    """The rows of a question that was answered from two documents."""
    root, second = f"t{number}", 10 * number
    documents = [
        {"content": f"about {number}", "id": f"d{number}", "score": 0.9, "metadata": {}},
        {"content": "elsewhere", "id": "d0", "score": 0.5, "metadata": {}},
    ]
    return [
        row(root, root, "eval", second, input={"question": f"What is {number}?"}, output={"answer": f"It is {number}."},
            expected=f"It is {number}.", scores={"Factuality": 0.75}, metadata={"user_id": f"u{number}", "lang": "en"},
            tags=["blue"]),
        row(f"r{number}", root, "function", second + 1, input="x", output=documents,
            span_attributes={"name": "search_documents", "type": "function"}),
        row(f"m{number}", root, "llm", second + 2, input=[], output="x", metadata={"model": "gpt-5"},
            metrics={"prompt_tokens": 120, "completion_tokens": 30, "estimated_cost": 0.002}),
        row(f"s{number}", root, "score", second + 3, output={"score": 0.75}),
    ]  # fmt: skip


def set_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the key of the server in the environment, and no other setting of Braintrust or of a proxy."""
    for name in ("http_proxy", "all_proxy", "BRAINTRUST_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BRAINTRUST_API_KEY", KEY)


class BraintrustServer:
    """Answers as Braintrust does. `objects` has the ids of projects, experiments and datasets by kind and name."""

    def __init__(self, *, page: int = 1000) -> None:
        self.page = page
        self.objects = {"project": {"support": "project-support"}, "experiment": {}, "dataset": {}}
        self.rows: dict[str, dict[str, dict[str, Any]]] = {}
        self.bodies: list[tuple[str, Any]] = []
        self.logged: list[dict[str, Any]] = []
        self.interrupt: Callable[[Asked], Answer | None] = lambda asked: None
        self._server = ApiServer(self.reply)
        self.url = self._server.url

    def add(self, kind: str, name: str, *rows: dict[str, Any]) -> str:
        """Put rows into an experiment, a dataset or the logs of a project; return its id."""
        known = self.objects["project" if kind == "project_logs" else kind]
        identity = known.setdefault(name, f"{kind}-{name}")
        self.rows.setdefault(identity, {}).update((one["id"], one) for one in rows)
        return identity

    @property
    def asked(self) -> list[Asked]:
        return self._server.asked

    def close(self) -> None:
        self._server.close()

    def reply(self, asked: Asked) -> Answer:
        if (answer := self.interrupt(asked)) is not None:
            return answer
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            return Answer({"error": f"Invalid token {asked.headers.get('authorization')}"}, 401)
        if asked.method == "GET":
            kind = asked.route.removeprefix("/v1/")
            wanted = asked.parameters.get(f"{kind}_name", [""])[-1]
            found = self.objects.get(kind, {})
            return Answer({"objects": [self._describe(kind, wanted, found[wanted])] if wanted in found else []})
        content = asked.content
        self.bodies.append((asked.route, content))
        if asked.route in ("/v1/project", "/v1/experiment", "/v1/dataset"):
            kind, name = asked.route.removeprefix("/v1/"), content["name"]
            return Answer(self._describe(kind, name, self.objects[kind].setdefault(name, f"{kind}-{name}")))
        if asked.route == "/logs3":
            self.logged += content["rows"]
            return Answer({"ids": [one["id"] for one in content["rows"]]})
        if matched := re.fullmatch(r"/v1/(\w+)/([^/]+)/(fetch|insert)", asked.route):
            rows = self.rows.setdefault(matched[2], {})
            return self._fetch(rows, content) if matched[3] == "fetch" else self._insert(rows, content)
        return Answer({"error": "not found"}, 404)

    def _describe(self, kind: str, name: str, identity: str) -> dict[str, Any]:
        return {"id": identity, "name": name, "project_id": "project-support", "org_id": "o", "public": False}

    def _fetch(self, rows: dict[str, dict[str, Any]], content: dict[str, Any]) -> Answer:
        newest = sorted(rows.values(), key=lambda one: str(one.get("created")), reverse=True)
        size, begin = min(content.get("limit", 100), self.page), int(content.get("cursor") or 0)
        part = newest[begin : begin + size]
        return Answer({"events": part, "cursor": str(begin + size) if part else None})

    def _insert(self, rows: dict[str, dict[str, Any]], content: dict[str, Any]) -> Answer:
        for event in content["events"]:
            wrong = [name for name, value in (event.get("scores") or {}).items() if not 0 <= value <= 1]
            if wrong:
                return Answer({"error": f"scores must be between 0 and 1: {wrong}"}, 400)
            own = {key: value for key, value in event.items() if key != "_is_merge"}
            rows[own["id"]] = merge(rows.get(own["id"], {}), own) if event.get("_is_merge") else own
        return Answer({"row_ids": [event["id"] for event in content["events"]]})


def merge(old: Any, new: Any) -> Any:
    """A deep merge, as Braintrust's `_is_merge` does it."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: merge(old.get(key), value) for key, value in new.items()}}
