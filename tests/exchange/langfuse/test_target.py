""""""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.endpoints.pacing import Clock
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.langfuse.source import LangfuseSource, LangfuseSourceNode
from rageval_spec.exchange.langfuse.target import MOST_BYTES, LangfuseTarget, LangfuseTargetNode
from rageval_spec.exchange.shared.contracts import Parcel
from rageval_spec.exchange.shared.delivery import Receipt, send_parcels
from rageval_spec.plugin import Context
from tests.answered_evaluation import value
from tests.exchange.evaluations import make_traced
from tests.exchange.langfuse.server import SECRET, TIME, LangfuseServer, rag_trace, set_keys
from tests.models.endpoint import Answer

LINKS: dict[str, TraceLink | None] = {
    f"q{n}": TraceLink("langfuse", f"t{n}", others={"started": f"2026-03-01T12:00:0{n}Z", "environment": "production"})
    for n in range(3)
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits take no time; how long they would be."""
    waits: list[float] = []
    monkeypatch.setattr(Clock, "sleep", lambda self, seconds: waits.append(seconds))
    return waits


@pytest.fixture(params=["new", "old"])
def server(request: pytest.FixtureRequest) -> Iterator[LangfuseServer]:
    running = LangfuseServer(is_old=request.param == "old")
    running.items["golden"] = [{"id": f"q{n}", "input": f"Question q{n}?"} for n in range(2)]
    yield running
    running.close()


def send(server: LangfuseServer, evaluation: Any, folder: Path | None = None, **keys: Any) -> Receipt:
    options = {name: keys.pop(name) for name in ("dry_run", "anew", "show") if name in keys}
    target = LangfuseTarget(LangfuseTargetNode(url=server.url, **keys), Context("langfuse", output=folder))
    try:
        return send_parcels(target, evaluation, folder, tool="langfuse", **options)
    finally:
        target.close()


@pytest.mark.usefixtures("quick")
def test_values_reasons_and_words_go_to_the_trace_of_the_answer(server: LangfuseServer) -> None:
    receipt = send(server, make_traced(LINKS))
    assert receipt.render() == f"sent 3 scores to {server.url}\n"
    told = {one["subject"]["id"]: one for one in server.scores.values()}
    assert sorted(told) == ["t0", "t1", "t2"]
    assert {key: told["t1"][key] for key in ("name", "value", "dataType", "comment", "timestamp")} == {
        "name": "faithfulness",
        "value": 0.7,
        "dataType": "NUMERIC",
        "comment": "because q1",
        # Version 3 takes no time of a score.
        "timestamp": TIME if server.is_old else "2026-03-01T12:00:01Z",
    }
    about = {"label": "poor", "system": "v1", "dataset": "golden", "query_id": "q1", "source": "rageval-spec"}
    assert told["t1"]["metadata"] == about
    assert told["t0"]["metadata"]["label"] == "good"


@pytest.mark.usefixtures("quick")
def test_sending_twice_leaves_the_same(server: LangfuseServer, tmp_path: Path) -> None:
    evaluation = make_traced(LINKS)
    send(server, evaluation, tmp_path)
    before = json.dumps(server.scores, sort_keys=True)
    count = len(server.bodies)
    assert send(server, evaluation, tmp_path).render().startswith("sent nothing")
    assert len(server.bodies) == count
    send(server, evaluation, tmp_path, anew=True)
    send(server, evaluation)
    assert json.dumps(server.scores, sort_keys=True) == before


@pytest.mark.usefixtures("quick")
def test_a_changed_value_replaces_the_score(server: LangfuseServer, tmp_path: Path) -> None:
    send(server, make_traced(LINKS), tmp_path)
    changed = [
        value(f"q{n}", "faithfulness", number, reason=f"because q{n}") for n, number in enumerate((0.9, 0.1, 0.5))
    ]
    receipt = send(server, make_traced(LINKS, changed), tmp_path)
    assert receipt.sent["score"] == 1
    assert sorted(one["value"] for one in server.scores.values()) == [0.1, 0.5, 0.9]


@pytest.mark.usefixtures("quick")
def test_a_dry_run_shows_and_sends_nothing(server: LangfuseServer) -> None:
    shown: list[str] = []
    receipt = send(server, make_traced(LINKS), dry_run=True, show=shown.append)
    assert shown[1] == "faithfulness 0.70 (poor) -> trace t1"
    assert "would send 3 scores" in receipt.render()
    assert not server.asked


@pytest.mark.usefixtures("quick")
def test_a_killed_export_continues_where_it_stopped(server: LangfuseServer, tmp_path: Path) -> None:
    links = {f"q{n}": TraceLink("langfuse", f"t{n}") for n in range(120)}
    values = [value(f"q{n}", "faithfulness", 0.5) for n in range(120)]
    left = [70 if server.is_old else 1]

    def break_down(asked: Any) -> Answer | None:
        if asked.method == "POST" and asked.route.endswith("/scores"):
            left[0] -= 1
            return Answer({"message": "maintenance"}, 500) if left[0] < 0 else None
        return None

    server.interrupt = break_down
    with pytest.raises(RagevalError, match="answered 500"):
        send(server, make_traced(links, values), tmp_path)
    server.interrupt = lambda asked: None
    receipt = send(server, make_traced(links, values), tmp_path)
    assert receipt.known == 50
    assert len(server.scores) == 120


@pytest.mark.usefixtures("quick")
def test_a_refusal_is_repeated_as_late_as_langfuse_asks(server: LangfuseServer, quick: list[float]) -> None:
    refused = [Answer({"message": "slow down"}, 429, Retry_After="11")]
    server.interrupt = lambda asked: refused.pop() if refused and asked.method == "POST" else None
    send(server, make_traced(LINKS))
    assert len(server.scores) == 3
    assert max(quick) > 10


@pytest.mark.usefixtures("quick")
def test_a_batch_of_which_some_are_refused_is_an_error() -> None:
    server = LangfuseServer()
    refusal = {"accepted": 2, "rejected": 1, "errors": [{"message": "no such trace t1"}]}
    server.interrupt = lambda asked: Answer(refusal, 207) if asked.method == "POST" else None
    with pytest.raises(RagevalError, match="Langfuse refused 1 of 3 scores: no such trace t1"):
        send(server, make_traced(LINKS))
    server.close()


@pytest.mark.usefixtures("quick")
def test_what_has_no_value_or_no_trace_is_left_out_and_counted(server: LangfuseServer) -> None:
    links = {**LINKS, "q3": None, "q4": TraceLink("phoenix", "x")}
    values = [value("q0", "faithfulness", 0.5), value("q1", "faithfulness", None), value("q3", "faithfulness", 1.0)]
    told = send(server, make_traced(links, values)).render()
    assert "sent 1 score to" in told
    assert "2 answers without a trace of langfuse left out" in told
    assert "1 answer that a metric could not score left out" in told


@pytest.mark.usefixtures("quick")
def test_without_any_trace_the_message_says_what_to_do(server: LangfuseServer) -> None:
    with pytest.raises(UsageError, match="no answer has a trace of langfuse"):
        send(server, make_traced({"q0": None}))


@pytest.mark.usefixtures("quick")
def test_a_long_reason_is_cut_and_batches_stay_small(server: LangfuseServer) -> None:
    links = {f"q{n}": TraceLink("langfuse", f"t{n}") for n in range(50)}
    values = [value(f"q{n}", "faithfulness", 0.5, reason="why " * 50_000) for n in range(50)]
    send(server, make_traced(links, values))
    assert len(server.scores) == 50
    assert {len(one["comment"]) for one in server.scores.values()} == {20_000}
    assert max(len(asked.body) for asked in server.asked) < 2**20


@pytest.mark.usefixtures("quick")
def test_answers_become_a_run_of_a_dataset(server: LangfuseServer) -> None:
    evaluation = make_traced(dict.fromkeys(("q0", "q1")), systems=("v1", "v2"), seconds=1.5, cost=0.25, input_tokens=7)
    receipt = send(server, evaluation, dataset="golden", run="nightly")
    assert receipt.render() == f"sent 4 answers and 4 scores to {server.url}, dataset golden\n"
    judged = {one["subject"]["id"]: one["value"] for one in server.scores.values()}
    if server.is_old:
        assert {(run, item) for run, item, _ in server.runs} == {
            (f"nightly {system}", query) for system in ("v1", "v2") for query in ("q0", "q1")
        }
        assert {trace for _, _, trace in server.runs} == set(judged) == set(server.traces)
        questions = [trace["input"]["question"] for trace in server.traces.values()]
        assert sorted(questions) == ["Question q0?"] * 2 + ["Question q1?"] * 2  # sent at once, so in any order
    else:
        tasks = [span for span in server.spans.values() if span["name"] == "experiment-item-task"]
        told = [{one["key"]: one["value"]["stringValue"] for one in span["attributes"]} for span in tasks]
        assert {one["langfuse.experiment.name"] for one in told} == {"nightly v1", "nightly v2"}
        assert {one["langfuse.experiment.item.id"] for one in told} == {"q0", "q1"}
        assert {span["traceId"] for span in tasks} == set(judged)
        seconds = (int(tasks[0]["endTimeUnixNano"]) - int(tasks[0]["startTimeUnixNano"])) / 1e9
        assert seconds == 1.5
        assert json.loads(told[0]["langfuse.observation.cost_details"]) == {"total": 0.25}


@pytest.mark.usefixtures("quick")
def test_a_run_that_is_sent_twice_is_one_run(server: LangfuseServer) -> None:
    evaluation = make_traced(dict.fromkeys(("q0", "q1")))
    for _ in range(2):
        send(server, evaluation, dataset="golden")
    assert len(server.scores) == 2
    assert len(server.runs if server.is_old else server.spans) == (2 if server.is_old else 4)


@pytest.mark.usefixtures("quick")
def test_questions_of_other_datasets_are_left_out_of_a_run(server: LangfuseServer) -> None:
    told = send(server, make_traced(dict.fromkeys(("q0", "x1", "x2"))), dataset="golden").render()
    assert "2 answers to questions that are no items of the dataset 'golden' left out" in told
    assert len(server.scores) == 1
    with pytest.raises(
        RagevalError, match="the question 'x1' is not an item of the dataset 'golden'; read the questions"
    ):
        send(server, make_traced(dict.fromkeys(("x1", "x2"))), dataset="golden")


@pytest.mark.usefixtures("quick")
def test_a_run_of_a_dataset_that_is_not_there_is_an_error(server: LangfuseServer) -> None:
    with pytest.raises(RagevalError, match="there is no dataset 'gold' in this project"):
        send(server, make_traced({"q0": None}), dataset="gold")


@pytest.mark.usefixtures("quick")
def test_no_file_and_no_message_holds_a_key(server: LangfuseServer, tmp_path: Path) -> None:
    send(server, make_traced(LINKS), tmp_path)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert written
    assert SECRET.encode() not in written
    node = LangfuseTargetNode(url=server.url, secret_key=SECRET)
    assert SECRET not in repr(node) + node.model_dump_json()


@pytest.mark.usefixtures("quick")
def test_two_systems_that_read_the_same_traces_are_kept_apart(server: LangfuseServer, tmp_path: Path) -> None:
    values = [
        value(f"q{n}", "faithfulness", 0.9 if name == "v1" else 0.1, name) for name in ("v1", "v2") for n in (0, 1)
    ]
    evaluation = make_traced({f"q{n}": LINKS[f"q{n}"] for n in (0, 1)}, values, systems=("v1", "v2"))
    receipt = send(server, evaluation, tmp_path)
    assert (receipt.sent["score"], receipt.remarks) == (4, ())
    told = sorted((one["subject"]["id"], one["name"], one["value"]) for one in server.scores.values())
    assert told == [
        (trace, name, number)
        for trace in ("t0", "t1")
        for name, number in (("faithfulness", 0.9), ("faithfulness (golden/v2)", 0.1))
    ]
    assert send(server, evaluation, tmp_path).known == 4


@pytest.mark.usefixtures("quick")
def test_questions_that_share_a_trace_are_said_and_not_replaced(server: LangfuseServer, tmp_path: Path) -> None:
    values = [value("q0", "faithfulness", 0.9), value("again", "faithfulness", 0.1)]
    evaluation = make_traced({"q0": LINKS["q0"], "again": LINKS["q0"]}, values)
    receipt = send(server, evaluation, tmp_path)
    assert [one["value"] for one in server.scores.values()] == [0.9]
    assert receipt.remarks == (
        "1 value left out: an earlier answer has the same place there, such as faithfulness 0.10 (poor) -> trace t0",
    )
    assert not send(server, evaluation, tmp_path).sent


@pytest.mark.usefixtures("quick")
def test_a_run_has_the_time_of_its_results(server: LangfuseServer, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    os.utime(tmp_path / "results.json", (1772366400, 1772366400))  # 2026-03-01T12:00:00Z
    send(server, make_traced(dict.fromkeys(("q0", "q1"))), tmp_path, dataset="golden")
    if server.is_old:
        assert {one["timestamp"][:19] for one in server.traces.values()} == {"2026-03-01T12:00:00"}
    else:
        assert {one["startTimeUnixNano"] for one in server.spans.values()} == {"1772366400000000000"}


@pytest.fixture
def sending_server() -> Iterator[LangfuseServer]:
    running = LangfuseServer()
    yield running
    running.close()


@pytest.fixture
def target(sending_server: LangfuseServer) -> Iterator[LangfuseTarget]:
    opened = LangfuseTarget(LangfuseTargetNode(url=sending_server.url), Context("langfuse"))
    yield opened
    opened.close()


def pack(**body: Any) -> Parcel:
    return Parcel("p", {"traceId": "t", **body}, "")


def test_the_version_is_asked_for_once(sending_server: LangfuseServer, target: LangfuseTarget) -> None:
    for number in range(3):
        target.send([pack(id=f"s{number}", name="x", value=1.0)])
    assert [asked.method for asked in sending_server.asked] == ["GET", "POST", "POST", "POST"]


def test_batches_are_no_larger_than_langfuse_takes(sending_server: LangfuseServer, target: LangfuseTarget) -> None:
    comment = "x" * (MOST_BYTES // 3)
    target.send([pack(id=f"s{n}", name="x", value=1.0, comment=comment) for n in range(5)])
    assert [len(body) for _, body in sending_server.bodies] == [2, 2, 1]


def test_a_refused_trace_of_an_older_version_is_an_error(sending_server: LangfuseServer) -> None:
    sending_server.is_old = True
    sending_server.items["golden"] = [{"id": "i"}]
    refused = Answer({"successes": [], "errors": [{"id": "e", "status": 400, "message": "bad trace"}]}, 207)
    sending_server.interrupt = lambda asked: refused if asked.route.endswith("/ingestion") else None
    target = LangfuseTarget(LangfuseTargetNode(url=sending_server.url, dataset="golden"), Context("langfuse"))
    with pytest.raises(ServiceError, match=r"Langfuse refused 1 of 1 traces: .*bad trace"):
        target.send([pack(item="i", run="r", input={}, output={}, error=None)])
    target.close()


def read(server: LangfuseServer) -> list[Trace]:
    source = LangfuseSource(LangfuseSourceNode(url=server.url), Context("langfuse"))
    try:
        return list(source.read())
    finally:
        source.close()


@pytest.mark.usefixtures("quick")
def test_values_of_this_program_do_not_come_back_as_feedback(
    server: LangfuseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monitor would take them for what users said, and judge the trace again because more came of it."""
    set_keys(monkeypatch)
    server.observations = [row for n in range(3) for row in rag_trace(n)]
    links = LINKS
    before = read(server)
    assert "3 " in send(server, make_traced(links)).render()
    assert read(server) == before
