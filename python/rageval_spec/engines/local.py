"""`local`: this machine's threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from pydantic import Field

from rageval_spec.plugin import Answer, Engine, EngineNode, Partition
from rageval_spec.threads import map_in_threads


class LocalNode(EngineNode):
    """The threads of this machine."""

    use: Literal["local"] = Field(default="local", description="This machine's threads.")
    workers: int | None = Field(
        default=None, ge=1, description="How many partitions are computed at the same time; all cores by default."
    )


class Local(Engine[LocalNode]):
    """Applies a function to partitions in threads; with one worker or one partition, in the calling thread."""

    node_type = LocalNode

    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """The function's answers in the order of the partitions.

        The first exception in that order comes out; partitions that have not started by then never do.
        """
        waiting = list(partitions)
        workers = min(self.workers, len(waiting))
        if workers <= 1:
            yield from map(function, waiting)
        else:
            yield from map_in_threads(function, waiting, workers)

    @property
    def workers(self) -> int:
        """How many partitions are computed at the same time."""
        return self.node.workers or self.context.threads or os.cpu_count() or 1


PLUGIN = Local
