"""A small Langfuse: it keeps observations, scores and datasets as the product's API takes and gives them."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pytest

from tests.endpoints.api_server import ApiServer, Asked
from tests.models.endpoint import Answer

PUBLIC, SECRET = "pk-lf-test-0001", "sk-lf-test-very-secret"
TIME = "2026-03-01T12:00:00.000Z"
parse = datetime.fromisoformat
_ABOUT = {"projectId": "p1"}


def observation(number: int, trace: str, kind: str = "SPAN", **fields: Any) -> dict[str, Any]:
    """An observation as `GET /v2/observations` gives it."""
    minute, second = divmod(number, 60)
    return {
        **_ABOUT,
        "id": f"o{number}",
        "traceId": trace,
        "startTime": f"2026-03-01T12:{minute % 60:02}:{second:02}.000Z",
        "endTime": f"2026-03-01T12:{minute % 60:02}:{second:02}.500Z",
        "parentObservationId": None,
        "type": kind,
        "isRootObservation": False,
        "name": kind.lower(),
        "level": "DEFAULT",
        "environment": "production",
        **fields,
    }


def rag_trace(number: int, question: str = "", answer: str = "") -> list[dict[str, Any]]:
    """The observations of a question that was answered from two documents."""
    trace = f"t{number}"
    documents = [
        {"page_content": f"about {number}", "metadata": {"source": f"d{number}"}, "score": 0.9},
        {"page_content": "elsewhere", "metadata": {"source": "d0"}, "score": 0.5},
    ]
    root = observation(
        10 * number, trace, "CHAIN", isRootObservation=True,
        input=json.dumps({"question": question or f"What is {number}?"}),
        output=json.dumps({"answer": answer or f"It is {number}."}), sessionId="s1", userId=f"u{number}",
        traceName="support", tags=["blue"], release="r7", metadata={"lang": "en"},
    )  # fmt: skip
    retriever = observation(
        10 * number + 1, trace, "RETRIEVER", parentObservationId=root["id"], input=f"what is {number}",
        output=json.dumps(documents),
    )  # fmt: skip
    model = observation(
        10 * number + 2, trace, "GENERATION", parentObservationId=root["id"], model="gpt-5", input="[]", output="text",
        usageDetails={"input": 120, "output": 30, "total": 150}, costDetails={"total": 0.002}, totalCost=0.002,
    )  # fmt: skip
    return [root, retriever, model]


def score(number: int, trace: str, name: str, value: Any, **fields: Any) -> dict[str, Any]:
    """A score as `GET /v3/scores` gives it."""
    kind = "BOOLEAN" if isinstance(value, bool) else "CATEGORICAL" if isinstance(value, str) else "NUMERIC"
    return {
        **_ABOUT,
        "id": f"s{number}",
        "name": name,
        "value": value,
        "dataType": kind,
        "source": "API",
        "timestamp": TIME,
        "environment": "production",
        "createdAt": TIME,
        "updatedAt": TIME,
        "subject": {"kind": "trace", "id": trace},
        **fields,
    }


def set_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the keys of the server in the environment, and no other setting of Langfuse or of a proxy."""
    for name in ("http_proxy", "all_proxy", "LANGFUSE_HOST", "LANGFUSE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", PUBLIC)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)


