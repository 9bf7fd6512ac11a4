"""`local`: computes partitions in threads of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from pydantic import Field

from rageval_spec.plugin import Answer, Engine, EngineNode, Partition
from rageval_spec.threads import map_in_threads

QUESTIONS_AT_ONCE = 10_000
"""How many questions a part of a step has at most. A part of one metric takes about 30 MB."""


class LocalNode(EngineNode):
    """Settings of the engine `local`."""

    use: Literal["local"] = Field(default="local", description="This machine's threads.")
    workers: int | None = Field(
        default=None, ge=1, description="Partitions to compute at the same time; the number of cores by default."
    )


class Local(Engine[LocalNode]):
    """Applies a function to partitions in threads, or in the calling thread for one worker or one partition."""

    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """Yield the function's results in the order of the partitions.

        The first exception in that order is raised; partitions that have not started by then are cancelled.
        """
        waiting = list(partitions)
        workers = min(self.workers, len(waiting))
        if workers <= 1:
            yield from map(function, waiting)
        else:
            yield from map_in_threads(function, waiting, workers)

    def count_parts(self, kind: str, questions: int) -> int:
        """Answers are measured in parts, so that the samples and what judges say of them need not all be in memory."""
        return max(1, -(-questions // QUESTIONS_AT_ONCE)) if kind == "evaluate" else 1

    @property
    def workers(self) -> int:
        """The number of partitions that are computed at the same time."""
        return self.node.workers or self.context.threads or os.cpu_count() or 1


PLUGIN = Local
