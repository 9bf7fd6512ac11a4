"""A block of the tree -> its validated node, or a diagnostic for each error."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rageval_spec.diagnostics import Diagnostic
from rageval_spec.plugin.secret import MARK
from rageval_spec.spec.explaining import Block, diagnose_secret, explain, place_of
from rageval_spec.spec.nodes import NUMBER_OR_SHARE
from rageval_spec.spec.places import KeyPath, Place, nearest_place
from rageval_spec.spec.reading import YamlMapping, YamlNode, YamlScalar, YamlSequence, to_data
from rageval_spec.spec.scalars import resolve_scalar

M = TypeVar("M", bound=BaseModel)

_TYPED: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("int_type", "float_type"), (int, float)),
    "bool_type": (bool,),
    NUMBER_OR_SHARE: (int,),
}
"""The types that a variable's text can be read as, by pydantic's name for the error that it is text."""


def validate(
    block: Block, model: type[M], secrets: Mapping[str, str], foreign: Collection[str] = ()
) -> tuple[M | None, list[Diagnostic]]:
    """The node of a block, and its diagnostics.

    Validation is strict and works on JSON, like a JSON Schema: text is not a number, only a field's alias is its key,
    and a float without a fraction is an integer.

    Args:
        block: the block.
        model: the type of its node.
        secrets: the actual text for each marked text.
        foreign: keys that are validated elsewhere.
    """
    data = to_data(block.node)
    errors: list[ErrorDetails] = []
    for _ in range(3):
        try:
            text = json.dumps(data)
            node = model.model_validate_json(text, strict=True, by_alias=True, by_name=False, context=secrets)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        else:
            return node, list(_find_misplaced_secrets(block, node, foreign)) if secrets else []
        if not (_make_integers(data, errors) | _type_variables(block.node, data, errors)):
            break
    return None, explain(block, errors)


def drop_wrong_entries(mapping: YamlMapping, model: type[BaseModel], secrets: Mapping[str, str]) -> YamlMapping:
    """A mapping without its wrong entries, so that the others can be checked further."""
    text = json.dumps(to_data(mapping))
    try:
        model.model_validate_json(text, strict=True, by_alias=True, by_name=False, context=secrets)
    except ValidationError as error:
        wrong = {step for found in error.errors(include_url=False) for step in found["loc"][:1]}
        entries = {key: entry for key, entry in mapping.entries.items() if key not in wrong}
        return YamlMapping(mapping.place, entries)
    return mapping


def list_places(node: YamlNode, place: Place) -> dict[KeyPath, Place]:
    """The place of every key path of a tree. `place` is the place of the tree itself."""
    places: dict[KeyPath, Place] = {}
    waiting: list[tuple[KeyPath, Place, YamlNode]] = [((), place, node)]
    while waiting:
        path, where, current = waiting.pop()
        places[path] = where
        if isinstance(current, YamlMapping):
            for key, entry in current.entries.items():
                waiting.append(((*path, key), place_of(entry.key_place, entry.value), entry.value))
        elif isinstance(current, YamlSequence):
            waiting += [((*path, index), item.place, item) for index, item in enumerate(current.items)]
    return places


def _make_integers(data: Any, errors: Sequence[ErrorDetails]) -> bool:
    """Turn floats without a fraction into integers where those are expected. Returns whether any changed."""
    changed = False
    for error in errors:
        if error["type"] != "int_type":
            continue
        changed |= _make_integer(data, error["loc"])
    return changed


def _type_variables(node: YamlNode, data: Any, errors: Sequence[ErrorDetails]) -> bool:
    """Where a number or a boolean is expected, read text from a variable as YAML. Returns whether any changed."""
    changed = False
    for error in errors:
        if error["type"] in _TYPED:
            changed |= _type_variable(node, data, error["loc"], _TYPED[error["type"]])
    return changed


def _type_variable(node: YamlNode, data: Any, location: Sequence[str | int], wanted: tuple[type, ...]) -> bool:
    parent: Any = None
    key: Any = None
    for step in location:
        inner = _step_into(node, step)
        if inner is not None:  # pydantic adds a step for the name of one of several types
            parent, key, node = data, step, inner
            data = data[step]
    if parent is None or not isinstance(node, YamlScalar) or not node.from_environment or not isinstance(data, str):
        return False
    value = resolve_scalar(data.strip())
    if type(value) not in wanted:
        return False
    node.value = parent[key] = value  # type: ignore[assignment]
    return True


def _step_into(node: YamlNode, step: str | int) -> YamlNode | None:
    if isinstance(node, YamlMapping):
        entry = node.entries.get(str(step)) if isinstance(step, str) else None
        return None if entry is None else entry.value
    if isinstance(node, YamlSequence) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


def _make_integer(data: Any, location: Sequence[str | int]) -> bool:
    parent: Any = None
    key: Any = None
    value = data
    for step in location:
        if isinstance(value, dict | list) and step in (value if isinstance(value, dict) else range(len(value))):
            parent, key, value = value, step, value[step]  # type: ignore[index]
    if parent is None or not isinstance(value, float) or not value.is_integer():
        return False
    parent[key] = int(value)
    return True


def _find_misplaced_secrets(block: Block, node: BaseModel, foreign: Collection[str]) -> Iterator[Diagnostic]:
    places = list_places(block.node, block.place)
    waiting: list[tuple[KeyPath, Any]] = [((), node.model_dump(by_alias=True, exclude=set(foreign)))]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [((*path, index), inner) for index, inner in enumerate(value)]
        elif isinstance(value, str) and value.startswith(MARK):
            yield diagnose_secret(nearest_place(places, path) or block.place)
