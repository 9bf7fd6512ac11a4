"""The contracts of what can be sent or written to a tool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.plugin import Context


class TargetNode(BaseModel):
    """Where to send and what: the options of `export`, and the keys of a report with `use:` and this tool's word.

    Fields become options as those of a `SourceNode` do.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


@dataclass(frozen=True, slots=True)
class Parcel:
    """One thing to send, such as one score of one trace.

    Attributes:
        key: names it at the destination. Sending two parcels with the same key leaves only the second there.
        body: what to send, as JSON types. A parcel whose body was sent already under its key is not sent again.
        summary: the body in a few words, for `--dry-run`: `faithfulness 0.80 -> trace 4f2a`.
        kind: what the parcel is, in the singular, for counts: `score`, `span annotation`.
    """

    key: str
    body: Any
    summary: str
    kind: str = "value"


T = TypeVar("T", bound=TargetNode)


class Exporter(ABC, Generic[T]):
    """What `Target` and `FileTarget` share."""

    node_type: ClassVar[type[TargetNode]] = TargetNode
    summary: ClassVar[str] = ""
    """What is sent, as a sentence for the help of `export`."""
    examples: ClassVar[Sequence[str]] = ()
    """Commands for the help of `export`, without the program's name."""

    def __init__(self, node: T, context: Context) -> None:
        """Keep the node and the context; open nothing."""
        self.node = node
        self.context = context

    def remarks(self) -> Sequence[str]:
        """What a user should know about what was made, such as answers that have no trace."""
        return ()

    def close(self) -> None:
        """Release what was opened. Called once, also after an error."""


class Target(Exporter[T]):
    """Sends the values of an evaluation to a tool.

    Sending is idempotent: parcels name themselves, so that sending twice leaves the same at the destination. What was
    sent is written down beside the results, so that a killed `export` continues where it stopped.
    """

    batch: ClassVar[int] = 1
    """The most parcels that `send` gets at once."""

    @property
    @abstractmethod
    def destination(self) -> str:
        """Where parcels go, without credentials: `http://localhost:6006, project support`. Names the ledger."""

    @abstractmethod
    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """Everything there is to send of an evaluation, in an order that does not change. Sends nothing.

        Raises:
            RagevalError: the evaluation has nothing that this tool can take; the message says what it needs.
        """

    @abstractmethod
    def send(self, parcels: Sequence[Parcel]) -> None:
        """Send parcels; once it returns, the tool has stored them.

        Raises:
            RagevalError: the tool did not take all of them.
        """


class FileTarget(Exporter[T]):
    """Writes an evaluation to a file in the layout of a tool."""

    filename: ClassVar[str] = ""
    """The usual name of the file, such as `ragas.jsonl`."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """How a name must end, so that no file is taken for another format; () for any name."""

    @abstractmethod
    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:
        """The names and bytes of the files, where `name` is the file that the user asked for, without folders.

        "" stands for that file itself; any other name is a path in a folder of that name without the suffix.

        Raises:
            RagevalError: the evaluation has nothing that this tool can take; the message says what it needs.
        """
