"""Retrieves the run of one system on one dataset."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rageval_spec.data import tables
from rageval_spec.errors import DataError, no_exit
from rageval_spec.pipeline.task import Made, Share, Task
from rageval_spec.plugin import Retrieval, System

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.pipeline.materials import Materials


def retrieve_run(materials: Materials, task: Task) -> Made:
    """Retrieve a system's run (`query_id, doc_id, score`), and measure the time it takes.

    The run has all queries, even if only some questions are asked of the systems that answer.

    Raises:
        Exception: any exception of the system.
    """
    plugin = materials.parts.system(str(task.step.system))
    collection = materials.open_whole(str(task.step.dataset)).collection
    start = time.perf_counter()
    found = retrieve(plugin, collection, task.inputs)
    seconds = time.perf_counter() - start
    share = Share(seconds, found.reused, _count("corpus", plugin, collection))
    return Made(found.run, found.notes, share=share, queries=_count("queries", plugin, collection))


def _count(part: str, plugin: System[Any], collection: Collection) -> int:
    """The number of rows of a part of the dataset, if the system reads that part; else 0."""
    table = getattr(collection, part) if part in plugin.needs else None
    return 0 if table is None else int(table.height)


def retrieve(plugin: System[Any], collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:
    """Let a system retrieve, and check its run.

    Raises:
        DataError: the dataset lacks a part that the system needs, or the run lacks a column.
    """
    for part in sorted(plugin.needs):
        if getattr(collection, part) is None:
            wanted = "a corpus" if part == "corpus" else part
            raise DataError(f"{plugin.node.use} needs {wanted}, but the dataset '{collection.name}' has none")
    with no_exit():
        found = plugin.retrieve(collection, runs)
    retrieval = found if isinstance(found, Retrieval) else Retrieval(found)
    run = retrieval.run
    absent = [column for column in tables.RUN if column not in run.columns]
    if absent:
        raise DataError(f"the run has no column {', '.join(map(repr, absent))}; it has {', '.join(run.columns)}")
    return replace(retrieval, run=run.select(tables.RUN))
