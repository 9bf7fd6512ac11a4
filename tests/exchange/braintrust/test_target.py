from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.endpoints.pacing import Clock
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.braintrust.source import BraintrustSource, BraintrustSourceNode
from rageval_spec.exchange.braintrust.target import BraintrustTarget, BraintrustTargetNode
from rageval_spec.exchange.shared.delivery import Receipt, send_parcels
from rageval_spec.plugin import Context
from tests.answered_evaluation import value
from tests.exchange.braintrust.server import KEY, BraintrustServer, rag_trace, set_keys
from tests.exchange.evaluations import make_traced
from tests.models.endpoint import Answer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits take no time; how long they would be."""
    waits: list[float] = []
    monkeypatch.setattr(Clock, "sleep", lambda self, seconds: waits.append(seconds))
    return waits


def link_rows(server: BraintrustServer, count: int = 3) -> dict[str, TraceLink | None]:
    """Rows in the logs of the server, and the links to them."""
    identity = server.add("project_logs", "support", *(one for n in range(count) for one in rag_trace(n)))
    return {
        f"q{n}": TraceLink(
            "braintrust", f"span-t{n}", others={"row_id": f"t{n}", "object": "project_logs", "object_id": identity}
        )
        for n in range(count)
    }


def send(server: BraintrustServer, evaluation: Any, folder: Path | None = None, **keys: Any) -> Receipt:
    options = {name: keys.pop(name) for name in ("dry_run", "anew", "show") if name in keys}
    target = BraintrustTarget(BraintrustTargetNode(url=server.url, **keys), Context("braintrust"))
    try:
        return send_parcels(target, evaluation, folder, tool="braintrust", **options)
    finally:
        target.close()


def test_values_are_added_to_the_rows_of_the_answers(server: BraintrustServer, tmp_path: Path) -> None:
    links = link_rows(server)
    assert send(server, make_traced(links), tmp_path).render() == f"sent 3 rows to {server.url}\n"
    row = server.rows["project-support"]["t1"]
    assert row["scores"] == {"Factuality": 0.75, "faithfulness": 0.7}
    assert row["output"] == {"answer": "It is 1."}
    assert row["metadata"] == {
        "user_id": "u1",
        "lang": "en",
        "rageval": {"faithfulness": {"reason": "because q1", "label": "poor"}},
    }
    before = json.dumps(server.rows, sort_keys=True)
    assert send(server, make_traced(links), tmp_path).render().startswith("sent nothing")
    send(server, make_traced(links))
    assert json.dumps(server.rows, sort_keys=True) == before


def test_values_that_are_no_scores_are_left_out_and_counted(server: BraintrustServer) -> None:
    values = [value("q0", "latency", 3.5), value("q0", "faithfulness", 0.5), value("q1", "faithfulness", None)]
    receipt = send(server, make_traced(link_rows(server), values))
    assert receipt.sent["row"] == 1
    assert "2 values outside 0 to 1 or without a number left out" in receipt.render()


def test_answers_become_an_experiment(server: BraintrustServer) -> None:
    values = [value("q0", "latency", 3.5), value("q0", "faithfulness", 0.5, reason="why")]
    for _ in range(2):
        evaluation = make_traced({"q0": None}, values, cost=0.25, input_tokens=7)
        receipt = send(server, evaluation, project="support", run="nightly")
    assert receipt.render() == f"sent 1 row to {server.url}, project support\n"
    (row,) = server.rows["experiment-nightly"].values()
    assert row["input"] == {"question": "Question q0?"}
    assert row["output"]["contexts"] == ["c1"]
    assert row["expected"] == "The bridge was built in 1909."
    assert row["scores"] == {"faithfulness": 0.5}
    assert row["metrics"] == {"prompt_tokens": 7, "estimated_cost": 0.25, "latency": 3.5}
    assert row["metadata"]["rageval"]["faithfulness"] == {"reason": "why", "label": "poor"}


def test_each_system_is_an_experiment(server: BraintrustServer) -> None:
    send(server, make_traced({"q0": None}, systems=("v1", "v2")), project="new", run="nightly")
    assert set(server.objects["experiment"]) == {"nightly v1", "nightly v2"}
    assert "new" in server.objects["project"]


def test_a_trace_of_a_file_does_not_say_where_its_row_is(server: BraintrustServer) -> None:
    with pytest.raises(UsageError, match="was read from a file, which does not record where its row is"):
        send(server, make_traced({"q0": TraceLink("braintrust", "t0")}))


def test_a_dry_run_shows_and_sends_nothing(server: BraintrustServer) -> None:
    shown: list[str] = []
    send(server, make_traced(link_rows(server)), dry_run=True, show=shown.append)
    assert shown[1] == "faithfulness 0.70 -> row t1"
    assert not server.asked


def test_a_killed_export_continues_and_a_refusal_is_repeated(
    server: BraintrustServer, tmp_path: Path, quick: list[float]
) -> None:
    links = link_rows(server, 120)
    values = [value(f"q{n}", "faithfulness", 0.5) for n in range(120)]
    answers = [Answer({}, 429, Retry_After="9"), None, *[Answer({}, 500)] * 10]
    server.interrupt = lambda asked: answers.pop(0) if answers else None
    with pytest.raises(RagevalError, match="answered 500"):
        send(server, make_traced(links, values), tmp_path)
    assert max(quick) > 8
    server.interrupt = lambda asked: None
    assert send(server, make_traced(links, values), tmp_path).known == 50
    assert all("faithfulness" in server.rows["project-support"][f"t{n}"]["scores"] for n in range(120))
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_two_systems_that_read_the_same_rows_are_kept_apart(server: BraintrustServer, tmp_path: Path) -> None:
    links = link_rows(server, 1)
    values = [value("q0", "faithfulness", number, name, reason=name) for name, number in (("v1", 0.9), ("v2", 0.1))]
    evaluation = make_traced(links, values, systems=("v1", "v2"))
    send(server, evaluation, tmp_path)
    row = server.rows["project-support"]["t0"]
    assert (row["scores"]["faithfulness"], row["scores"]["faithfulness (golden/v2)"]) == (0.9, 0.1)
    assert row["metadata"]["rageval"]["faithfulness (golden/v2)"]["reason"] == "v2"
    assert send(server, evaluation, tmp_path).known == 2


def read(server: BraintrustServer) -> list[Trace]:
    source = BraintrustSource(BraintrustSourceNode(url=server.url, project="support"), Context("braintrust"))
    try:
        return list(source.read())
    finally:
        source.close()


def test_values_of_this_program_do_not_come_back_as_feedback(
    server: BraintrustServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monitor would take them for what users said, and judge the trace again because more came of it."""
    set_keys(monkeypatch)
    links = link_rows(server)
    before = read(server)
    assert "3 " in send(server, make_traced(links)).render()
    assert read(server) == before
