"""Text that can hold secrets and shows them only through `reveal()`.

A node's field of this type is the only place where a spec may say `${secret:VAR}`:

    api_key: Secret = Field(description="The key of the endpoint, as `${secret:VAR}`.")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

MARK = "\0"
"""Marks a text with unrevealed secrets between the reading of a spec and the building of its nodes. YAML cannot
contain it."""
MASK = "***"


class Secret:
    """A text with its secrets filled in, shown as it was written: `Bearer ${secret:KEY}`.

    `str()`, `repr()` and a node's dump give the text as written, so a cache key or a report names the secret but does
    not hold it. A text written out in the spec is shown as `***`. `reveal()` gives the text itself.
    """

    __slots__ = ("_text", "_written")

    def __init__(self, text: str, written: str = MASK) -> None:
        """Hold `text`, and show `written` in its place."""
        self._text = text
        self._written = written

    def reveal(self) -> str:
        """The text with its secrets."""
        return self._text

    def __str__(self) -> str:
        """The text as it is written in the spec."""
        return self._written

    def __repr__(self) -> str:
        """The text as written, never the secret."""
        return f"Secret({self._written!r})"

    def __eq__(self, other: object) -> bool:
        """Whether both have the same text, written in the same way."""
        if not isinstance(other, Secret):
            return NotImplemented
        return (self._text, self._written) == (other._text, other._written)

    def __hash__(self) -> int:
        """The hash of the text as written, so that it tells nothing about the secret."""
        return hash(self._written)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """A string in YAML and in the JSON Schema; a `Secret` or a string in Python."""
        from_text = core_schema.with_info_after_validator_function(_fill_in, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_text]),
            serialization=core_schema.to_string_ser_schema(),
        )


def _fill_in(text: str, info: core_schema.ValidationInfo) -> Secret:
    """`text`, or the text with its secrets that the validation's context has for the marked `text`."""
    if text.startswith(MARK):
        return Secret((info.context or {}).get(text, ""), text.removeprefix(MARK))
    return Secret(text)
