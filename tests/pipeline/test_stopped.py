"""An evaluation stopped by a limit: queries that were not asked have no value and do not count as failures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import runner
from rageval_spec.runner import Options, RunOutcome
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.systems.asking import Call, Said, Service
from tests.tiny import write_spec

ROWS = 36
WHY = "limits.max_calls: 14 of 14 calls to systems made"
STOP = f"{WHY}; run again to continue from the stored replies; each run has the full limit"


def say(call: Call) -> Said:
    """A service that fails on four questions and answers the others."""
    number = int(call.json["question"].split()[-1])
    return (404, {"detail": "no"}) if number < 4 else (200, {"answer": f"it is {number}"})


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service(say)
    yield running
    running.close()


def evaluate(folder: Path, url: str, **sections: Any) -> RunOutcome:
    rows = [{"query_id": f"q{n:02}", "question": f"what is {n}", "reference": f"it is {n}"} for n in range(ROWS)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    base: dict[str, Any] = {
        "datasets": {"faq": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "http", "url": url, "concurrency": 1}},
        "metrics": ["error_rate", "exact_match"],
        "limits": {"max_calls": 14},
    }
    return runner.run(write_spec(folder, **base | sections), Options(output=folder / "out"))


def statuses(outcome: RunOutcome, metric: str) -> list[tuple[str, str | None]]:
    values = outcome.evaluation.values
    return values.filter(values["metric"] == metric).select("status", "reason").rows()


def test_unasked_questions_are_not_failures_of_the_system(tmp_path: Path, service: Service) -> None:
    outcome = evaluate(tmp_path, service.url)
    assert len(service.calls) == 14
    rate = outcome.evaluation.aggregate("faq", "bot", "error_rate")
    assert rate is not None
    assert (rate.mean, rate.scored, rate.total) == (4 / 14, 14, ROWS)
    assert statuses(outcome, "error_rate")[14:] == [("error", STOP)] * 22
    assert statuses(outcome, "exact_match")[14:] == [("error", STOP)] * 22
    assert outcome.exit_code == 3
    notes = {note.code: note for note in outcome.evaluation.notes}
    assert notes["stopped"].message == f"22 of 36 queries were not asked: {WHY}"
    assert (notes["stopped"].level, notes["stopped"].count) == ("warning", 22)
    assert [str(failure) for failure in outcome.failures] == [f"bot on faq: {STOP}"]
    assert set(notes) == {"stopped", "unanswered"}
    assert notes["unanswered"].message.startswith("4 of 36 queries got no answer; the first, q00: ")


def test_the_rest_is_asked_in_the_next_run(tmp_path: Path, service: Service) -> None:
    for _ in range(2):
        evaluate(tmp_path, service.url)
    outcome = evaluate(tmp_path, service.url, limits={"max_calls": 100})
    rate = outcome.evaluation.aggregate("faq", "bot", "error_rate")
    assert rate is not None
    assert (rate.mean, rate.scored) == (4 / ROWS, ROWS)
    assert "stopped" not in {note.code for note in outcome.evaluation.notes}


def test_a_gate_on_failures_does_not_pass_on_what_was_asked(tmp_path: Path, service: Service) -> None:
    gates = [{"metric": "error_rate", "max": 0.5}]
    [gate] = evaluate(tmp_path, service.url, gates=gates).evaluation.gates
    assert gate.outcome == "fail"
    assert "only 14 of 36 queries could be scored" in gate.reason


def test_questions_after_too_many_failures_do_not_count_as_failures(tmp_path: Path) -> None:
    def fail(call: Call) -> Said:
        number = int(call.json["question"].split()[-1])
        return (500, {"detail": "down"}) if number >= 8 else (200, {"answer": f"it is {number}"})

    service = Service(fail)
    bot = {"use": "http", "url": service.url, "concurrency": 1, "retries": 0}
    gates = [{"metric": "error_rate", "max": 0.9}]
    try:
        outcome = evaluate(tmp_path, service.url, systems={"bot": bot}, limits={"max_errors": "90%"}, gates=gates)
    finally:
        service.close()
    assert len(service.calls) == 18
    rate = outcome.evaluation.aggregate("faq", "bot", "error_rate")
    assert rate is not None
    assert (rate.mean, rate.scored, rate.total) == (10 / 18, 18, ROWS)
    notes = {note.code: note.message for note in outcome.evaluation.notes}
    assert notes["stopped"] == "18 of 36 queries were not asked after 10 failed calls in a row"
    assert notes["unanswered"].startswith("10 of 36 queries got no answer; the first, q08: ")
    assert outcome.evaluation.gates[0].outcome == "fail"
    assert "only 18 of 36 queries could be scored" in outcome.evaluation.gates[0].reason
    advice = outcome.spent.advise(is_finished=outcome.is_finished)
    assert (outcome.is_finished, advice) == (True, "run again with --retry-failed to retry failed calls")


def test_a_limit_of_no_calls_stops_everything(tmp_path: Path, service: Service) -> None:
    outcome = evaluate(tmp_path, service.url, limits={"max_calls": 0})
    assert service.calls == []
    assert outcome.failures[0].message.startswith(
        "none of 36 queries was asked: limits.max_calls: 0 of 0 calls to systems made"
    )
    assert {status for status, _ in statuses(outcome, "error_rate")} == {"error"}


def test_unasked_judgements_are_not_failures_of_the_judge(tmp_path: Path) -> None:
    server = ChatServer(lambda number, body: Answer(completion('{"grade": 4, "reason": "well"}')))
    rows = [{"query_id": f"q{n:02}", "answer": f"it is {n}"} for n in range(ROWS)]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        outcome = evaluate(
            tmp_path,
            "",
            systems={"bot": {"use": "file", "path": "answers.jsonl"}},
            models={"chat": {"use": "chat", "base_url": server.url, "model": "tiny", "retries": 0, "concurrency": 1}},
            judges={"strict": {"use": "grade", "model": "chat"}},
            metrics=[{"use": "rubric", "judge": "strict", "criteria": "Is the answer polite?", "as": "polite"}],
        )
    finally:
        server.close()
    assert len(server.calls) == 14
    found = outcome.evaluation.aggregate("faq", "bot", "polite")
    assert found is not None
    assert (found.scored, found.total) == (14, ROWS)
    assert (
        sum(
            status == "error" and reason == STOP.replace("systems", "models")
            for status, reason in statuses(outcome, "polite")
        )
        == 22
    )
    notes = {note.code: note for note in outcome.evaluation.notes}
    assert notes["stopped"].message == f"polite: 22 of 36 queries were not judged: {WHY.replace('systems', 'models')}"
    assert "failed_queries" not in notes
    assert outcome.exit_code == 3
    assert outcome.spent.errors == 0
