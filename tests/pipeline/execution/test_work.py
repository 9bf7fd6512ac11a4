"""Steps can be computed in any process, and give the same bytes there."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rageval_spec import runner
from rageval_spec.engines.local import Local, LocalNode
from rageval_spec.errors import DataError
from rageval_spec.pipeline.execution.runs import Work
from rageval_spec.pipeline.planning.plan import StepTask, make_plan
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.pipeline.values import step_inputs
from rageval_spec.plugin import Answer, Context, Engine, EngineNode, Partition
from rageval_spec.runner import Options, RunOutcome
from rageval_spec.spec import load
from rageval_spec.store.store import Store, open_store
from tests.answering import Brevity, BriefJudge, Canned
from tests.tiny import Counting, Failing, Install, install, write_spec

__all__ = ["install"]

SYSTEMS: dict[str, Any] = {
    "bm25": {"use": "bm25"},
    "tied": {"use": "file", "path": "data/tied.run"},
    "dense": {"use": "dense", "model": "minilm"},
    "both": {"use": "hybrid", "systems": ["bm25", "dense"]},
}


class PicklingEngine(Engine[EngineNode]):
    """Pickles all tasks and results, as an engine on another machine would."""

    node_type = EngineNode
    shares_cores = False
    sent: ClassVar[list[int]] = []

    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """Compute the tasks one after the other, each with its own copy of the function."""
        waiting = list(partitions)
        self.sent.append(len(waiting))
        for partition in waiting:
            there, content = pickle.loads(pickle.dumps(function)), pickle.loads(pickle.dumps(partition))
            yield pickle.loads(pickle.dumps(there(content)))


class ProcessEngine(Engine[EngineNode]):
    """Computes tasks in newly started processes."""

    node_type = EngineNode
    shares_cores = False
    pool: ProcessPoolExecutor

    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """Compute as many tasks at the same time as there are processes."""
        return self.pool.map(function, partitions)


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Restored materials of one test do not reach the next."""
    PicklingEngine.sent.clear()
    yield
    step_inputs._RESTORED.clear()


def run(folder: Path, engine: type[Engine[Any]] | None = None, **sections: Any) -> tuple[RunOutcome, dict[str, bytes]]:
    """Run the spec with an engine, and return the outcome and the bytes of the results."""
    sections = {"systems": SYSTEMS, "reports": ["json", "parquet", "samples", "markdown"], **sections}
    path = write_spec(folder, **sections)
    out = folder / (engine.__name__ if engine else "local")
    with pytest.MonkeyPatch.context() as patch:
        if engine is not None:
            built = engine(EngineNode(use="fake"), Context("fake"))
            patch.setattr(runner, "_engine", lambda *_: built)
        outcome = runner.run(path, Options(output=out, store=folder / f"store-{out.name}"))
    return outcome, {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("forgotten")
def test_an_engine_that_pickles_gives_the_same_bytes(tmp_path: Path) -> None:
    gates = [{"metric": "rr", "min": 0.0, "system": "bm25"}]
    local, expected = run(tmp_path, gates=gates)
    pickled, found = run(tmp_path, PicklingEngine, gates=gates)
    assert found == expected
    tables = {"values.parquet", "samples.parquet", "findings.parquet", "documents.parquet"}
    tables |= {"manifest.json", "statement.json"}
    questions = {f"questions/{system}.csv" for system in local.evaluation.systems}
    assert set(found) == {"results.json", "report.md", *questions, *tables}
    assert (local.exit_code, pickled.exit_code) == (0, 0)
    assert [timing.system for timing in pickled.timings] == [timing.system for timing in local.timings]
    assert [timing.documents for timing in pickled.timings] == [timing.documents for timing in local.timings]


@pytest.mark.usefixtures("forgotten")
def test_independent_steps_are_submitted_together_if_cores_are_not_shared(
    tmp_path: Path,
) -> None:
    run(tmp_path, PicklingEngine)
    # bm25 with dense; the hybrid of both; the run that is read from a file; all four evaluations
    assert PicklingEngine.sent == [2, 1, 1, 4]


@pytest.mark.usefixtures("forgotten")
def test_answers_and_judgements_are_computed_elsewhere_too(tmp_path: Path, install: Install) -> None:
    install("systems", "canned", Canned)
    install("systems", "failing", Failing)
    install("judges", "brief", BriefJudge)
    install("metrics", "brevity", Brevity)
    sections: dict[str, Any] = {
        "systems": {
            "bot": {"use": "canned", "answers": {"q1": "yes", "q2": {"answer": "fail", "context_ids": ["d3"]}}},
            "mute": {"use": "canned", "answers": {}},
            "lost": {"use": "failing"},
            "good": {"use": "file", "path": "data/good.run"},
        },
        "judges": {"judge": {"use": "brief"}},
        "metrics": ["rr", {"use": "brevity", "judge": "judge"}, "error_rate"],
    }
    local, expected = run(tmp_path, **sections)
    pickled, found = run(tmp_path, PicklingEngine, **sections)
    assert found == expected
    assert [str(failure) for failure in pickled.failures] == [str(failure) for failure in local.failures]
    assert len(pickled.failures) == 2
    assert BriefJudge.told


@pytest.mark.usefixtures("forgotten")
def test_other_processes_give_the_same_bytes(tmp_path: Path) -> None:
    """These processes have only what is pickled: no plugin, table or store of this process."""
    expected = run(tmp_path)[1]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        ProcessEngine.pool = pool
        assert run(tmp_path, ProcessEngine)[1] == expected


@pytest.mark.usefixtures("forgotten")
def test_steps_never_touch_the_tables_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise AssertionError("a step touched the tables of the store")

    def open_guarded(folder: Path | None) -> Store:
        store = open_store(folder)
        for name in ("has", "load", "save", "record", "forget"):
            monkeypatch.setattr(store, name, refuse)
        return store

    monkeypatch.setattr(step_inputs, "open_store", open_guarded)
    outcome, _ = run(tmp_path, PicklingEngine)
    assert outcome.exit_code == 0


def prepare(folder: Path, store: Path | None = None) -> Work:
    systems = {"broken": {"use": "failing"}, "one": {"use": "counting"}}
    spec = load(write_spec(folder, systems=systems))
    parts, kept = build_parts(spec), open_store(store)
    engine = Local(LocalNode(workers=2), Context("local"))
    return Work(spec, parts, make_plan(spec, parts, kept.fingerprint), kept, engine)


def test_results_keep_the_order_of_tasks_including_failed_ones(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    install("systems", "counting", Counting)
    work = prepare(tmp_path)
    broken, one = work.map([StepTask(work.plan.retrieval("fruit", system)) for system in ("broken", "one")])
    assert isinstance(broken.error, ConnectionError)
    assert broken.table is None
    assert one.error is None
    assert one.table is not None
    assert set(one.table["query_id"]) == {"q1", "q2", "q3", "q4"}
    assert (one.queries, one.share and one.share.documents) == (4, 0)


def test_a_step_that_cannot_be_computed_says_so_and_stops_nothing(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    install("systems", "counting", Counting)
    work = prepare(tmp_path)
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("nothing\n")
    (made,) = work.map([StepTask(work.plan.retrieval("fruit", "one"))])
    assert isinstance(made.error, DataError)


def test_other_processes_find_replies_in_the_store(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    install("systems", "counting", Counting)
    assert prepare(tmp_path, tmp_path / "store").materials.store == tmp_path / "store"
    assert prepare(tmp_path).materials.store is None
