"""The contract of what can be read from a tool: traces, and its datasets as traces without an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.exchange.shared.windows import Moment

if TYPE_CHECKING:
    from rageval_spec.data.trace import Trace
    from rageval_spec.plugin import Context, InputFile


class SourceNode(BaseModel):
    """What to read: the options of `import`, and the keys of a block with `use:` and this tool's word.

    Each field is an option: `project_name` becomes `--project-name`. A field that is required and called `path` becomes
    the argument. A field of type `Secret` is no option, because other users of the machine can see those: it must
    have a default, which the environment gives.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class WindowNode(SourceNode):
    """The keys of a source that can be asked for traces of some time."""

    since: Moment = Field(
        default=None,
        description="Only traces that began at or after this: `7d`, `12h`, `30m`, or an ISO 8601 time. Default: all.",
    )
    until: Moment = Field(default=None, description="Only traces that began before this. Default: until now.")
    limit: int | None = Field(default=None, ge=1, description="The most traces to read, newest first. Default: all.")


S = TypeVar("S", bound=SourceNode)


class Source(ABC, Generic[S]):
    """Reads traces from one tool."""

    node_type: ClassVar[type[SourceNode]] = SourceNode
    summary: ClassVar[str] = ""
    """What is read, as a sentence for the help of `import`."""
    examples: ClassVar[Sequence[str]] = ()
    """Commands for the help of `import`, without the program's name: `import phoenix --project support`."""

    def __init__(self, node: S, context: Context) -> None:
        """Keep the node and the context; open nothing. Relative paths are resolved with `context.resolve`."""
        self.node = node
        self.context = context

    def inputs(self) -> Sequence[InputFile]:
        """The files that are read; none if the traces come from a server."""
        return ()

    @abstractmethod
    def read(self) -> Iterator[Trace]:
        """The traces, one by one, as they are read; at most a few pages are in memory.

        Raises:
            RagevalError: the tool cannot be asked, or something in its files or replies cannot be read. The message
                names the place: the file and line, or the URL and the trace.
        """

    def remarks(self) -> Sequence[str]:
        """What a user should know about the traces that were read, such as spans that were left out, and why."""
        return ()

    def close(self) -> None:
        """Release what was opened. Called once after reading, also after an error."""
