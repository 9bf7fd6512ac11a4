"""A spec as the argument of `calibrate`: what is asked, what is paid, and what is not paid twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer

ROWS, LABELLED = 40, 12
PRICE = {"input": 1000.0, "output": 0.0}
CALL = 7 * 1000.0 / 1e6


def decide(number: int, body: dict[str, Any]) -> Answer:
    """Yes for even rows, except one."""
    asked = json.dumps(body["messages"])
    row = next(row for row in range(ROWS) if f"It is {row}." in asked)
    return Answer(completion("yes" if row % 2 == 0 and row != 4 else "no"))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer(decide)
    yield running
    running.close()


def write(folder: Path, server: ChatServer, **changes: Any) -> str:
    rows = [
        {"id": f"r{row}", "question": f"What is {row}?", "answer": f"It is {row}.", "contexts": [f"{row} is {row}."]}
        for row in range(ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels = [f"r{row},ann,{'5' if row % 2 == 0 else '1'}" for row in range(LABELLED)]
    (folder / "labels.csv").write_text("\n".join(["query_id,annotator,value", *labels]))
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "models": {"gpt": {"use": "chat", "base_url": server.url, "model": "tiny", "retries": 0, "price": PRICE}},
        "judges": {
            "strict": {"use": "binary", "model": "gpt", "per": "answer"},
            "twice": {"use": "panel", "judges": ["strict"], "repeats": 2},
        },
        "labels": {"people": {"use": "csv", "path": "labels.csv", "scale": [1, 5]}},
        "metrics": [{"use": "faithfulness", "judge": "strict", "labels": "people"}, "token_f1"],
        "gates": [{"metric": "faithfulness", "min": 0.99}],
        **changes,
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec))
    return str(path)


def calibrate(spec: str, *options: str) -> dict[str, Any]:
    result = invoke("calibrate", spec, *options, "--format", "json")
    assert result.exit_code == 0, result.output
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def test_only_labelled_questions_are_asked_and_the_price_of_all_is_said(tmp_path: Path, server: ChatServer) -> None:
    spec = write(tmp_path, server)
    result = invoke("calibrate", spec)
    assert result.exit_code == 0
    assert len(server.calls) == LABELLED
    assert "faithfulness: 12 labelled items, 12 labels by 1 person" in result.stdout
    told = " ".join(result.stderr.split())
    assert "Only the 12 labelled questions are scored; all of them would take 40 calls" in told
    assert "add --all." in told
    assert "gpt" in told  # what will be asked, before it is
    assert not (tmp_path / ".rageval" / "history.db").exists()


def test_nothing_is_asked_twice_and_all_questions_are_scored_on_demand(tmp_path: Path, server: ChatServer) -> None:
    spec = write(tmp_path, server)
    (first,) = calibrate(spec)["calibrations"]
    assert (first["mean"]["labels"], first["mean"]["rows"]) == (LABELLED, LABELLED)
    (again,) = calibrate(spec)["calibrations"]
    assert len(server.calls) == LABELLED
    assert again == first
    (whole,) = calibrate(spec, "--all")["calibrations"]
    assert len(server.calls) == ROWS
    assert whole["mean"]["rows"] == ROWS
    (stored,) = calibrate(spec)["calibrations"]  # everything is stored, so all questions are scored
    assert len(server.calls) == ROWS
    assert stored == whole


def test_what_run_stored_is_used_without_a_network(tmp_path: Path, server: ChatServer) -> None:
    spec = write(tmp_path, server)
    assert invoke("run", spec, "-o", str(tmp_path / "out")).exit_code == 1  # the gate fails
    server.close()
    (found,) = calibrate(spec)["calibrations"]
    assert found["mean"]["rows"] == ROWS


def test_the_scale_of_the_labels_is_the_specs(tmp_path: Path, server: ChatServer) -> None:
    (found,) = calibrate(write(tmp_path, server))["calibrations"]
    assert (found["yes"], found["no"]) == (6, 6)
    assert found["mean"]["labelled"] == pytest.approx(0.5)


def test_judges_that_no_metric_asks_are_asked_too_and_each_has_its_price(tmp_path: Path, server: ChatServer) -> None:
    content = calibrate(write(tmp_path, server), "--judge", "strict", "--judge", "twice", "--judge", "overlap")
    (comparison,) = content["comparisons"]
    rows = {row["judge"]: row for row in comparison["rows"]}
    assert [row["metric"] for row in comparison["rows"]] == [
        "faithfulness", "faithfulness (twice)", "faithfulness (overlap)",
    ]  # fmt: skip
    assert comparison["items"] == LABELLED
    assert rows["strict"]["spending"]["cost"] == pytest.approx(CALL)
    assert rows["twice"]["spending"]["calls"] == pytest.approx(2.0)
    assert rows["overlap"]["spending"]["cost"] == 0.0
    assert rows["strict"]["spending"]["seconds"] > 0
    assert len(server.calls) == 2 * LABELLED  # the panel's first reply is the judge's own


def test_limits_of_the_spec_hold(tmp_path: Path, server: ChatServer) -> None:
    result = invoke("calibrate", write(tmp_path, server), "--set", "limits.max_calls=5")
    assert len(server.calls) == 5
    assert "limits.max_calls: 5 of 5 calls made" in " ".join(result.stderr.split())


def test_labels_of_a_file_replace_those_of_the_spec(tmp_path: Path, server: ChatServer) -> None:
    spec = write(tmp_path, server)
    other = tmp_path / "other.csv"
    other.write_text("query_id,metric,annotator,value\nr1,faithfulness,bob,no\nr2,faithfulness,bob,yes\n")
    (found,) = calibrate(spec, "--labels", str(other))["calibrations"]
    assert found["items"] == 2
    assert len(server.calls) == 2


def test_labels_that_are_too_few_for_a_corrected_mean_can_be_looked_at(tmp_path: Path, server: ChatServer) -> None:
    spec = write(tmp_path, server)
    (tmp_path / "labels.csv").write_text("query_id,annotator,value\nr1,ann,1\nr2,ann,5\nr3,ann,3\n")
    (found,) = calibrate(spec)["calibrations"]
    assert found["items"] == 3
    assert len(server.calls) == 3


def test_a_spec_that_does_not_exist_is_not_taken_for_results(tmp_path: Path) -> None:
    result = invoke("calibrate", str(tmp_path / "absent.yaml"))
    assert result.exit_code == 2
    assert "absent.yaml: no such file" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, ["--judge", "strickt"], "--judge strickt: the spec has no judge of this name; did you mean 'strict'?"),
        ({}, ["--judge", "claims"], "--judge claims: it needs more keys; declare it under 'judges:' in the spec"),
        ({"labels": {}, "metrics": [{"use": "faithfulness", "judge": "strict"}]}, [], "the spec has no 'labels:'"),
    ],
)
def test_what_is_missing_is_explained_before_anything_is_asked(
    tmp_path: Path, server: ChatServer, changes: dict[str, Any], options: list[str], message: str
) -> None:
    result = invoke("calibrate", write(tmp_path, server, **changes), *options)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert server.calls == []


def test_options_of_a_spec_need_one(tmp_path: Path) -> None:
    result = invoke("calibrate", str(tmp_path), "--all")
    assert result.exit_code == 2
    assert "--set and --all need a spec: rageval-spec calibrate spec.yaml" in result.output
