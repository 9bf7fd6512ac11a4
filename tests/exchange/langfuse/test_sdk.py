"""Langfuse's own SDKs against the same small server as ours, in both directions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rageval_spec.exchange.langfuse.source import LangfuseSource, LangfuseSourceNode
from rageval_spec.exchange.langfuse.target import LangfuseTarget, LangfuseTargetNode
from rageval_spec.exchange.shared.delivery import send_parcels
from rageval_spec.plugin import Context
from tests.exchange.evaluations import make_traced
from tests.exchange.langfuse.server import PUBLIC, SECRET, TIME, LangfuseServer, rag_trace, score
from tests.exchange.langfuse.test_target import LINKS
from tests.exchange.peers import run_peer

SDK_5 = ("langfuse5", "langfuse>=5,<6")
SDK_3 = ("langfuse3", "langfuse>=3,<4")
READ_5 = """
import json, sys
from langfuse.api import LangfuseAPI
url, user, word = map(json.loads, sys.argv[1:])
api = LangfuseAPI(base_url=url, username=user, password=word)
def pages(get, **keys):
    cursor = None
    while True:
        page = get(cursor=cursor, **keys)
        yield from (json.loads(one.json(by_alias=True)) for one in page.data)
        cursor = page.meta.cursor
        if not cursor: break
found = {"observations": list(pages(api.observations.get_many, fields="core,basic,io,usage,trace_context", limit=4)),
         "scores": list(pages(api.scores.get_many, fields="details,subject", limit=2))}
found["items"] = [json.loads(one.json(by_alias=True)) for one in api.dataset_items.list(dataset_name="golden").data]
print(json.dumps(found))
"""
READ_3 = """
import json, sys
from langfuse.api.client import FernLangfuse
url, user, word = map(json.loads, sys.argv[1:])
api = FernLangfuse(base_url=url, username=user, password=word)
def pages(get, **keys):
    page = 1
    while True:
        found = get(page=page, **keys)
        yield from (json.loads(one.json(by_alias=True)) for one in found.data)
        if page >= found.meta.total_pages: break
        page += 1
found = {"traces": list(pages(api.trace.list, limit=1)),
         "observations": list(pages(api.observations.get_many, limit=4)),
         "scores": list(pages(api.score_v_2.get, limit=2))}
found["items"] = [json.loads(one.json(by_alias=True)) for one in api.dataset_items.list(dataset_name="golden").data]
print(json.dumps(found))
"""
CHECK_5 = """
import json, sys
from langfuse.api import CreateScoreRequest
from langfuse.api.core.pydantic_utilities import parse_obj_as
for body in json.loads(sys.argv[1]):
    for one in body:
        made = parse_obj_as(CreateScoreRequest, one)
        assert not made.model_extra, made.model_extra
print(json.dumps(True))
"""
CHECK_3 = """
import json, sys
from langfuse.api.resources.score.types import CreateScoreRequest
from langfuse.api.resources.dataset_run_items.types import CreateDatasetRunItemRequest
from langfuse.api.resources.ingestion.types import TraceBody
kinds = {"/scores": CreateScoreRequest, "/dataset-run-items": CreateDatasetRunItemRequest, "/ingestion": TraceBody}
for path, body in json.loads(sys.argv[1]):
    for one in ([event["body"] for event in body["batch"]] if path == "/ingestion" else [body]):
        made = kinds[path].parse_obj(one)
        known = {field.alias for field in made.__fields__.values()}
        assert set(one) <= known, set(one) - known
print(json.dumps(sorted({path for path, _ in json.loads(sys.argv[1])})))
"""
TRACE_5 = """
import json, sys
from langfuse import Langfuse, observe, get_client
url, user, word = map(json.loads, sys.argv[1:])
client = Langfuse(base_url=url, public_key=user, secret_key=word, flush_at=1)
@observe(as_type="retriever")
def search(query, k=2):
    return [{"page_content": "It is 7.", "metadata": {"source": "d7"}},
            {"page_content": "no", "metadata": {"source": "d0"}}]
@observe(as_type="generation")
def write(messages):
    client.update_current_generation(model="gpt-5", usage_details={"input": 5, "output": 2})
    return "It is 7."
@observe()
def answer(question):
    search(question)
    return write([{"role": "user", "content": question}])
