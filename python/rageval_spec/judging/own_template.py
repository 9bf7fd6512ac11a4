"""A template of the user's own that asks a judge's whole question, and worked examples for judges.

A worked example is a sample with the judgement that a person would give.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judging.prompts import FencedText, FencedTexts, Prompt, fence_texts, fence_value
from rageval_spec.judging.templates import parse_template
from rageval_spec.reading.rows import parse_list, read_rows
from rageval_spec.recorded.messages import MESSAGES, list_until_question, read_turns, write_turn

if TYPE_CHECKING:
    from jinja2.nodes import Name
    from jinja2.nodes import Template as Tree


VARIABLES: Mapping[str, str] = {
    "question": "the question",
    "contexts": "the contexts, as a list",
    "answer": "the system's answer",
    "reference": "the first reference answer",
    "expected": "the question's column `expected`, or else all of its reference answers",
    "reference_contexts": "the reference contexts, as a list",
    "messages": "the conversation up to the question, as a list of turns",
    "history": "the turns before the question, as a list",
    "columns": "the question's other columns, as in columns['difficulty']",
    "criteria": "the criteria of the metric",
    "form": "the form of the reply; without it, the form follows the template",
}
"""The variables of every template. The question's other columns are variables too."""
_SAID = ("criteria", "form")
"""Variables that come from the spec and not from a sample."""
_MOST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Use:
    """The first use of a variable in a template; line and column count from 1."""

    name: str
    line: int
    column: int


