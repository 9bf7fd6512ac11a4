"""`plan` says how many labels belong to the answers, as far as these are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.command_line import invoke
from tests.pipeline.labelling import write


def plan(path: Path, *options: str) -> dict[str, Any]:
    done = invoke("plan", path, "--format", "json", *options)
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["to_ask"]["labels"]
    return dict(found)


def test_the_plan_counts_labels_that_match_and_that_do_not(tmp_path: Path) -> None:
    path = write(tmp_path, systems=("a",))
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    rows[0]["answer"] += " else"
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert plan(path) == {
        "metric": "token_f1", "source": "people", "answers": 40, "matching": 19, "changed": 1, "unknown": 0,
        "absent": 20,
    }  # fmt: skip
    assert invoke("plan", path).stdout.endswith(
        "with labels of 'people': 19 as they are now, 1 changed, 20 of other questions or systems\n"
    )
    assert plan(path, "--limit", "5")["matching"] == 4


def test_answers_that_are_still_to_be_made_are_not_known(tmp_path: Path) -> None:
    path = write(tmp_path, columns="query_id,value", systems=("a",), labelled=20)
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    (tmp_path / "labels.csv").write_text("\n".join(lines[:21]))
    text = path.read_text().replace("use: file", "use: python").replace("path: a.jsonl", "function: app:answer")
    path.write_text(text.replace("    holds: answers\n", ""))
    (tmp_path / "app.py").write_text("def answer(question):\n    return question\n")
    found = plan(path)
    assert (found["unknown"], found["matching"]) == (20, 0)


def test_a_plan_without_labels_says_nothing_of_them(tmp_path: Path) -> None:
    done = invoke("plan", write(tmp_path, metrics=["token_f1"]), "--format", "json")
    assert "labels" not in json.loads(done.stdout)["to_ask"]
