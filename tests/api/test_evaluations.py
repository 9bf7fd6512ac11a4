""""""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pydantic import BaseModel

import rageval_spec
from rageval_spec.api.evaluations import write_rows
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import DataError, UsageError
from rageval_spec.runner import Options
from rageval_spec.runner import run as run_spec
from tests.tiny import write_collection, write_spec

CONTENT: dict[str, Any] = {
    "version": 1,
    "name": "tiny",
    "datasets": {"fruit": {"use": "beir", "path": "data"}},
    "systems": {"bm25": {"use": "bm25"}, "good": {"use": "file", "path": "data/good.run"}},
    "metrics": ["rr", "precision@1"],
    "gates": [{"metric": "rr", "system": "good", "min": 0.9}],
    "reports": ["terminal", "json"],
}


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_file_gives_what_the_command_gives(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, reports=["json"])
    finished = rageval_spec.run(spec)
    outcome = run_spec(spec, Options(output=tmp_path / "out"))
    assert finished.data.aggregates == outcome.evaluation.aggregates
    assert finished.values.equals(outcome.evaluation.values)
    assert str(finished.report("json")).encode() == (tmp_path / "out" / "results.json").read_bytes()


def test_it_writes_no_reports_and_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_collection(tmp_path)
    before = files(tmp_path)
    finished = rageval_spec.run(CONTENT, folder=tmp_path, store=None, record=False)
    assert files(tmp_path) == before
    assert (finished.outcome, finished.passed, finished.written) == ("fail", False, ())
    assert capfd.readouterr() == ("", "")


def test_the_store_and_the_output_are_where_the_caller_says(tmp_path: Path) -> None:
    write_collection(tmp_path)
    rageval_spec.run(CONTENT, folder=tmp_path)
    assert any(name.startswith(".rageval/store/") for name in files(tmp_path))
    finished = rageval_spec.run(CONTENT, folder=tmp_path, store=tmp_path / "else", output=tmp_path / "out")
    assert any(name.startswith("else/") for name in files(tmp_path))
    assert tmp_path / "out" / "results.json" in finished.written
    assert json.loads((tmp_path / "out" / "results.json").read_bytes())["name"] == "tiny"


def test_a_dict_starts_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_collection(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert rageval_spec.run(CONTENT, store=None).aggregates.height == 4


def test_a_part_can_be_selected_and_changed(tmp_path: Path) -> None:
    write_collection(tmp_path)
    finished = rageval_spec.run(
        CONTENT, folder=tmp_path, store=None, limit=2, only="good", overrides={"gates.0.min": 0.1}
    )
    assert finished.aggregates["system"].unique().to_list() == ["good"]
    assert finished.aggregates["total"].unique().to_list() == [2]
    assert finished.passed
    again = rageval_spec.run(CONTENT, folder=tmp_path, store=None, overrides=["gates.0.min=0.1"])
    assert again.passed


def test_it_can_be_saved_as_a_baseline(tmp_path: Path) -> None:
    write_collection(tmp_path)
    rageval_spec.run(CONTENT, folder=tmp_path, store=None, save_as="main")
    gate = {"metric": "rr", "baseline": "main", "max_drop": 0}
    finished = rageval_spec.run({**CONTENT, "gates": [gate]}, folder=tmp_path, store=None)
    assert [one.outcome for one in finished.gates] == ["pass", "pass"]
    assert rageval_spec.load_results(tmp_path / ".rageval" / "history" / "main").aggregates.height == 4


def test_a_wrong_spec_raises_every_diagnostic(tmp_path: Path) -> None:
    write_collection(tmp_path)
    with pytest.raises(SpecError) as caught:
        rageval_spec.run({**CONTENT, "systems": {"bm25": {"use": "bm25", "k1": -1}}, "name": 3}, folder=tmp_path)
    assert len(caught.value.diagnostics) == 3
    assert "systems.bm25.k1: 'k1' must be above 0, not the number -1" in str(caught.value)
    with pytest.raises(SpecError, match=r"nix\.yaml:1:1: there is no such file"):
        rageval_spec.run(tmp_path / "nix.yaml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"spec": "version: 1\nname: x"}, "spec: this is the text of a spec; write the path of its file"),
        ({"spec": 3}, "spec: write the path of a file, or a dict, not int"),
        ({"spec": "a.yaml", "folder": "b"}, "folder: only a dict needs it"),
        ({"spec": CONTENT, "limit": 0}, "limit: write a whole number above 0, not 0"),
        ({"spec": CONTENT, "limit": True}, "limit: write a whole number above 0, not True"),
    ],
)
def test_a_wrong_argument_says_what_to_write(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rageval_spec.run(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"only": "goood"}, "only='goood': no dataset, system or metric has this name; did you mean 'good'?"),
        ({"only": 5}, "only: write a name or a list of names, 'bm25' or ['bm25', 'ndcg*'], not 5"),
        ({"overrides": ["ranking.ties"]}, "overrides:1:1: an override must have the form PATH=VALUE"),
        ({"overrides": {"ranking.ties": "x"}}, "overrides.ranking.ties: expected trec_eval"),
        ({"overrides": 5}, "overrides: write a dict of paths and values, {'systems.bm25.k1': 0.9}, or a list of texts"),
        ({"limit": 0}, "limit: write a whole number above 0, not 0"),
    ],
)
def test_messages_name_the_arguments_not_options(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, SpecError)) as refused:
        rageval_spec.run(write_spec(tmp_path), quiet=True, **arguments)
    assert str(refused.value).startswith(message)
    assert "--" not in str(refused.value)