class OwnTemplate:
    """A template of the user's own.

    Args:
        text: the template.
        shown: its name in messages: the file's, or the key that holds it.
    """

    def __init__(self, text: str, shown: str) -> None:
        self.prompt = Prompt("template", shown, text)

    @cached_property
    def uses(self) -> Mapping[str, Use]:
        """The first use of each variable that the template does not set itself."""
        from jinja2 import meta

        names = meta.find_undeclared_variables(self._tree) - {"range", "dict", "cycler", "joiner", "namespace"}
        found: dict[str, Use] = {}
        for node in _list_names(self._tree):
            if node.name in names and node.name not in found:
                found[node.name] = Use(node.name, node.lineno, self._find_column(node.name, node.lineno))
        return found

    @cached_property
    def columns(self) -> Mapping[str, Use]:
        """The columns of the questions that the template names, as variables or in `columns['...']`."""
        from jinja2 import nodes

        found = {name: use for name, use in self.uses.items() if name not in VARIABLES}
        for node in self._tree.find_all(nodes.Getitem):
            inner = node.node
            if isinstance(inner, nodes.Name) and inner.name == "columns" and isinstance(node.arg, nodes.Const):
                use = Use(str(node.arg.value), node.lineno, self._find_column("columns", node.lineno))
                found.setdefault(use.name, use)
        return found

    @cached_property
    def optional(self) -> frozenset[str]:
        """The variables that the template tests, so that a sample can lack them."""
        from jinja2 import nodes

        tests: list[nodes.Node] = [node.test for node in self._tree.find_all(nodes.If)]
        tests += [node.test for node in self._tree.find_all(nodes.CondExpr)]
        tests += [node.node for node in self._tree.find_all(nodes.Test) if node.name in ("defined", "undefined")]
        tests += [
            node.node for node in self._tree.find_all(nodes.Filter) if node.name in ("default", "d") and node.node
        ]
        found = {node.name for test in tests for node in _list_names(test)}
        for test in tests:
            inside = [test] if isinstance(test, nodes.Getitem) else test.find_all(nodes.Getitem)
            found.update(str(node.arg.value) for node in inside if isinstance(node.arg, nodes.Const))
        return frozenset(found)

    def check(self) -> Iterator[str]:
        """The template's faults that show without any data, each with `file:line`."""
        from jinja2 import nodes

        shown = self.prompt.shown
        if not self.prompt.text.strip():
            yield f"{shown}:1:1: the template is empty"
            return
        try:
            tree = self._tree
        except UsageError as error:
            yield str(error)
            return
        for other in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
            yield f"{shown}:{other.lineno}:1: a template cannot use other templates; write all of it here"
            return
        subscripted = {id(node.node) for node in tree.find_all(nodes.Getitem) if isinstance(node.arg, nodes.Const)}
        for node in tree.find_all(nodes.Name):
            if node.name == "columns" and node.ctx == "load" and id(node) not in subscripted:
                place = f"{shown}:{node.lineno}:{self._find_column('columns', node.lineno)}"
                yield f"{place}: name a column in brackets: columns['difficulty']"
        if not self.columns:
            yield from self._try()

    def explain_unknown(self, columns: Sequence[str]) -> Iterator[str]:
        """A fault for each variable that is neither built in nor one of the questions' columns."""
        there = [*VARIABLES, *(name for name in columns if name not in VARIABLES)]
        for name, use in self.columns.items():
            if name not in columns:
                what = "variable" if name in self.uses else "column"
                known = there if what == "variable" else columns
                more = ", ..." if len(known) > _MOST_SHOWN else ""
                hint = suggest(name, known) or f"the template can use {', '.join(known[:_MOST_SHOWN])}{more}"
                yield f"{self.prompt.shown}:{use.line}:{use.column}: unknown {what} '{name}'; {hint}"

    def gather(self, sample: Sample) -> dict[str, Any]:
        """The variables of a sample. A `LookupError` says which one it lacks that the template does not test."""
        found: dict[str, Any] = {}
        for name in (one for one in self.uses if one not in (*_SAID, "columns")):
            value = _read_variable(sample, name)
            if value is None and name not in self.optional:
                raise LookupError(_explain_lack(sample, name))
            found[name] = FencedText(name, "") if value is None else value
        if "columns" in self.uses:
            found["columns"] = {name: self._read_column(sample, name) for name in self.columns}
        return found

    def render(self, variables: Mapping[str, Any], criteria: str, form: str, demand: str) -> str:
        """The prompt. A template that does not use `form` gets the demand and the form appended."""
        rendered = self.prompt.render(**variables, criteria=criteria, form=form)
        return rendered if "form" in self.uses else f"{rendered}\n\n{demand}\n{form}"

    @cached_property
    def _tree(self) -> Tree:
        return parse_template(self.prompt.text, self.prompt.shown)

    def _find_column(self, name: str, line: int) -> int:
        """The column of a name in a line of the template; 1 if the line does not show it."""
        lines = self.prompt.text.splitlines()
        source = lines[line - 1] if line <= len(lines) else ""
        inside = re.search(r"\{[{%].*", source)
        start = inside.start() if inside else 0
        pattern = re.compile(rf"(?<![\w.'\"]){re.escape(name)}(?!\w)")
        found = pattern.search(source, start) or pattern.search(source)
        return found.start() + 1 if found else 1

    def _try(self) -> Iterator[str]:
        """Render with sample texts, which shows most wrong operations."""
        texts = fence_texts("context", ("One text.", "Another text."))
        values = {name: texts if name.endswith("contexts") else FencedText(name, "A text.") for name in self.uses}
        values |= {name: fence_texts("turn", ("user: A text.",)) for name in (MESSAGES, "history") if name in self.uses}
        values["expected"] = FencedTexts([FencedText("reference_answer", "A text.")])
        try:
            self.render({name: values[name] for name in self.uses if name not in _SAID}, "Is it?", "{}", "Reply.")
        except UsageError as error:
            yield str(error)

    def _read_column(self, sample: Sample, name: str) -> Any:
        found = (sample.columns or {}).get(name)
        if found is None and name not in self.optional:
            raise LookupError(_explain_lack(sample, name))
        return "" if found is None else fence_value(name, found)


def _list_names(tree: Any) -> Iterator[Name]:
    from jinja2 import nodes

    if isinstance(tree, nodes.Name):
        yield tree
    yield from (node for node in tree.find_all(nodes.Name) if node.ctx == "load")