answer("What is 7?")
client.flush()
client.shutdown()
print(json.dumps(True))
"""
EXPERIMENT_5 = """
import json, sys
from langfuse import Langfuse, Evaluation
url, user, word = map(json.loads, sys.argv[1:])
client = Langfuse(base_url=url, public_key=user, secret_key=word)
def judge(*, input, output, expected_output=None, metadata=None, **more):
    return Evaluation(name="faithfulness", value=0.5, comment="because")
client.get_dataset("golden").run_experiment(name="nightly", task=lambda *, item, **more: "It is 7.", evaluators=[judge])
client.flush()
client.shutdown()
print(json.dumps(True))
"""
DECODE = """
import base64, json, sys
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
spans = []
for body in json.loads(sys.argv[1]):
    request = ExportTraceServiceRequest.FromString(base64.b64decode(body))
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                values = [(one.key, one.value) for one in span.attributes]
                told = {key: value.string_value or value.bool_value or value.int_value for key, value in values}
                ids = {"traceId": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex()}
                times = {"start": span.start_time_unix_nano, "end": span.end_time_unix_nano}
                spans.append({**ids, **times, "name": span.name, "told": told})
print(json.dumps(spans))
"""


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[LangfuseServer]:
    running = LangfuseServer(is_old=getattr(request, "param", False), page=4)
    running.observations = [*rag_trace(1), *rag_trace(2)]
    given = (score(1, "t1", "thumbs", 1.0, comment="good"), score(2, "t1", "ok", True), score(3, "t2", "tone", "kind"))
    running.scores = {one["id"]: one for one in given}
    about = {
        "datasetId": "id-golden",
        "datasetName": "golden",
        "mediaReferences": [],
        "createdAt": TIME,
        "updatedAt": TIME,
    }
    item = {"id": "q0", "status": "ACTIVE", "input": {"question": "What is 7?"}, "expectedOutput": "7", "metadata": {}}
    running.items["golden"] = [item | about]
    yield running
    running.close()


def read(server: LangfuseServer, **settings: Any) -> dict[str, dict[str, Any]]:
    source = LangfuseSource(LangfuseSourceNode(url=server.url, **settings), Context("langfuse"))
    try:
        return {trace.id: trace.to_row() for trace in source.read()}
    finally:
        source.close()


def send(server: LangfuseServer, evaluation: Any, **settings: Any) -> None:
    target = LangfuseTarget(LangfuseTargetNode(url=server.url, **settings), Context("langfuse"))
    try:
        send_parcels(target, evaluation, None, tool="langfuse")
    finally:
        target.close()


def summarise(scores: list[dict[str, Any]], *, is_old: bool) -> set[tuple[str, str, Any]]:
    if not is_old:
        return {(one["subject"]["id"], one["name"], one["value"]) for one in scores}
    told = set()
    for one in scores:
        kind = one["dataType"]
        said = (
            one["stringValue"] if kind == "CATEGORICAL" else bool(one["value"]) if kind == "BOOLEAN" else one["value"]
        )
        told.add((one["traceId"], one["name"], said))
    return told


@pytest.mark.parametrize(
    ("server", "sdk", "script"), [(False, SDK_5, READ_5), (True, SDK_3, READ_3)], indirect=["server"], ids=["5", "3"]
)
def test_the_sdk_reads_the_same_from_the_server_as_we_do(server: LangfuseServer, sdk: Any, script: str) -> None:
    theirs = run_peer(*sdk, script, server.url, PUBLIC, SECRET)
    ours = read(server)
    for one in theirs["observations"]:
        row = ours[one["traceId"]]
        if one["type"] == "GENERATION":
            assert (one["usageDetails"]["input"], one["usageDetails"]["output"]) == (
                row["input_tokens"],
                row["output_tokens"],
            )
        if one["type"] == "CHAIN" and one["parentObservationId"] is None:
            assert json.loads(one["input"])["question"] == row["question"]
            assert json.loads(one["output"])["answer"] == row["answer"]
    said = {
        (id, one["name"], one.get("value", one.get("label"))) for id, row in ours.items() for one in row["feedback"]
    }
    assert summarise(theirs["scores"], is_old=server.is_old) == said
    gold = read(server, dataset="golden")
    assert {one["id"]: one["expectedOutput"] for one in theirs["items"]} == {
        id: row["reference"] for id, row in gold.items()
    }


def test_sdk_5_accepts_the_scores_that_we_send_and_reads_them_back(server: LangfuseServer) -> None:
    server.scores.clear()
    send(server, make_traced(LINKS))
    assert run_peer(*SDK_5, CHECK_5, [body for path, body in server.bodies if path == "/scores"])
    theirs = run_peer(*SDK_5, READ_5, server.url, PUBLIC, SECRET)
    told = {(one["subject"]["id"], one["name"], one["value"], one["comment"]) for one in theirs["scores"]}
    assert told == {(f"t{n}", "faithfulness", round(0.9 - 0.2 * n, 2), f"because q{n}") for n in range(3)}


@pytest.mark.parametrize("server", [True], indirect=True)
def test_sdk_3_accepts_the_scores_and_runs_that_we_send_and_reads_them_back(server: LangfuseServer) -> None:
    server.scores.clear()
    send(server, make_traced(LINKS))
    send(server, make_traced({"q0": None}), dataset="golden")
    assert run_peer(*SDK_3, CHECK_3, server.bodies) == ["/dataset-run-items", "/ingestion", "/scores"]
    theirs = run_peer(*SDK_3, READ_3, server.url, PUBLIC, SECRET)
    assert len(theirs["scores"]) == 4
    assert ("t1", "faithfulness", 0.7) in {(one["traceId"], one["name"], one["value"]) for one in theirs["scores"]}


def decode(server: LangfuseServer) -> list[dict[str, Any]]:
    """The spans that the SDK sent, decoded with OpenTelemetry's own package."""
    from base64 import b64encode

    bodies = [b64encode(body).decode() for headers, body in server.otlp if "protobuf" in headers["content-type"]]
    found: list[dict[str, Any]] = run_peer(*SDK_5, DECODE, bodies)
    return found


