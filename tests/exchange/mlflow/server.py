"""A small MLflow in a thread: its experiments, traces, datasets and runs, and its error bodies.

The bodies have the form of those of MLflow 3.17.2.
"""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote

from tests.endpoints.api_server import ApiServer, Asked
from tests.models.endpoint import Answer

V2, V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"


def encode(digits: str) -> str:
    """An id as MLflow's JSON has it."""
    return base64.b64encode(bytes.fromhex(digits)).decode()


def wrap(value: Any) -> dict[str, Any]:
    """A value as OTLP's JSON has it, in snake case."""
    if isinstance(value, dict):
        return {"kvlist_value": {"values": [{"key": key, "value": wrap(one)} for key, one in value.items()]}}
    if isinstance(value, list):
        return {"array_value": {"values": [wrap(one) for one in value]}}
    kind = {bool: "bool_value", int: "int_value", float: "double_value"}.get(type(value), "string_value")
    return {kind: value}


def make_span(trace: int, kind: str, number: int, inputs: Any, outputs: Any = None, **more: Any) -> dict[str, Any]:
    """A span of a trace; the first is its root."""
    attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs, **more}
    span = {
        "trace_id": encode(f"{trace:032x}"),
        "span_id": encode(f"{trace:014x}{number:02x}"),
        "name": kind.lower(),
        "start_time_unix_nano": 1795353891979498059,
        "end_time_unix_nano": 1795353893979498059,
        "attributes": [{"key": key, "value": wrap(value)} for key, value in attributes.items() if value is not None],
        "status": {"code": "STATUS_CODE_OK"},
    }
    return span if number == 1 else {**span, "parent_span_id": encode(f"{trace:014x}01")}


def make_trace(number: int, **info: Any) -> dict[str, Any]:
    """A question, its retrieval of two documents, and its answer; `request_time` is in minute `number`."""
    documents = [
        {"page_content": f"Text {place}.", "id": f"d{place}", "metadata": {"page": place}} for place in range(2)
    ]
    used = {"mlflow.chat.tokenUsage": {"input_tokens": 100, "output_tokens": 20}, "mlflow.llm.model": "gpt-4o-mini",
            "mlflow.llm.cost": {"total_cost": 0.25}}  # fmt: skip
    question, answer = f"Question {number}?", f"Answer {number}."
    return {
        "trace_info": {
            "trace_id": f"tr-{number:032x}",
            "request_time": f"2026-11-22T13:{number:02d}:00Z",
            "execution_duration": "2.5s",
            "state": "OK",
            "trace_metadata": {"mlflow.trace.session": "s1", "mlflow.trace.user": "u1", "mlflow.user": "root"},
            "tags": {"env": "prod", "mlflow.traceName": "answer"},
            "request_preview": json.dumps({"question": question}),
            "response_preview": json.dumps({"answer": answer}),
            **info,
        },
        "spans": [
            make_span(number, "CHAIN", 1, {"question": question}, {"answer": answer}),
            make_span(number, "RETRIEVER", 2, {"query": question}, documents),
            make_span(number, "CHAT_MODEL", 3, {"messages": [{"role": "user", "content": "Q"}]}, None, **used),
        ],
    }


def refuse(code: str, message: str, status: int = 404) -> Answer:
    return Answer({"error_code": code, "message": message}, status)


