"""LangSmith's own SDK against the same small server as ours, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rageval_spec.exchange.langsmith.source import LangSmithSource, LangSmithSourceNode
from rageval_spec.exchange.langsmith.target import LangSmithTarget, LangSmithTargetNode
from rageval_spec.exchange.shared.delivery import send_parcels
from rageval_spec.plugin import Context
from tests.exchange.evaluations import make_traced
from tests.exchange.langsmith.server import KEY, LangSmithServer, feedback, make_id, rag_trace
from tests.exchange.langsmith.test_target import EXAMPLES, LINKS
from tests.exchange.peers import run_peer

SDK = ("langsmith", "langsmith>=0.15,<1")
READ = """
import json, sys, warnings, datetime
warnings.simplefilter("ignore")
from langsmith import Client
url, key = map(json.loads, sys.argv[1:])
client = Client(api_url=url, api_key=key, auto_batch_tracing=False)
dump = lambda one: json.loads(one.model_dump_json())
project = client.read_project(project_name="support")
begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
found = {"old": [dump(one) for one in client.list_runs(project_name="support")]}
selects = ["ID", "TRACE_ID", "RUN_TYPE", "INPUTS", "OUTPUTS", "PROMPT_TOKENS", "START_TIME", "PARENT_RUN_IDS"]
query = client._get_langsmith_api_sync().runs.query_v2
newer = query(project_ids=[str(project.id)], min_start_time=begin, selects=selects)
found["new"] = [dump(one) for one in newer]
found["feedback"] = [dump(one) for one in client.list_feedback(run_ids=[one["id"] for one in found["old"]])]
found["examples"] = [dump(one) for one in client.list_examples(dataset_name="golden")]
print(json.dumps(found))
"""
CHECK = """
import json, sys
from langsmith import schemas
said = 0
for path, body in json.loads(sys.argv[1]):
    if path == "/feedback":
        made = schemas.FeedbackCreate(**body)
        unknown = set(body) - set(schemas.FeedbackCreate.model_fields)
        assert not unknown, unknown
        said += made.score == body["score"]
    if path == "/sessions":
        schemas.TracerSession(**body, tenant_id=body["id"])
    if path == "/runs/batch":
        for one in body["post"]:
            assert set(one) <= set(schemas.Run.model_fields), set(one) - set(schemas.Run.model_fields)
            assert schemas.Run(**one).latency == 1.5
print(json.dumps(said))
"""
TRACE = """
import json, sys, warnings
warnings.simplefilter("ignore")
from langsmith import Client, traceable, tracing_context
url, key = map(json.loads, sys.argv[1:])
client = Client(api_url=url, api_key=key, auto_batch_tracing=False)
@traceable(run_type="retriever")
def search(query):
    return [{"page_content": "It is 7.", "metadata": {"id": "d7"}, "type": "Document"}]
@traceable(run_type="llm", metadata={"ls_model_name": "gpt-5"})
def write(messages):
    return {"choices": [{"message": {"role": "assistant", "content": "It is 7."}}]}
@traceable
def answer(question):
    search(question)
    return write([{"role": "user", "content": question}])["choices"][0]["message"]["content"]
with tracing_context(enabled=True, client=client, project_name="support"):
    answer("What is 7?")
client.flush()
print(json.dumps(True))
"""


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    running = LangSmithServer(page=4)
    rows = [*rag_trace(1), *rag_trace(2)]
    rows[0]["feedback_stats"] = {"thumbs": {"n": 1}}
    running.add(*rows)
    running.feedback = {make_id("f1"): feedback("f1", "t1", "thumbs", score=1.0, comment="good")}
    about = {"dataset_id": make_id("golden"), "created_at": "2026-03-01T00:00:00Z", "metadata": {}}
    running.datasets["golden"] = [
        {"id": make_id("e0"), "inputs": {"question": "What is 7?"}, "outputs": {"answer": "7"}, **about}
    ]
    yield running
    running.close()


def read(server: LangSmithServer, **settings: Any) -> dict[str, dict[str, Any]]:
    source = LangSmithSource(LangSmithSourceNode(url=server.url, **settings), Context("langsmith"))
    try:
        return {trace.id: trace.to_row() for trace in source.read()}
    finally:
        source.close()


def send(server: LangSmithServer, evaluation: Any, **settings: Any) -> None:
    target = LangSmithTarget(LangSmithTargetNode(url=server.url, **settings), Context("langsmith"))
    try:
        send_parcels(target, evaluation, None, tool="langsmith")
    finally:
        target.close()


def test_the_sdk_reads_the_same_from_the_server_as_we_do(server: LangSmithServer) -> None:
    theirs = run_peer(*SDK, READ, server.url, KEY)
    ours = read(server, project="support")
    assert len(theirs["new"]) == len(theirs["old"]) == 6
    for one in theirs["new"]:
        if one["run_type"] == "CHAIN":
            row = ours[one["trace_id"]]
            assert (row["question"], row["answer"]) == (one["inputs"]["question"], one["outputs"]["answer"])
    (said,) = theirs["feedback"]
    told = {"name": "thumbs", "value": said["score"], "comment": said["comment"], "source": "unknown"}
    assert ours[said["run_id"]]["feedback"] == [told]
    gold = read(server, dataset="golden")
    assert {one["id"]: one["outputs"]["answer"] for one in theirs["examples"]} == {
        id: row["reference"] for id, row in gold.items()
    }


def test_the_sdk_accepts_what_we_send_and_reads_it_back(server: LangSmithServer) -> None:
    server.feedback.clear()
    send(server, make_traced(LINKS))
    send(server, make_traced(EXAMPLES, seconds=1.5), dataset="golden")
    assert run_peer(*SDK, CHECK, server.bodies) == 5
    theirs = run_peer(*SDK, READ, server.url, KEY)
    told = {(one["run_id"], one["key"], one["score"], one["value"], one["comment"]) for one in theirs["feedback"]}
    assert (make_id("t1"), "faithfulness", 0.7, "poor", "because q1") in told


def test_what_the_sdks_decorators_record_is_understood(server: LangSmithServer) -> None:
    sent: dict[str, dict[str, Any]] = {}

    def keep(asked: Any) -> Any:
        """Single runs, as the SDK sends them without its background thread: a POST, then a PATCH with the outputs."""
        from tests.models.endpoint import Answer

        if asked.route == "/runs" and asked.method == "POST":
            sent[asked.content["id"]] = asked.content
            return Answer({}, 202)
        if asked.route.startswith("/runs/") and asked.method == "PATCH":
            changes = {key: value for key, value in asked.content.items() if value is not None}
            sent.setdefault(asked.route.removeprefix("/runs/"), {}).update(changes)
            return Answer({}, 202)
        return None

    server.interrupt = keep
    run_peer(*SDK, TRACE, server.url, KEY)
    server.interrupt = lambda asked: None
    server.runs.clear()
    for identity, one in sent.items():
        parents = [one["parent_run_id"]] if one.get("parent_run_id") else []
        place = {"id": identity, "project_id": server.sessions["support"]["id"], "parent_run_ids": parents}
        server.add({"status": "success", "feedback_stats": {}, **one, **place})
    (row,) = read(server, project="support").values()
    assert {key: row[key] for key in ("question", "answer", "model")} == {
        "question": "What is 7?",
        "answer": "It is 7.",
        "model": "gpt-5",
    }
    assert [(one["id"], one["text"]) for one in row["contexts"]] == [("d7", "It is 7.")]
