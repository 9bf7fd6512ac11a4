"""Builds the node of a tool from the options of a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    M = TypeVar("M", bound=BaseModel)


def read_settings(kind: type[M], settings: Mapping[str, Any]) -> M:
    """The node with these settings.

    Raises:
        UsageError: a setting is wrong or missing; the message names the option.
    """
    from pydantic import ValidationError

    try:
        return kind(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(part for part in first["loc"] if isinstance(part, str))  # not the places in a list
        spell = _BOUNDS.get(first["type"])
        message = first["msg"].removeprefix("Value error, ") if spell is None else spell(first)
        message = re.sub(
            r"`(\w+)`", lambda found: _spell(found[1]) if found[1] in kind.model_fields else found[0], message
        )
        raise UsageError(f"{_spell(name)}: {message}" if name else message) from None


def _spell(name: str) -> str:
    """A field as it is given on the command line."""
    return name.upper() if name == "path" else f"--{name.replace('_', '-')}"


_BOUNDS: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda _: "is missing",
    "literal_error": lambda error: f"must be {error['ctx']['expected']}, not {error['input']!r}",
    "greater_than": lambda error: f"must be above {error['ctx']['gt']}, not {error['input']}",
    "greater_than_equal": lambda error: f"must be at least {error['ctx']['ge']}, not {error['input']}",
    "string_too_short": lambda _: "must not be empty",
}
"""What is wrong with a value, in the words that a spec's messages have."""