def _read_variable(sample: Sample, name: str) -> Any:
    column = (sample.columns or {}).get(name)
    if name in (MESSAGES, "history"):
        return _read_conversation(sample, name, column)
    if name not in VARIABLES:
        return None if column is None else fence_value(name, column)
    if name == "expected":
        if column is not None:
            return fence_value("reference_answer", column)
        if len(sample.references) < 2:
            return FencedTexts(FencedText("reference_answer", text) for text in sample.references) or None
        return fence_texts("reference_answer", sample.references)
    if name in ("contexts", "reference_contexts"):
        texts_of = getattr(sample, name)
        return None if texts_of is None else fence_texts(name.removesuffix("s"), texts_of)
    text = getattr(sample, name)
    tag = "reference_answer" if name == "reference" else name
    return None if text is None or (name == "question" and not text.strip()) else FencedText(tag, text)


def _read_conversation(sample: Sample, name: str, column: Any) -> Any:
    """The turns, each fenced; a column of this name that holds something else is shown as it is."""
    turns = read_turns((sample.columns or {}).get(MESSAGES))
    if column is not None and (name != MESSAGES or turns is None):
        return fence_value(name, column)
    told = ({"role": "user", "content": sample.question},) if turns is None else list_until_question(turns)
    return fence_texts("turn", map(write_turn, told if name == MESSAGES else told[:-1]))


def _explain_lack(sample: Sample, name: str) -> str:
    if name in VARIABLES:
        what = "reference" if name == "expected" else name.replace("_", " ")
        return f"the query has no {what}"
    is_there = name in (sample.columns or {})
    return f"the column '{name}' is empty" if is_there else f"the query has no column '{name}'"


MOST_EXAMPLES = 100
"""Every call sends all examples."""
_LARGEST = 2_000_000
_TEXTS = ("question", "answer", "reference")
_LISTS = ("contexts", "reference_contexts")


@dataclass(frozen=True, slots=True)
class Example:
    """A sample with a person's judgement.

    Attributes:
        value: the judgement as the file has it.
        reason: the person's reason; None without one.
        place: where the example stands: `examples.jsonl:3`.
    """

    sample: Sample
    value: Any
    reason: str | None
    place: str


def read_examples(path: Path, shown: str) -> list[Example]:
    """The examples of a JSON, JSON lines, YAML, CSV or Parquet file. `shown` is its name in messages.

    Each has `value`, and whatever the template uses: `question`, `answer`, `contexts`, `reference`, other columns.
    `reason` is optional.
    """
    examples = [_read_example(row, place) for place, row in _read_rows(path, shown)]
    if not examples:
        raise DataError(f"{shown}: there are no examples")
    if len(examples) > MOST_EXAMPLES:
        limit = f"write at most {MOST_EXAMPLES}, because every call sends them all"
        raise DataError(f"{shown}: there are {len(examples)} examples; {limit}")
    return examples


def _read_rows(path: Path, shown: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{shown}: a file of examples may have at most {_LARGEST:,} bytes")
        return [(place.replace(str(path), shown, 1), row) for place, row in read_rows(path)]
    except DataError as error:
        raise DataError(str(error).replace(str(path), shown)) from error
    except OSError as error:
        raise DataError(f"{shown}: the examples cannot be read: {error.strerror}") from error


def _read_example(row: Mapping[str, Any], place: str) -> Example:
    if row.get("value") in (None, ""):
        raise DataError(f"{place}: the example has no `value`; it has {', '.join(map(str, row)) or 'nothing'}")
    texts = {name: _read_text(row, name, place) for name in (*_TEXTS, "reason")}
    lists = {name: _read_list(row, name, place) for name in _LISTS}
    known = {*texts, *lists, "value"}
    columns = {str(name): value for name, value in row.items() if name not in known}
    sample = Sample(
        "",
        texts["question"] or "",
        texts["answer"],
        references=() if texts["reference"] is None else (texts["reference"],),
        columns=columns,
        contexts=lists["contexts"],
        reference_contexts=lists["reference_contexts"],
    )
    return Example(sample, row["value"], texts["reason"], place)


def _read_text(row: Mapping[str, Any], name: str, place: str) -> str | None:
    found = row.get(name)
    if found is not None and not isinstance(found, str | int | float):
        raise DataError(f"{place}: '{name}' must be text")
    return None if found is None else str(found)


def _read_list(row: Mapping[str, Any], name: str, place: str) -> tuple[str, ...] | None:
    found = parse_list(place, name, row.get(name))
    if found is None or found == "":
        return None
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{place}: '{name}' must be a list of texts")
    return tuple(texts)
