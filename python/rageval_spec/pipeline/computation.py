"""The function that an engine maps over tasks. It computes the table of a step and never touches the stored tables."""

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
    """Compute a task, in this process or another one. If it fails, `error` of the result says why."""
    try:
        return _COMPUTE[task.step.kind](materials, task)
    except Exception as error:
        return Made(error=error)
