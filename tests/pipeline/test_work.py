from __future__ import annotations

from pathlib import Path

from rageval_spec.engines.local import Local, LocalNode
from rageval_spec.errors import DataError
from rageval_spec.pipeline.parts import build_parts
from rageval_spec.pipeline.plan import make_plan
from rageval_spec.pipeline.task import Task
from rageval_spec.pipeline.work import Work
from rageval_spec.plugin import Context
from rageval_spec.spec import load
from rageval_spec.store.folder import open_store
from tests.tiny import Counting, Failing, Install, install, write_spec

__all__ = ["install"]


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
    broken, one = work.map([Task(work.plan.retrieval("fruit", system)) for system in ("broken", "one")])
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
    (made,) = work.map([Task(work.plan.retrieval("fruit", "one"))])
    assert isinstance(made.error, DataError)


def test_other_processes_find_replies_in_the_store(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    install("systems", "counting", Counting)
    assert prepare(tmp_path, tmp_path / "store").materials.store == tmp_path / "store"
    assert prepare(tmp_path).materials.store is None
