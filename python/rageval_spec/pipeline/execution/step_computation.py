"""The inputs of an execution, and the function that an engine maps over its tasks.

The function computes the table of a step and never touches the stored tables.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from rageval_spec.pipeline.execution.stopping_decision import Stopper
from rageval_spec.pipeline.planning.plan import EvaluationPlan, StepKind, StepTask, TaskResult
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.values.ranking_values import retrieve_run
from rageval_spec.pipeline.values.sample_tables import answer_queries
from rageval_spec.pipeline.values.step_inputs import Materials
from rageval_spec.pipeline.values.system_values import compute_values
from rageval_spec.plugin import Engine
from rageval_spec.plugin.budget import Budget
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.store.store import Store

_COMPUTE: dict[StepKind, Callable[[Materials, StepTask], TaskResult]] = {
    "retrieve": retrieve_run,
    "answer": answer_queries,
    "evaluate": compute_values,
}


def compute(materials: Materials, task: StepTask) -> TaskResult:
    """Compute a task, in this process or another one. If it fails, `error` of the result says why."""
    try:
        return _COMPUTE[task.step.kind](materials, task)
    except Exception as error:
        return TaskResult(error=error)


def _say_nothing(text: str) -> None:
    pass


@dataclass(frozen=True)
class Work:
    """Everything that an execution needs. `announce` is called with what is being done.

    `stopper` decides when enough questions were asked; without one, all questions are asked.
    """

    spec: Spec
    parts: SpecPlugins
    plan: EvaluationPlan
    store: Store
    engine: Engine[Any]
    limit: int | None = None
    announce: Callable[[str], None] = _say_nothing
    budget: Budget = field(default_factory=Budget)
    stopper: Stopper | None = None
    _materials: Materials | None = None

    @cached_property
    def materials(self) -> Materials:

        return self._materials or Materials(self.spec, self.parts, self.limit, self.budget, self.store.folder)

    def narrow(self, metrics: Container[str]) -> Work:
        """The same with only these metrics; the datasets that are open are shared."""
        materials = self.materials.narrow(metrics)
        return replace(self, spec=materials.spec, parts=materials.parts, _materials=materials)

    def map(self, tasks: Sequence[StepTask]) -> Iterator[TaskResult]:
        """Let the engine compute the tasks; yields their results in the same order."""
        return self.engine.map(partial(compute, self.materials), tasks)
