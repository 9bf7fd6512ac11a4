"""Texts with variables in double braces, which tell a system about a query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

VARIABLES = ("question", "query_id", "contexts")
"""What a system may be told about a query. `contexts` are the dataset's reference contexts."""
_VARIABLE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")

Variables = Mapping[str, Any]


def list_variables(template: Any) -> set[str]:
    """The names in double braces in all texts of a template, at any depth.

    Raises:
        ValueError: a name is not in `VARIABLES`.
    """
    names = {name for text in _texts_of(template) for name in _VARIABLE.findall(text)}
    for name in sorted(names - set(VARIABLES)):
        raise ValueError(f"'{{{{ {name} }}}}' is not a variable; write one of {', '.join(VARIABLES)}")
    return names


def fill_in(template: Any, told: Variables) -> Any:
    """Fill in the variables of a template. A text that is only a variable becomes its value, which may be a list."""
    if isinstance(template, dict):
        return {fill_in(key, told): fill_in(value, told) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [fill_in(item, told) for item in template]
    if not isinstance(template, str):
        return template
    whole = _VARIABLE.fullmatch(template)
    if whole is not None:
        return told[whole[1]]
    return _VARIABLE.sub(lambda match: _as_text(told[match[1]]), template)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "\n\n".join(value)


def _texts_of(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, dict):
        for key, value in template.items():
            yield from _texts_of(key)
            yield from _texts_of(value)
    elif isinstance(template, (list, tuple)):
        for item in template:
            yield from _texts_of(item)
