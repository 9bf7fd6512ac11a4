"""Against Phoenix itself: traces that OpenTelemetry's SDK sent are read, and values are written and read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.endpoints.service import Service, ServiceError
from rageval_spec.errors import UsageError
from tests.exchange.otel.rotel import free_port
from tests.exchange.peer_server import run_server
from tests.exchange.peers import run_peer
from tests.exchange.phoenix.sending import send
from tests.exchange.phoenix.test_source import read
from tests.exchange.traced_evaluation import evaluate

REQUIREMENT = "arize-phoenix==20.26.1"
COUNT = 12
SEED = """
import json, sys
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Status, StatusCode
url, count = json.loads(sys.argv[1]), json.loads(sys.argv[2])
provider = TracerProvider(resource=Resource.create({"openinference.project.name": "support"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(url + "/v1/traces")))
tracer = provider.get_tracer("seed")
for i in range(count):
    asked = {"openinference.span.kind": "CHAIN", "input.value": f"Question {i}?", "session.id": "s1",
             "metadata": json.dumps({"lang": "de", "n": i})}
    with tracer.start_as_current_span("answer", attributes=asked) as root:
        found = {"openinference.span.kind": "RETRIEVER", "input.value": "q"}
        for k in range(2):
            page = json.dumps({"page": k})
            document = {"id": f"d{k}", "content": f"Text {k}.", "score": 0.9 - k / 10, "metadata": page}
            found |= {f"retrieval.documents.{k}.document.{name}": value for name, value in document.items()}
        tracer.start_span("retrieve", attributes=found).end()
        used = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 100 + i, "llm.token_count.completion": 20,
                "llm.model_name": "gpt-4o-mini"}
        tracer.start_span("llm", attributes=used).end()
        if i == count - 1:
            root.set_status(Status(StatusCode.ERROR, "out of time"))
        else:
            root.set_attribute("output.value", f"Answer {i}.")
