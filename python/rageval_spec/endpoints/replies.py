"""Reads the JSON that chat models really send, and checks it against the schema that was asked for.

What is repaired is form alone: text around the JSON, code fences, other quotes, Python's literals, commas and quotes
that are missing or too many, "4" for 4. What was not said is never made up: a reply that ends in the middle, or that
lacks what the schema wants, cannot be read.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

MOST_STARTS = 200
"""Brackets of a reply at which JSON is looked for."""
MOST_STEPS = 100_000
"""Pieces of text that are looked at to repair a reply: a bound on the time that hostile ones can take."""
MOST_SKIPPED = 2_000_000
"""White space and comments, in characters, that are passed over to repair a reply, each time: the same bound."""
DEEPEST = 40
_SHOWN = 80
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": '”“"', "”": "”", "„": '“”"', "‘": "’'", "’": "’", "«": "»"}
_CLOSING = {quote: re.compile(rf"[\\{re.escape(closers)}]") for quote, closers in _QUOTES.items()}
_TRIVIA = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LINE_TRIVIA = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*)*")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_BARE_WORD = re.compile(r"[^\W\d][\w$-]*")
_BARE_REPLY = re.compile(r"[+-]?\d+(?:\.\d+)?|[^\W_]+(?:[ _-][^\W_]+)*[.!]?")
_KEY_AHEAD = re.compile(r"[^\W\d][\w$-]*\s*:")
_STARTS = re.compile(r"\{|(?:(?<=[\n:])|^)[ \t]*\[")
_THOUGHTS = re.compile(r"(?:<think(?:ing)?>.*?</think(?:ing)?>\s*)+", re.DOTALL)
_END_OF_THOUGHTS = re.compile(r"^[ \t]*</think(?:ing)?>", re.MULTILINE)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": ""}
_CODED = re.compile(r"u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})")
_LITERALS = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
_NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_TYPE_NAMES = {"object": "an object", "array": "a list", "integer": "a whole number", "string": "a text"}


class UnreadableReplyError(ValueError):
    """A reply that cannot be read; the message says what is wrong with it, in words that its writer understands."""


def read_reply(text: str, schema: Mapping[str, Any]) -> Any:
    """The value of a reply that fits the schema; where several do, the last one, which is what thinking came to.

    Of JSON Schema it knows `type` (one, or a list of them), `properties`, `required`, `items`, `minItems`, `maxItems`,
    `enum`, `minimum` and `maximum`. Keys that the schema does not know are left out; one that may be null may be
    missing. Numbers and words of an `enum` are recognised in other spellings: "4", 4.0, "four", "Yes.". A reply that is
    nothing but such a number or word is the value of the only key that may not be null.

    Raises:
        UnreadableReplyError: there is no such value, the reply ends before it does, or it says a key twice.
    """
    text = drop_thoughts(text)
    if not text:
        raise UnreadableReplyError("it is empty")
    try:
        whole = json.loads(text, strict=False, object_pairs_hook=_make_object)
    except (ValueError, RecursionError):
        bare = text.strip("*`\"' \n")
        if _BARE_REPLY.fullmatch(bare) is not None:
            with suppress(UnreadableReplyError):
                return _fit_whole(bare, schema)
        return _read_parts(text, schema)
    return _fit_whole(whole, schema)


def drop_thoughts(text: str) -> str:
    """A reply without byte order mark, white space around it, and what a reasoning model thought before it.

    Thoughts begin the reply with `<think>`, or, where the model's template has said that already, end with a line that
    begins with `</think>` before any JSON. Elsewhere it is a quotation, and whoever wrote what is quoted would choose
    where the reply begins.
    """
    text = text.replace("\ufeff", "").strip()
    if thoughts := _THOUGHTS.match(text):
        text = text[thoughts.end() :]
    json_begins = _STARTS.search(text)
    ends = [*_END_OF_THOUGHTS.finditer(text, 0, json_begins.start() if json_begins else len(text))]
    return (text[ends[-1].end() :] if ends else text).strip()


def describe_format(schema: Mapping[str, Any]) -> str:
    """A schema in the form of an example, for models that cannot be held to one: `{"score": <1 to 5>}`."""
    kind = _types(schema)[0]
    if "enum" in schema:
        return " | ".join(json.dumps(option, ensure_ascii=False) for option in schema["enum"])
    if kind == "object":
        inner = (f"{json.dumps(key)}: {describe_format(each)}" for key, each in schema.get("properties", {}).items())
        return "{" + ", ".join(inner) + "}"
    if kind == "array":
        least, most = schema.get("minItems"), schema.get("maxItems")
        count = f", exactly {least} of them" if least is not None and least == most else ", ..."
        return f"[{describe_format(schema.get('items', {}))}{count}]"
    if kind in ("integer", "number"):
        bounds = f" from {schema['minimum']} to {schema['maximum']}" if {"minimum", "maximum"} <= schema.keys() else ""
        return f"<{'whole ' if kind == 'integer' else ''}number{bounds}>"
    return {"string": '"<text>"', "boolean": "true | false"}.get(kind, kind)


class _SyntaxError(ValueError):
    """No JSON here. `position` is where it ends to be it; `began` whether anything inside was read before."""

    def __init__(self, message: str, position: int, *, began: bool = True) -> None:
        super().__init__(message)
        self.position = position
        self.began = began


class _CutOffError(_SyntaxError):
    """The text ends inside of the JSON."""


def _read_parts(text: str, schema: Mapping[str, Any]) -> Any:
    found: list[Any] = []
    faults: list[str] = []
    prose = "there is no JSON in it"
    for value in _find_values(text):
        if isinstance(value, _SyntaxError):
            if value.began:
                faults.append(str(value))
            prose = str(value)
            continue
        try:
            found.append(_fit_whole(value, schema))
        except UnreadableReplyError as error:
            faults.append(str(error))
    if not found:
        # What follows the first fault may be a fragment.
        raise UnreadableReplyError(faults[0] if faults else prose)
    return found[-1]


def _find_values(text: str) -> Iterator[Any]:
    """What can be read as JSON in a text, from left to right, and the faults of what cannot."""
    position = 0
    parser = _Parser(text)
    for _ in range(MOST_STARTS):
        start = _STARTS.search(text, position)
        if start is None:
            return
        begin = start.end() - 1
        try:
            value, position = parser.read(begin)
        except _CutOffError as fault:
            if fault.began:
                raise UnreadableReplyError("it ends in the middle") from None
            position = begin + 1
        except _SyntaxError as fault:
            position = max(fault.position, begin + 1) if fault.began else begin + 1
            yield fault
        else:
            yield value


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise _SyntaxError(f"it says {_show(twice)} twice", 0)
    return made


class _Parser:
    """Reads one value, forgiving everything that leaves no doubt about what it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0
        self.began = False
        self.steps = 0
        self.skipped = 0
        self.last_comment_end = text.rfind("*/")

    def read(self, begin: int) -> tuple[Any, int]:
        """The value that begins there, and where it ends."""
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
                raise self._fault(f"a colon is missing after {_show(key)}")
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
        if number := _NUMBER.match(self.text, self.position):
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
        """A literal, or a word without quotes where only a value can stand."""
        word = _BARE_WORD.match(self.text, self.position)
        if word is None:
            raise self._fault(f"{_show(self.text[self.position : self.position + 20])} is no value")
        self.position = word.end()
        if word.group().lower() in _LITERALS:
            return _LITERALS[word.group().lower()]
        if "}" in closers and self._peek() in closers:
            return word.group()
        raise self._fault(f"{_show(word.group())} is no value")

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
        """Whether the quote before the position ends a string, or is a quote inside of one that nobody escaped."""
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
        # A comment that is never closed would be searched for its end from each place before it.
        trivia = _TRIVIA if position < self.last_comment_end else _LINE_TRIVIA
        found = trivia.match(self.text, position)
        end = found.end() if found else position
        self.steps += 1
        self.skipped += end - position
        if self.steps > MOST_STEPS or self.skipped > MOST_SKIPPED:
            raise UnreadableReplyError("it is no JSON, and too long to be repaired")
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


