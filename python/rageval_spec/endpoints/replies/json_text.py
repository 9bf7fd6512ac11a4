"""Finds and reads the JSON in replies of chat models.

Repairs only the form: text around the JSON, code fences, other quotation marks, Python literals, missing and surplus
commas and quotation marks. Never invents content: a value that is cut off is not a value.

What a reasoning model thought before it replied is removed. The numbered items of a reply, such as a verdict on each
claim, are put in order. The error of a reply that cannot be read quotes it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rageval_spec.diagnostics import make_visible
from rageval_spec.libraries import compile_later

MOST_STARTS = 200
"""The most brackets of a reply at which to look for JSON."""
MOST_STEPS = 100_000
"""The most pieces of text examined to repair a reply, which bounds the time that a hostile reply can take."""
MOST_SKIPPED = 2_000_000
"""The most characters of white space and comments skipped to repair a reply, which bounds the time too."""
DEEPEST = 40
NUMBER = compile_later(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": '”“"', "”": "”", "„": '“”"', "‘": "’'", "’": "’", "«": "»"}
_CLOSING = {quote: compile_later(rf"[\\{re.escape(closers)}]") for quote, closers in _QUOTES.items()}
_TRIVIA = compile_later(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LINE_TRIVIA = compile_later(r"(?:\s+|//[^\n]*|#[^\n]*)*")
_BARE_WORD = compile_later(r"[^\W\d][\w$-]*")
_KEY_AHEAD = compile_later(r"[^\W\d][\w$-]*\s*:")
_STARTS = compile_later(r"\{|(?:(?<=[\n:])|^)[ \t]*\[")
_OPENING_FENCE = compile_later(r"\s*(?:```|~~~)[\w-]*(?:[ \t]*\n|[ \t]+|(?=[{\[]))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": ""}
_CODED = compile_later(r"u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})")
_LITERALS = {"true": True, "false": False, "null": None, "none": None, "undefined": None}


def parse_strictly(text: str) -> Any:
    """Parse JSON; strings can contain raw line breaks. A key that occurs twice is a `ValueError` too."""
    return _decoder.decode(text)


def read_json(text: str) -> Any:
    """The one object or list that a reply is, code fences aside; mistakes of form are repaired."""
    text = drop_fences(text)
    if not text.startswith(("{", "[")):
        raise UnreadableReplyError(
            "there is text before the JSON; the reply must be the JSON alone"
            if _STARTS.search(text)
            else "there is no JSON in it"
        )
    try:
        return parse_strictly(text)
    except (ValueError, RecursionError):
        try:
            value, end = _Parser(text).read(0)
        except _SyntaxError as fault:
            raise UnreadableReplyError(str(fault)) from None
    if text[end:].strip():
        raise UnreadableReplyError("there is text after the JSON; the reply must be the JSON alone")
    return value


def drop_fences(text: str) -> str:
    """A reply without the code fence around it and without outer white space."""
    if (opened := _OPENING_FENCE.match(text)) is not None:
        text = text[opened.end() :]
    text = text.strip()
    return text[:-3].strip() if text.endswith(("```", "~~~")) else text


class _SyntaxError(ValueError):
    """The text is not JSON from `position` on; `began` says whether some of its content was read before."""

    def __init__(self, message: str, position: int, *, began: bool = True) -> None:
        super().__init__(message)
        self.position = position
        self.began = began


class _CutOffError(_SyntaxError):
    """The text ends inside the JSON."""


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise _SyntaxError(f"it says {show_value(twice)} twice", 0)
    return made


_decoder = json.JSONDecoder(strict=False, object_pairs_hook=_make_object)


class _Parser:
    """Reads one value and tolerates every mistake of form that leaves no doubt about the value."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0
        self.began = False
        self.steps = 0
        self.skipped = 0
        self.last_comment_end = text.rfind("*/")

    def read(self, begin: int) -> tuple[Any, int]:
        self.position, self.depth, self.began = begin, 0, False
        return self._read_container(), self.position

    def _read_container(self) -> Any:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._fault("it is nested too deep")
        value = self._read_object() if self.text[self.position] == "{" else self._read_array()
        self.depth -= 1
        return value

    def _read_object(self) -> dict[str, Any]:
        pairs: list[tuple[str, Any]] = []
        self.position += 1
        while self._peek() != "}":
            if self._take(","):
                continue
            key = self._read_key()
            if not self._take(":"):
                raise self._fault(f"a colon is missing after {show_value(key)}")
            self.began = True
            pairs.append((key, self._read_value(",}")))
        self.position += 1
        try:
            return _make_object(pairs)
        except _SyntaxError as fault:
            raise self._fault(str(fault)) from None

    def _read_array(self) -> list[Any]:
        items: list[Any] = []
        self.position += 1
        while self._peek() != "]":
            if self._take(","):
                continue
            items.append(self._read_value(",]"))
            self.began = True
        self.position += 1
        return items

    def _read_key(self) -> str:
        if self._peek() in _QUOTES:
            return self._read_string(":")
        word = _BARE_WORD.match(self.text, self.position)
        if word is None:
            raise self._fault("a key is missing")
        self.position = word.end()
        return word.group()

    def _read_value(self, closers: str) -> Any:
        first = self._peek()
        if first in "{[":
            return self._read_container()
        if first in _QUOTES:
            return self._read_string(closers)
        if number := NUMBER.match(self.text, self.position):
            value = self._make_number(number.group())
            self.position = number.end()
            return value
        return self._read_word(closers)

    def _make_number(self, digits: str) -> int | float:
        try:
            return int(digits) if digits.lstrip("+-").isdecimal() else float(digits)
        except ValueError:
            raise self._fault("a number is too long") from None

    def _read_word(self, closers: str) -> Any:
        """A literal, or a word without quotation marks where only a value can be."""
        word = _BARE_WORD.match(self.text, self.position)
        if word is None:
            raise self._fault(f"{show_value(self.text[self.position : self.position + 20])} is not a value")
        self.position = word.end()
        if word.group().lower() in _LITERALS:
            return _LITERALS[word.group().lower()]
        if "}" in closers and self._peek() in closers:
            return word.group()
        raise self._fault(f"{show_value(word.group())} is not a value")

    def _read_string(self, closers: str) -> str:
        end = _CLOSING[self.text[self.position]]
        parts: list[str] = []
        self.position += 1
        while found := end.search(self.text, self.position):
            parts.append(self.text[self.position : found.start()])
            self.position = found.end()
            if found.group() == "\\":
                parts.append(self._read_escape())
            elif self._ends_string(closers):
                return "".join(parts)
            else:
                parts.append(found.group())
        self.position = len(self.text)
        raise self._cut()

    def _ends_string(self, closers: str) -> bool:
        """Whether the quotation mark before the position ends a string, or is an unescaped mark inside it."""
        text, after = self.text, self._skip(self.position)
        if after == len(text):
            return True
        if text[after] not in closers:
            starts_line = "\n" in text[self.position : after] and closers != ":"
            return starts_line and (text[after] in _QUOTES or _KEY_AHEAD.match(text, after) is not None)
        if text[after] != ",":
            return True
        follows = self._skip(after + 1)
        if follows == len(text) or text[follows] in _QUOTES or text[follows] in closers:
            return True
        if "}" in closers:
            return _KEY_AHEAD.match(text, follows) is not None
        return text[follows] in "{[-" or text[follows].isalnum()

    def _read_escape(self) -> str:
        if self.position == len(self.text):
            raise self._cut()
        if coded := _CODED.match(self.text, self.position):
            code = int(coded.group(1) or coded.group(2) or coded.group(3), 16)
            if code <= 0x10FFFF:
                self.position = coded.end()
                return chr(code)
        letter = self.text[self.position]
        self.position += 1
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        return letter if letter in "\\/" or letter in _QUOTES else "\\" + letter

    def _skip(self, position: int) -> int:
        # Otherwise, every place before an unclosed comment would search for its end again.
        trivia = _TRIVIA if position < self.last_comment_end else _LINE_TRIVIA
        found = trivia.match(self.text, position)
        end = found.end() if found else position
        self.steps += 1
        self.skipped += end - position
        if self.steps > MOST_STEPS or self.skipped > MOST_SKIPPED:
            raise UnreadableReplyError("it is not JSON, and too long to be repaired")
        return end

    def _peek(self) -> str:
        self.position = self._skip(self.position)
        if self.position == len(self.text):
            raise self._cut()
        return self.text[self.position]

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self.position += 1
        return True

    def _fault(self, message: str) -> _SyntaxError:
        line = self.text.count("\n", 0, self.position) + 1
        return _SyntaxError(f"line {line}: {message}", self.position, began=self.began)

    def _cut(self) -> _CutOffError:
        return _CutOffError("it ends in the middle", self.position, began=self.began)


