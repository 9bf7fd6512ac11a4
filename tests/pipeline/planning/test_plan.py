""""""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError
from rageval_spec.pipeline.planning import plan as plan_module
from rageval_spec.pipeline.planning.plan import (
    EvaluationPlan,
    RunShare,
    StepTask,
    SystemFailure,
    TaskResult,
    explain,
    make_plan,
)
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.plugin import InputFile
from rageval_spec.spec import load
from rageval_spec.store.store import FolderStore, MemoryStore
from tests.tiny import write_spec

BM25 = {"use": "bm25"}
KEYWORD = {"use": "file", "path": "data/good.run"}


def plan(folder: Path, limit: int | None = None, **sections: Any) -> EvaluationPlan:
    spec = load(write_spec(folder, **sections))
    return make_plan(spec, build_parts(spec), MemoryStore().fingerprint, limit)


def keys(made: EvaluationPlan) -> dict[str, str]:
    return {step.title: step.key for step in made.steps}


def changed(before: EvaluationPlan, after: EvaluationPlan) -> set[str]:
    """The titles of the steps whose keys differ."""
    old, new = keys(before), keys(after)
    assert set(old) == set(new)
    return {title for title in old if old[title] != new[title]}


ALL = {
    "open fruit",
    "retrieve bm25 x fruit",
    "evaluate bm25 x fruit: 2 metrics",
    "retrieve good x fruit",
    "evaluate good x fruit: 2 metrics",
    "aggregate fruit",
    "gate rr of bm25",
    "report terminal",
}
SECTIONS: dict[str, Any] = {
    "systems": {"bm25": BM25, "good": KEYWORD},
    "gates": [{"metric": "rr", "system": "bm25", "min": 0.1}],
    "reports": ["terminal"],
}
END = {"aggregate fruit", "gate rr of bm25", "report terminal"}


def test_steps_come_in_the_order_of_execution(tmp_path: Path) -> None:
    made = plan(tmp_path, **SECTIONS)
    assert set(keys(made)) == ALL
    assert [step.kind for step in made.steps] == [
        "open", "retrieve", "evaluate", "retrieve", "evaluate", "aggregate", "gate", "report",
    ]  # fmt: skip
    done: set[str] = set()
    for step in made.steps:
        assert {before.key for before in step.after} <= done
        done.add(step.key)


def test_keys_do_not_depend_on_the_folder_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    assert keys(plan(tmp_path / "here", **SECTIONS)) == keys(plan(tmp_path / "there", **SECTIONS))


def test_keys_are_sha256_in_hex(tmp_path: Path) -> None:
    for key in keys(plan(tmp_path)).values():
        assert len(key) == 64
        int(key, 16)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"limits": {"threads": 1}}, set()),
        ({"name": "another"}, set()),
        ({"systems": {"bm25": BM25 | {"k1": 1.5}, "good": KEYWORD}}, set()),  # the default, written out
        (
            {"systems": {"bm25": BM25 | {"k1": 0.9}, "good": KEYWORD}},
            {"retrieve bm25 x fruit", "evaluate bm25 x fruit: 2 metrics"} | END,
        ),
        ({"metrics": ["rr", "precision@2"]}, {step for step in ALL if step.startswith("evaluate")} | END),
        ({"ranking": {"missing": "skip"}}, {step for step in ALL if step.startswith("evaluate")} | END),
        ({"statistics": {"resamples": 300}}, END),
        ({"gates": [{"metric": "rr", "system": "bm25", "min": 0.2}]}, {"gate rr of bm25", "report terminal"}),
        ({"reports": [{"use": "terminal", "digits": 2}]}, {"report terminal"}),
    ],
)
def test_a_change_affects_only_the_steps_that_depend_on_it(
    tmp_path: Path, sections: dict[str, Any], expected: set[str]
) -> None:
    before = plan(tmp_path, **SECTIONS)
    before_keys = keys(before)  # keys are computed when first read, so read them before the spec changes
    assert before_keys
    assert changed(before, plan(tmp_path, **SECTIONS | sections)) == expected


def test_renaming_a_system_changes_no_retrieval_key(tmp_path: Path) -> None:
    first = plan(tmp_path, systems={"bm25": BM25}).retrieval("fruit", "bm25").key
    assert plan(tmp_path, systems={"lexical": BM25}).retrieval("fruit", "lexical").key == first


def test_a_changed_file_affects_the_steps_that_read_it(tmp_path: Path) -> None:
    before = plan(tmp_path, **SECTIONS)
    assert keys(before)
    run = tmp_path / "data" / "good.run"
    run.write_text(run.read_text() + "q4 Q0 d5 1 0.5 t\n")
    expected = {"retrieve good x fruit", "evaluate good x fruit: 2 metrics"} | END
    assert changed(before, plan(tmp_path, **SECTIONS)) == expected


def test_a_changed_corpus_affects_everything(tmp_path: Path) -> None:
    before = plan(tmp_path, **SECTIONS)
    assert keys(before)
    corpus = tmp_path / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("pie", "pies"))
    assert changed(before, plan(tmp_path, **SECTIONS)) == ALL


