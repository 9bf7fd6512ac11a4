"""Judges' prompts for chat models: templates in files, and fences around untrusted texts.

A prompt is `judging/prompts/<name>.jinja`, or a file that the spec names instead. Its variables are already fenced, so
a template cannot show an untrusted text without a fence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.diagnostics import FileFault
from rageval_spec.endpoints.control_tokens import BRACKETED, DRAWN, FULL_WIDTH
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judging.templates import (
    compile_own_template,
    compile_template,
    find_line,
    parse_template,
    render,
)
from rageval_spec.plugin import Context, InputFile

if TYPE_CHECKING:
    pass

FOLDER = Path(__file__).parent / "prompts"
LONGEST_PROMPT = 1_000_000
"""Bytes of a template."""
_VERSION = re.compile(r"\{#\s*version:\s*(\S+)\s*#\}")
# Openings of tags and control tokens; invisible characters; characters that reverse the text; lone surrogates.
_UNSAFE = re.compile(
    rf"<(?=[/!?|a-zA-Z])|{FULL_WIDTH}|{BRACKETED}|{DRAWN}"
    "|[\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)

VARIABLES: Mapping[str, Mapping[str, str | int | float]] = {
    "system": {},
    "split": {"question": "<question>\n</question>", "sentences": "<sentence>\n</sentence>"},
    "verify": {"question": "<question>", "sources": "<source>\n</source>", "claims": "<claim>\n</claim>", "count": 2},
    "usefulness": {"instruction": "Is it?", "question": "", "target": "", "contexts": "<context>", "count": 2},
    "questions": {"answer": "<answer>\n</answer>", "count": 3},
    "entities": {"text": "<text>\n</text>"},
    "binary": {"instruction": "Is it?", "material": "<answer>"},
    "choice": {"instruction": "How is it?", "material": "<answer>", "options": "A: good\nB: bad"},
    "grade": {"instruction": "How is it?", "material": "<answer>", "low": 1, "high": 5, "guide": "1: bad"},
    "steps": {"instruction": "How is it?", "shown": "the answer", "low": 1, "high": 5, "guide": "1: bad"},
    "scores": {"criteria": "- faithfulness: Is it?", "material": "<answer>", "form": "{}"},
}
"""The variables that each prompt may use, with example values."""

_REQUIRED: Mapping[str, Mapping[str, str]] = {
    "split": {"sentences": "the text"},
    "verify": {"claims": "the claims", "sources": "the sources"},
    "usefulness": {"contexts": "the contexts", "question": "the question", "target": "what they are to be useful for"},
    "questions": {"answer": "the answer"},
    "entities": {"text": "the text"},
    **{key: {"material": "the answer"} for key in ("binary", "choice", "grade")},
    "scores": {"material": "the answer", "criteria": "what to score"},
    "steps": {"instruction": "what is judged"},
}
"""The variables that each prompt must use, and what the judge would not see without them."""


class PromptFiles(BaseModel):
    """Prompt files that replace the judge's own; every judge has the prompt `system`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str | None = Field(
        default=None, min_length=1, description="The template with the rules that come before every question."
    )


def fence(tag: str, text: str, number: int | None = None) -> str:
    r"""A text between tags that it cannot forge: a JSON string on one line, with openings of tags and tokens escaped.

    >>> fence("answer", 'He said "no".\n</answer>')
    '<answer>\n"He said \\"no\\".\\n\\u003c/answer>"\n</answer>'
    """
    opening = tag if number is None else f'{tag} number="{number}"'
    return f"<{opening}>\n{encode_text(text)}\n</{tag}>"


def fence_all(tag: str, texts: Sequence[str]) -> str:
    """Several texts, each in its own fence, numbered from 1."""
    return "\n".join(fence(tag, text, number) for number, text in enumerate(texts, 1))


def encode_text(text: str) -> str:
    """A text as a JSON string without invisible characters and without the opening of any tag."""
    return _UNSAFE.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return f"\\u{ord(character):04x}" if character in "<[" else json.dumps(character)[1:-1]


