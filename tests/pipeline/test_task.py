from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl

from rageval_spec.data.note import Note
from rageval_spec.errors import DataError
from rageval_spec.pipeline.parts import build_parts
from rageval_spec.pipeline.plan import make_plan
from rageval_spec.pipeline.task import Failure, Made, Share, Task, explain
from rageval_spec.spec import load
from rageval_spec.store.folder import FolderStore
from tests.tiny import write_spec


def test_a_task_is_pickled_without_the_store_of_its_step(tmp_path: Path) -> None:
    spec = load(write_spec(tmp_path, systems={"bm25": {"use": "bm25"}}))
    store = FolderStore(tmp_path / "store")
    store.answers.find("model", [b"q"])
    step = make_plan(spec, build_parts(spec), store.fingerprint).retrieval("fruit", "bm25")
    key = step.key
    task = Task(step, {"other": pl.DataFrame({"query_id": ["q1"]})})
    there = pickle.loads(pickle.dumps(task))
    assert (there.step.kind, there.step.dataset, there.step.system) == ("retrieve", "fruit", "bm25")
    assert there.step.key == key
    assert there.inputs["other"]["query_id"].to_list() == ["q1"]


def test_a_step_can_be_pickled_before_its_files_are_hashed(tmp_path: Path) -> None:
    spec = load(write_spec(tmp_path))

    def refuse(file: object) -> str:
        raise AssertionError("nobody asked for a key")

    step = make_plan(spec, build_parts(spec), refuse).retrieval("fruit", "good")
    assert pickle.loads(pickle.dumps(step)).system == "good"


def test_the_result_of_a_task_survives_pickling() -> None:
    failure = Failure("golden", "bot", "gone", DataError("gone"), "rr")
    made = Made(pl.DataFrame({"value": [1.0]}), (Note("cut", "cut"),), (failure,), DataError("gone"), Share(1.0, 2, 3))
    back = pickle.loads(pickle.dumps(made))
    assert (back.notes, back.share, str(back.error), str(back.failures[0])) == (
        made.notes,
        made.share,
        "gone",
        "rr of bot on golden: gone",
    )


def test_a_failure_names_its_system_dataset_and_metric() -> None:
    whole, metric = (
        Failure("golden", "bot", "gone", DataError("gone")),
        Failure("golden", "bot", "gone", OSError(), "rr"),
    )
    assert (str(whole), str(metric)) == ("bot on golden: gone", "rr of bot on golden: gone")
    assert whole.note() == Note("failed", "gone", "golden", "bot")
    assert metric.note() == Note("failed", "rr: gone", "golden", "bot")


def test_errors_of_other_packages_are_shown_with_their_type() -> None:
    assert explain(DataError("the file is gone")) == "the file is gone"
    assert explain(KeyError("x")) == "KeyError: 'x'"