_SHOWN = 80
_QUOTED = 120


class UnreadableReplyError(ValueError):
    """A reply that cannot be read; the message says what is wrong, in words that the model understands."""


def quote_reply(text: str) -> str:
    """The beginning of a reply in quotation marks, on one line, with control characters shown as escapes."""
    words = " ".join(text[: 4 * _QUOTED].split())
    shown = words[:_QUOTED].rstrip()
    is_whole = shown == words and len(text) <= 4 * _QUOTED
    return f'"{make_visible(shown)}{"" if is_whole else " ..."}"'


def show_value(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=True, default=str)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


def name_place(path: str) -> str:
    return f"'{path}'" if path else "the reply"


_NAMES = "think|thinking|thought|thoughts|reasoning"
_THOUGHTS = compile_later(rf"(?:<(?:{_NAMES})>.*?</(?:{_NAMES})>\s*|\[THINK\].*?\[/THINK\]\s*)+", re.DOTALL)
_END = compile_later(rf"^[ \t]*(?:</(?:{_NAMES})>|\[/THINK\])", re.MULTILINE)


def drop_thoughts(text: str) -> str:
    """A reply without its byte order mark, outer white space, and the thoughts of a reasoning model before it.

    Thoughts begin the reply with `<think>`. If the model's template already wrote that tag, they end with the only line
    that begins with `</think>`, outside of all JSON. Anywhere else the tag is a quotation; if it counted, the author of
    a quoted text could choose where the reply begins.
    """
    text = text.replace("\ufeff", "").strip()
    if "</" not in text and "[/" not in text:
        return text
    if thoughts := _THOUGHTS.match(text):
        return text[thoughts.end() :].strip()
    ends = [found.end() for found in _END.finditer(text)]
    if len(ends) != 1 or _is_inside_json(text, ends[0]):
        return text
    return text[ends[0] :].strip()


