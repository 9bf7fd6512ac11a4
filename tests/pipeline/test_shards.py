"""Shards that are computed apart and put together give the bytes of one evaluation, whatever happens in them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from rageval_spec import runner
from rageval_spec.errors import GATE_FAILED
from rageval_spec.plugin.budget import Shard
from rageval_spec.runner import Options, RunOutcome
from tests.models.chat_endpoint import ChatServer
from tests.pipeline.test_interrupted_judging import Judging

SPECS = Path(__file__).parents[2] / "specs"
PRICE = {"input": 1, "output": 2}
TOPICS = ("shipping", "returns", "payment")


def read(folder: Path) -> dict[str, Any]:
    """The files of a results folder; of samples, everything but how long the systems took."""
    found: dict[str, Any] = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
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


def test_an_application_and_a_judge_with_clusters_slices_pairs_and_failures(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = check_equal(write_judged(tmp_path, server.url), 1, 3, 8)
    codes = {note.code for note in whole.evaluation.notes}
    assert {"unanswered", "failed_queries"} <= codes
    assert whole.exit_code == GATE_FAILED
    assert whole.evaluation.provenance.judging["chat"].calls > 20
