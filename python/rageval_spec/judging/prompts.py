"""Judges' prompts for chat models: templates in files, fences around untrusted texts, and schemas of replies.

A prompt is `judging/prompts/<name>.jinja`, or a file that the spec names instead. Its variables are already fenced,
so a template cannot show an untrusted text without a fence. Templates can print texts, lists of texts, and columns of
any type inside fences.

If a sample has nothing to judge, or nothing to support it, the finding is settled without asking a model. Replies are
asked for as JSON that fits a JSON Schema.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.findings import Criterion, Finding, TextPart, read_part
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import FileFault
from rageval_spec.endpoints.chat_questions import BRACKETED, DRAWN, FULL_WIDTH
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judging.segments import is_blank
from rageval_spec.judging.templates import compile_own_template, compile_template, find_line, parse_template, render
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import Context
from rageval_spec.store.disk import InputFile

FOLDER = Path(__file__).parent / "prompts"
LONGEST_PROMPT = 1_000_000
"""Bytes of a template."""
_VERSION = compile_later(r"\{#\s*version:\s*(\S+)\s*#\}")
# Openings of tags and control tokens; invisible characters; characters that reverse the text; lone surrogates.
_UNSAFE = compile_later(
    rf"<(?=[/!?|a-zA-Z])|{FULL_WIDTH}|{BRACKETED}|{DRAWN}"
    "|[\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)

VARIABLES: Mapping[str, Mapping[str, str | int | float]] = {
    "system": {},
    "split": {"question": "<question>\n</question>", "sentences": "<sentence>\n</sentence>"},
    "verify": {"question": "<question>", "sources": "<source>\n</source>", "claims": "<claim>\n</claim>", "count": 2},
    "assign": {"question": "<question>", "sources": "<text>\n</text>", "claims": "<fact>\n</fact>", "count": 2},
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
    "assign": {"claims": "the statements", "sources": "the text"},
    "usefulness": {"contexts": "the contexts", "question": "the question", "target": "what they are to be useful for"},
    "questions": {"answer": "the answer"},
    "entities": {"text": "the text"},
    **{key: {"material": "the answer"} for key in ("binary", "choice", "grade")},
    "scores": {"material": "the answer", "criteria": "what to score"},
    "steps": {"instruction": "what is judged"},
}
"""The variables that each prompt must use, and what the judge would not see without them."""


PromptFile = Annotated[str, Field(min_length=1)] | None
"""The key of a file that replaces a prompt."""
OWN_FILES = Field(description="Prompt files that replace the judge's own, relative to the spec.")
"""The key `prompts` of a node."""


class PromptFiles(BaseModel):
    """Prompt files that replace the judge's own; every judge has the prompt `system`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: PromptFile = Field(default=None, description="The template with the rules that come before every question.")


def fence(tag: str, text: str, number: int | None = None) -> str:
    r"""A text between tags that it cannot forge: a JSON string on one line, with openings of tags and tokens escaped.

    >>> fence("answer", 'He said "no".\n</answer>')
    '<answer>\n"He said \\"no\\".\\n\\u003c/answer>"\n</answer>'
    """
    opening = tag if number is None else f'{tag} number="{number}"'
    return f"<{opening}>\n{encode_text(text)}\n</{tag}>"


def fence_all(tag: str, texts: Sequence[str]) -> str:
    return "\n".join(fence(tag, text, number) for number, text in enumerate(texts, 1))


def encode_text(text: str) -> str:
    """A text as a JSON string without invisible characters and without the opening of any tag."""

    def escape(found: re.Match[str]) -> str:
        character = found.group()
        return f"\\u{ord(character):04x}" if character in "<[" else json.dumps(character)[1:-1]

    return _UNSAFE.sub(escape, json.dumps(text, ensure_ascii=False))


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
        return hashlib.sha256(self.text.encode()).hexdigest()

    def render(self, **variables: Any) -> str:
        """The prompt, rendered with the variables: for this package's prompts, those that `VARIABLES` lists."""
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
        try:
            from jinja2 import meta, nodes

            tree, known = parse_template(self.text, self.shown), VARIABLES[self.name]
            unknown = meta.find_undeclared_variables(tree) - known.keys()
            if used := next((one for one in tree.find_all(nodes.Name) if one.name in unknown), None):
                there = f"this prompt has {', '.join(sorted(known))}" if known else "this prompt has no variables"
                return f"{self.shown}:{used.lineno}: unknown variable '{used.name}'; {there}"
            rendered = self.render(**known)
            if not rendered:
                return f"{self.shown}:1: the prompt is empty"
            for name, what in _REQUIRED.get(self.name, {}).items():
                if self.render(**{**known, name: "<other>"}) == rendered:
                    return f"{self.shown} does not use {{{{ {name} }}}}, so the judge would not see {what}"
        except UsageError as error:
            return str(error)
        return None


