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
    """Applies a step's function to partitions, in local threads or on a cluster.

    The function and the partitions can be pickled. A pickled function builds the spec's plugins again where it is
    unpickled; each process then enforces the limits on calls and costs by itself.
    """

    shares_cores: ClassVar[bool] = True
    """Whether partitions run on this process's cores. If so, steps that need all cores run one at a time."""

    @abstractmethod
    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """The function's results in the order of the partitions. Exceptions of the function are raised here."""
