""""""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.endpoints.pacing import Clock
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.langsmith.source import LangSmithSource, LangSmithSourceNode
from rageval_spec.exchange.langsmith.target import LangSmithTarget, LangSmithTargetNode
from rageval_spec.exchange.shared.contracts import Parcel
from rageval_spec.exchange.shared.delivery import Receipt, send_parcels
from rageval_spec.plugin import Context
from tests.answered_evaluation import value
from tests.exchange.evaluations import make_traced
from tests.exchange.langsmith.server import KEY, PROJECT, LangSmithServer, make_id, rag_trace, set_keys
from tests.models.endpoint import Answer

LINKS: dict[str, TraceLink | None] = {
    f"q{n}": TraceLink("langsmith", make_id(f"t{n}"), project="support", others={"session_id": PROJECT})
    for n in range(3)
}
EXAMPLES = dict.fromkeys((make_id("e0"), make_id("e1")))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits take no time; how long they would be."""
    waits: list[float] = []
    monkeypatch.setattr(Clock, "sleep", lambda self, seconds: waits.append(seconds))
    return waits


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    running = LangSmithServer()
    running.datasets["golden"] = []
    yield running
    running.close()


def send(server: LangSmithServer, evaluation: Any, folder: Path | None = None, **keys: Any) -> Receipt:
    options = {name: keys.pop(name) for name in ("dry_run", "anew", "show") if name in keys}
    target = LangSmithTarget(LangSmithTargetNode(url=server.url, **keys), Context("langsmith"))
    try:
        return send_parcels(target, evaluation, folder, tool="langsmith", **options)
    finally:
        target.close()


@pytest.mark.usefixtures("quick")
def test_values_reasons_and_words_go_to_the_run_of_the_answer(server: LangSmithServer) -> None:
    assert send(server, make_traced(LINKS)).render() == f"sent 3 feedback rows to {server.url}\n"
    told = {one["run_id"]: one for one in server.feedback.values()}
    found = told[make_id("t1")]
    assert {key: found[key] for key in ("key", "score", "value", "comment", "session_id", "trace_id")} == {
        "key": "faithfulness",
        "score": 0.7,
        "value": "poor",
        "comment": "because q1",
        "session_id": PROJECT,
        "trace_id": make_id("t1"),
    }
    assert found["feedback_source"]["metadata"]["query_id"] == "q1"


@pytest.mark.usefixtures("quick")
def test_sending_twice_leaves_the_same_and_a_change_replaces(server: LangSmithServer, tmp_path: Path) -> None:
    evaluation = make_traced(LINKS)
    send(server, evaluation, tmp_path)
    before = json.dumps(server.feedback, sort_keys=True)
    assert send(server, evaluation, tmp_path).render().startswith("sent nothing")
    send(server, evaluation)
    assert json.dumps(server.feedback, sort_keys=True) == before
    send(server, make_traced(LINKS, [value("q1", "faithfulness", 1 / 3)]), tmp_path)
    assert sorted(one["score"] for one in server.feedback.values()) == [0.3333, 0.5, 0.9]


@pytest.mark.usefixtures("quick")
def test_a_dry_run_shows_and_sends_nothing(server: LangSmithServer) -> None:
    shown: list[str] = []
    send(server, make_traced(LINKS), dry_run=True, show=shown.append)
    assert shown[1] == f"faithfulness 0.70 (poor) -> run {make_id('t1')}"
    assert not server.asked


@pytest.mark.usefixtures("quick")
def test_answers_become_an_experiment(server: LangSmithServer) -> None:
    evaluation = make_traced(EXAMPLES, systems=("v1", "v2"), seconds=1.5)
    for _ in range(2):
        receipt = send(server, evaluation, dataset="golden", run="nightly")
    assert receipt.render() == f"sent 4 answers and 4 feedback rows to {server.url}, dataset golden\n"
    session = server.sessions["nightly v1"]
    assert session["reference_dataset_id"] == make_id("golden")
    runs = [one for one in server.runs.values() if one["project_id"] == session["id"]]
    assert {one["reference_example_id"] for one in runs} == set(EXAMPLES)
    assert runs[0]["trace_id"] == runs[0]["id"]
    assert runs[0]["dotted_order"].endswith(runs[0]["id"])
    judged = [one for one in server.feedback.values() if one["session_id"] == session["id"]]
    assert {one["run_id"] for one in judged} == {one["id"] for one in runs}
    assert (len(server.runs), len(server.feedback)) == (4, 4)


@pytest.mark.usefixtures("quick")
def test_questions_of_elsewhere_are_no_experiment(server: LangSmithServer) -> None:
    with pytest.raises(UsageError, match="the question 'q0' has no id of an example of LangSmith"):
        send(server, make_traced({"q0": None}), dataset="golden")
    with pytest.raises(RagevalError, match="there is no dataset 'gold'"):
        send(server, make_traced(EXAMPLES), dataset="gold")


@pytest.mark.usefixtures("quick")
def test_a_refusal_is_repeated_as_late_as_langsmith_asks(server: LangSmithServer, quick: list[float]) -> None:
    refused = [Answer({"detail": "slow down"}, 429, Retry_After="9")]
    server.interrupt = lambda asked: refused.pop() if refused else None
    send(server, make_traced(LINKS))
    assert len(server.feedback) == 3
    assert max(quick) > 8


@pytest.mark.usefixtures("quick")
def test_a_killed_export_continues_where_it_stopped(server: LangSmithServer, tmp_path: Path) -> None:
    links = {f"q{n}": TraceLink("langsmith", make_id(f"t{n}")) for n in range(50)}
    values = [value(f"q{n}", "faithfulness", 0.5) for n in range(50)]
    server.interrupt = lambda asked: Answer({}, 500) if len(server.feedback) >= 20 else None
    with pytest.raises(RagevalError, match="answered 500"):
        send(server, make_traced(links, values), tmp_path)
    server.interrupt = lambda asked: None
    assert send(server, make_traced(links, values), tmp_path).known == 20
    assert len(server.feedback) == 50


@pytest.mark.usefixtures("quick")
def test_what_has_no_value_is_counted_and_no_file_holds_the_key(server: LangSmithServer, tmp_path: Path) -> None:
    values = [value("q0", "faithfulness", 0.5), value("q1", "faithfulness", None)]
    told = send(server, make_traced(LINKS, values), tmp_path).render()
    assert "1 answer that a metric could not score left out" in told
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


@pytest.mark.usefixtures("quick")
def test_runs_that_are_gone_do_not_keep_the_others_from_being_judged(server: LangSmithServer) -> None:
    def forget(asked: Any) -> Answer | None:
        return Answer({"detail": "Run not found"}, 404) if make_id("t1").encode() in asked.body else None

    server.interrupt = forget
    told = send(server, make_traced(LINKS)).render()
    assert "1 feedback row on runs that LangSmith no longer has left out" in told
    assert len(server.feedback) == 2
    server.interrupt = lambda asked: Answer({"detail": "Run not found"}, 404)
    with pytest.raises(RagevalError, match=r"answered 404 .*Run not found"):
        send(server, make_traced(LINKS))


@pytest.mark.usefixtures("quick")
def test_two_systems_that_read_the_same_runs_are_kept_apart(server: LangSmithServer) -> None:
    values = [value("q0", "faithfulness", number, name) for name, number in (("v1", 0.9), ("v2", 0.1))]
    send(server, make_traced({"q0": LINKS["q0"]}, values, systems=("v1", "v2")))
    assert sorted((one["key"], one["score"]) for one in server.feedback.values()) == [
        ("faithfulness", 0.9), ("faithfulness (golden/v2)", 0.1),
    ]  # fmt: skip


FEEDBACK: dict[str, Any] = {"id": make_id("f"), "run_id": make_id("t"), "key": "x", "score": 0.5}


@pytest.fixture
def target(server: LangSmithServer) -> Iterator[LangSmithTarget]:
    opened = LangSmithTarget(LangSmithTargetNode(url=server.url, dataset="golden"), Context("langsmith"))
    yield opened
    opened.close()


def test_feedback_that_is_there_is_changed(server: LangSmithServer, target: LangSmithTarget) -> None:
    target.send([Parcel("f", FEEDBACK, "")])
    target.send([Parcel("f", FEEDBACK | {"score": 0.25, "comment": "worse"}, "")])
    assert [(one["score"], one["comment"]) for one in server.feedback.values()] == [(0.25, "worse")]


def test_an_experiment_is_opened_once(server: LangSmithServer, target: LangSmithTarget) -> None:
    for _ in range(2):
        target.send([Parcel("f", FEEDBACK | {"experiment": "nightly"}, "")])
    assert [path for path, _ in server.bodies].count("/sessions") == 1


def test_an_experiment_that_is_there_is_found_by_its_name(server: LangSmithServer, target: LangSmithTarget) -> None:
    server.sessions["nightly"] = {"id": make_id("earlier"), "name": "nightly"}
    conflict = Answer({"detail": "exists"}, 409)
    server.interrupt = lambda asked: conflict if (asked.method, asked.route) == ("POST", "/sessions") else None
    target.send([Parcel("f", FEEDBACK | {"experiment": "nightly"}, "")])
    assert server.feedback[FEEDBACK["id"]]["session_id"] == make_id("earlier")


def test_feedback_that_is_refused_is_an_error(server: LangSmithServer, target: LangSmithTarget) -> None:
    with pytest.raises(ServiceError, match=r"answered 422 .*at most 4 decimal places"):
        target.send([Parcel("f", FEEDBACK | {"score": 0.123456}, "")])


def read(server: LangSmithServer) -> list[Trace]:
    source = LangSmithSource(LangSmithSourceNode(url=server.url, project="support"), Context("langsmith"))
    try:
        return list(source.read())
    finally:
        source.close()


@pytest.mark.usefixtures("quick")
def test_values_of_this_program_do_not_come_back_as_feedback(
    server: LangSmithServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monitor would take them for what users said, and judge the trace again because more came of it."""
    set_keys(monkeypatch)
    server.add(*(row for n in range(3) for row in rag_trace(n)))
    links = {f"q{n}": one.link for n, one in enumerate(read(server))}
    before = read(server)
    assert "3 " in send(server, make_traced(links)).render()
    for run in server.runs.values():
        run["feedback_stats"] = {"faithfulness": {"n": 1}}
    assert read(server) == before
