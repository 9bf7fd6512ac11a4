"""`status`: what there is in a folder, what is wrong with it, and the command to type next."""

from __future__ import annotations

import csv
import json
import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands import status
from tests.answered_evaluation import answered, sample, save, value
from tests.command_line import invoke
from tests.tiny import write_spec

PASSING = [{"metric": "rr", "min": 0.1}]
FAILING = [{"metric": "rr", "min": 0.99}]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def look(*arguments: str) -> dict[str, Any]:
    """What `status` says as JSON; it must change nothing."""
    before = dict(list_files(Path()))
    result = invoke("status", *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    assert dict(list_files(Path())) == before
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def list_files(folder: Path) -> Iterator[tuple[Path, object]]:
    for path in folder.rglob("*"):
        yield path, (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns)


def tell(found: dict[str, Any], kind: str) -> list[tuple[str, str, bool]]:
    return [(one["path"], one["told"], one["is_wrong"]) for one in found["found"] if one["kind"] == kind]


def run_next(found: dict[str, Any]) -> int:
    """Type the command that `status` advises; its exit code."""
    return invoke(*shlex.split(found["next"]["command"])[1:]).exit_code


def test_an_empty_folder() -> None:
    found = look()
    assert found["found"] == []
    assert found["next"]["command"] == "rageval-spec demo"
    told = invoke("status").stdout
    assert told.startswith("There are no specs, results or records here.\n")
    assert told.endswith("Next: see what it does, in a folder of its own\n  rageval-spec demo\n")


def test_files_without_a_spec_are_proposed() -> None:
    Path("my golden.jsonl").write_text('{"question": "a?", "reference": "b"}\n', encoding="utf-8")
    found = look()
    assert found["next"]["command"] == "rageval-spec init 'my golden.jsonl'"
    assert run_next(found) == 0


def test_each_advice_leads_to_the_next(tmp_path: Path) -> None:
    write_spec(tmp_path, gates=FAILING)
    found = look()
    assert tell(found, "specs") == [("spec.yaml", "tiny: 1 gate", False)]
    assert found["next"] == {"why": "spec.yaml has no results here yet", "command": "rageval-spec run spec.yaml"}
    assert run_next(found) == 1
    found = look()
    (results,) = tell(found, "results")
    assert results[0] == "rageval-results"
    assert results[1].startswith("tiny: 2 of 2 gates failed, 2")
    assert results[2]
    assert tell(found, "history")[0][1].startswith("1 record, the newest 2")
    assert found["next"]["why"] == "see the questions behind the failed gates: rr"
    assert found["next"]["command"] == "rageval-spec show rageval-results"
    assert run_next(found) == 0
    write_spec(tmp_path, gates=PASSING)
    found = look()
    assert "is not the spec that rageval-results was made with" in found["next"]["why"]
    assert run_next(found) == 0
    found = look()
    assert found["next"]["command"] == "rageval-spec run spec.yaml --save-as main"
    assert run_next(found) == 0
    assert tell(look(), "history")[0][1].endswith("; labels main")


def test_a_baseline_that_is_missing(tmp_path: Path) -> None:
    write_spec(tmp_path, gates=[*PASSING, {"metric": "rr", "baseline": "main", "max_drop": 0.1}])
    found = look()
    assert tell(found, "baselines") == [("main", "spec.yaml compares with it, but there is none", True)]
    assert found["next"]["command"] == "rageval-spec run spec.yaml --set 'gates=[]' --save-as main"
    assert run_next(found) == 0
    found = look()
    assert tell(found, "baselines") == []
    assert found["next"]["command"] == "rageval-spec run spec.yaml"
    assert run_next(found) == 0
    assert "every gate passed" in look()["next"]["why"]


def test_a_baseline_that_can_no_longer_be_compared_with(tmp_path: Path) -> None:
    write_spec(tmp_path)
    assert invoke("run", "spec.yaml", "--save-as", "main").exit_code == 0
    gate = {"metric": "rr", "baseline": "main", "max_drop": 0.1}
    write_spec(tmp_path, gates=[gate])
    qrels = next(Path("data/qrels").iterdir())
    lines = qrels.read_text(encoding="utf-8").splitlines()
    qrels.write_text("\n".join([*lines[:-1], lines[-1].rsplit("\t", 1)[0] + "\t3"]) + "\n", encoding="utf-8")
    assert invoke("run", "spec.yaml").exit_code == 0
    found = look()
    (baseline,) = tell(found, "baselines")
    assert baseline[0] == "main"
    assert "cannot be compared with it any more: the relevance judgements of 1 " in baseline[1]
    assert found["next"]["command"] == "rageval-spec run spec.yaml --save-as main"


def test_answers_without_labels() -> None:
    names = [f"q{at}" for at in range(4)]
    claims = {"judge": "strict", "claims": [{"text": "It is long.", "verdict": "supported"}]}
    values = [value(name, "faithfulness", 0.5, details=claims) for name in names]
    save(answered(values, [sample(name) for name in names]), Path("rageval-results"))
    assert invoke("review", "select", "-o", "my review.csv", "--random", "100%").exit_code == 0
    found = look()
    assert tell(found, "review") == [("my review.csv", "4 of 4 labels are still missing", False)]
    assert found["next"]["command"] == "rageval-spec review import 'my review.csv' -o labels.csv"
    form = Path("my review.csv")
    head, *rows = csv.reader(form.read_text(encoding="utf-8-sig").splitlines())
    rows[0][head.index("faithfulness [yes/no]")] = "yes"
    with form.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    Path("prices.csv").write_text("no,row\n1,2\n", encoding="utf-8")  # a table of the user's own
    assert tell(look(), "review") == [("my review.csv", "3 of 4 labels are still missing", False)]


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    write_spec(tmp_path, gates=PASSING)
    assert invoke("run", "spec.yaml").exit_code == 0
    Path("rageval-results/results.json").write_bytes(b'{"name": "ti')
    Path(".rageval/history.db").write_bytes(b"not a database, but long enough to be read as the header of one" * 9)
    Path("rageval-results/record-1.pending.json").write_text("{}", encoding="utf-8")
    Path("broken.yaml").write_text("version: 1\ndatasets: {\nsystems: no\n", encoding="utf-8")
    Path("latin.yaml").write_bytes("version: 1\nname: café\nmetrics: [rr]\n".encode("latin-1"))
    Path("other.yaml").write_text("services: {web: {}}\n", encoding="utf-8")
    Path("binary.csv").write_bytes(b"\xff\xfe,row\x00")
    Path("fake.xlsx").write_bytes(b"PK not a workbook")
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe.yaml")  # reading it would wait for a writer
    found = look()
    assert [(path, is_wrong) for path, _, is_wrong in tell(found, "specs")] == [
        ("broken.yaml", True),
        ("latin.yaml", True),
        ("spec.yaml", False),
    ]
    assert "line 2: this '{' is not closed" in tell(found, "specs")[0][1]
    ((path, told, is_wrong),) = tell(found, "results")
    assert (path, is_wrong) == ("rageval-results", True)
    assert "results.json" in told
    assert {path: is_wrong for path, _, is_wrong in tell(found, "history")} == {
        "rageval-results": True,
        ".rageval/history.db": True,
    }
    assert found["next"]["command"] == "rageval-spec validate broken.yaml"
    shown = invoke("status", env={"COLUMNS": "40"})
    assert shown.exit_code == 0
    assert "✗ broken.yaml" in shown.stdout


def test_a_history_that_others_write_to_stays_as_it_is(tmp_path: Path) -> None:
    write_spec(tmp_path)
    assert invoke("run", "spec.yaml").exit_code == 0
    with closing(sqlite3.connect(".rageval/history.db")) as other:
        other.execute("UPDATE rageval_records SET name = 'tiny'")  # a transaction that is not done
        assert tell(look(), "history")[0][1].startswith("1 record")
        other.rollback()


def test_the_size_of_the_store() -> None:
    for name, size in (("a", 1000), ("b", 500)):
        path = Path(".rageval/store") / name / "answers.sqlite"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"0" * size)
    assert tell(look(), "store") == [(".rageval/store", "1.5 kB", False)]


