"""Executes a spec on the tiny collection, and reads the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from rageval_spec.engines.local import Local, LocalNode
from rageval_spec.pipeline.execution.execution import Execution, execute
from rageval_spec.pipeline.execution.runs import Work
from rageval_spec.pipeline.planning.plan import make_plan
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.plugin import Context
from rageval_spec.spec import load
from rageval_spec.store.store import MemoryStore, Store
from tests.tiny import write_spec


def evaluate(
    folder: Path, store: Store | None = None, limit: int | None = None, workers: int = 2, **sections: Any
) -> Execution:
    spec = load(write_spec(folder, **sections))
    parts, store = build_parts(spec), store or MemoryStore()
    plan = make_plan(spec, parts, store.fingerprint, limit)
    return execute(Work(spec, parts, plan, store, Local(LocalNode(workers=workers), Context("local")), limit))


def column(execution: Execution, system: str, metric: str, name: str = "value") -> dict[str, Any]:
    """One column of a cell, by query id."""
    rows = execution.values.filter(pl.col("system") == system, pl.col("metric") == metric)
    return dict(rows.select("query_id", name).iter_rows())


def messages(execution: Execution, code: str) -> list[str]:
    return [note.message for note in execution.notes if note.code == code]