class LangfuseServer:
    """Answers as Langfuse does. `is_old`: only with the endpoints of version 3 and before."""

    def __init__(self, *, is_old: bool = False, page: int = 1000) -> None:
        self.is_old = is_old
        self.page = page
        self.observations: list[dict[str, Any]] = []
        self.scores: dict[str, dict[str, Any]] = {}
        self.items: dict[str, list[dict[str, Any]]] = {}
        self.runs: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.spans: dict[str, dict[str, Any]] = {}
        self.otlp: list[tuple[dict[str, str], bytes]] = []
        self.traces: dict[str, dict[str, Any]] = {}
        self.bodies: list[tuple[str, Any]] = []
        self.interrupt: Callable[[Asked], Answer | None] = lambda asked: None
        self._server = ApiServer(self.reply)
        self.url = self._server.url

    @property
    def asked(self) -> list[Asked]:
        return self._server.asked

    def close(self) -> None:
        self._server.close()

    def reply(self, asked: Asked) -> Answer:
        if (answer := self.interrupt(asked)) is not None:
            return answer
        expected = b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
        if asked.headers.get("authorization") != f"Basic {expected}":
            given = b64decode(asked.headers.get("authorization", "").removeprefix("Basic ")).decode()
            return Answer({"message": f"Invalid credentials {given}", "error": "UnauthorizedError"}, 401)
        path = asked.route.removeprefix("/api/public")
        if asked.method == "POST":
            return self._take(path, asked)
        return self._give(path, {name: values[-1] for name, values in asked.parameters.items()})

    def _give(self, path: str, query: dict[str, str]) -> Answer:
        new = {"/v2/observations": self._observations, "/v3/scores": self._new_scores}
        old = {"/traces": self._old_traces, "/observations": self._old_observations, "/v2/scores": self._old_scores}
        if path in new and not self.is_old:
            return new[path](query)
        if path in old:
            return old[path](query)
        if path == "/dataset-items":
            return self._numbered(self.items.get(query["datasetName"], []), query)
        if path == "/projects":
            about = {"id": "p1", "name": "support", "metadata": {}, "organization": {"id": "o1", "name": "o"}}
            return Answer({"data": [about]})
        if path.startswith("/v2/datasets/"):
            name = unquote(path.rpartition("/")[2])
            return Answer(self._dataset(name)) if name in self.items else Answer({"message": "not found"}, 404)
        return Answer({"message": "no such path"}, 404)

    def _dataset(self, name: str) -> dict[str, Any]:
        return {"id": f"id-{name}", "name": name, "metadata": None, **_ABOUT, "createdAt": TIME, "updatedAt": TIME}

    def _observations(self, query: dict[str, str]) -> Answer:
        groups = query.get("fields", "core,basic").split(",")
        found = [row for row in self.observations if self._is_within(row["startTime"], query, "StartTime")]
        found = [row for row in found if query.get("environment", row["environment"]) == row["environment"]]
        rows = [
            row if "io" in groups else {k: v for k, v in row.items() if k not in ("input", "output")} for row in found
        ]
        return self._cursored(sorted(rows, key=lambda row: str(row["startTime"]), reverse=True), query)

    def _new_scores(self, query: dict[str, str]) -> Answer:
        if int(query.get("limit", "50")) > 100:
            return Answer({"message": "limit must be at most 100"}, 400)
        return self._cursored([*self.scores.values()], query, limit=int(query.get("limit", "50")))

    def _cursored(self, rows: Sequence[Any], query: dict[str, str], **meta: Any) -> Answer:
        size = min(int(query.get("limit", "50")), self.page)
        begin = int(query.get("cursor", "0"))
        following = {"cursor": str(begin + size)} if begin + size < len(rows) else {}
        return Answer({"data": rows[begin : begin + size], "meta": {**meta, **following}})

    def _numbered(self, rows: Sequence[Any], query: dict[str, str]) -> Answer:
        page, size = int(query.get("page", "1")), min(int(query.get("limit", "50")), self.page, 100)
        pages = -(-len(rows) // size)
        meta = {"page": page, "limit": size, "totalItems": len(rows), "totalPages": pages}
        return Answer({"data": rows[(page - 1) * size : page * size], "meta": meta})

    def _old_traces(self, query: dict[str, str]) -> Answer:
        roots = [row for row in self.observations if row["isRootObservation"]]
        kept = [row for row in roots if self._is_within(row["startTime"], query, "Timestamp")]
        return self._numbered([self._old_trace(row) for row in kept], query)

    def _old_trace(self, root: dict[str, Any]) -> dict[str, Any]:
        parts = [row["id"] for row in self.observations if row["traceId"] == root["traceId"]]
        names = ("sessionId", "userId", "release", "environment")
        return {
            **{name: root.get(name) for name in names},
            "id": root["traceId"],
            "timestamp": root["startTime"],
            "name": root.get("traceName"),
            "input": json.loads(root["input"]),
            "output": json.loads(root["output"]),
            "metadata": root.get("metadata"),
            "tags": root.get("tags", []),
            "public": False,
            "htmlPath": "/t",
            "latency": 0.5,
            "totalCost": 0.002,
            "observations": parts,
            "scores": [],
        }

    def _old_observations(self, query: dict[str, str]) -> Answer:
        rows = []
        for row in self.observations:
            kept = {key: value for key, value in row.items() if key not in ("tags", "traceName", "isRootObservation")}
            usage = row.get("usageDetails", {})
            kept |= {"usageDetails": usage, "costDetails": row.get("costDetails", {}), "modelParameters": {}}
            kept |= {
                "usage": {
                    "input": usage.get("input", 0),
                    "output": usage.get("output", 0),
                    "total": 0,
                    "unit": "TOKENS",
                }
            }
            rows.append({"input": None, "output": None, "metadata": None, **kept})
        return self._numbered(rows, query)

    def _old_scores(self, query: dict[str, str]) -> Answer:
        rows = []
        for row in self.scores.values():
            subject = row["subject"]
            kept = {key: value for key, value in row.items() if key != "subject"}
            value = row["value"]
            number = value if row["dataType"] == "NUMERIC" else float(value is True)
            kept |= {"traceId": subject["id"], "value": number, "metadata": row.get("metadata")}
            kept |= {} if row["dataType"] == "NUMERIC" else {"stringValue": str(value)}
            rows.append(kept)
        return self._numbered(rows, query)

    def _is_within(self, time: Any, query: dict[str, str], what: str) -> bool:
        begin, end = query.get(f"from{what}", "0001-01-01T00:00:00Z"), query.get(f"to{what}", "9999-01-01T00:00:00Z")
        return not isinstance(time, str) or parse(begin) <= parse(time) < parse(end)

    def _take(self, path: str, asked: Asked) -> Answer:
        if path == "/otel/v1/traces":
            body = gzip.decompress(asked.body) if asked.headers.get("content-encoding") == "gzip" else asked.body
            self.otlp.append((asked.headers, body))
            if "json" in asked.headers["content-type"]:
                self._take_spans(json.loads(body))
            return Answer({})
        content = asked.content
        self.bodies.append((path, content))
        if path == "/scores":
            many = content if isinstance(content, list) else [content]
            if isinstance(content, list) and self.is_old:
                return Answer({"message": "Invalid request data"}, 400)
            for one in many:
                self._take_score(one)
            return Answer({"message": "Accepted"}, 202) if isinstance(content, list) else Answer({"id": content["id"]})
        if path == "/ingestion":
            for event in content["batch"]:
                self.traces[event["body"]["id"]] = event["body"]
            made = [{"id": event["id"], "status": 201} for event in content["batch"]]
            return Answer({"successes": made, "errors": []}, 207)
        if path == "/dataset-run-items" and self.is_old:
            key = (content["runName"], content["datasetItemId"], content["traceId"])
            self.runs[key] = content
            run = {"datasetRunId": f"run-{content['runName']}", "datasetRunName": content["runName"]}
            about = {"datasetItemId": content["datasetItemId"], "traceId": content["traceId"]}
            return Answer({"id": "i", **run, **about, "createdAt": TIME, "updatedAt": TIME})
        return Answer({"message": "no such path"}, 404)

    def _take_score(self, body: dict[str, Any]) -> None:
        kind = body.get("dataType") or ("CATEGORICAL" if isinstance(body["value"], str) else "NUMERIC")
        value = bool(body["value"]) if kind == "BOOLEAN" else body["value"]
        subject = (
            {"kind": "observation", "id": body["observationId"], "traceId": body["traceId"]}
            if body.get("observationId")
            else {"kind": "trace", "id": body["traceId"]}
        )
        kept = {key: body[key] for key in ("comment", "metadata") if body.get(key) is not None}
        number = len(self.scores) + 1
        made = score(number, "", body["name"], value, dataType=kind, **kept)
        identity = body.get("id") or f"s{number}"
        self.scores[identity] = {**made, "id": identity, "timestamp": body.get("timestamp", TIME), "subject": subject}

    def _take_spans(self, content: dict[str, Any]) -> None:
        for resource in content["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    self.spans[span["spanId"]] = span
