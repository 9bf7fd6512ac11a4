"""Projects of Label Studio in, and tasks with values as predictions out."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from tests.command_line import invoke
from tests.exchange.evaluating import evaluate_file
from tests.exchange.peers import run_peer

TASK = {
    "id": 17,
    "data": {"question": "Where?", "answer": "Shed.", "contexts": ["a"], "reference": "Shed.", "lang": "en"},
    "annotations": [
        {
            "completed_by": {"email": "ann@example.org"},
            "result": [
                {"from_name": "tone", "to_name": "answer", "type": "rating", "value": {"rating": 4}},
                {"from_name": "supported", "to_name": "answer", "type": "choices", "value": {"choices": ["yes"]}},
            ],
        },
        {"was_cancelled": True, "result": []},
    ],
}


def test_annotations_become_feedback(tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text(json.dumps([TASK]))
    done = invoke("import", "label_studio", tmp_path / "export.json", "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.output
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert (row["id"], row["question"], row["answer"], row["reference"]) == ("17", "Where?", "Shed.", "Shed.")
    assert row["trace"] == {"tool": "label_studio", "trace_id": "17"}
    assert row["metadata"] == {"lang": "en"}
    said = [(one["name"], one.get("value"), one.get("label"), one["author"]) for one in row["feedback"]]
    assert said == [("tone", 4.0, None, "ann@example.org"), ("supported", None, "yes", "ann@example.org")]


def test_a_file_that_is_not_an_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text('[{"question": "Where?"}]')
    done = invoke("import", "label_studio", tmp_path / "export.json")
    assert (done.exit_code, "export the project as JSON" in done.stderr) == (3, True)


def test_tasks_fit_the_setup_that_is_written_with_them(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text(
        '{"id": "1", "question": "Where?", "answer": "Shed.", "contexts": ["a"], "reference": "Shed."}\n'
    )
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    done = invoke("export", "label_studio", results, "-o", tmp_path / "tasks.json")
    assert done.exit_code == 0, done.output
    (task,) = json.loads((tmp_path / "tasks.json").read_text())
    setup = ElementTree.fromstring((tmp_path / "tasks" / "tasks.xml").read_text())
    names = {one.get("name") for one in setup} - {None}
    shown = {(one.get("value") or "").removeprefix("$") for one in setup if (one.get("value") or "").startswith("$")}
    assert shown <= set(task["data"])
    (prediction,) = task["predictions"][0]["result"]
    assert {prediction["from_name"], prediction["to_name"]} <= names
    assert prediction["value"] == {"number": 1.0}


def test_labelled_tasks_come_back_with_the_ids_of_their_contexts(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "question": "Where?",
        "answer": "Shed.",
        "contexts": [{"id": "d1", "text": "a"}],
        "reference": "S",
    }
    (tmp_path / "out.jsonl").write_text(json.dumps(row))
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    invoke("export", "label_studio", results, "-o", tmp_path / "tasks.json")
    (task,) = json.loads((tmp_path / "tasks.json").read_text())
    (tmp_path / "labelled.json").write_text(json.dumps([task | {"id": 7, "annotations": []}]))
    done = invoke("import", "label_studio", tmp_path / "labelled.json", "-o", tmp_path / "back.jsonl")
    assert done.exit_code == 0, done.output
    back = json.loads((tmp_path / "back.jsonl").read_text())
    assert (back["id"], back["contexts"]) == ("1", [{"id": "d1", "text": "a"}])


PEER = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface
folder = json.loads(sys.argv[1])
setup = LabelInterface(open(f"{folder}/tasks/tasks.xml").read())
tasks = json.load(open(f"{folder}/tasks.json"))
fits = [setup.validate_task({"data": task["data"]}) for task in tasks]
print(json.dumps(fits + [setup.validate_prediction(one) for task in tasks for one in task["predictions"]]))
"""


def test_label_studio_accepts_tasks_and_predictions(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text('{"id": "1", "question": "Where?", "answer": "Shed.", "reference": "Shed."}\n')
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match, latency@p50]")
    invoke("export", "label_studio", results, "-o", tmp_path / "tasks.json")
    assert run_peer("label_studio", "label-studio-sdk==2.1.2", PEER, str(tmp_path)) == [True, True]