@dataclass(frozen=True)
class Prompt:
    """A template.

    Attributes:
        shown: its file's name in messages.
        is_own: whether it is one of this package's own, which need no bounds and so no meter.
    """

    name: str
    shown: str
    text: str
    is_own: bool = False

    @property
    def version(self) -> str | None:
        """The version in its line `{# version: 1 #}`; None without such a line."""
        found = _VERSION.search(self.text)
        return found.group(1) if found else None

    @property
    def digest(self) -> str:
        """The sha256 of its text, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def render(self, **variables: Any) -> str:
        """The prompt, rendered with the variables: for this package's prompts, those that `VARIABLES` lists.

        Raises:
            UsageError: the template does not parse, uses an unknown variable, or exceeds a bound; the message has
                `file:line`.
        """
        from jinja2 import TemplateError

        try:
            return _renderer(self)(variables).strip()
        except UsageError:
            raise
        except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            line = find_line(error.__traceback__, self.shown)
            raise UsageError(f"{self.shown}:{line}: {error}") from error
        except (RecursionError, MemoryError) as error:
            line = find_line(error.__traceback__, self.shown)
            raise UsageError(f"{self.shown}:{line}: it calls itself, or its result does not fit into memory") from error

    def check(self) -> str | None:
        """The template's fault, with `file:line`; None if it has none."""
        try:
            self._check_names()
            rendered = self.render(**VARIABLES[self.name])
            if not rendered:
                return f"{self.shown}:1: the prompt is empty"
            for name, what in _REQUIRED.get(self.name, {}).items():
                if self.render(**{**VARIABLES[self.name], name: "<other>"}) == rendered:
                    return f"{self.shown} does not use {{{{ {name} }}}}, so the judge would not see {what}"
        except UsageError as error:
            return str(error)
        return None

    def _check_names(self) -> None:
        from jinja2 import meta, nodes

        tree = parse_template(self.text, self.shown)
        known = VARIABLES[self.name]
        unknown = meta.find_undeclared_variables(tree) - known.keys()
        for name in tree.find_all(nodes.Name):
            if name.name in unknown:
                there = f"this prompt has {', '.join(sorted(known))}" if known else "this prompt has no variables"
                raise UsageError(f"{self.shown}:{name.lineno}: unknown variable '{name.name}'; {there}")


class Prompts:
    """The prompts of one judge by name; the spec's files replace the judge's own."""

    def __init__(self, names: Sequence[str], files: PromptFiles, context: Context) -> None:
        """Keep the names; read no file yet."""
        self._names = names
        self._own = {name: path for name in names if (path := getattr(files, name)) is not None}
        self._context = context
        self._read: dict[str, Prompt] = {}

    def __getitem__(self, name: str) -> Prompt:
        """The prompt of that name.

        Raises:
            UsageError: its file does not exist.
            DataError: its file is not UTF-8 text.
        """
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def inputs(self) -> list[InputFile]:
        """The prompt files that the spec names."""
        return [InputFile(self._context.resolve(path), ("prompts", name)) for name, path in self._own.items()]

    def check(self) -> Iterator[FileFault]:
        """The faults of the prompts that the spec names. Missing files are reported elsewhere."""
        for name, path in self._own.items():
            if not self._context.resolve(path).is_file():
                continue
            try:
                fault = self[name].check()
            except (UsageError, DataError) as error:
                fault = str(error)
            if fault is not None:
                yield FileFault(("prompts", name), fault, code="prompt")

    def content(self) -> dict[str, dict[str, str | None]]:
        """The version and the sha256 of every prompt, by name."""
        return {name: {"version": self[name].version, "sha256": self[name].digest} for name in self._names}

    def digests(self) -> dict[str, str]:
        """The sha256 of every prompt, in hex, by name."""
        return {name: self[name].digest for name in self._names}

    def _load(self, name: str) -> Prompt:
        own = self._own.get(name)
        if own is None:
            path = FOLDER / f"{name}.jinja"
            return load_prompt(name, path, path.name, is_own=True)
        return load_prompt(name, self._context.resolve(own), own)


def load_prompt(name: str, path: Path, shown: str, *, is_own: bool = False) -> Prompt:
    """The prompt in a file. `shown` is the file's name in messages.

    Raises:
        UsageError: the file does not exist, or is too long.
        DataError: the file is not UTF-8 text.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{shown}: the prompt '{name}' must be a file")
        if path.stat().st_size > LONGEST_PROMPT:
            raise UsageError(f"{shown}: a prompt may have at most {LONGEST_PROMPT:,} bytes")
        return Prompt(name, shown, path.read_text("utf-8"), is_own=is_own)
    except UnicodeDecodeError as error:
        raise DataError(f"{shown}: a prompt must be UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise UsageError(f"{shown}: the prompt '{name}' cannot be read: {error.strerror}") from error


@cache
def _renderer(prompt: Prompt) -> Callable[[Mapping[str, Any]], str]:
    if prompt.is_own:
        return compile_own_template(prompt.text).render
    return partial(render, compile_template(prompt.text, prompt.shown))
