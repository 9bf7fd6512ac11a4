"""References between the blocks of a spec: which keys hold the name of another block, and of which section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

ReferredSection = Literal["systems", "models", "judges", "labels"]


@dataclass(frozen=True, slots=True)
class Reference:
    """Marks a key whose value is the name of a block in a section: `Annotated[str, Reference("models")]`."""

    section: ReferredSection

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """A string with a description that names the section; a description of the key itself takes precedence."""
        return {"description": f"The name of a block under `{self.section}:`.", **handler(schema)}


SystemName: TypeAlias = Annotated[str, Reference("systems")]
"""The name of another block under `systems:`."""
ModelName: TypeAlias = Annotated[str, Reference("models")]
"""The name of a block under `models:`, or of the embedded default `minilm`."""
JudgeName: TypeAlias = Annotated[str, Reference("judges")]
"""The name of a block under `judges:`."""
LabelsName: TypeAlias = Annotated[str, Reference("labels")]
"""The name of a block under `labels:`."""


class NamedBlock(NamedTuple):
    """The name of a block, the block's section, and the path of keys and indexes inside the node that leads to it.

    Attributes:
        is_key: the name is itself the last key of the path, as in `weights: {bm25: 0.3}`.
    """

    section: ReferredSection
    name: str
    path: tuple[str | int, ...]
    is_key: bool = False


def list_references(node: BaseModel, *, written_only: bool = False) -> Iterator[NamedBlock]:
    """The blocks that a node refers to, in the order of its keys, including in nested blocks, lists and maps.

    `written_only` leaves out references that come from the defaults of the node's own keys.
    """
    for name, key, annotation in _list_referring_fields(type(node)):
        if not written_only or name in node.model_fields_set:
            yield from _walk(annotation, getattr(node, name), (key,))


N = TypeVar("N")


def rename_defaults(value: N, old: str, new: str) -> N:
    """A node that names the block `new` wherever the default of a key, its own or of a nested block, names `old`."""
    if isinstance(value, BaseModel):
        changed: dict[str, Any] = {}
        for name, *_ in _list_referring_fields(type(value)):
            one, is_written = getattr(value, name), name in value.model_fields_set
            changed[name] = new if one == old and not is_written else rename_defaults(one, old, new)
        return value.model_copy(update={key: one for key, one in changed.items() if one != getattr(value, key)})
    if isinstance(value, list | tuple):
        return type(value)(rename_defaults(one, old, new) for one in value)
    if isinstance(value, dict):
        return type(value)({key: rename_defaults(one, old, new) for key, one in value.items()})
    return value


@cache
def _list_referring_fields(node_type: type[BaseModel]) -> tuple[tuple[str, str, Any], ...]:
    """The name, the key and the type of each field whose value can refer to a block."""
    found: list[tuple[str, str, Any]] = []
    for name, field in node_type.model_fields.items():
        marks = tuple(mark for mark in field.metadata if isinstance(mark, Reference))
        annotation = Annotated[field.annotation, *marks] if marks else field.annotation
        if _can_refer(annotation):
            found.append((name, field.alias or name, annotation))
    return tuple(found)


def _can_refer(annotation: Any) -> bool:
    """Whether a value of a type can hold the name of a block. A value of `Any` can be a node that does."""
    if get_origin(annotation) is Literal or annotation in _PLAIN:
        return False
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return any(isinstance(mark, Reference) for mark in arguments[1:]) or _can_refer(arguments[0])
    return not arguments or any(map(_can_refer, arguments))


_PLAIN = (str, int, float, bool, type(None), Ellipsis)


def names_in(node: BaseModel, section: ReferredSection) -> tuple[str, ...]:
    """The distinct names of blocks of one section that a node refers to, in the order of first use."""
    return tuple(dict.fromkeys(found.name for found in list_references(node) if found.section == section))


def number_names(content: dict[str, Any], node: BaseModel) -> dict[str, Any]:
    """Replace, in the dump of a node under `content["node"]`, each name of a block by its position in `names_in`."""
    maps: list[tuple[dict[str, Any], dict[str, str]]] = []
    for found in list_references(node):
        place = content["node"]
        for key in found.path[:-1]:
            place = place[key]
        number = names_in(node, found.section).index(found.name)
        if not found.is_key:
            place[found.path[-1]] = number
        elif maps and maps[-1][0] is place:
            maps[-1][1][found.name] = str(number)
        else:
            maps.append((place, {found.name: str(number)}))
    for place, numbers in reversed(maps):  # last, and from the inside out, because the paths above use the names
        renamed = {numbers[name]: value for name, value in place.items()}
        place.clear()
        place.update(renamed)
    return content


def order_by_reference(
    nodes: Mapping[str, BaseModel], section: ReferredSection = "systems"
) -> tuple[tuple[str, ...], ...]:
    """The names of a section's nodes in levels: each node refers only to nodes of earlier levels.

    Within a level the order is that of `nodes`. References to blocks that are not in `nodes` do not count.

    Raises:
        UsageError: some nodes refer to one another in a cycle.
    """
    waiting = {name: {*names_in(node, section)} & nodes.keys() for name, node in nodes.items()}
    levels: list[tuple[str, ...]] = []
    while waiting:
        level = tuple(name for name, needed in waiting.items() if not needed & waiting.keys())
        if not level:
            circle = " -> ".join(find_circles(nodes, section)[0])
            raise UsageError(f"{section} refer to each other in a cycle: {circle}")
        levels.append(level)
        waiting = {name: needed for name, needed in waiting.items() if name not in level}
    return tuple(levels)


def find_circles(nodes: Mapping[str, BaseModel], section: ReferredSection = "systems") -> list[tuple[str, ...]]:
    """Cycles of nodes that refer to one another; each repeats its first name at the end: `("a", "b", "a")`.

    No two cycles share a node. A node that only leads into a cycle is in none of them.
    """
    needed = {name: [other for other in names_in(node, section) if other in nodes] for name, node in nodes.items()}
    circles: list[tuple[str, ...]] = []
    while True:
        try:
            TopologicalSorter(needed).prepare()
        except CycleError as error:
            circle = error.args[1][:0:-1]  # from a node to what it refers to
            first = circle.index(min(circle, key=[*nodes].index))
            circles.append((*circle[first:], *circle[:first], circle[first]))
            needed = {
                name: [one for one in of if one not in circle] for name, of in needed.items() if name not in circle
            }
        else:
            return sorted(circles, key=lambda circle: [*nodes].index(circle[0]))


def _walk(annotation: Any, value: Any, path: tuple[str | int, ...]) -> Iterator[NamedBlock]:
    """The blocks that a value refers to, by its type. Members of a union that do not fit the value are skipped."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if hasattr(type(value), "model_fields"):
        for found in list_references(value):
            yield found._replace(path=(*path, *found.path))
    elif origin is Annotated:
        mark = next((mark for mark in arguments[1:] if isinstance(mark, Reference)), None)
        if mark is None:
            yield from _walk(arguments[0], value, path)
        elif isinstance(value, str):
            yield NamedBlock(mark.section, value, path)
    elif origin in (Union, UnionType):
        if not any(get_origin(arm) is Literal and value in get_args(arm) for arm in arguments):
            yield from dict.fromkeys(found for arm in arguments for found in _walk(arm, value, path))
    elif isinstance(value, Mapping) and len(arguments) == 2:
        for key, item in value.items():
            yield from (found._replace(is_key=True) for found in _walk(arguments[0], key, (*path, key)))
            yield from _walk(arguments[1], item, (*path, key))
    elif isinstance(value, (list, tuple)) and origin in (list, tuple):
        for index, item in enumerate(value):
            is_fixed = origin is tuple and arguments[-1] is not Ellipsis
            yield from _walk(arguments[index if is_fixed else 0], item, (*path, index))
