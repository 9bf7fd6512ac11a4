from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.contracts import TargetNode
from rageval_spec.exchange.wandb import WandbSource, WandbSourceNode, WandbTarget
from rageval_spec.plugin import Context
from tests.answered_evaluation import value
from tests.command_line import invoke
from tests.exchange.evaluations import make_traced
from tests.exchange.peers import run_peer

SDK = ("wandb", "wandb>=0.20,<1")
LOG = """
import json, os, sys
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
import wandb
folder, table = map(json.loads, sys.argv[1:])
run = wandb.init(project="support", dir=folder, settings=wandb.Settings(silent=True))
run.log({"answers": wandb.Table(columns=table["columns"], data=table["data"])})
run.finish()
print(json.dumps(True))
"""


def read(path: Path, **settings: Any) -> list[dict[str, Any]]:
    source = WandbSource(WandbSourceNode(path=str(path), **settings), Context("wandb"))
    return [trace.to_row() for trace in source.read()]


def write(folder: Path) -> Path:
    """A table with two answers, in the folder of a run."""
    values = [value("q0", "faithfulness", 0.5, reason="why"), value("q1", "faithfulness", None, reason="no claims")]
    evaluation = make_traced({"q0": None, "q1": None}, values, seconds=1.5)
    ((name, content),) = WandbTarget(TargetNode(), Context("wandb")).render_files(evaluation, "x")
    assert name == ""
    path = folder / "answers_0_13635fad.table.json"
    path.write_bytes(content)
    return path


def test_a_table_that_is_written_is_read_again(tmp_path: Path) -> None:
    rows = read(write(tmp_path))
    assert [row["id"] for row in rows] == ["q0", "q1"]
    assert rows[0]["question"] == "Question q0?"
    assert rows[0]["contexts"] == [{"id": "d1", "text": "c1"}]
    assert rows[0]["reference"] == "The bridge was built in 1909."
    assert rows[0]["seconds"] == 1.5
    assert rows[0]["metadata"]["faithfulness"] == 0.5
    assert rows[0]["metadata"]["faithfulness reason"] == "why"
    assert "faithfulness" not in rows[1]["metadata"]


def test_the_table_of_a_run_is_found_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "latest-run" / "files" / "media" / "table"
    folder.mkdir(parents=True)
    for name, question in (("answers_0_aa", "first"), ("answers_10_bb", "last"), ("other_2_cc", "other")):
        content = {"columns": ["question", "answer"], "data": [[question, "a"]]}
        (folder / f"{name}.table.json").write_text(json.dumps(content))
    assert [row["question"] for row in read(tmp_path, table="answers")] == ["last"]
    with pytest.raises(RagevalError, match="several tables; name one with --table: answers, other"):
        read(tmp_path)
    with pytest.raises(RagevalError, match="no table called 'x'"):
        read(tmp_path, table="x")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"columns": ["question"], "data": [["q"]', "only a part of it"),
        ("<html>", "this is an HTML page"),
        ('{"rows": []}', "it has no 'columns' and 'data'"),
        ('{"columns": ["question"], "data": []}', "the table has no rows"),
        ('{"columns": ["question", "answer"], "data": [["q", "a"], ["q"]]}', "row 2 is not a list of 2 values"),
        ('{"columns": ["question"], "data": [[["q"]]]}', "row 1"),
        ('{"columns": ["x"], "data": [["q"]]}', "row 1: the row has no question"),
    ],
)
def test_other_files_are_errors_with_their_place(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "x.table.json"
    path.write_text(content)
    with pytest.raises(RagevalError, match=says) as caught:
        read(path)
    assert "x.table.json" in str(caught.value)


def test_the_command_reads_a_folder(tmp_path: Path) -> None:
    write(tmp_path)
    done = invoke("import", "wandb", tmp_path, "-o", tmp_path / "answers.jsonl")
    assert "wrote 2 questions with 2 answers" in done.output


def test_the_real_package_logs_our_table_and_we_read_what_it_logged(tmp_path: Path) -> None:
    path = write(tmp_path)
    ours = json.loads(path.read_text())
    assert run_peer(*SDK, LOG, str(tmp_path), ours)
    (logged,) = (tmp_path / "wandb").glob("offline-run-*/files/media/table/*.table.json")
    assert json.loads(logged.read_text()) == ours
    assert read(tmp_path / "wandb") == read(path)
