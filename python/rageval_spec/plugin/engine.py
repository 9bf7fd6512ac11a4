"""The contract of engines, and what the processes of one evaluation share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from rageval_spec.dataclass import dataclass, field
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.plugin import N, Node, Plugin, say_nothing
from rageval_spec.progress import Progress, ignore_progress
from rageval_spec.store.store import Answers, NoAnswers

Partition = TypeVar("Partition")
Answer = TypeVar("Answer")


def show_nothing(label: str, unit: str | None) -> Progress:  # noqa: ARG001 - there is nothing to label
    """A `Shared.counting` without a display."""
    return ignore_progress


@dataclass(frozen=True)
class Shared:
    """What all processes of an evaluation share. It belongs to the process of the command.

    In another process, each part is a stand-in that passes every call on to its owner. So whatever costs money is
    looked up, counted and stored in one place.

    Attributes:
        answers: where models and systems store their answers.
        budget: what may be asked, and what was asked.
        counting: returns the progress display for a label and the unit that is counted.
        tell: shows the user a sentence.
        pace: makes the pace of the endpoint of that name, as `Context.pace`; None in the process that owns it all.
        fetch: gives the content of a file of the command.
        threads: how many threads a process may use, unless the spec says it; None for all cores.
    """

    answers: Answers = field(default_factory=NoAnswers)
    budget: Budget = field(default_factory=Budget)
    counting: Callable[[str, str | None], Progress] = show_nothing
    tell: Callable[[str], None] = say_nothing
    pace: Callable[[str], Callable[..., Any]] | None = None
    fetch: Callable[[Path], bytes] = Path.read_bytes
    threads: int | None = None


class EngineNode(Node):
    """A block that says where steps are computed."""


class Engine(Plugin[N]):
    """Applies a step's function to partitions, in local threads or on a cluster.

    The function and the partitions can be pickled. A pickled function builds the spec's plugins again where it is
    unpickled, with what `reach` gives there.
    """

    shares_cores: ClassVar[bool] = True
    """Whether partitions run on this process's cores. If so, steps that need all cores run one at a time."""

    reach: Callable[[], Shared] | None = None
    """What other processes call to get their stand-ins for what `open` got. It can be pickled. None if each process
    opens the store and limits calls by itself."""

    def open(self, shared: Shared) -> None:
        """Get ready to compute. Called once, before the first `map`; `shared` belongs to this process.

        Raises:
            UsageError: the engine cannot be reached or used as the spec says.
        """

    def close(self, *, at_once: bool = False) -> None:
        """End what was opened, also after an error. With `at_once`, as after Ctrl-C, do not wait for anything."""

    def count_parts(self, kind: str, questions: int) -> int:  # noqa: ARG002 - for engines that split steps
        """Into how many parts to split a step about so many questions; `kind` is "retrieve", "answer" or "evaluate".

        Of "embed" and "search", documents are the parts, and their number is a guess.
        """
        return 1

    @abstractmethod
    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """The function's results in the order of the partitions. Exceptions of the function are raised here."""
