"""Finds what a Python file defines by parsing it, without importing anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from rageval_spec.errors import DataError

_UNKNOWABLE = frozenset({"globals", "exec", "eval", "vars", "locals", "setattr", "__getattr__", "__dict__"})
"""A module that uses these may define names that its source does not show."""


def list_names(path: Path) -> list[str] | None:
    """The names at a module's top level, in order; None if its source does not show all of them.

    Raises:
        DataError: the file is not valid Python; with `file:line`.
    """
    tree = parse_module(path)
    nodes = list(ast.walk(tree))
    if any(_UNKNOWABLE & _words_of(node) for node in nodes):
        return None
    shared = (name for node in nodes if isinstance(node, ast.Global) for name in node.names)
    return list(dict.fromkeys((*_bound_in(tree.body), *shared)))


def find_parameters(path: Path, function: str) -> frozenset[str] | None:
    """The names of the keyword arguments that a top-level function accepts.

    None if unknown: there is no such function or several, or it has decorators or `**` arguments.
    """
    found = [
        node
        for node in parse_module(path).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function
    ]
    if len(found) != 1 or found[0].decorator_list or found[0].args.kwarg is not None:
        return None
    arguments = found[0].args
    return frozenset(argument.arg for argument in (*arguments.args, *arguments.kwonlyargs))


def parse_module(path: Path) -> ast.Module:
    """Parse a file to a syntax tree.

    Raises:
        DataError: the file is not valid Python (with `file:line`) or cannot be read.
    """
    try:
        return ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise DataError(f"{path}:{error.lineno or 1}: {error.msg}") from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(f"{path}: {error}") from error


def _words_of(node: ast.AST) -> set[str]:
    """The names that a node uses or defines; `__getattr__` for a `*` import."""
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        return {"__getattr__"}
    words = (getattr(node, key, None) for key in ("id", "attr", "name"))
    return {word for word in words if isinstance(word, str)}


def _bound_in(nodes: list[ast.stmt]) -> Iterator[str]:
    """The names that statements bind, including nested blocks but not the bodies of functions and classes."""
    waiting: list[ast.AST] = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name is not None:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            yield node.rest
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))