provider.shutdown()
print("{}")
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Phoenix with the project `support` and the dataset `golden`."""
    folder, port = tmp_path_factory.mktemp("phoenix"), free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_SQL_DATABASE_URL": "sqlite:///:memory:",
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    command = ["arize-phoenix", "serve"]
    with run_server("phoenix", REQUIREMENT, command, f"{address}/healthz", folder, settings):
        run_peer("phoenix", REQUIREMENT, SEED, address, COUNT)
        with Service(address, "test") as service:
            content = {
                "name": "golden",
                "action": "create",
                "inputs": [{"question": f"Question {i}?"} for i in range(3)],
                "outputs": [{"answer": f"Gold {i}."} for i in range(3)],
                "example_ids": ["e0", "e1", "e2"],
            }
            service.post("/v1/datasets/upload", content, [("sync", "true")])
        yield address


def ask(url: str, path: str) -> Any:
    with Service(url, "test") as service:
        return service.get(path)


def list_annotations(url: str) -> list[dict[str, Any]]:
    """What this program wrote on spans, without times."""
    path = f"/v1/projects/support/span_annotations?limit=1000&identifier={quote('rageval-spec:support-bot/golden/v1')}"
    found = ask(url, path)["data"]
    return sorted(({key: value for key, value in one.items() if not key.endswith("_at")} for one in found), key=str)


def test_traces_are_read_as_they_were_sent(url: str) -> None:
    traces = read(url=url)
    assert sorted(trace.question for trace in traces) == sorted(f"Question {i}?" for i in range(COUNT))
    first = next(trace for trace in traces if trace.question == "Question 3?")
    assert (first.answer, first.input_tokens, first.output_tokens, first.model) == ("Answer 3.", 103, 20, "gpt-4o-mini")
    assert [(one.doc_id, one.text, one.score, dict(one.metadata)) for one in first.documents or ()] == [
        ("d0", "Text 0.", 0.9, {"page": 0}), ("d1", "Text 1.", 0.8, {"page": 1}),
    ]  # fmt: skip
    assert (first.session, dict(first.metadata)) == ("s1", {"lang": "de", "n": 3})
    last = next(trace for trace in traces if trace.answer is None)
    assert (last.question, last.error) == (f"Question {COUNT - 1}?", "out of time")
    assert [trace.started for trace in traces] == sorted((str(trace.started) for trace in traces), reverse=True)
    assert len(read(url=url, limit=5)) == 5
    assert read(url=url, since="2100-01-01T00:00:00Z") == []


def test_annotations_are_stored_once_and_replaced(url: str) -> None:
    traces = read(url=url)
    send(evaluate(traces), url=url)
    before = list_annotations(url)
    assert len(before) == 2 * COUNT
    send(evaluate(traces), url=url)
    assert list_annotations(url) == before
    send(evaluate(traces, 0.5), url=url)
    after = list_annotations(url)
    assert [one["id"] for one in after] == [one["id"] for one in before]
    assert after != before
    assert read(url=url) == traces


def test_annotations_of_documents_are_stored(url: str) -> None:
    send(evaluate(read(url=url)), url=url)
    project = next(one for one in ask(url, "/v1/projects")["data"] if one["name"] == "support")
    wanted = "edges {node {documentEvaluations {name score label documentPosition}}}"
    query = f"{{node(id: {json.dumps(project['id'])}) {{... on Project {{spans(first: 100) {{{wanted}}}}}}}}}"
    with Service(url, "test") as service:
        reply = service.post("/graphql", {"query": query})
    found = [one for edge in reply["data"]["node"]["spans"]["edges"] for one in edge["node"]["documentEvaluations"]]
    assert len(found) == COUNT
    assert {(one["name"], one["score"], one["label"], one["documentPosition"]) for one in found} == {
        ("relevance", 1, "relevant", 0)
    }


def test_spans_that_are_not_there_are_left_out(url: str) -> None:
    traces = read(url=url, limit=3)
    lost = replace(traces[0], link=TraceLink("phoenix", "0" * 31 + "1", "0" * 15 + "1"), query_id="lost")
    receipt = send(evaluate([lost, *traces]), url=url)
    assert receipt.remarks == ("2 annotations left out: 1 span not in Phoenix, such as 0000000000000001",)
    bad = replace(traces[0], link=replace(traces[0].link, others={"retriever": str(traces[0].link.span_id)}))
    assert "1 annotation left out" in send(evaluate([bad]), url=url).remarks[0]


def test_an_experiment_is_stored_once(url: str, tmp_path: Path) -> None:
    examples = read(url=url, project=None, dataset="golden")
    assert [(one.id, one.question, one.references) for one in examples] == [
        (f"e{i}", f"Question {i}?", (f"Gold {i}.",)) for i in range(3)
    ]
    answers: list[Trace] = [replace(one, answer=f"Answer to {one.question}") for one in examples]

    def snapshot() -> list[Any]:
        dataset = ask(url, "/v1/datasets?name=golden")["data"][0]["id"]
        (experiment,) = ask(url, f"/v1/datasets/{dataset}/experiments")["data"]
        rows = ask(url, f"/v1/experiments/{experiment['id']}/json")
        return [
            (
                row["input"],
                row["output"],
                sorted((one["name"], one["score"], one["label"]) for one in row["annotations"]),
            )
            for row in rows
        ]

    for _ in range(2):
        receipt = send(evaluate(answers), url=url, dataset="golden", experiment="nightly")
        assert dict(receipt.sent) == {"experiment run": 3}
        assert snapshot()[1] == (
            {"question": "Question 1?"}, {"answer": "Answer to Question 1?"},
            [("faithfulness", 0.1, "poor"), ("ndcg@10", 0.25, None)],
        )  # fmt: skip


def test_what_is_not_there_is_named(url: str) -> None:
    with pytest.raises(UsageError, match="there is no project 'suport'; did you mean 'support'"):
        read(url=url, project="suport")
    with pytest.raises(UsageError, match="there is no dataset 'silver'"):
        read(url=url, project=None, dataset="silver")
    with pytest.raises(ServiceError, match="answered 200 with a web page; is url right"):
        read(url=f"{url}/elsewhere")
