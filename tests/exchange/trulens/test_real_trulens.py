"""Against TruLens itself: its own SDK makes the database, and reads the feedback that was written into it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.peers import run_peer
from tests.exchange.traced_evaluation import evaluate
from tests.exchange.trulens.reading import read, send

REQUIREMENT = "trulens-feedback==2.16.0"
SEED = """
import json, os, sys, warnings
os.environ["TRULENS_OTEL_TRACING"] = "1"
path, count = json.loads(sys.argv[1]), json.loads(sys.argv[2])
from trulens.apps.app import TruApp
from trulens.core import TruSession
from trulens.core.otel.instrument import instrument
from trulens.otel.semconv.trace import SpanAttributes as A
session = TruSession(database_url=f"sqlite:///{path}")
class Rag:
    @instrument(span_type=A.SpanType.RETRIEVAL,
                attributes={A.RETRIEVAL.QUERY_TEXT: "query", A.RETRIEVAL.RETRIEVED_CONTEXTS: "return"})
    def retrieve(self, query):
        return [f"Text {k}." for k in range(2)]
    @instrument(span_type=A.SpanType.GENERATION)
    def generate(self, query, contexts):
        if query == f"Question {count - 1}?":
            raise TimeoutError("out of time")
        return query.replace("Question", "Answer").replace("?", ".")
    @instrument(attributes={A.RECORD_ROOT.INPUT: "query", A.RECORD_ROOT.OUTPUT: "return"})
    def query(self, query):
        return self.generate(query, self.retrieve(query))
rag = Rag()
app = TruApp(rag, app_name="support", app_version="v1", main_method=rag.query)
for i in range(count):
    try:
        with app:
            rag.query(f"Question {i}?")
    except TimeoutError:
        pass
session.force_flush()
session.add_ground_truth_to_dataset("golden", __import__("pandas").DataFrame(
    {"query": ["Why?"], "query_id": ["q1"], "expected_response": ["So."], "expected_chunks": [[{"text": "t"}]]}))
print()
print("{}")
"""
LOOK = """
import json, os, sys
os.environ["TRULENS_OTEL_TRACING"] = json.loads(sys.argv[2])
from trulens.core import TruSession
session = TruSession(database_url=f"sqlite:///{json.loads(sys.argv[1])}")
frame, columns = session.get_records_and_feedback()
rows = {}
for _, row in frame.iterrows():
    calls = {name: row.get(f"{name}_calls") for name in columns}
    told = {name: [one.get("meta") or {} for one in found] for name, found in calls.items() if isinstance(found, list)}
    reasons = {name: [one.get("explanation") or one.get("reason") for one in found] for name, found in told.items()}
    rows[row["input"]] = [{name: None if row[name] != row[name] else row[name] for name in columns}, reasons]
print()
print(json.dumps([sorted(columns), rows, session.get_leaderboard().to_dict("records")], default=str))
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with four records, the last of which failed, and a dataset."""
    path = tmp_path / "default.sqlite"
    run_peer("trulens", REQUIREMENT, SEED, str(path), 4)
    return path


def look(path: Path, *, tracing: str = "1") -> Any:
    """What TruLens's own SDK reads: its feedback columns, their values and reasons by question, and its leaderboard."""
    return run_peer("trulens", REQUIREMENT, LOOK, str(path), tracing)


def test_records_go_in_and_feedback_comes_out(database: Path) -> None:
    traces = read(database)
    assert [trace.question for trace in traces] == [f"Question {i}?" for i in (3, 2, 1, 0)]
    assert [trace.answer for trace in traces] == [None, "Answer 2.", "Answer 1.", "Answer 0."]
    assert [one.text for one in traces[1].documents or ()] == ["Text 0.", "Text 1."]
    assert traces[0].error
    (truth,) = read(database, dataset="golden")
    assert (truth.question, truth.references) == ("Why?", ("So.",))

    send(database, evaluate(traces))
    columns, rows, (leader,) = look(database)
    assert columns == ["faithfulness", "ndcg@10"]
    values, reasons = rows["Question 1?"]
    assert values == {"faithfulness": 0.2, "ndcg@10": 0.25}
    assert any(str(reason).startswith("1 supported, 1 contradicted") for reason in reasons["faithfulness"])
    assert rows["Question 3?"][0] == {"faithfulness": None, "ndcg@10": 0.25}
    assert leader["faithfulness"] == pytest.approx(0.2)

    before = database.read_bytes()
    send(database, evaluate(traces))
    assert database.read_bytes() == before
    send(database, evaluate(traces, 0.5))
    assert look(database)[1]["Question 1?"][0]["faithfulness"] == 0.7
    assert read(database) == traces


def test_records_of_earlier_versions_get_feedback_too(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        app_id = connection.execute("SELECT app_id FROM trulens_apps").fetchone()[0]
        perf = '{"start_time": "2025-01-01T00:00:00", "end_time": "2025-01-01T00:00:02"}'
        row = ("old1", app_id, '"Old question?"', '"Old answer."', "{}", "-", 1735689600.0, '{"cost": 0.5}', perf)
        connection.execute(f"INSERT INTO trulens_records VALUES ({', '.join('?' * len(row))})", row)
    old = [trace for trace in read(database) if trace.question == "Old question?"]
    send(database, evaluate(old))
    columns, rows, _ = look(database, tracing="0")
    assert columns == ["faithfulness", "ndcg@10"]
    values, reasons = rows["Old question?"]
    assert values == {"faithfulness": 0.0, "ndcg@10": 0.25}
    assert reasons["faithfulness"][0].startswith("1 supported, 1 contradicted")
