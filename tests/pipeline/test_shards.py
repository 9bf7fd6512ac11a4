"""Shards that are computed apart and put together give the bytes of one evaluation, whatever happens in them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from rageval_spec import runner
from rageval_spec.engines.local import Local, LocalNode
from rageval_spec.errors import BROKEN, GATE_FAILED, NOTHING_SCORED, PASSED
from rageval_spec.pipeline.execution.execution import list_evaluated
from rageval_spec.pipeline.execution.question_clusters import list_units
from rageval_spec.pipeline.execution.runs import Work
from rageval_spec.pipeline.planning.plan import make_plan
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Shard
from rageval_spec.runner import Options, RunOutcome
from rageval_spec.spec import load
from rageval_spec.store.store import MemoryStore
from tests.models.chat_endpoint import ChatServer
from tests.pipeline.test_interrupted_judging import Judging
from tests.tiny import write_spec

SPECS = Path(__file__).parents[2] / "specs"
PRICE = {"input": 1, "output": 2}
TOPICS = ("shipping", "returns", "payment")


def read(folder: Path) -> dict[str, Any]:
    """The files of a results folder; of samples, everything but how long the systems took, so no digests either."""
    names = {path.name for path in folder.iterdir() if path.is_file()} - {"manifest.json", "statement.json"}
    found: dict[str, Any] = {name: (folder / name).read_bytes() for name in names}
    samples = pl.read_parquet(folder / "samples.parquet")
    return found | {"samples.parquet": samples.drop("seconds").rows()}


def run_shards(path: Path, total: int, **options: Any) -> list[runner.ShardOutcome]:
    """Compute each shard with a store of its own, as a machine of its own would."""
    made = []
    for number in range(1, total + 1):
        store = path.parent / f"store-{number}-of-{total}"
        output = path.parent / f"of-{total}" / f"results-{number}"
        chosen = Options(**{"output": output, "store": store, **options})
        made.append(runner.run_shard(path, Shard(number, total), chosen))
    return made


def merge(path: Path, total: int, **options: Any) -> RunOutcome:
    folders = [path.parent / f"of-{total}" / f"results-{number}" for number in range(total, 0, -1)]
    chosen = {"output": path.parent / "out", "store": path.parent / "merging", **options}
    return runner.run(path, Options(shards=folders, **chosen))


def check_equal(path: Path, *totals: int, **options: Any) -> RunOutcome:
    """Check that all numbers of shards give the bytes of the whole, and return what came of the whole."""
    whole = runner.run(path, Options(**{"output": path.parent / "out", "store": path.parent / "own", **options}))
    expected = read(path.parent / "out")
    for total in totals:
        run_shards(path, total, **options)
        shutil.rmtree(path.parent / "out")
        merged = merge(path, total)
        assert read(path.parent / "out") == expected
        assert merged.shown == whole.shown
        assert merged.exit_code == whole.exit_code
        assert [str(one) for one in merged.failures] == [str(one) for one in whole.failures]
    return whole


@pytest.mark.parametrize("name", ["golden_set", "regression_gate", "slices", "traces", "trec_run"])
def test_the_examples(tmp_path: Path, name: str) -> None:
    shutil.copytree(SPECS, tmp_path / "specs")
    check_equal(tmp_path / "specs" / f"{name}.yaml", 3)


@pytest.mark.parametrize("name", ["quickstart", "labels"])
def test_the_examples_whose_models_read_texts(tmp_path: Path, name: str) -> None:
    """What the models made of a text is in the store that they share, so that they read each text once."""
    shutil.copytree(SPECS, tmp_path / "specs")
    check_equal(tmp_path / "specs" / f"{name}.yaml", 2, store=tmp_path / "store")


def write_questions(folder: Path, count: int = 20) -> None:
    """Questions of several topics, in conversations of two, in groups of two conditions; every fifth has no answer."""
    rows = []
    for row in range(count):
        answer = {} if row % 5 == 4 else {"answer": f"It is {row}. It is odd.", "contexts": [f"Number {row} is {row}."]}
        rows.append(
            {
                "id": f"r{row}",
                "question": f"What is number {row}?",
                "reference": f"It is {row}.",
                "topic": TOPICS[row % 3],
                "source": f"page {row // 3}",
                "group": f"pair {row // 2}",
                "condition": ("clean", "noisy")[row % 2],
                **answer,
            }
        )
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


APP = """
import json, sys
def answer(question):
    number = int(question.split()[-1].rstrip("?"))
    with open("asked.log", "a") as log:
        log.write(question + chr(10))
    if number % 7 == 6:
        raise ValueError(f"number {number} is not known")
    return {"answer": f"It is {number % 4}. It is odd.", "contexts": [f"Number {number} is {number}."]}
