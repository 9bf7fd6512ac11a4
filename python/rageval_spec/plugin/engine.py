"""The contract of engines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, TypeVar

from rageval_spec.plugin.plugin import N, Node, Plugin

Partition = TypeVar("Partition")
Answer = TypeVar("Answer")


class EngineNode(Node):
    """A block that says where steps are computed."""


class Engine(Plugin[N]):
    """Applies a step's function to partitions: in threads here, on a cluster elsewhere.

    The function and the partitions can be pickled. Pickled, the function builds the plugins of the spec anew where it
    is unpickled; limits on calls and costs then hold in each process by itself.
    """

    shares_cores: ClassVar[bool] = True
    """Whether partitions are computed on this process's cores: steps that need all of them then come one at a time."""

    @abstractmethod
    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """The function's answers in the order of the partitions, whichever is ready first; its exceptions come out."""
