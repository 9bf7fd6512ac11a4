"""What an engine maps over tasks: it computes the table of a step, and never touches the tables of the store."""

from __future__ import annotations

from collections.abc import Callable

from rageval_spec.pipeline.answers import answer_queries
from rageval_spec.pipeline.materials import Materials
from rageval_spec.pipeline.plan import StepKind
from rageval_spec.pipeline.retrieval import retrieve_run
from rageval_spec.pipeline.system_values import compute_values
from rageval_spec.pipeline.task import Made, Task

_COMPUTE: dict[StepKind, Callable[[Materials, Task], Made]] = {
    "retrieve": retrieve_run,
    "answer": answer_queries,
    "evaluate": compute_values,
}


def compute(materials: Materials, task: Task) -> Made:
    """What comes of a task, here or in another process; where it fails, `error` says why."""
    try:
        return _COMPUTE[task.step.kind](materials, task)
    except Exception as error:
        return Made(error=error)