"""


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer(Judging())
    yield running
    running.close()


def write_judged(folder: Path, url: str, name: str = "spec.yaml", **sections: Any) -> Path:
    """An application and a chat judge, clusters, slices, pairs of conditions, and answers from a file beside them."""
    write_questions(folder)
    (folder / "counting_app.py").write_text(APP)
    spec = {
        "version": 1,
        "name": "judged",
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {
            "app": {"use": "python", "function": "counting_app:answer"},
            "file": {"use": "file", "path": "rows.jsonl"},
        },
        "models": {
            "chat": {"use": "chat", "base_url": url, "model": "tiny", "retries": 0, "price": {"input": 1, "output": 2}}
        },
        "judges": {"judge": {"use": "claims", "model": "chat"}},
        "metrics": [
            {"use": "faithfulness", "judge": "judge"},
            {"use": "context_recall", "judge": "judge"},
            "exact_match",
            "noise_robustness",
        ],
        "cluster": "source",
        "slices": ["topic"],
        "statistics": {"resamples": 200, "permutations": 200},
        "gates": [{"metric": "faithfulness", "min": 0.1}, {"metric": "exact_match", "min": 0.9}],
        "reports": ["terminal", "json", "junit", "csv"],
        **sections,
    }
    path = folder / name
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


@pytest.mark.parametrize("parts", [1, 3])
def test_an_application_and_a_judge_with_clusters_slices_pairs_and_failures(
    parts: int, tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine can split each shard again."""
    monkeypatch.setattr(Local, "count_parts", lambda *_: parts)
    monkeypatch.chdir(tmp_path)
    whole = check_equal(write_judged(tmp_path, server.url), 1, 3, 8)
    codes = {note.code for note in whole.evaluation.notes}
    assert {"unanswered", "failed_queries"} <= codes
    assert whole.exit_code == GATE_FAILED
    assert whole.evaluation.provenance.judging["chat"].calls > 20


def write_rows(folder: Path, name: str, count: int) -> None:
    rows = [{"id": f"{name}{row}", "question": f"What is number {row}?", "reference": f"{row}"} for row in range(count)]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


WHOLE_METRIC = """
def compare(frame):
    longest = frame["answer"].str.len_chars().max()
    return (frame["answer"].str.len_chars() / longest).to_list()
"""


def test_datasets_smaller_than_the_shards_and_what_needs_all_answers_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that gets all answers is left to `merge`, and so is a run in a file."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path, "few", 2)
    write_rows(tmp_path, "many", 9)
    (tmp_path / "small_app.py").write_text(APP)
    (tmp_path / "whole_metric.py").write_text(WHOLE_METRIC)
    python = {"use": "python", "function": "whole_metric:compare", "takes": "frame", "as": "length"}
    path = write_spec(
        tmp_path,
        datasets={name: {"use": "jsonl", "path": f"{name}.jsonl"} for name in ("few", "many")},
        systems={"app": {"use": "python", "function": "small_app:answer"}},
        metrics=["exact_match", python],
    )
    whole = check_equal(path, 3, 5)
    assert {one.metric: one.scored for one in whole.evaluation.aggregates if one.dataset == "many"}["length"] == 8


@pytest.mark.parametrize("options", [{"limit": 3}, {"only": ["tied", "hybrid"]}])
def test_the_selection_comes_before_the_dealing(tmp_path: Path, options: dict[str, Any]) -> None:
    systems = {
        "bm25": {"use": "bm25"},
        "tied": {"use": "file", "path": "data/tied.run"},
        "hybrid": {"use": "hybrid", "systems": ["bm25", "tied"]},
    }
    check_equal(write_spec(tmp_path, systems=systems, reports=["terminal", "json", "html"]), 2, **options)


