"""What an execution is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from rageval_spec.pipeline.computation import compute
from rageval_spec.pipeline.materials import Materials
from rageval_spec.pipeline.plan import Parts, Plan
from rageval_spec.pipeline.task import Made, Task
from rageval_spec.plugin import Engine
from rageval_spec.plugin.budget import Budget
from rageval_spec.spec.nodes import Spec
from rageval_spec.store.folder import Store


def _say_nothing(text: str) -> None:
    pass


@dataclass(frozen=True)
class Work:
    """What an execution needs; `announce` is told what is being done."""

    spec: Spec
    parts: Parts
    plan: Plan
    store: Store
    engine: Engine[Any]
    limit: int | None = None
    announce: Callable[[str], None] = _say_nothing
    budget: Budget = field(default_factory=Budget)

    @cached_property
    def materials(self) -> Materials:
        """What steps are computed with."""
        return Materials(self.spec, self.parts, self.limit, self.budget, self.store.folder)

    def map(self, tasks: Sequence[Task]) -> Iterator[Made]:
        """What comes of each task, in their order: computed by the engine."""
        return self.engine.map(partial(compute, self.materials), tasks)
