"""What all plugins share: a node, the class that it builds, and the questions asked of every one."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from rageval_spec.diagnostics import FileFault
    from rageval_spec.plugin.context import Context
    from rageval_spec.plugin.inputs import InputFile


class Node(BaseModel):
    """A validated YAML block. Frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    use: str = Field(description="Which plugin serves this block: the name of a file in this section.")


N = TypeVar("N", bound=Node)


class Plugin(ABC, Generic[N]):
    """What all plugins share."""

    node_type: ClassVar[type[Node]] = Node
    """The shape of its YAML block."""
    version: ClassVar[str] = "1"
    """Part of the key of every table it makes: raise it when the same node would now give another table."""
    known_as: ClassVar[Sequence[str]] = ()
    """What other tools call it, in lower case with underscores: where a spec says one of these, `validate` suggests
    this plugin's word."""
    later_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys that its node got after tables were stored: at their defaults they are left out of `content`, so that these
    tables are still found. A default must mean what the absence of the key meant."""

    def __init__(self, node: N, context: Context) -> None:
        """Keep the validated node and the context; open nothing."""
        self.node = node
        self.context = context

    def inputs(self) -> Sequence[InputFile]:
        """Files that must be there, named before anything runs; their content is part of the step's key."""
        return ()

    def check(self) -> str | None:
        """What is wrong with how it is put together with the blocks that it names; None where nothing is.

        Asked once when all plugins of the spec are built, before anything is read or paid; opens nothing.
        """
        return None

    def check_files(self) -> Iterable[FileFault]:
        """What is wrong with the node by the beginnings of its files, such as names of columns that they do not have.

        Asked after `check`. Reads no more than takes a moment; a file that is not there or is damaged is told of
        elsewhere.
        """
        return ()

    def content(self) -> dict[str, Any]:
        """What it is, in JSON's types: part of the key of everything that it makes."""
        node = self.node.model_dump(mode="json", by_alias=True)
        unchanged = self.later_keys - self.node.model_dump(exclude_defaults=True, by_alias=True).keys()
        return {
            "word": self.node.use,
            "version": self.version,
            "node": {key: value for key, value in node.items() if key not in unchanged},
        }