def test_a_large_folder_is_not_looked_at_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_MOST_FILES", 3)
    for number in range(5):
        Path(f"{number}.txt").write_text("", encoding="utf-8")
    assert look()["is_partial"]
    assert "Only the first 3 files were looked at." in invoke("status").stdout


def test_folders_below_are_looked_at_but_hidden_and_linked_ones_are_not(tmp_path: Path) -> None:
    for folder in ("a/b", "a/b/c", ".hidden", "node_modules/x"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        write_spec(tmp_path / folder)
    Path("loop").symlink_to(tmp_path, target_is_directory=True)
    assert [path for path, _, _ in tell(look(), "specs")] == ["a/b/spec.yaml"]
    assert [path for path, _, _ in tell(look("a"), "specs")] == ["a/b/spec.yaml", "a/b/c/spec.yaml"]


def test_a_spec_without_gates_needs_no_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text("question,answer,reference\nWho?,Ada,Ada\n", encoding="utf-8")
    invoke("init", "--answers", "answers.csv")
    assert invoke("run", "spec.yaml", "-q").exit_code == 0
    assert "spec.yaml has no gates; see the questions with the lowest values" in invoke("status").stdout


def test_why_an_evaluation_failed_is_told(tmp_path: Path) -> None:
    systems = {"app": {"use": "http", "url": "http://127.0.0.1:1/ask", "retries": 0}}
    write_spec(tmp_path, systems=systems, metrics=["error_rate"])
    assert invoke("run", "spec.yaml").exit_code == 3
    found = look()
    ((_, told, is_wrong),) = tell(found, "results")
    assert is_wrong
    assert "http://127.0.0.1:1/ask refuses connections" in told
    assert found["next"]["command"] == "rageval-spec run spec.yaml --retry-failed"


def test_a_history_in_postgresql_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HISTORY_URL", "postgresql://user:word@127.0.0.1:1/history")
    write_spec(tmp_path, history={"use": "postgres", "url": "${secret:HISTORY_URL}"})
    assert tell(look(), "history") == [("spec.yaml", "its history is in PostgreSQL, which was not looked at", False)]


@pytest.mark.parametrize("edited", ["neither", "the red one"])
def test_specs_of_one_name_have_results_of_their_own(tmp_path: Path, edited: str) -> None:
    for number, (name, gates) in enumerate((("red", FAILING), ("green", PASSING))):
        (tmp_path / name).mkdir()
        write_spec(tmp_path / name, gates=gates)
        out = Path("red.out" if edited == "neither" else "red/out") if name == "red" else Path("green/out")
        assert invoke("run", f"{name}/spec.yaml", "-o", out).exit_code == (1, 0)[number]
        os.utime(out / "results.json", (number, number))  # the green one is newer
    if edited == "the red one":
        write_spec(tmp_path / "red", gates=[{"metric": "rr", "min": 0.98}])
    found = look()
    red, green = sorted(tell(found, "results"), key=lambda one: one[0].startswith("green"))
    assert (red[2], green[2]) == (True, False)
    assert "before" not in red[1]
    command = f"show {red[0]}" if edited == "neither" else "run red/spec.yaml"
    assert found["next"]["command"] == f"rageval-spec {command}"


def test_a_spec_here_is_advised_on_before_one_below(tmp_path: Path) -> None:
    assert invoke("demo", "--no-open").exit_code == 0
    write_spec(tmp_path, gates=FAILING)
    assert invoke("run", "spec.yaml").exit_code == 1
    assert look()["next"]["command"] == "rageval-spec show rageval-results"