def _fit_whole(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value, or what it wraps, or what it is the only part of, in the shape of the schema."""
    try:
        return _fit(value, schema, "")
    except UnreadableReplyError:
        for other in _list_wrappings(value, schema):
            try:
                return _fit(other, schema, "")
            except UnreadableReplyError:
                continue
        raise


def _list_wrappings(value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    properties = schema.get("properties", {})
    if isinstance(value, list):
        if len(properties) == 1:
            (key,) = properties
            if "array" in _types(properties[key]):
                yield {key: value}
        if len(value) == 1:
            yield value[0]
    if isinstance(value, dict) and len(value) == 1:
        yield from value.values()
    if isinstance(value, str | int | float):
        needed = [key for key, inner in properties.items() if "null" not in _types(inner)]
        if len(needed) == 1 and _is_choice(properties[needed[0]]):
            yield {needed[0]: value}


def _is_choice(schema: Mapping[str, Any]) -> bool:
    """Whether few texts are a value: any prose would fit where any text does."""
    return "enum" in schema or not {"string", "object", "array"}.intersection(_types(schema))


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    kind: str | Sequence[str] = schema.get("type", "string")
    return (kind,) if isinstance(kind, str) else kind


def _fit(value: Any, schema: Mapping[str, Any], path: str) -> Any:
    kinds = _types(schema)
    if value is None and "null" in kinds:
        return None
    if "enum" in schema:
        return _fit_enum(value, schema["enum"], path)
    kind = kinds[0] if kinds[0] != "null" else kinds[1]
    fitted = _FITS[kind](value, schema, path)
    return _clean(fitted) if isinstance(fitted, str) else fitted


def _fit_object(value: Any, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong_type(value, "object", path)
    properties = schema.get("properties", {})
    if not properties.keys() <= value.keys():
        value = {**_spell(value, properties), **value}
    fitted: dict[str, Any] = {}
    for key, inner in properties.items():
        where = f"{path}.{key}" if path else key
        if key not in value and "null" not in _types(inner):
            raise UnreadableReplyError(f"'{where}' is missing")
        said = value.get(key)
        if isinstance(said, int | float) and not isinstance(said, bool) and "string" in _types(inner):
            said = said if "enum" in inner else json.dumps(said)
        fitted[key] = _fit(said, inner, where)
    return fitted


def _spell(value: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """What stands under keys that no schema has, under the key that is meant: "Verdict", "not-supported"."""
    meant = {_fold(key): key for key in properties if key not in value}
    return {meant[_fold(key)]: said for key, said in value.items() if key not in properties and _fold(key) in meant}


def _fit_array(value: Any, schema: Mapping[str, Any], path: str) -> list[Any]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not isinstance(value, list) and least == most == 1:
        value = [value]
    if not isinstance(value, list):
        raise _wrong_type(value, "array", path)
    items = schema.get("items", {})
    fitted = [_fit(item, items, f"{path}[{index}]") for index, item in enumerate(value)]
    if not least <= len(fitted) <= most:
        wanted = str(least) if least == most else f"at least {least}" if len(fitted) < least else f"at most {most}"
        raise UnreadableReplyError(f"{_name(path)} has {len(fitted)} entries, and {wanted} are wanted")
    return fitted


def _fit_string(value: Any, _: Mapping[str, Any], path: str) -> str:
    if not isinstance(value, str):
        raise _wrong_type(value, "string", path)
    return value


def _fit_number(value: Any, schema: Mapping[str, Any], path: str) -> int | float:
    number = _parse_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise _wrong_type(value, "number", path)
    if "integer" in _types(schema) and isinstance(number, float):
        if not number.is_integer():
            raise _wrong_type(value, "integer", path)
        number = int(number)
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if not low <= number <= high:
        raise UnreadableReplyError(f"{_name(path)} is {_show(value)}, and not from {low} to {high}")
    return number


def _parse_number(text: str) -> int | float | None:
    word = text.strip().rstrip(".").lower()
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS.index(word)
    if not _NUMBER.fullmatch(word):
        return None
    try:
        return int(word) if word.lstrip("+-").isdecimal() else float(word)
    except ValueError:
        return None


def _fit_boolean(value: Any, _: Mapping[str, Any], path: str) -> bool:
    if isinstance(value, bool):
        return value
    word = _fold(value) if isinstance(value, str) else str(value)
    if word in ("true", "yes", "1") and not isinstance(value, float):
        return True
    if word in ("false", "no", "0") and not isinstance(value, float):
        return False
    raise _wrong_type(value, "boolean", path)


def _fit_enum(value: Any, options: Sequence[Any], path: str) -> Any:
    for option in options:
        if value == option and isinstance(value, bool) == isinstance(option, bool):
            return option
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, str):
        folded = {_fold(str(option)): option for option in options}
        for word in (value, re.split(r"[.,:;()\n]|\s[-–—]\s", value.strip().lstrip("("), maxsplit=1)[0]):
            if _fold(word) in folded:
                return folded[_fold(word)]
    shown = ", ".join(str(option) for option in options)
    raise UnreadableReplyError(f"{_name(path)} is {_show(value)}, and none of {shown}")


_FITS = {
    "object": _fit_object,
    "array": _fit_array,
    "string": _fit_string,
    "number": _fit_number,
    "integer": _fit_number,
    "boolean": _fit_boolean,
}


def _wrong_type(value: Any, kind: str, path: str) -> UnreadableReplyError:
    return UnreadableReplyError(f"{_name(path)} is {_show(value)}, and not {_TYPE_NAMES.get(kind, 'a ' + kind)}")


def _name(path: str) -> str:
    return f"'{path}'" if path else "the reply"


def _show(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=True, default=str)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


def _fold(word: str) -> str:
    """A word without case, punctuation and white space."""
    return re.sub(r"[\W_]+", "", word).casefold()


def _clean(text: str) -> str:
    """Surrogates in pairs become the character that they stand for, others become U+FFFD: no file could hold them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