def test_a_system_that_fails_altogether(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path, "rows", 6)
    (tmp_path / "broken_app.py").write_text("def answer(question):\n    raise ValueError('closed')\n")
    path = write_spec(
        tmp_path,
        datasets={"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        systems={"app": {"use": "python", "function": "broken_app:answer"}},
        metrics=["exact_match"],
    )
    whole = check_equal(path, 2)
    assert whole.exit_code == NOTHING_SCORED


def record_of(path: Path) -> dict[str, Any]:
    """The last record of a history, without what tells one evaluation from another of the same bytes."""
    with sqlite3.connect(path.parent / ".rageval" / "history.db") as history:
        history.row_factory = sqlite3.Row
        row = dict(history.execute("SELECT * FROM rageval_records ORDER BY time DESC, rowid DESC LIMIT 1").fetchone())
        contents = history.execute(
            "SELECT part, content FROM rageval_contents WHERE record_id = ? ORDER BY part", [row["id"]]
        )
        found = {name: value for name, value in row.items() if name not in ("id", "time", "seconds")}
        return found | {"contents": [tuple(one) for one in contents]}


def test_baselines_with_p_values_and_the_record_of_the_history(tmp_path: Path, server: ChatServer) -> None:
    drop = {"metric": "faithfulness", "system": "file", "baseline": "main", "max_drop": 0.5, "alpha": 0.05}
    path = write_judged(tmp_path, server.url, systems={"file": {"use": "file", "path": "rows.jsonl"}}, gates=[drop])
    first = Options(output=tmp_path / "out", overrides=["gates=[]"], save_as="main")
    assert runner.run(path, first).exit_code == PASSED
    whole = check_equal(path, 3, store=tmp_path / ".rageval" / "store")
    assert whole.evaluation.baselines[0].p_value is not None
    merged = record_of(path)
    runner.run(path, Options(output=tmp_path / "out"))
    assert merged == {**record_of(path), "cost": merged["cost"], "cost_status": merged["cost_status"]}


def test_a_shard_that_reached_a_limit_says_so_and_so_does_the_whole(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_judged(tmp_path, server.url, limits={"max_calls": {"models": 8}, "concurrency": 2}, gates=[])
    shards = run_shards(path, 2)
    assert [shard.exit_code for shard in shards] == [BROKEN, BROKEN]
    assert "limits.max_calls: 4 of 4 calls to models made" in shards[0].failures[-1]
    merged = merge(path, 2)
    assert merged.exit_code == BROKEN
    assert not merged.is_finished
    assert merged.spent.calls - merged.spent.asked_of_systems == 8
    assert {note.code for note in merged.evaluation.notes} >= {"stopped"}
    # What was paid for is in the stores: a shard goes on where it stopped.
    more = write_judged(tmp_path, server.url, limits={"max_calls": {"models": 400}, "concurrency": 2}, gates=[])
    assert [shard.exit_code for shard in run_shards(more, 2)] == [PASSED, PASSED]
    merged = merge(more, 2)
    assert merged.is_finished
    assert {taken.sources for taken in merged.evaluation.provenance.taken_over if taken.system == "app"} == {
        ("unfinished",)
    }
    asked = (tmp_path / "asked.log").read_text().splitlines()
    assert len(set(asked)) == 20
    assert {question for question in asked if asked.count(question) > 1} == {f"What is number {n}?" for n in (6, 13)}


def test_too_many_errors_of_all_shards_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path, "rows", 16)
    (tmp_path / "failing_app.py").write_text(APP)
    path = write_spec(
        tmp_path,
        datasets={"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        systems={"app": {"use": "python", "function": "failing_app:answer"}},
        metrics=["exact_match"],
        limits={"max_errors": 2},
    )
    assert [shard.exit_code for shard in run_shards(path, 2)] == [PASSED, PASSED]
    assert merge(path, 2).exit_code == PASSED
    merged = merge(path, 2, overrides=["limits.max_errors=1"])
    assert merged.exit_code == BROKEN
    assert "limits.max_errors: 2 of 16 questions got no usable reply (limit: 1)" in str(merged.failures[-1])


def test_shards_with_one_store_do_not_end_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path, "rows", 12)
    (tmp_path / "stored_app.py").write_text(APP)
    spec: dict[str, Any] = {
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"app": {"use": "python", "function": "stored_app:answer", "concurrency": 1}},
        "metrics": ["exact_match"],
    }
    options = Options(output=tmp_path / "parts", store=tmp_path / "store")
    limited = write_spec(tmp_path, **spec, limits={"max_calls": {"systems": 4}})
    assert runner.run_shard(limited, Shard(1, 2), options).exit_code == BROKEN
    path = write_spec(tmp_path, **spec)
    assert runner.run_shard(path, Shard(2, 2), options).exit_code == PASSED
    assert runner.run_shard(path, Shard(1, 2), options).exit_code == PASSED
    asked = (tmp_path / "asked.log").read_text().splitlines()
    assert len(asked) == len(set(asked)) == 12
    assert runner.run(path, Options(shards=[tmp_path / "parts"], output=tmp_path / "out")).exit_code == PASSED


def test_what_belongs_together_stays_in_one_shard(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": "One?", "session_id": 7},
        {"id": "b", "question": "Two?", "source": ["x", "y"]},
        {"id": "c", "question": "Three?", "group": "g", "condition": "clean"},
        {"id": "d", "question": "Four?", "session_id": "7", "source": "z"},
        {"id": "e", "question": "Five?", "group": "g", "condition": "noisy"},
        {"id": "f", "question": "Six?", "source": "y"},
        {"id": "g", "question": "Three?"},
        {"id": "h", "question": "Eight?"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = write_spec(
        tmp_path,
        datasets={"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        systems={"app": {"use": "http", "url": "http://127.0.0.1:9"}},
        metrics=["latency"],
        cluster="source",
    )
    spec = load(path)
    parts = build_parts(spec)
    store = MemoryStore()
    engine = Local(LocalNode(), Context("local"))
    work = Work(spec, parts, make_plan(spec, parts, store.fingerprint), store, engine)
    units = list_units(spec, list_evaluated(work, work.materials.open_whole("rows")))
    assert units == [["a", "d"], ["b", "f"], ["c", "e", "g"], ["h"]]
