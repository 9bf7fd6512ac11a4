"""A retriever behind a URL through the whole pipeline."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import runner
from rageval_spec.diagnostics import SpecError
from rageval_spec.runner import Options, RunOutcome
from tests.checked_specs import validate
from tests.systems.asking import Service
from tests.tiny import write_spec

RANKED = {"red": ["d1", "d4"], "yellow": ["d2", "d3"], "sweet": []}


@pytest.fixture
def service() -> Iterator[Service]:
    def find(call: Any) -> tuple[int, Any]:
        ids = next((ids for word, ids in RANKED.items() if word in call.json["question"]), [])
        return 200, {"hits": [{"id": name, "score": 1 / place} for place, name in enumerate(ids, 1)]}

    found = Service(find)
    yield found
    found.close()


def retriever(service: Service) -> dict[str, Any]:
    return {"use": "http", "url": service.url, "retrieves": "$.hits[*].id", "scores": "$.hits[*].score"}


SOURCE = f"""
import json, sys
RANKED = {RANKED}
def find(question):
    return next((ids for word, ids in RANKED.items() if word in question), [])
if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps({{"ids": find(json.loads(line)["question"])}}), flush=True)
"""
LIVE = {
    "python": {"use": "python", "function": "live_retriever:find", "retrieves": True},
    "command": {"use": "command", "command": [sys.executable, "live_retriever.py"], "retrieves": "$.ids"},
}


def evaluate(folder: Path, **sections: Any) -> RunOutcome:
    return runner.run(write_spec(folder, **sections), Options(output=folder / "out"))


def cells(outcome: RunOutcome) -> dict[tuple[str, str], tuple[Any, int]]:
    return {(a.system, a.metric): (a.mean, a.scored) for a in outcome.evaluation.aggregates}


def test_its_rankings_are_evaluated_and_shown_like_those_of_other_retrievers(tmp_path: Path, service: Service) -> None:
    systems = {"good": {"use": "file", "path": "data/good.run"}, "live": retriever(service)}
    outcome = evaluate(tmp_path, systems=systems, metrics=["rr", "precision@1", "latency@p50"])
    found = cells(outcome)
    assert found["live", "rr"][1] == found["good", "rr"][1] > 0
    assert 0 < found["live", "rr"][0] <= 1
    assert found["live", "latency@p50"][0] > 0
    live = outcome.evaluation.samples.filter(system="live")
    assert set(live["status"]) == {"retrieved"}
    assert live.filter(query_id="q1")["scores"].to_list() == [[1.0, 0.5]]
    assert not outcome.evaluation.failures


@pytest.mark.parametrize("word", [*LIVE])
def test_functions_and_programs_are_ranked_as_a_service_is(tmp_path: Path, service: Service, word: str) -> None:
    (tmp_path / "live_retriever.py").write_text(SOURCE)
    systems = {"service": retriever(service), "own": LIVE[word]}
    outcome = evaluate(tmp_path, systems=systems, metrics=["rr", "recall@1"])
    found = cells(outcome)
    assert found["own", "rr"] == found["service", "rr"] and found["own", "rr"][0] > 0
    assert found["own", "recall@1"] == found["service", "recall@1"]
    assert set(outcome.evaluation.samples.filter(system="own")["status"]) == {"retrieved"}


@pytest.mark.parametrize("word", [*LIVE])
def test_metrics_of_texts_are_an_error_for_functions_and_programs_that_retrieve(tmp_path: Path, word: str) -> None:
    (tmp_path / "live_retriever.py").write_text(SOURCE)
    path = write_spec(tmp_path, systems={"own": LIVE[word]}, metrics=["rr", "is_json"])
    with pytest.raises(SpecError, match="is_json is a metric of answers, but no system of this spec answers"):
        validate(path)


def test_ids_that_no_judgement_names_are_told(tmp_path: Path) -> None:
    (tmp_path / "live_retriever.py").write_text("def find(question): return [f'text of {question}']\n")
    outcome = evaluate(tmp_path, systems={"own": LIVE["python"]}, metrics=["rr"])
    (note,) = (note for note in outcome.evaluation.notes if note.code == "unknown_documents")
    assert note.level == "warning"
    assert note.message == (
        "none of the 4 documents that it found is judged, so none counts as relevant; its ids are such as "
        "'text of red apple', those of the judgements such as 'd3'"
    )


def test_a_system_cannot_read_the_run_of_one_that_is_asked(tmp_path: Path, service: Service) -> None:
    good = {"use": "file", "path": "data/good.run"}
    systems = {"good": good, "live": retriever(service), "both": {"use": "hybrid", "systems": ["good", "live"]}}
    path = write_spec(tmp_path, systems=systems, metrics=["rr"])
    with pytest.raises(SpecError) as caught:
        validate(path)
    (fault,) = caught.value.diagnostics
    assert fault.message == "'both' reads the run of 'live', which is asked and gives no run that can be kept"
    assert fault.source_line.strip().startswith("both:")


def test_a_file_of_answers_is_no_run_that_others_can_read(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red"}\n')
    good, bot = ({"use": "file", "path": name} for name in ("data/good.run", "answers.jsonl"))
    systems = {"good": good, "bot": bot, "both": {"use": "hybrid", "systems": ["good", "bot"]}}
    outcome = evaluate(tmp_path, systems=systems, metrics=["rr"])
    assert "both on fruit: reads the run of 'bot', which gives answers and no run" in outcome.evaluation.failures


def test_metrics_of_texts_are_left_to_systems_that_write(tmp_path: Path, service: Service) -> None:
    (tmp_path / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red apple"}\n')
    systems = {"live": retriever(service), "bot": {"use": "file", "path": "answers.jsonl"}}
    metrics = ["rr", "is_json"]
    outcome = evaluate(tmp_path, systems=systems, metrics=metrics)
    assert {metric for system, metric in cells(outcome) if system == "live"} == {"rr"}
    assert ("bot", "is_json") in cells(outcome)


def test_metrics_of_texts_without_a_system_that_writes_are_an_error(tmp_path: Path, service: Service) -> None:
    path = write_spec(tmp_path, systems={"live": retriever(service)}, metrics=["rr", "is_json", "latency@p50"])
    with pytest.raises(SpecError) as caught:
        validate(path)
    (fault,) = caught.value.diagnostics
    assert fault.message == "is_json is a metric of answers, but no system of this spec answers"
    assert service.calls == []
