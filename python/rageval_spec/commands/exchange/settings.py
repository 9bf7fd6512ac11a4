"""Builds the node of a tool from the options of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

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
        name = ".".join(str(part) for part in first["loc"])
        option = name.upper() if name == "path" else f"--{name.replace('_', '-')}"
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{option}: {message}" if name else message) from None