def test_a_question_filter_says_nothing_of_options(tmp_path: Path) -> None:
    finished = rageval_spec.run(write_spec(tmp_path), only="good", quiet=True)
    with pytest.raises(UsageError, match=r"^there is no baseline to compare with: only one system has a value$"):
        finished.questions(regressed=True)
    with pytest.raises(UsageError, match=r"^a bound needs a metric; name one of rr, precision@1$"):
        finished.questions(below=0.5)


def test_it_runs_inside_an_event_loop_beside_an_async_system(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "q1", "question": "Why?", "reference": "because"}\n')
    (tmp_path / "looped_rag.py").write_text(
        "import asyncio\n\nasync def answer(question):\n    await asyncio.sleep(0)\n    return 'because'\n"
    )
    content = {
        "version": 1,
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {"mine": {"use": "python", "function": "looped_rag:answer"}},
        "metrics": ["exact_match"],
    }

    async def evaluate() -> tuple[bool, bool]:
        here = rageval_spec.run(content, folder=tmp_path, store=None)
        elsewhere = await asyncio.to_thread(rageval_spec.run, content, folder=tmp_path, store=None)
        return here.passed, elsewhere.passed

    try:
        assert asyncio.run(evaluate()) == (True, True)
    finally:
        sys.path.remove(str(tmp_path.resolve()))


