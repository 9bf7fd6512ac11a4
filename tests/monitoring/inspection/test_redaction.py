"""What `redact:` leaves out of rows, and of what alerts tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.data.alerts import WorstAnswer
from rageval_spec.data.traces import Document, Feedback, Step, Trace, TraceLink
from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.assembly import open_ledger
from rageval_spec.monitoring.inspection.redaction import Redaction
from tests.monitoring.inspection.watched import BAD, NOON, judge, load_spec, write_traces

TRACE = Trace(
    TraceLink("file", "t1"), "Who?", answer="Ada.", documents=(Document("Ada wrote it.", "d1"),), references=("Ada",),
    error="no 'Ada' found: Ada", user="u1", started="2026-03-01T12:00:00Z",
    messages=({"role": "user", "content": "Who?"},),
    steps=(Step("tool", output="Ada"),), feedback=(Feedback("thumbs", 0.0, comment="Not Ada!"),),
    metadata={"group": "a", "x": 1},
)  # fmt: skip
WORST = WorstAnswer("t1", "Who?", "Ada.", 0.1, "'Ada' is wrong")


def test_without_a_word_nothing_is_left_out() -> None:
    assert Redaction().make_row(TRACE) == TRACE.to_row()
    evidence = {"worst": (WORST,), "moved": {"traffic": "new: Who?"}, "value": 0.5}
    assert Redaction().hide_evidence(evidence) == evidence


@pytest.mark.parametrize(("word", "gone"), [
    ("question", {"question", "messages", "steps"}),
    ("answer", {"answer", "steps"}),
    ("contexts", {"contexts", "steps"}),
    ("reference", {"reference"}),
    ("error", {"error"}),
    ("columns", {"user", "started", "feedback", "metadata"}),
    ("group", set()),
])  # fmt: skip
def test_each_word_leaves_out_what_it_names_and_what_can_quote_it(word: str, gone: set[str]) -> None:
    row = Redaction((word,)).make_row(TRACE)
    assert TRACE.to_row().keys() - row.keys() == gone
    if "steps" in gone:
        assert (row["error"], row["feedback"]) == ("no", [{"name": "thumbs", "value": 0.0, "source": "unknown"}])
    assert (row.get("metadata") == {"x": 1}) == (word == "group")


def test_contexts_keep_their_ids() -> None:
    assert Redaction(("contexts",)).make_row(TRACE)["context_ids"] == ["d1"]


def test_messages_of_alerts_leave_out_the_same() -> None:
    hidden = Redaction(("question", "error")).hide_evidence({"worst": (WORST,), "moved": {"traffic": "2 new: Who?"}})
    assert hidden == {"worst": (replace(WORST, question="", answer="", reason=None),), "moved": {"traffic": "2 new"}}


def test_a_monitor_tells_nobody_what_is_redacted(tmp_path: Path) -> None:
    write_traces(tmp_path, *({"id": f"bad{n}", "answer": BAD} for n in range(200)))
    spec = load_spec(tmp_path, "redact: [question, answer]\n")
    judge(spec, NOON + 7200)
    with open_ledger(spec) as ledger:
        rows = [row.message for row in AlertBook(ledger.connection, spec.name).read() if row.state == "firing"]
    assert len(rows) == 1 and rows[0] is not None
    assert '"trace_id": "bad' in rows[0] and BAD not in rows[0] and "Can I return" not in rows[0]
