""""""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import TraceLink
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.exchange.trulens import target as module
from rageval_spec.exchange.trulens.source import list_roots
from rageval_spec.exchange.trulens.target import write_spans
from tests.exchange.traced_evaluation import evaluate
from tests.exchange.trulens.database import SCOPE, add_older, make_database, query
from tests.exchange.trulens.reading import read, send


def test_a_copy_is_made_and_said(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    receipt = send(path, evaluate(read(path)))
    assert dict(receipt.sent) == {"feedback row": 6}
    assert receipt.remarks == (f"{path}.before-rageval is the database as it was before",)
    assert query(Path(f"{path}.before-rageval"), "SELECT count(*) FROM trulens_events") == [(10,)]


def test_without_a_copy_there_is_none(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    send(path, evaluate(read(path)), backup=False)
    assert [one.name for one in tmp_path.iterdir()] == ["t.sqlite"]


def test_sending_twice_leaves_the_same_bytes(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    traces = read(path)
    send(path, evaluate(traces))
    before = path.read_bytes()
    send(path, evaluate(traces))
    assert path.read_bytes() == before
    send(path, evaluate(traces, 0.5))
    assert query(path, "SELECT count(*) FROM trulens_events") == [(10 + 12,)]


def test_what_was_written_is_not_read_back_as_feedback(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    before = read(path)
    send(path, evaluate(before))
    assert read(path) == before


def test_a_dry_run_shows_everything_and_touches_nothing(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 2)
    before = path.read_bytes()
    receipt = send(path, evaluate(read(path)), dry_run=True)
    assert receipt.remarks == (
        "faithfulness unscorable -> record rec2",
        "ndcg@10 0.25 -> record rec2",
        "faithfulness 0.1 (poor) -> record rec1",
        "ndcg@10 0.25 -> record rec1",
    )
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["t.sqlite"]


def test_an_export_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_database(tmp_path / "t.sqlite")
    evaluation = evaluate(read(path))
    monkeypatch.setattr(module.TrulensTarget, "batch", 2)
    real, calls = write_spans, iter(range(9))

    def break_down(*given: Any) -> Any:
        left = real(*given)
        if next(calls) == 1:
            raise RagevalError("killed")
        return left

    monkeypatch.setattr(module, "write_spans", break_down)
    with pytest.raises(RagevalError, match="killed"):
        send(path, evaluation, tmp_path)
    assert query(path, "SELECT count(*) FROM trulens_events") == [(10 + 4,)]
    receipt = send(path, evaluation, tmp_path)
    assert (receipt.known, receipt.sent.total()) == (2, 4)
    assert query(path, "SELECT count(*) FROM trulens_events") == [(10 + 12,)]


def test_records_that_are_gone_are_left_out_and_counted(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    traces = read(path)
    gone = replace(traces[0], link=TraceLink("trulens", "rec99"), query_id="gone")
    receipt = send(path, evaluate([gone, *traces]), backup=False)
    assert receipt.remarks == ("2 values left out: 1 record not in the database, such as rec99",)


def test_several_systems_have_names_of_their_own(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    send(path, evaluate(read(path), systems=("v1", "v2")))
    told = query(path, "SELECT record_attributes FROM trulens_events WHERE record_attributes LIKE '%rageval-spec%'")
    assert any("ndcg@10 (golden/v1)" in text for (text,) in told)


def test_answers_from_elsewhere_are_refused(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    others = [replace(trace, link=TraceLink("phoenix", "x")) for trace in read(path)]
    with pytest.raises(UsageError, match="no answer has a trace of trulens; their traces are of phoenix"):
        send(path, evaluate(others))


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    evaluation = evaluate(read(path))
    with pytest.raises(UsageError, match="there is no such file"):
        send(tmp_path / "nope.sqlite", evaluation)
    page = tmp_path / "page.sqlite"
    page.write_text("<!DOCTYPE html>" * 100)
    with pytest.raises(DataError, match="not a SQLite database"):
        send(page, evaluation)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["page.sqlite", "t.sqlite"]


def test_all_events_are_looked_through_once_however_many_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_database(tmp_path / "t.sqlite")
    monkeypatch.setattr(module.TrulensTarget, "batch", 1)
    calls: list[object] = []

    def list_once(connection: sqlite3.Connection) -> dict[str, str]:
        calls.append(connection)
        return list_roots(connection)

    monkeypatch.setattr(module, "list_roots", list_once)
    assert send(path, evaluate(read(path))).sent.total() == 6
    assert len(calls) == 1


def list_written(path: Path, kind: str) -> list[dict[str, Any]]:
    """The attributes of the spans of a type that this program wrote."""
    rows = query(path, "SELECT record_attributes FROM trulens_events ORDER BY start_timestamp, event_id")
    found = [json.loads(text) for (text,) in rows]
    ours = [one for one in found if one.get(f"{SCOPE}eval.metadata.source") == "rageval-spec"]
    return [one for one in ours if one[f"{SCOPE}span_type"] == kind]


def test_a_value_is_a_span_with_the_score_and_one_with_the_reason(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 2)
    send(path, evaluate(read(path)))
    roots = {
        (one[f"{SCOPE}record_id"], one[f"{SCOPE}eval_root.metric_name"]): one for one in list_written(path, "eval_root")
    }
    root = roots["rec1", "faithfulness"]
    assert (root[f"{SCOPE}eval_root.score"], root[f"{SCOPE}eval_root.higher_is_better"]) == (0.1, True)
    assert (root[f"{SCOPE}app_name"], root[f"{SCOPE}eval.target_record_id"]) == ("support", "rec1")
    steps = {one[f"{SCOPE}eval.eval_root_id"]: one for one in list_written(path, "eval")}
    step = steps[root[f"{SCOPE}eval.eval_root_id"]]
    assert step[f"{SCOPE}eval.explanation"].startswith("1 supported, 1 contradicted")
    assert (step[f"{SCOPE}eval.score"], step[f"{SCOPE}eval.metadata.label"]) == (0.1, "poor")


def test_what_could_not_be_scored_has_an_error_and_no_score(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    send(path, evaluate(read(path)))
    (lost,) = [one for one in list_written(path, "eval_root") if one[f"{SCOPE}eval_root.metric_name"] == "faithfulness"]
    assert lost[f"{SCOPE}eval_root.error"] == "there is no answer"
    assert f"{SCOPE}eval_root.score" not in lost


def test_spans_stand_below_one_another_in_the_record_s_trace(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    send(path, evaluate(read(path)))
    query_text = "SELECT event_id, trace FROM trulens_events WHERE record_attributes LIKE '%rageval-spec%'"
    traces = {event_id: json.loads(text) for event_id, text in query(path, query_text)}
    assert {trace["trace_id"] for trace in traces.values()} == {"1999"}
    assert all(trace["span_id"] == event_id and int(event_id) < 2**64 for event_id, trace in traces.items())
    assert sorted(trace["parent_id"] in traces or trace["parent_id"] == "" for trace in traces.values()) == [True] * 4


def test_records_of_earlier_versions_get_rows_of_their_table(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    add_older(path)
    old = read(path)[-1:]
    send(path, evaluate(old))
    rows = query(
        path, "SELECT name, result, status, calls_json FROM trulens_feedbacks WHERE record_id = 'old1' ORDER BY name"
    )
    assert [row[:3] for row in rows] == [
        ("faithfulness", 0.0, "done"),
        ("groundedness", 0.5, "done"),
        ("ndcg@10", 0.25, "done"),
    ]
    assert "contradicted" in json.loads(rows[0][3])["calls"][0]["meta"]["reason"]
    before = path.read_bytes()
    send(path, evaluate(old))
    assert path.read_bytes() == before
    assert [one.name for one in read(path)[-1].feedback] == ["groundedness"]