def test_several_run_at_once_in_threads_with_one_store(tmp_path: Path) -> None:
    write_collection(tmp_path)

    def evaluate(k1: float) -> Any:
        return rageval_spec.run(CONTENT, folder=tmp_path, overrides={"systems.bm25.k1": k1, "systems.bm25.depth": 3})

    k1s = [0.5, 0.5, 0.9, 1.2, 0.5, 2.0]
    alone = {k1: evaluate(k1).report("json") for k1 in set(k1s)}
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(evaluate, k1s))
    assert [one.report("json") for one in together] == [alone[k1] for k1 in k1s]


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_ends_it_and_leaves_the_program_running(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "q1", "question": "Why?", "reference": "because"}\n')
    (tmp_path / "slow_rag.py").write_text(
        "import time, pathlib\n\ndef answer(question):\n    pathlib.Path('asked').touch()\n    time.sleep(600)\n"
    )
    (tmp_path / "program.py").write_text(
        "import rageval_spec\n"
        "content = {'version': 1, 'datasets': {'golden': {'use': 'jsonl', 'path': 'golden.jsonl'}},\n"
        "    'systems': {'mine': {'use': 'python', 'function': 'slow_rag:answer'}}, 'metrics': ['exact_match']}\n"
        "try:\n    rageval_spec.run(content)\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        "print('goes on', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "asked").exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert shown == "interrupted\ngoes on\n"
    assert process.returncode == 0


def test_checks_and_functions_of_ones_own_are_metrics(tmp_path: Path) -> None:
    rows = [
        {"id": "q1", "question": "Refund?", "answer": "Yes, within 30 days [1].", "must": ["30 days"]},
        {"id": "q2", "question": "Price?", "answer": "3 EUR", "must": "EUR"},
        {"id": "q3", "question": "Why?", "answer": "42", "must": None},
    ]
    (tmp_path / "golden.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "own_checks.py").write_text("def cites(answer):\n    return '[1]' in answer\n")
    content = {
        "version": 1,
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {"mine": {"use": "file", "path": "golden.jsonl"}},
        "metrics": [
            {"use": "contains", "column": "must", "as": "must"},
            {"use": "python", "function": "own_checks:cites"},
            {"use": "matches", "pattern": "[0-9]", "as": "number"},
            "is_json",
        ],
    }
    try:
        finished = rageval_spec.run(content, folder=tmp_path, store=None)
    finally:
        sys.path.remove(str(tmp_path.resolve()))
    means = dict(finished.aggregates.select("metric", "mean").iter_rows())
    assert means == {"must": 1.0, "cites": pytest.approx(1 / 3), "number": 1.0, "is_json": pytest.approx(1 / 3)}
    assert finished.aggregates["scored"].to_list() == [2, 3, 3, 3]
    with pytest.raises(
        SpecError, match=r"^overrides\.metrics\.2\.pattern: unclosed group; a pattern has Rust's syntax"
    ):
        rageval_spec.run(content, folder=tmp_path, overrides={"metrics.2.pattern": "("})


ROWS: list[dict[str, Any]] = [
    {
        "question": "Who wrote it?",
        "answer": "Ada wrote the program.",
        "contexts": ["Ada wrote the program."],
        "reference": "Ada",
        "must": "Ada",
    },
    {"question": "When?", "answer": "In 1950.", "contexts": ["It was 1843."], "reference": "1843", "must": None},
]


def judge(rows: Any = ROWS, metrics: Any = ("faithfulness",), **more: Any) -> rageval_spec.FinishedEvaluation:
    return rageval_spec.judge(rows, metrics, **{"store": None, "quiet": True, **more})


def values(finished: rageval_spec.FinishedEvaluation, metric: str) -> list[float | None]:
    return finished.values.filter(pl.col("metric") == metric)["value"].to_list()


def test_rows_are_judged_offline_without_a_model() -> None:
    metrics = ["faithfulness", "context_precision", "token_f1", {"use": "contains", "column": "must", "as": "must"}]
    finished = judge(metrics=metrics)
    assert values(finished, "faithfulness") == [1.0, 0.0]
    assert values(finished, "must") == [1.0, None]
    assert values(finished, "token_f1")[1] == 0.0
    assert finished.findings["judge"].unique().to_list() == ["overlap"]
    assert (finished.outcome, finished.passed) == ("pass", True)
    card = finished.question("2")
    assert (card.question, card.answer, card.references) == ("When?", "In 1950.", ("1843",))


@pytest.mark.parametrize(
    "row",
    [
        {"user_input": "Who?", "response": "Ada.", "retrieved_contexts": ["Ada."], "reference": "Ada"},
        {"input": "Who?", "actual_output": "Ada.", "retrieval_context": ["Ada."], "expected_output": "Ada"},
        {"question": "Who?", "answer": "Ada.", "contexts": ["Ada."], "ground_truth": "Ada"},
        {"question": "Who?", "answer": "Ada.", "context": ["Ada."], "reference": "Ada"},
    ],
)
def test_the_names_of_other_tools_are_known(row: dict[str, Any]) -> None:
    finished = judge([row], ["faithfulness", "exact_match"])
    assert (values(finished, "faithfulness"), values(finished, "exact_match")) == ([1.0], [1.0])


def test_an_answer_is_never_taken_for_the_gold_answer() -> None:
    with pytest.raises(SpecError) as caught:
        judge([{"question": "Who?", "answer": "Ada."}], "token_f1")
    assert "token_f1 needs a gold answer, and no row has one; name the column of the rows 'reference'" in str(
        caught.value
    )
    with pytest.raises(SpecError, match="rename 'solution' to 'reference'"):
        judge([{"question": "Who?", "response": "Ada.", "solution": "Ada"}], "token_f1")


def test_equal_rows_give_equal_results_wherever_they_were() -> None:
    assert judge().report("json") == judge(pl.DataFrame(ROWS)).report("json")
    assert judge().data.provenance.spec_digest != judge(metrics=["token_f1"]).data.provenance.spec_digest
    assert tempfile.gettempdir() not in str(judge().report("json"))


def test_the_judge_can_be_named_declared_or_made_of_the_first_model() -> None:
    assert judge(judge="embedding").findings["judge"][0] == "embedding"
    cascade = {"use": "cascade", "steps": ["overlap", "mine"]}
    finished = judge(judge=cascade, judges={"mine": {"use": "overlap"}})
    assert values(finished, "faithfulness") == [1.0, 0.0]
    own = [{"use": "faithfulness", "judge": "mine"}]
    assert judge(metrics=own, judges={"mine": {"use": "overlap"}}).findings["judge"][0] == "mine"
    with pytest.raises(UsageError, match="judges: choose another name than 'judge'"):
        judge(judge=cascade, judges={"judge": {"use": "overlap"}})
    gpt = {"use": "chat", "base_url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0, "timeout": 1}
    failed = judge(models={"gpt": gpt})
    assert failed.outcome == "error"
    assert "127.0.0.1:9" in str(failed.values.row(0, named=True)["reason"])


def test_gates_and_functions_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "judged_checks.py").write_text("def short(answer):\n    return len(answer) < 10\n")
    try:
        finished = judge(
            metrics={"use": "python", "function": "judged_checks:short"},
            folder=tmp_path,
            gates=[{"metric": "short", "min": 0.9}],
        )
    finally:
        sys.path.remove(str(tmp_path.resolve()))
    assert values(finished, "short") == [0.0, 1.0]
    assert (finished.outcome, finished.passed) == ("fail", False)


def test_the_store_is_in_the_folder(tmp_path: Path) -> None:
    judge(judge="embedding", folder=tmp_path, store="beside")
    assert (tmp_path / ".rageval" / "store").is_dir()


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("faithfullness", "metrics.0: unknown measure 'faithfullness'; did you mean 'faithfulness'?"),
        ([{"use": "faithfulness", "jugde": "x"}], "metrics.0.jugde: unknown key 'jugde'; did you mean 'judge'?"),
        ([{"use": "rubric", "criteria": "x"}], "metrics.0: the judge 'overlap' (use: overlap) cannot grade a sample"),
        ([3], "metrics.0: "),
    ],
)
def test_a_wrong_metric_is_a_diagnostic(metrics: Any, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        judge(metrics=metrics)
    assert str(caught.value).startswith(message)


def test_a_wrong_row_is_named_by_its_number() -> None:
    twice = [{**ROWS[0], "id": "x"}, {**ROWS[1], "id": "x"}]
    with pytest.raises(SpecError, match=r"^rows: rows\[1\]: the query 'x' is listed twice, first at rows\[0\]"):
        judge(twice)
    with pytest.raises(
        SpecError, match=r"^rows: there are no questions under a known name.*; name the texts 'question' and"
    ):
        judge([{"answer": "a", "contexts": ["x"]}])
    with pytest.raises(DataError, match=r"^rows\[1\]: the query '2' has no text"):
        judge([ROWS[0], {**ROWS[1], "question": None}])


def test_rows_without_answers_are_an_error_that_names_the_columns() -> None:
    with pytest.raises(DataError) as caught:
        judge([{"question": "Who?"}])
    assert str(caught.value) == (
        "rows: no column of answers or contexts; the columns are 'question'; name the texts 'answer' and 'contexts'"
    )


def test_the_word_of_a_judge_asks_the_first_model() -> None:
    models = {"gpt": {"use": "chat", "base_url": "http://127.0.0.1:9/v1", "model": "m"}}
    finished = judge(judge="claims", models=models, limits={"max_errors": 100}, metrics=["faithfulness"])
    assert finished.data.provenance.spec["judges"]["claims"]["model"] == "gpt"


def test_what_cannot_be_computed_is_told() -> None:
    with pytest.raises(
        SpecError, match="ndcg@10 needs relevant documents, and no row has any; name the column of the rows"
    ):
        judge(metrics=["ndcg@10"])


def test_the_text_form_says_why_nothing_could_be_scored() -> None:
    finished = rageval_spec.judge([{"question": "Who?", "anwser": "Ada.", "contexts": ["Ada."]}], "faithfulness")
    assert "faithfulness: 1 of 1 query could not be scored: the query has no answer" in repr(finished).splitlines()[-1]


ROW = {"question": "Who?", "answer": "Ada.", "contexts": ["a", "b"], "score": 0.5}
WRITTEN = {"question": "Who?", "response": "Ada.", "contexts": ["a", "b"], "score": 0.5}


@dataclass
class Case:
    question: str = "Who?"
    answer: str = "Ada."
    contexts: tuple[str, ...] = ("a", "b")
    score: float = 0.5


class Model(BaseModel):
    question: str = "Who?"
    answer: str = "Ada."
    contexts: list[str] = ["a", "b"]
    score: float = 0.5


def written(rows: Any, folder: Path) -> list[Any]:
    path = folder / "rows.jsonl"
    count = write_rows(rows, path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == count
    return lines


@pytest.mark.parametrize(
    "rows",
    [
        [ROW],
        (row for row in [ROW]),
        pl.DataFrame([ROW]),
        pd.DataFrame([ROW]),
        pa.Table.from_pylist([ROW]),
        [Case()],
        [Model()],
        [SimpleNamespace(**ROW, _hidden=1)],
        [{**ROW, "contexts": np.array(["a", "b"]), "score": np.float64(0.5)}],
        [{**ROW, "contexts": pl.Series(["a", "b"])}],
    ],
)
def test_every_form_gives_the_same_rows(rows: Any, tmp_path: Path) -> None:
    assert written(rows, tmp_path) == [WRITTEN]


def test_an_answer_keeps_its_name_if_another_column_is_the_systems(tmp_path: Path) -> None:
    row = {"question": "Who?", "answer": "gold", "response": "Ada."}
    assert written([row], tmp_path) == [row]


def test_missing_values_of_frames_are_null(tmp_path: Path) -> None:
    frame = pd.DataFrame({"question": ["a", "b", "c"], "x": [1.0, float("nan"), 2.0], "y": ["", None, pd.NA]})
    assert [(row["x"], row["y"]) for row in written(frame, tmp_path)] == [(1.0, ""), (None, None), (2.0, None)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows: there are none; an evaluation needs at least one question with its answer"),
        ("a.jsonl", "rows: write a list of dicts, a polars or pandas frame, or objects such as test cases, not str"),
        (ROW, "rows: write a list of dicts, .* not dict"),
        (3, "rows: write a list of dicts, .* not int"),
        ([ROW, 3], r"rows\[1\]: write a dict with texts as keys, not int"),
        ([{3: 4}], r"rows\[0\]: write a dict with texts as keys, not dict"),
    ],
)
def test_what_are_no_rows(rows: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        write_rows(rows, tmp_path / "rows.jsonl")
