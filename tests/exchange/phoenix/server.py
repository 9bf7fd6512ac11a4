"""A small Phoenix in a thread: its projects, spans, annotations, datasets and experiments, and its error bodies.

The bodies have the form of those of Phoenix 20.26.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.endpoints.api_server import ApiServer, Asked
from tests.models.endpoint import Answer

PAGE = b"<!DOCTYPE html><html><head><title>Phoenix</title></head></html>"


def make_span(trace: int, kind: str = "CHAIN", number: int = 1, **changes: Any) -> dict[str, Any]:
    """A span as the REST API gives it; the first of a trace is its root."""
    span: dict[str, Any] = {
        "id": f"U3Bhbjo{trace}{number}",
        "name": kind.lower(),
        "context": {"trace_id": f"{trace:032x}", "span_id": f"{trace:014x}{number:02x}"},
        "span_kind": kind,
        "parent_id": None if number == 1 else f"{trace:014x}01",
        "start_time": f"2026-11-22T13:{trace:02d}:00.000000+00:00",
        "end_time": f"2026-11-22T13:{trace:02d}:01.500000+00:00",
        "status_code": "UNSET",
        "status_message": "",
        "attributes": {},
        "events": [],
    }
    return span | changes


def make_trace(number: int) -> list[dict[str, Any]]:
    """A question, its retrieval of two documents, and its answer."""
    asked = {"input.value": f"Question {number}?", "output.value": f"Answer {number}.", "session.id": "s1",
             "metadata.lang": "de", "metadata.n": number}  # fmt: skip
    found: dict[str, Any] = {"input.value": f"question {number}"}
    for place in range(2):
        document = {"id": f"d{place}", "content": f"Text {place}.", "score": 0.9 - place / 10, "metadata.page": place}
        found |= {f"retrieval.documents.{place}.document.{key}": value for key, value in document.items()}
    used = {"llm.model_name": "gpt-4o-mini", "llm.token_count.prompt": 100, "llm.token_count.completion": 20}
    return [
        make_span(number, attributes=asked),
        make_span(number, "RETRIEVER", 2, attributes=found),
        make_span(number, "LLM", 3, attributes=used),
    ]


class PhoenixServer(ApiServer):
    """Answers as Phoenix does, from lists that tests can change."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.spans = [span for number in range(1, 6) for span in make_trace(number)]
        self.annotations: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.examples: list[dict[str, Any]] = []
        self.experiments: list[dict[str, Any]] = []
        self.runs: dict[str, dict[str, Any]] = {}
        self.evaluations: dict[tuple[str, str], dict[str, Any]] = {}
        self.page = 2

    def answer(self, asked: Asked) -> Answer:
        steps = asked.route.removeprefix("/v1/").split("/")
        match asked.method, steps:
            case "GET", ["projects"]:
                return self._give([{"name": "support", "id": "UHJvamVjdDoy"}, {"name": "default", "id": "x"}], asked)
            case "GET", ["projects", project, _] if project != "support":
                return Answer(f"Project with name {project} not found".encode(), 404, Content_Type="text/plain")
            case "GET", ["projects", _, "traces"]:
                return self._give(self._list_traces(asked.parameters), asked)
            case "GET", ["projects", _, "spans"]:
                wanted = asked.parameters["trace_id"]
                return self._give([one for one in self.spans if one["context"]["trace_id"] in wanted], asked)
            case "GET", ["projects", _, ("span_annotations" | "trace_annotations") as kind]:
                level = kind.partition("_")[0]
                wanted = asked.parameters[f"{level}_ids"]
                known = [one for key, one in self.annotations.items() if key[0] == level and key[1] in wanted]
                return self._give(known, asked)
            case "POST", [("span_annotations" | "trace_annotations" | "document_annotations") as kind]:
                return self._annotate(kind.partition("_")[0], asked)
            case _:
                return self._answer_datasets(asked, steps)

    def _answer_datasets(self, asked: Asked, steps: list[str]) -> Answer:
        match asked.method, steps:
            case "GET", ["datasets"]:
                named = [{"id": "RGF0YXNldDoy", "name": "golden"}]
                return self._give([one for one in named if [one["name"]] == asked.parameters["name"]], asked)
            case "GET", ["datasets", _, "examples"]:
                return Answer({"data": {"dataset_id": "RGF0YXNldDoy", "version_id": "v4", "examples": self.examples}})
            case "GET", ["datasets", _, "experiments"]:
                return self._give(self.experiments, asked)
            case "POST", ["datasets", _, "experiments"]:
                self.experiments.append({"id": f"E{len(self.experiments)}", **asked.content})
                return Answer({"data": self.experiments[-1]})
            case "GET", ["experiments", experiment, "runs"]:
                return self._give([run for run in self.runs.values() if run["experiment_id"] == experiment], asked)
            case "POST", ["experiments", experiment, "runs"]:
                return self._run(experiment, asked.content)
            case "POST", ["experiment_evaluations"]:
                content = asked.content
                self.evaluations[content["experiment_run_id"], content["name"]] = content
                return Answer({"data": {"id": "x"}})
        return Answer(PAGE, Content_Type="text/html; charset=utf-8")

    def _list_traces(self, parameters: Mapping[str, list[str]]) -> list[dict[str, Any]]:
        roots = [span for span in self.spans if span["parent_id"] is None]
        since, until = (parameters.get(name, [""])[0].replace("Z", "+00:00") for name in ("start_time", "end_time"))
        kept = [span for span in roots if span["start_time"] >= since and (not until or span["start_time"] < until)]
        kept.sort(key=lambda span: span["start_time"], reverse=True)
        return [{"trace_id": span["context"]["trace_id"]} for span in kept]

    def _give(self, items: list[dict[str, Any]], asked: Asked) -> Answer:
        """A page of at most `page` items, and the cursor of the next one."""
        begin = int(asked.parameters.get("cursor", ["0"])[0])
        end = begin + min(self.page, int(asked.parameters.get("limit", ["100"])[0]))
        return Answer({"data": items[begin:end], "next_cursor": str(end) if end < len(items) else None})

    def _annotate(self, level: str, asked: Asked) -> Answer:
        if asked.parameters.get("sync") != ["true"]:
            return Answer({"data": []})
        spans = {one["context"]["span_id"]: one for one in self.spans}
        field = "trace_id" if level == "trace" else "span_id"
        known = {one["context"]["trace_id"] for one in self.spans} if level == "trace" else spans.keys()
        bodies = asked.content["data"]
        if missing := sorted({body[field] for body in bodies} - known):
            word = "Traces" if level == "trace" else "Spans"
            return Answer(
                f"{word} with IDs {', '.join(missing)} do not exist.".encode(), 404, Content_Type="text/plain"
            )
        for body in bodies:
            if level == "document":
                last = max((int(key.split(".")[2]) for key in spans[body["span_id"]]["attributes"]
                            if key.startswith("retrieval.documents.")), default=-1)  # fmt: skip
                if body["document_position"] > last:
                    place = f"position {body['document_position']} is out of bounds for span {body['span_id']}"
                    return Answer(f"Document {place} (max: {last})".encode(), 422, Content_Type="text/plain")
                if body.get("identifier"):
                    return Answer(b"Non-empty identifier is not supported", 422, Content_Type="text/plain")
        for body in bodies:
            place = body.get("document_position")
            self.annotations[level, body[field], place, body["name"], body.get("identifier")] = body
        return Answer({"data": [{"id": "x"} for _ in bodies]})

    def _run(self, experiment: str, content: dict[str, Any]) -> Answer:
        key = f"{experiment}-{content['dataset_example_id']}"
        if key in self.runs and self.runs[key]["error"] is None:
            text = f"Experiment run {key} already exists with a successful result and cannot be updated"
            return Answer(text.encode(), 409, Content_Type="text/plain")
        self.runs[key] = {"id": key, "experiment_id": experiment, **content}
        return Answer({"data": {"id": key}})

    def snapshot(self) -> str:
        """Everything that was written, without times."""
        evaluations = [
            {key: value for key, value in one.items() if "time" not in key} for one in self.evaluations.values()
        ]
        runs = [{key: value for key, value in one.items() if "time" not in key} for one in self.runs.values()]
        return json.dumps(
            [sorted(map(str, self.annotations.items())), self.experiments, runs, evaluations], sort_keys=True
        )
