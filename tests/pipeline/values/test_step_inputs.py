from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.pipeline.values import step_inputs as module
from rageval_spec.pipeline.values.step_inputs import Materials
from rageval_spec.spec import load
from tests.answering import Canned
from tests.tiny import Install, install, write_spec

__all__ = ["install"]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    module._RESTORED.clear()


def gather(folder: Path, limit: int | None = None, **sections: Any) -> Materials:
    spec = load(write_spec(folder, **sections))
    return Materials(spec, build_parts(spec), limit, store=folder / "store")


def test_a_dataset_is_opened_once_and_only_the_last_stays_in_memory(tmp_path: Path) -> None:
    fruit = {"use": "beir", "path": "data"}
    materials = gather(tmp_path, datasets={"fruit": fruit, "more": fruit})
    first = materials.open("fruit")
    assert materials.open("fruit") is first
    assert materials.open("more").collection.name == "more"
    assert materials.open("fruit") is not first


def test_a_limit_applies_to_rankings_and_answers(tmp_path: Path, install: Install) -> None:
    install("systems", "canned", Canned)
    systems = {"bot": {"use": "canned"}, "bm25": {"use": "bm25"}}
    opened = gather(tmp_path, 2, systems=systems).open("fruit")
    assert opened.answering == {"bot"}
    assert opened.collection.qrels is not None
    assert opened.asked.queries is not None
    assert opened.collection.qrels["query_id"].n_unique() == opened.asked.queries.height == 2
    ranked = gather(tmp_path, 2, systems={"bm25": {"use": "bm25"}}).open("fruit")
    assert [note.code for note in ranked.notes] == ["limited"]


def test_judgements_are_needed_if_a_system_retrieves(tmp_path: Path, install: Install) -> None:
    install("systems", "canned", Canned)
    (tmp_path / "questions.jsonl").write_text('{"query_id": "q1", "question": "Why?"}\n')
    datasets = {"golden": {"use": "jsonl", "path": "questions.jsonl"}}
    bot, good = {"bot": {"use": "canned"}}, {"good": {"use": "file", "path": "data/good.run"}}
    assert gather(tmp_path, datasets=datasets, systems=bot, metrics=["error_rate"]).open("golden").answering == {"bot"}
    with pytest.raises(DataError, match="no relevance judgements"):
        gather(tmp_path, datasets=datasets, systems={**bot, **good}).open("golden")


def test_another_process_builds_the_parts_once_for_all_tasks(tmp_path: Path) -> None:
    materials = gather(tmp_path, 3)
    sent = pickle.dumps(materials)
    there = pickle.loads(sent)
    assert pickle.loads(sent) is there is not materials
    assert there.parts.systems.keys() == materials.parts.systems.keys()
    assert there.parts.systems["good"] is not materials.parts.systems["good"]
    assert (there.limit, there.spec.digest, there.store) == (3, materials.spec.digest, materials.store)
    other = pickle.loads(pickle.dumps(gather(tmp_path, 3)))
    assert other is not there


def test_built_parts_are_not_pickled(tmp_path: Path) -> None:
    materials = gather(tmp_path)
    before = len(pickle.dumps(materials))
    assert materials.open("fruit").collection.queries is not None
    assert len(pickle.dumps(materials)) == before < 10_000


def test_some_questions_are_the_first_of_a_random_order(tmp_path: Path) -> None:
    materials = gather(tmp_path)
    whole = materials.open_whole("fruit")
    order = materials.shuffle("fruit")
    materials.drawn["fruit"] = (0, 2)
    part = materials.open("fruit")
    assert part is materials.open("fruit")
    assert part.is_drawn
    assert part.collection.qrels is not None
    assert {*part.collection.qrels["query_id"]} == {*order[:2]}
    there = pickle.loads(pickle.dumps(materials)).open("fruit").collection.qrels
    assert there is not None
    assert {*there["query_id"]} == {*order[:2]}
    materials.drawn["fruit"] = (0, len(order))
    assert materials.open("fruit") is whole


def test_narrowed_materials_have_fewer_metrics_and_the_same_datasets(tmp_path: Path) -> None:
    materials = gather(tmp_path)
    whole = materials.open("fruit")
    few = materials.narrow({"rr"})
    assert [*few.parts.metrics] == [metric.name for metric in few.spec.metrics] == ["rr"]
    assert few.open("fruit") is whole
    assert [*pickle.loads(pickle.dumps(few)).parts.metrics] == ["rr"]


def test_another_process_learns_of_beginnings_that_were_made_after_its_first_task(tmp_path: Path) -> None:
    here = gather(tmp_path)
    first = pickle.loads(pickle.dumps(here))
    next(iter(here.parts.systems.values())).context.resume.begun["key of a system"] = "its beginning"
    second = pickle.loads(pickle.dumps(here))
    assert second is first
    there = next(iter(first.parts.systems.values())).context.resume
    assert there.begun == {"key of a system": "its beginning"}
    assert there.is_told and not next(iter(here.parts.systems.values())).context.resume.is_told