def _is_inside_json(text: str, at: int) -> bool:
    """Whether an offset is inside JSON, or after JSON so broken that it could be."""
    parser, position = _Parser(text), 0
    for _ in range(MOST_STARTS):
        start = _STARTS.search(text, position, at)
        if start is None:
            return False
        begin = start.end() - 1
        try:
            position = parser.read(begin)[1]
        except _SyntaxError as fault:
            if fault.began:
                return True
            position = begin + 1
        except UnreadableReplyError:
            return True
        if at < position:
            return True
    return True


def put_in_order(items: Sequence[Mapping[str, Any]], key: str, decision: str) -> Sequence[Mapping[str, Any]]:
    """Items in the order of their numbers under `key`, from 1; unreadable if one is there twice and another is missing.

    If a model gives the same number to all of three or more items, it does not number them, and their positions count.
    Of two items with the same number, one could be repeated and the other missing, so their positions count only if
    both have the same decision.
    """
    numbers = [item[key] for item in items]
    if sorted(numbers) == list(range(1, len(numbers) + 1)):
        return sorted(items, key=lambda item: int(item[key]))
    if len({*numbers}) == 1 and (len(items) > 2 or len({item[decision] for item in items}) == 1):
        return items
    missing = min({*range(1, len(numbers) + 1)} - {*numbers})
    raise UnreadableReplyError(f'there is no {decision} with "{key}": {missing}, and two with another number')