def test_a_limit_and_a_plugin_version_are_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rageval_spec.systems.bm25 import Bm25

    before = plan(tmp_path, **SECTIONS)
    assert keys(before)
    assert changed(before, plan(tmp_path, 2, **SECTIONS)) == ALL
    monkeypatch.setattr(Bm25, "version", "another")
    assert "retrieve bm25 x fruit" in changed(before, plan(tmp_path, **SECTIONS))


def test_another_release_evaluates_again_and_retrieves_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = plan(tmp_path, **SECTIONS)
    assert keys(before)
    monkeypatch.setattr(plan_module, "version", lambda: "99.0")
    expected = {step for step in ALL if step.startswith("evaluate")} | END
    assert changed(before, plan(tmp_path, **SECTIONS)) == expected


def test_files_are_hashed_only_when_a_key_is_read(tmp_path: Path) -> None:
    def refuse(file: InputFile) -> str:
        raise AssertionError(f"{file.path} was read")

    spec = load(write_spec(tmp_path))
    made = make_plan(spec, build_parts(spec), refuse)
    assert [step.title for step in made.of("retrieve")] == ["retrieve good x fruit", "retrieve tied x fruit"]
    with pytest.raises(AssertionError, match="was read"):
        _ = made.steps[0].key


def test_each_dataset_has_its_own_steps(tmp_path: Path) -> None:
    dataset = {"use": "beir", "path": "data"}
    made = plan(
        tmp_path,
        datasets={"one": dataset, "two": dataset},
        gates=[{"metric": "rr", "min": 0.1}, {"metric": "rr", "dataset": "two", "min": 0.1}],
    )
    assert len(made.of("aggregate")) == 2
    every, two = made.of("gate")
    assert [step.dataset for step in every.after] == ["one", "two"]
    assert [step.dataset for step in two.after] == ["two"]


def test_the_text_says_what_is_in_the_store(tmp_path: Path) -> None:
    made = plan(tmp_path, **SECTIONS)
    lines = made.render(lambda key: False).splitlines()
    assert lines[0] == "tiny: 8 steps"
    assert lines[-1] == "1 retrieval to compute"
    states = {line.split("  ", 2)[2].split("   ")[0].strip(): line for line in lines[1:-1]}
    assert states["retrieve bm25 x fruit"].endswith("to compute")
    assert states["retrieve good x fruit"].endswith("read each time")
    stored = made.render(lambda key: True)
    assert "in the store" in stored
    assert stored.endswith("0 retrievals to compute\n")


def test_json_is_complete_and_the_same_each_time(tmp_path: Path) -> None:
    made = plan(tmp_path, **SECTIONS)
    text = made.to_json(lambda key: False)
    assert text == plan(tmp_path, **SECTIONS).to_json(lambda key: False)
    steps = json.loads(text)["steps"]
    retrieval = next(step for step in steps if step["system"] == "bm25" and step["kind"] == "retrieve")
    assert retrieval["state"] == "to compute"
    assert retrieval["content"]["node"]["k1"] == 1.5
    assert retrieval["after"] == [steps[0]["key"]]
    assert [file["file"] for file in steps[0]["inputs"]] == ["test.tsv", "queries.jsonl", "corpus.jsonl"]
    assert str(tmp_path) not in text


def test_a_task_is_pickled_without_the_store_of_its_step(tmp_path: Path) -> None:
    spec = load(write_spec(tmp_path, systems={"bm25": {"use": "bm25"}}))
    store = FolderStore(tmp_path / "store")
    store.answers.find("model", [b"q"])
    step = make_plan(spec, build_parts(spec), store.fingerprint).retrieval("fruit", "bm25")
    key = step.key
    task = StepTask(step, {"other": pl.DataFrame({"query_id": ["q1"]})})
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
    failure = SystemFailure("golden", "bot", "gone", DataError("gone"), "rr")
    made = TaskResult(
        pl.DataFrame({"value": [1.0]}), (Note("cut", "cut"),), (failure,), DataError("gone"), RunShare(1.0, 2, 3)
    )
    back = pickle.loads(pickle.dumps(made))
    assert (back.notes, back.share, str(back.error), str(back.failures[0])) == (
        made.notes,
        made.share,
        "gone",
        "rr of bot on golden: gone",
    )


def test_a_failure_names_its_system_dataset_and_metric() -> None:
    whole, metric = (
        SystemFailure("golden", "bot", "gone", DataError("gone")),
        SystemFailure("golden", "bot", "gone", OSError(), "rr"),
    )
    assert (str(whole), str(metric)) == ("bot on golden: gone", "rr of bot on golden: gone")
    assert whole.note() == Note("failed", "gone", "golden", "bot")
    assert metric.note() == Note("failed", "rr: gone", "golden", "bot")


def test_errors_of_other_packages_are_shown_with_their_type() -> None:
    assert explain(DataError("the file is gone")) == "the file is gone"
    assert explain(KeyError("x")) == "KeyError: 'x'"
