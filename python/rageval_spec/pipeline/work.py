"""The inputs of an execution."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from rageval_spec.pipeline.computation import compute
from rageval_spec.pipeline.materials import Materials
from rageval_spec.pipeline.parts import Parts
from rageval_spec.pipeline.plan import Plan
from rageval_spec.pipeline.stopping import Stopper
from rageval_spec.pipeline.task import Made, Task
from rageval_spec.plugin import Engine
from rageval_spec.plugin.budget import Budget
from rageval_spec.spec.nodes import Spec
from rageval_spec.store.folder import Store


def _say_nothing(text: str) -> None:
    pass


@dataclass(frozen=True)
class Work:
    """Everything that an execution needs.

    `announce` is called with what is being done. `stopper` decides when enough questions were asked; without one, all
    questions are asked.
    """

    spec: Spec
    parts: Parts
    plan: Plan
    store: Store
    engine: Engine[Any]
    limit: int | None = None
    announce: Callable[[str], None] = _say_nothing
    budget: Budget = field(default_factory=Budget)
    stopper: Stopper | None = None
    _materials: Materials | None = None

    @cached_property
    def materials(self) -> Materials:
        """Everything that a step needs to be computed."""
        return self._materials or Materials(self.spec, self.parts, self.limit, self.budget, self.store.folder)

    def narrow(self, metrics: Container[str]) -> Work:
        """The same with only these metrics; the datasets that are open are shared."""
        materials = self.materials.narrow(metrics)
        return replace(self, spec=materials.spec, parts=materials.parts, _materials=materials)

    def map(self, tasks: Sequence[Task]) -> Iterator[Made]:
        """Let the engine compute the tasks; yields their results in the same order."""
        return self.engine.map(partial(compute, self.materials), tasks)
