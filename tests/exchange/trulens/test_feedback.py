from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.exchange.traced_evaluation import evaluate
from tests.exchange.trulens.database import SCOPE, add_older, make_database, query
from tests.exchange.trulens.reading import read, send


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
