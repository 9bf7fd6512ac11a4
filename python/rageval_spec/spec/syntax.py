"""Turns a YAML parser's errors into diagnostics for the author of the text."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from rageval_spec.diagnostics import Diagnostic
from rageval_spec.spec.places import Source, quote


class _Finding(NamedTuple):
    message: str
    hint: str | None
    offset: int


def explain_syntax_error(source: Source, error: yaml.MarkedYAMLError) -> Diagnostic:
    """A diagnostic for an error of PyYAML's C or Python parser."""
    problem = error.problem or ""
    at = _offset(error.problem_mark, 0)
    finding = _explain(source.text, problem, error.context or "", at, _offset(error.context_mark, at))
    return source.place(finding.offset).diagnose(finding.message, "yaml", finding.hint)


def _offset(mark: Any, default: int) -> int:
    return default if mark is None else int(mark.index)


def _explain(text: str, problem: str, context: str, at: int, opened: int) -> _Finding:
    character = text[at : at + 1]
    if character == "\t" and ("tab" in problem or "cannot start any token" in problem):
        return _Finding("a tab cannot indent YAML", "indent with spaces", at)
    if "tab character" in problem:
        tab = text.find("\t", at)
        return _Finding("a tab cannot indent YAML", "indent with spaces", tab if tab >= 0 else at)
    if text[max(0, at - 1) : at + 1] == "${":
        return _Finding("a variable inside { } or [ ] needs quotes", 'write "${NAME}"', at - 1)
    if "cannot start any token" in problem:
        return _Finding(f"text cannot start with {quote(character)}", "put it in quotes", at)
    if "quoted scalar" in context:
        return _explain_quoted(text, problem, at, opened)
    if "simple key" in context:
        advice = "write 'key: value'; quote text that spans several lines"
        return _Finding("the ':' after this key is missing", advice, opened)
    if "flow" in context:
        return _explain_flow(text, at, opened)
    for pattern, message, hint in _BLOCK_FINDINGS:
        if re.search(pattern, f"{problem} {context}"):
            return _Finding(message, hint, at)
    return _Finding(f"this is not YAML: {problem}", None, at)


def _explain_quoted(text: str, problem: str, at: int, opened: int) -> _Finding:
    if "escape" in problem or "hexadecimal" in problem or "Unicode" in problem:
        backslash = text.rfind("\\", opened, at + 1)
        shown = quote(text[backslash : backslash + 2])
        hint = "in double quotes, write \\\\ for a backslash, or use single quotes"
        return _Finding(f"{shown} is not a valid escape sequence", hint, max(backslash, opened))
    return _Finding("this quote is not closed", "add the closing quote", opened)


def _explain_flow(text: str, at: int, opened: int) -> _Finding:
    opening = text[opened : opened + 1]
    if opening not in ("{", "[") or at >= len(text.rstrip()):
        pair = {"{": "}", "[": "]"}.get(opening)
        if pair:
            return _Finding(f"this {quote(opening)} is not closed", f"add {quote(pair)}", opened)
        return _Finding("the text ends inside { } or [ ]", "add the missing bracket", at)
    closing = "}" if opening == "{" else "]"
    message = f"{quote(',')} or {quote(closing)} is missing before this"
    line = text.count("\n", 0, opened) + 1
    still_open = f"the {quote(opening)} on line {line} is not closed" if "\n" in text[opened:at] else None
    return _Finding(message, still_open or "quote text that contains , : [ ] { }", at)


_BLOCK_FINDINGS = (
    (
        "mapping values are not allowed",
        "a ':' is not allowed here",
        "indent this line like its neighbours, or quote text that contains ': '",
    ),
    (
        "expected '-' indicator|<block end>.*block collection",
        "this line is part of a list but does not begin with '- '",
        None,
    ),
    (
        "expected key|expected <block end>",
        "this line does not continue the mapping above it",
        "indent it like the other keys, or quote the whole value",
    ),
    ("sequence entries are not allowed", "a '-' is not allowed here", 'put the list on the next line, or quote "-"'),
    ("expected node content|expected the node content", "this is not allowed here", "remove it, or quote it"),
    ("scanning an alias|scanning an anchor", "a name is missing after '*' or '&'", "quote text that starts with them"),
    (
        "parsing a tag|scanning a tag|tag handle",
        "tags ('!...') have no meaning in a spec",
        "quote text that starts with '!'",
    ),
    ("block scalar", "nothing can follow '|' or '>' on this line", "put the text on the next line"),
    ("directive|incompatible YAML|YAML document", "a line that starts with '%' is a directive", "remove it"),
    ("document start", "a second YAML document starts here", "a spec must be a single document"),
    ("maximum depth|nesting", "the text is nested too deeply", None),
)