class Prompts:
    """The prompts of one judge by name; the spec's files replace the judge's own."""

    def __init__(
        self, names: Sequence[str], files: PromptFiles, context: Context, without_json: frozenset[str] = frozenset()
    ) -> None:
        """Read no file yet. The prompts of `without_json` ask for a word: `choice_word.jinja`."""
        self._names = names
        self._without_json = without_json
        self._own = {name: path for name in names if (path := getattr(files, name)) is not None}
        self._context = context
        self._read: dict[str, Prompt] = {}

    def __getitem__(self, name: str) -> Prompt:
        if name not in self._read:
            own, word = self._own.get(name), "_word" if name in self._without_json else ""
            path = FOLDER / f"{name}{word}.jinja" if own is None else self._context.resolve(own)
            self._read[name] = load_prompt(name, path, own or path.name, is_own=own is None)
        return self._read[name]

    def inputs(self) -> list[InputFile]:
        return [InputFile(self._context.resolve(path), ("prompts", name)) for name, path in self._own.items()]

    def check(self) -> Iterator[FileFault]:
        for name, path in self._own.items():
            if not self._context.resolve(path).is_file():
                continue
            try:
                fault = self[name].check()
            except (UsageError, DataError) as error:
                fault = str(error)
            if fault is not None:
                yield FileFault(("prompts", name), fault, code="unusable-prompt")

    def content(self) -> dict[str, dict[str, str | None]]:
        return {name: {"version": self[name].version, "sha256": self[name].digest} for name in self._names}

    def digests(self) -> dict[str, str]:
        return {name: self[name].digest for name in self._names}


def load_prompt(name: str, path: Path, shown: str, *, is_own: bool = False) -> Prompt:
    """The prompt in a file. `shown` is the file's name in messages."""
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
        return compile_own_template(prompt.text)
    return partial(render, compile_template(prompt.text, prompt.shown))


class FencedText(str):
    """A text that a template prints between tags that it cannot forge.

    Its characters are those of the fence, so every filter, slice and join works on them and never on the bare text.
    Tests see the text itself: `{% if reference %}` is false for a blank text, and `{% if language == "de" %}` compares
    the text.
    """

    __slots__ = ("_bare",)
    _bare: str

    def __new__(cls, tag: str, text: str, number: int | None = None) -> FencedText:
        made = super().__new__(cls, fence(tag, text, number))
        made._bare = text
        return made

    def __bool__(self) -> bool:
        return bool(self._bare.strip())

    def __eq__(self, other: object) -> bool:
        return self._bare == (other._bare if isinstance(other, FencedText) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._bare)


class FencedTexts(tuple[Any, ...]):
    """Several values, to loop over; printed as a whole, one below the other."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))


def fence_texts(tag: str, texts: Iterable[str]) -> FencedTexts:
    return FencedTexts(FencedText(tag, text, number) for number, text in enumerate(texts, 1))


def fence_value(name: str, value: Any) -> Any:
    """The value of a column: texts and lists of them are fenced, a mapping as its JSON; numbers and Booleans stay."""
    tag = re.sub(r"\W+", "_", name).strip("_") or "column"
    if isinstance(value, str):
        return FencedText(tag, value)
    if isinstance(value, Mapping):
        return FencedText(tag, json.dumps(value, ensure_ascii=False, default=str))
    if isinstance(value, list | tuple):
        return FencedTexts(
            FencedText(tag, one, number) if isinstance(one, str) else fence_value(name, one)
            for number, one in enumerate(value, 1)
        )
    return value


_TAGS: Mapping[TextPart, str] = {
    "question": "question",
    "answer": "answer",
    "reference": "reference_answer",
    "contexts": "context",
    "claims": "context",
    "reference_contexts": "reference_context",
    "steps": "step",
    "goal": "goal",
}
_SEVERAL: frozenset[TextPart] = frozenset({"contexts", "reference_contexts", "claims", "steps"})
"""Parts that are numbered because they can have several texts."""
_NAMES: Mapping[TextPart, str] = {
    "reference": "reference answer",
    "reference_contexts": "reference contexts",
    "claims": "contexts",
}
"""Prompts call claims contexts. A reply is stored under the digest of its prompt, so no word of it may change."""


def name_part(part: TextPart) -> str:
    return _NAMES.get(part, part)


def fence_part(sample: Sample, part: TextPart, tag: str | None = None) -> str:
    """A part of a sample in fences, contexts numbered; "" if the sample does not have it."""
    texts = read_part(sample, part)
    tag = tag or _TAGS[part]
    return fence_all(tag, texts) if part in _SEVERAL else "\n".join(fence(tag, text) for text in texts)


def fence_parts(sample: Sample, parts: Iterable[TextPart]) -> str:
    """The distinct parts that a sample has, in reading order: question first, answer last."""
    order: tuple[TextPart, ...]
    order = ("question", "goal", "contexts", "claims", "reference_contexts", "reference", "steps", "answer")
    wanted = {*parts}
    return "\n".join(filter(None, (fence_part(sample, part) for part in order if part in wanted)))


def settle(criterion: Criterion, sample: Sample) -> Finding | None:
    """The finding if there is nothing to judge or nothing to support it; None if a model must decide."""
    if criterion.kind == "grade":
        return None
    what = name_part(criterion.text)
    if is_blank([criterion.text_of(sample)]):
        reason = f"there are no {what}" if criterion.kind == "usefulness" else f"the {what} makes no claim"
        return Finding(None, reason=reason)
    if criterion.kind == "support" and is_blank(criterion.sources_of(sample)):
        return Finding(0.0, reason=explain_no_sources(criterion))
    return None


def explain_no_sources(criterion: Criterion) -> str:
    what, beside = name_part(criterion.text), name_part(criterion.against)
    return f"nothing can support the {what}: there is no text in the {beside}"


OUTPUT_TOKENS = 40
"""The tokens that an estimate assumes for a reply with one verdict."""
TEXT: Mapping[str, Any] = {"type": "string"}
REMARK: Mapping[str, Any] = {"type": ["string", "null"]}
"""A text that a reply can lack and still be usable."""


def make_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these keys, in this order, all required."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def make_list_schema(items: Mapping[str, Any], count: int | None = None) -> dict[str, Any]:
    """The JSON Schema of a list, of exactly `count` items if a count is given."""
    return {"type": "array", "items": items} | ({} if count is None else {"minItems": count, "maxItems": count})