def store(span: dict[str, Any]) -> dict[str, Any]:
    """The observation that Langfuse makes of a span of its SDK."""
    from datetime import UTC, datetime

    told = span["told"]
    start, end = (datetime.fromtimestamp(span[one] / 1e9, UTC).isoformat() for one in ("start", "end"))
    return {
        "id": span["id"],
        "traceId": span["traceId"],
        "parentObservationId": span["parent"] or None,
        "isRootObservation": not span["parent"],
        "type": told.get("langfuse.observation.type", "span").upper(),
        "name": span["name"],
        "startTime": start,
        "endTime": end,
        "projectId": "p1",
        "environment": "default",
        "input": told.get("langfuse.observation.input"),
        "output": told.get("langfuse.observation.output"),
        "model": told.get("langfuse.observation.model.name"),
        "usageDetails": json.loads(told.get("langfuse.observation.usage_details", "{}")),
    }


def test_what_the_sdks_decorators_record_is_understood(server: LangfuseServer) -> None:
    run_peer(*SDK_5, TRACE_5, server.url, PUBLIC, SECRET)
    server.observations = [store(span) for span in decode(server)]
    server.scores = {}
    (row,) = read(server).values()
    assert {key: row[key] for key in ("question", "answer", "model", "input_tokens", "output_tokens")} == {
        "question": "What is 7?", "answer": "It is 7.", "model": "gpt-5", "input_tokens": 5, "output_tokens": 2,
    }  # fmt: skip
    assert [(one["id"], one["text"]) for one in row["contexts"]] == [("d7", "It is 7."), ("d0", "no")]


def test_a_run_of_ours_has_the_attributes_of_the_sdks_own(server: LangfuseServer) -> None:
    run_peer(*SDK_5, EXPERIMENT_5, server.url, PUBLIC, SECRET)
    theirs = {span["name"]: span["told"] for span in decode(server)}
    send(server, make_traced({"q0": None}), dataset="golden", run="nightly")
    ours = {
        span["name"]: {one["key"]: one["value"]["stringValue"] for one in span["attributes"]}
        for span in server.spans.values()
    }
    known = {key for told in theirs.values() for key in told} | {"langfuse.observation.usage_details"}
    for name, told in ours.items():
        assert set(told) <= known
        needed = {key for key in theirs[name] if key.startswith("langfuse.experiment") and "metadata" not in key}
        assert needed - {"langfuse.experiment.item.version"} <= set(told), name
        same = ("langfuse.experiment.dataset.id", "langfuse.experiment.item.id", "langfuse.environment")
        assert {key: told[key] for key in same} == {key: theirs[name][key] for key in same}
