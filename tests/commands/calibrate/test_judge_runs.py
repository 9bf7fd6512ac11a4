"""A spec as the argument of `calibrate`: what is asked, what is paid, and what is not paid twice.

What `calibrate --spec` works with is found, or its lack explained.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.calibrate.judges_against_labels import choose_metric, gather
from rageval_spec.data.labels import Label
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.execution.sample_judging import find_asked
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.progress import ProgressDisplay
from rageval_spec.spec import load
from tests.answered_evaluation import answered, sample, value
from tests.command_line import invoke
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.tiny import write_spec

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
        "metrics": [{"use": "faithfulness", "judge": "strict", "labels": "people"}, "error_rate"],
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
    assert "limits.max_calls: 5 of 5 calls to models made" in " ".join(result.stderr.split())


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


def test_labels_are_read_after_what_they_belong_to(tmp_path: Path, server: ChatServer) -> None:
    """A wrong option, missing results and a wrong spec are said first, whatever the labels are."""
    labels = ("--labels", str(tmp_path / "missing.csv"))
    assert "--set and --all need a spec" in invoke("calibrate", str(tmp_path), "--all", *labels).output
    assert "missing.csv" not in invoke("calibrate", str(tmp_path / "nothing"), *labels).output
    spec = write(tmp_path, server, judges={"judge": {"use": "nonsense"}})
    assert "missing.csv" not in invoke("calibrate", spec, *labels).output


def test_options_of_a_spec_need_one(tmp_path: Path) -> None:
    result = invoke("calibrate", str(tmp_path), "--all")
    assert result.exit_code == 2
    assert "--set and --all need a spec: rageval-spec calibrate spec.yaml" in result.output


CASCADE = {"use": "cascade", "steps": ["overlap", "embedding"]}


def parts_of(folder: Path, *metrics: Any) -> Any:
    (folder / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red", "contexts": ["red"]}\n')
    path = write_spec(
        folder,
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        judges={"tiers": CASCADE},
        metrics=[*metrics],
    )
    return build_parts(load(path))


FAITHFULNESS = {"use": "faithfulness", "judge": "tiers"}
RECALL = {"use": "context_recall", "judge": "tiers"}


def test_the_only_metric_with_such_a_judge_needs_no_name(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, {"use": "faithfulness", "judge": "overlap", "as": "plain"}, FAITHFULNESS, "token_f1")
    assert choose_metric(parts, (), ["cascade"]) == "faithfulness"
    assert choose_metric(parts, ("plain",), ["cascade"]) == "plain"


@pytest.mark.parametrize(
    ("metrics", "named", "message"),
    [
        ([FAITHFULNESS, RECALL], (), "name the metric .* with --metric: faithfulness, context_recall each ask one"),
        (["token_f1"], (), "name the metric whose judge is a cascade, with --metric: no metric asks one"),
        ([FAITHFULNESS], ("a", "b"), "the steps of one judge at a time: name one metric"),
    ],
)
def test_the_metric_is_asked_for(tmp_path: Path, metrics: list[Any], named: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_metric(parts_of(tmp_path, *metrics), named, ["cascade"])


VALUES = [
    value("q1", "faithfulness", 0.5, details={"score": 0.5}),
    value("q2", "faithfulness", None, details={"claims": []}),
    value("q3", "faithfulness", None),
    value("q4", "faithfulness", None, status="error", details={"raw": "?"}),
]
EVALUATION = answered(VALUES, [sample(f"q{number}") for number in range(1, 5)])


def test_all_answers_that_the_judge_saw_are_taken(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, FAITHFULNESS)
    asked = find_asked(parts, "faithfulness")
    found = gather(EVALUATION, asked, parts, ProgressDisplay(quiet=True), None)
    assert [item[2] for item in found.items] == ["q1", "q2"]
    labels = [Label("q2", "faithfulness", 1.0, "ann"), Label("q3", "faithfulness", 1.0, "ann")]
    labelled = gather(EVALUATION, asked, parts, ProgressDisplay(quiet=True), (labels, None))
    assert [item[2] for item in labelled.items] == ["q2"]


def test_judges_without_steps_and_labels_of_claims_are_refused(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, {"use": "faithfulness", "judge": "overlap"}, {**FAITHFULNESS, "as": "tiered"})
    quiet = ProgressDisplay(quiet=True)
    with pytest.raises(UsageError, match="the judge 'overlap' of faithfulness is neither; leave out"):
        gather(EVALUATION, find_asked(parts, "faithfulness"), parts, quiet, None)
    with pytest.raises(UsageError, match="the results have no metric 'tiered'; run the spec first"):
        gather(EVALUATION, find_asked(parts, "tiered"), parts, quiet, None)
