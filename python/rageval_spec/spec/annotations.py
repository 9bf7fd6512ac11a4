"""What a node's type annotations say about a key path: which nodes it leads to, and whose names it takes."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from rageval_spec.plugin.names import Reference, ReferredSection
from rageval_spec.spec.places import KeyPath


def models_at(model: type[BaseModel], path: KeyPath) -> Iterator[type[BaseModel]]:
    """The types of node that a key path can lead to."""
    for kind in _types_at(model, path):
        yield from _models(kind)


def named_section(model: type[BaseModel], path: KeyPath) -> ReferredSection | None:
    """The section whose names a key path takes, if any."""
    marks = (mark for kind in _types_at(model, path) for mark in _marks(kind))
    return next((mark.section for mark in marks if isinstance(mark, Reference)), None)


def _types_at(model: type[BaseModel], path: KeyPath) -> list[Any]:
    types: list[Any] = [model]
    for step in path:
        types = [inner for outer in types for inner in _inner_types(outer, step)]
    return types


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if get_origin(kind) in (Union, UnionType, Annotated):
        for inner in get_args(kind):
            yield from _models(inner)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind


def _inner_types(kind: Any, step: str | int) -> Iterator[Any]:
    origin = get_origin(kind)
    if origin in (Union, UnionType, Annotated):
        for inner in get_args(kind):
            yield from _inner_types(inner, step)
    elif isinstance(step, int) or origin is dict:
        yield from get_args(kind)[-1:] if origin is dict else get_args(kind)[:1]
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        for name, field in fields:
            if step in (field.alias, name):
                yield Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def _marks(kind: Any) -> Iterator[Any]:
    if get_origin(kind) is Annotated:
        yield from kind.__metadata__
    if get_origin(kind) in (Union, UnionType, Annotated):
        for inner in get_args(kind):
            yield from _marks(inner)
