"""What a system takes after its colon on the command line: a model, other systems, both, or nothing."""

from __future__ import annotations

from typing import NamedTuple, get_args, get_origin

from rageval_spec.plugin import Node
from rageval_spec.plugin.names import Reference, ReferredSection


class SystemReference(NamedTuple):
    """The key in which a node names blocks of a section."""

    key: str
    many: bool
    default: str | None


class Shape(NamedTuple):
    """What a word takes after its colon: `MODEL`, `SYSTEM+SYSTEM`, `MODEL@SYSTEM`, or nothing."""

    model: SystemReference | None
    systems: SystemReference | None

    def describe(self, word: str) -> str:
        """How to write a system with this word."""
        reading = "SYSTEM+SYSTEM" if self.systems and self.systems.many else "SYSTEM"
        parts = (*(("MODEL",) if self.model else ()), *((reading,) if self.systems else ()))
        return f"write {word}:{'@'.join(parts)}"


def shape_of(node_type: type[Node]) -> Shape:
    return Shape(_find_reference(node_type, "models"), _find_reference(node_type, "systems"))


def _find_reference(node_type: type[Node], section: ReferredSection) -> SystemReference | None:
    """The first key of a node that takes the name of a block of a section, or a list of such names."""
    mark = Reference(section)
    for name, info in node_type.model_fields.items():
        if mark in info.metadata:
            return SystemReference(info.alias or name, False, info.default if isinstance(info.default, str) else None)
        inner = get_args(info.annotation) if get_origin(info.annotation) in (list, tuple) else ()
        if any(mark in getattr(argument, "__metadata__", ()) for argument in inner):
            return SystemReference(info.alias or name, True, None)
    return None
