"""Names that one block of a spec says of another: which keys are such names, and what they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel

ReferredSection = Literal["systems", "models", "judges"]


@dataclass(frozen=True, slots=True)
class Reference:
    """Marks a key whose value is the name of a block in a section: `Annotated[str, Reference("models")]`."""

    section: ReferredSection


class NamedBlock(NamedTuple):
    """A name, the section in which it is one, and the keys and indexes inside the node that lead to it."""

    section: ReferredSection
    name: str
    path: tuple[str | int, ...]


def list_references(node: BaseModel) -> Iterator[NamedBlock]:
    """The blocks that a node names, in the order of its keys; nested blocks, lists and maps included."""
    for name, field in type(node).model_fields.items():
        value = getattr(node, name)
        marks = [mark for mark in field.metadata if isinstance(mark, Reference)]
        annotation = Annotated[field.annotation, marks[0]] if marks else field.annotation
        yield from _walk(annotation, value, (field.alias or name,))


def names_in(node: BaseModel, section: ReferredSection) -> tuple[str, ...]:
    """The distinct names of one section that a node says, in the order in which it says them."""
    return tuple(dict.fromkeys(found.name for found in list_references(node) if found.section == section))


def _walk(annotation: Any, value: Any, path: tuple[str | int, ...]) -> Iterator[NamedBlock]:
    if hasattr(type(value), "model_fields"):
        for found in list_references(value):
            yield found._replace(path=(*path, *found.path))
    elif get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        sections = [mark.section for mark in marks if isinstance(mark, Reference)]
        if sections and isinstance(value, str):
            yield NamedBlock(sections[0], value, path)
        elif not sections:
            yield from _walk(inner, value, path)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk_any(get_args(annotation), item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _walk_any(get_args(annotation), item, (*path, index))
    elif value is not None:
        yield from _walk_any(get_args(annotation), value, path)


def _walk_any(annotations: tuple[Any, ...], value: Any, path: tuple[str | int, ...]) -> Iterator[NamedBlock]:
    """Whatever one of several annotations, such as the arms of a union, says that the value names."""
    seen: set[NamedBlock] = set()
    for annotation in annotations:
        for found in _walk(annotation, value, path):
            if found not in seen:
                seen.add(found)
                yield found
