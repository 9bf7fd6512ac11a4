"""Braintrust's own SDK against the same small server as ours, in both directions."""

from __future__ import annotations

from typing import Any

from rageval_spec.exchange.braintrust.source import BraintrustSource, BraintrustSourceNode
from rageval_spec.exchange.braintrust.target import BraintrustTarget, BraintrustTargetNode
from rageval_spec.exchange.shared.delivery import send_parcels
from rageval_spec.plugin import Context
from tests.exchange.braintrust.server import KEY, BraintrustServer, rag_trace
from tests.exchange.evaluations import make_traced
from tests.exchange.peers import run_peer
from tests.models.endpoint import Answer

SDK = ("braintrust", "braintrust>=0.47,<1")
READ = """
import json, sys
from braintrust.api.client import BraintrustOpenApiClient
url, key, name = map(json.loads, sys.argv[1:])
client = BraintrustOpenApiClient(api_key=key, api_url=url)
found = client.experiments.get_experiment(experiment_name=name, project_name="support")
rows, cursor = [], None
while True:
    page = client.experiments.post_experiment_id_fetch(
        found["objects"][0]["id"], body={"limit": 2, **({"cursor": cursor} if cursor else {})})
    if not page["events"]: break
    rows += page["events"]
    cursor = page["cursor"]
print(json.dumps(rows))
"""
CHECK = """
import json, sys
from braintrust.api._generated.models import experiments as models
known = set(models.InsertExperimentEvent.__annotations__)
for body in json.loads(sys.argv[1]):
    for event in body["events"]:
        assert set(event) <= known, set(event) - known
        assert all(0 <= score <= 1 for score in event["scores"].values())
print(json.dumps(True))
"""
LOG = """
import json, sys
import braintrust
url, key = map(json.loads, sys.argv[1:])
experiment = braintrust.init(project="support", experiment="theirs", api_key=key, app_url=url, set_current=False,
                             git_metadata_settings=braintrust.GitMetadataSettings(collect="none"))
with experiment.start_span(name="eval", type="eval") as root:
    with root.start_span(name="search_documents", type="function") as step:
        step.log(input="What is 7?", output=[{"id": "d7", "content": "It is 7.", "score": 0.5}])
    with root.start_span(name="write", type="llm") as step:
        step.log(input=[{"role": "user", "content": "What is 7?"}], output="It is 7.", metadata={"model": "gpt-5"},
                 metrics={"prompt_tokens": 5, "completion_tokens": 2})
    root.log(input={"question": "What is 7?"}, output="It is 7.", expected="7", scores={"Factuality": 0.5})
experiment.flush()
print(json.dumps(True))
"""


def read(server: BraintrustServer, **settings: Any) -> dict[str, dict[str, Any]]:
    node = BraintrustSourceNode(url=server.url, project="support", **settings)
    source = BraintrustSource(node, Context("braintrust"))
    try:
        return {trace.id: trace.to_row() for trace in source.read()}
    finally:
        source.close()


def test_the_sdk_accepts_what_we_send_and_reads_it_back(server: BraintrustServer) -> None:
    node = BraintrustTargetNode(url=server.url, project="support", run="ours")
    target = BraintrustTarget(node, Context("braintrust"))
    send_parcels(target, make_traced(dict.fromkeys(("q0", "q1", "q2"))), None, tool="braintrust")
    target.close()
    assert run_peer(*SDK, CHECK, [body for path, body in server.bodies if path.endswith("/insert")])
    theirs = run_peer(*SDK, READ, server.url, KEY, "ours")
    ours = read(server, experiment="ours")
    assert len(theirs) == len(ours) == 3
    for one in theirs:
        row = ours[one["id"]]
        assert (row["question"], row["answer"]) == (one["input"]["question"], one["output"]["answer"])
        assert row["reference"] == one["expected"]
        assert {said["name"]: said["value"] for said in row["feedback"]} == one["scores"]


def test_the_sdk_reads_the_same_from_the_server_as_we_do(server: BraintrustServer) -> None:
    server.add("experiment", "nightly", *rag_trace(1), *rag_trace(2))
    theirs = run_peer(*SDK, READ, server.url, KEY, "nightly")
    ours = read(server, experiment="nightly")
    roots = {one["id"]: one for one in theirs if one["is_root"]}
    asked = {id: one["input"]["question"] for id, one in roots.items()}
    assert asked == {id: row["question"] for id, row in ours.items()}


def test_what_the_sdk_logs_is_understood(server: BraintrustServer) -> None:
    organisation = {"id": "o", "name": "o", "api_url": server.url, "proxy_url": server.url}
    server.interrupt = lambda asked: {
        "/api/apikey/login": Answer({"org_info": [organisation]}),
        "/version": Answer({"version": "1"}),
    }.get(asked.route)
    run_peer(*SDK, LOG, server.url, KEY)
    rows: dict[str, dict[str, Any]] = {}
    for one in server.logged:
        kept = {key: value for key, value in one.items() if not key.startswith("_")}
        rows[one["id"]] = {**rows.get(one["id"], {}), **kept}
    server.add("experiment", "theirs", *rows.values())
    (row,) = read(server, experiment="theirs").values()
    assert {key: row[key] for key in ("question", "answer", "reference", "model", "input_tokens", "output_tokens")} == {
        "question": "What is 7?", "answer": "It is 7.", "reference": "7", "model": "gpt-5", "input_tokens": 5,
        "output_tokens": 2,
    }  # fmt: skip
    assert [(one["id"], one["text"]) for one in row["contexts"]] == [("d7", "It is 7.")]
    assert row["feedback"] == [{"name": "Factuality", "value": 0.5, "source": "program"}]
