"""Prints what a plugin knows about published models: a table of all of them, or everything about one."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rageval_spec.plugin.known_model import KnownModel


def tabulate(models: Sequence[KnownModel]) -> str:
    """A table of the models, one line each, as wide as its content."""
    heads = ("Model", *models[0].columns)
    rows = [heads, *((model.name, *model.columns.values()) for model in models)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(f"  {line}" for line in lines)


def to_json(model: KnownModel) -> dict[str, Any]:
    """The facts about a model in JSON types."""
    return {
        "name": model.name,
        **{key.lower().replace(" ", "_"): value for key, value in {**model.columns, **model.facts}.items()},
        "sources": list(model.sources),
        "read": model.read.isoformat(),
        "example": model.example,
    }


def describe(model: KnownModel) -> str:
    """The facts about a model, their sources, and the YAML that uses it."""
    facts = {**model.columns, **model.facts, "Read": model.read.isoformat()}
    width = max(map(len, facts)) + 2
    lines = [f"  {key:<{width}}{value}" for key, value in facts.items() if value]
    parts = [f"{model.name}\n" + "\n".join(lines), "Sources\n" + "\n".join(f"  {one}" for one in model.sources)]
    if model.example:
        parts.append(f"Write\n{indent(model.example, '  ')}")
    return "\n\n".join(parts) + "\n"