class MlflowServer(ApiServer):
    """Answers as MLflow does, from lists that tests can change."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.experiments = ["Default", "support"]
        self.traces = [make_trace(number) for number in range(1, 6)]
        self.records: list[dict[str, Any]] = []
        self.assessments: dict[str, dict[str, dict[str, Any]]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.page = 2
        self.artifacts = "mlflow-artifacts:/1"

    def answer(self, asked: Asked) -> Answer:
        route, method = asked.route, asked.method
        if route == f"{V2}/experiments/get-by-name":
            return self._find_experiment(asked.parameters["experiment_name"][0])
        if route == f"{V2}/experiments/search":
            return Answer({"experiments": [{"name": name} for name in self.experiments]})
        if route == f"{V2}/experiments/create":
            self.experiments.append(asked.content["name"])
            return Answer({"experiment_id": str(len(self.experiments) - 1)})
        if route.startswith((f"{V3}/traces", f"{V3}/datasets")):
            return self._answer_traces(method, route, asked)
        if route.startswith((f"{V2}/runs", f"{V2}/artifacts")):
            return self._answer_runs(route, asked)
        if route.startswith("/api/2.0/mlflow-artifacts/artifacts/") and method == "PUT":
            self.files[unquote(route.removeprefix("/api/2.0/mlflow-artifacts/artifacts/"))] = asked.body
            return Answer(b"")
        if route == "/ajax-api/2.0/mlflow/upload-artifact":
            self.files["/".join(asked.parameters[name][0] for name in ("run_uuid", "path"))] = asked.body
            return Answer(b"")
        if route == "/get-artifact":
            path = "/".join(asked.parameters[name][0] for name in ("run_uuid", "path"))
            known = {
                name.removeprefix("1/").replace("/artifacts/", "/"): content for name, content in self.files.items()
            }
            return Answer(known[path]) if path in known else refuse("RESOURCE_DOES_NOT_EXIST", "No such artifact")
        return Answer(b"<!doctype html><title>404 Not Found</title>", 404, Content_Type="text/html")

    def _find_experiment(self, name: str) -> Answer:
        if name not in self.experiments:
            return refuse("RESOURCE_DOES_NOT_EXIST", f"Could not find experiment with name '{name}'")
        return Answer({"experiment": {"experiment_id": str(self.experiments.index(name)), "name": name}})

    def _answer_traces(self, method: str, route: str, asked: Asked) -> Answer:
        steps = route.removeprefix(f"{V3}/").split("/")
        infos = {trace["trace_info"]["trace_id"]: trace["trace_info"] for trace in self.traces}
        match method, steps:
            case "POST", ["traces", "search"]:
                newest = sorted(infos.values(), key=lambda info: str(info["request_time"]), reverse=True)
                return self._give("traces", [self._inform(info) for info in newest], asked.content)
            case "POST", ["traces", "batchGetInfos"]:
                wanted = [infos[one] for one in asked.content["trace_ids"] if one in infos]
                return Answer({"trace_infos": [self._inform(info) for info in wanted]})
            case "GET", ["traces", "batchGet"]:
                wanted = asked.parameters["trace_ids"]
                return Answer({"traces": [one for one in self.traces if one["trace_info"]["trace_id"] in wanted]})
            case _, ["traces", trace_id, "assessments", *rest]:
                return self._assess(unquote(trace_id), rest, asked)
            case "POST", ["datasets", "search"]:
                return Answer({"datasets": [{"dataset_id": "d-1", "name": "golden"}]})
            case "GET", ["datasets", "d-1", "records"]:
                begin = int(asked.parameters.get("page_token", ["0"])[0])
                end = begin + self.page
                more = {"next_page_token": str(end)} if end < len(self.records) else {}
                return Answer({"records": json.dumps(self.records[begin:end]), **more})
        return refuse("ENDPOINT_NOT_FOUND", route)

    def _inform(self, info: dict[str, Any]) -> dict[str, Any]:
        said = [*info.get("assessments", []), *self.assessments.get(info["trace_id"], {}).values()]
        return {**info, "assessments": said}

    def _assess(self, trace_id: str, rest: list[str], asked: Asked) -> Answer:
        known = self.assessments.setdefault(trace_id, {})
        body = asked.content["assessment"]
        name = body["assessment_id"]
        if asked.method == "POST" and name in known:
            return refuse("INTERNAL_ERROR", "due to a constraint violation", 500)
        if asked.method == "PATCH":
            assert asked.content["update_mask"] == "feedback,rationale,metadata"
            assert rest == [name]
        known[name] = body
        return Answer({"assessment": body})

    def _answer_runs(self, route: str, asked: Asked) -> Answer:
        content = asked.content if asked.method == "POST" else {}
        if route == f"{V2}/runs/search":
            wanted = content["filter"].partition(" = '")[2].rstrip("'")
            found = [run for run in self.runs.values() if run["tags"].get("rageval_spec.values") == wanted]
            return Answer({"runs": [{"info": run["info"]} for run in found]} if found else {})
        if route == f"{V2}/runs/create":
            run_id = f"r{len(self.runs)}"
            info = {"run_id": run_id, "run_name": content["run_name"], "status": "RUNNING", "start_time": 17,
                    "artifact_uri": f"{self.artifacts}/{run_id}/artifacts"}  # fmt: skip
            tags = {tag["key"]: tag["value"] for tag in content["tags"]}
            self.runs[run_id] = {
                "info": info,
                "tags": tags,
                "metrics": {},
                "params": {},
                "experiment": content["experiment_id"],
            }
            return Answer({"run": {"info": info}})
        if route == f"{V2}/artifacts/list":
            run_id = asked.parameters["run_id"][0]
            if run_id not in self.runs:
                return refuse("RESOURCE_DOES_NOT_EXIST", f"Run with id={run_id} not found")
            return Answer({"files": [{"path": name.rpartition("/")[2]} for name in self.files if run_id in name]})
        run = self.runs[content["run_id"]]
        if route == f"{V2}/runs/log-batch":
            for metric in content.get("metrics", ()):
                if "@" in metric["key"]:
                    return refuse("INVALID_PARAMETER_VALUE", f'Invalid value "{metric["key"]}"', 400)
                run["metrics"][metric["key"]] = metric["value"], metric["timestamp"], metric["step"]
            for kind in ("tags", "params"):
                run[kind].update((one["key"], one["value"]) for one in content.get(kind, ()))
        elif route == f"{V2}/runs/log-inputs":
            run["inputs"] = content["datasets"]
        elif route == f"{V2}/runs/update":
            run["info"]["status"] = content["status"]
        return Answer({})

    def _give(self, key: str, items: list[dict[str, Any]], content: dict[str, Any]) -> Answer:
        begin = int(content.get("page_token", 0))
        end = begin + min(self.page, content["max_results"])
        more = {"next_page_token": str(end)} if end < len(items) else {}
        return Answer({key: items[begin:end], **more} if items else {})

    def snapshot(self) -> str:
        """Everything that was written."""
        return json.dumps([self.assessments, self.runs, sorted(map(str, self.files.items()))], sort_keys=True)
