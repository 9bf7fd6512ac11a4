"""Texts with variables in double braces, which tell a system about a query."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rageval_spec.data.conversation import read_turns, write_turn
from rageval_spec.diagnostics import FileFault, suggest

VARIABLES = ("question", "query_id", "contexts", "messages", "history")
"""What a system may be told about a query besides its columns. `contexts` are the dataset's reference contexts,
`messages` is the conversation up to the question, and `history` is the same without the question."""
_VARIABLE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_MOST_SHOWN = 12

Variables = Mapping[str, Any]


def list_variables(template: Any) -> set[str]:
    """The names in double braces in all texts of a template, at any depth: of `VARIABLES`, or of columns.

    Raises:
        ValueError: the braces hold no name.
    """
    names = {name for _, text in _texts_of(template) for name in _VARIABLE.findall(text)}
    if "" in names:
        raise ValueError(f"'{{{{ }}}}' holds no name; write one of {', '.join(VARIABLES)}, or a column's name")
    return names


def find_unknown(template: Any, key: str, columns: Sequence[str]) -> Iterator[FileFault]:
    """A fault for each variable that is neither in `VARIABLES` nor one of the questions' columns.

    `key` is the key of the node that holds the template.
    """
    known = (*VARIABLES, *(name for name in columns if name not in VARIABLES))
    for path, text in _texts_of(template):
        for name in dict.fromkeys(_VARIABLE.findall(text)):
            if name not in known:
                near = suggest(name, known)
                hint = f"{near} The variables are" if near else "the variables are"
                yield FileFault((key, *path), f"unknown variable {name!r}", f"{hint} {_list(known)}")


def fill_in(template: Any, told: Variables) -> Any:
    """Fill in the variables of a template. A text that is only a variable becomes its value, which may be a list."""
    if isinstance(template, dict):
        return {
            fill_in(key, told) if isinstance(key, str) else key: fill_in(value, told) for key, value in template.items()
        }
    if isinstance(template, (list, tuple)):
        return [fill_in(item, told) for item in template]
    if not isinstance(template, str):
        return template
    whole = _VARIABLE.fullmatch(template)
    if whole is not None:
        return told[whole[1]]
    return _VARIABLE.sub(lambda match: write_value(told[match[1]]), template)


def write_value(value: Any) -> str:
    """A variable inside a text: texts as they are, several with an empty line between them, null as nothing.

    A conversation becomes a transcript. Numbers, booleans and anything else are written as JSON.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return "\n\n".join(value)
    if (turns := read_turns(value) if isinstance(value, (list, tuple)) else None) is not None:
        return "\n".join(map(write_turn, turns))
    return json.dumps(value, ensure_ascii=False)


def _texts_of(template: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each text, with the keys and indexes that lead to it."""
    if isinstance(template, str):
        yield path, template
    elif isinstance(template, dict):
        for key, value in template.items():
            yield from _texts_of(key, (*path, key))
            yield from _texts_of(value, (*path, key))
    elif isinstance(template, (list, tuple)):
        for index, item in enumerate(template):
            yield from _texts_of(item, (*path, index))


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_SHOWN]) + (", ..." if len(names) > _MOST_SHOWN else "")
