"""Reads the one value that a JSON reply states, and fits it to the schema that was asked for.

Repairs only the form: other spellings of keys, numbers and options, and a value without its wrapping. Never invents
content.

Of JSON Schema this supports `type` (one, or a list of them), `properties`, `required`, `items`, `minItems`,
`maxItems`, `enum`, `minimum` and `maximum`. Besides an `enum`, `meanings` can say what its options stand for. A
schema can also be described to a model in words.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rageval_spec.endpoints.replies import json_text
from rageval_spec.endpoints.replies.option_words import find_option, fold_word

_NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_NUMBERS = int, float
_TYPE_NAMES = {"object": "an object", "array": "a list", "integer": "a whole number", "string": "a text"}


def fit_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value in the shape of the schema; the value can have surplus wrapping or lack some.

    Keys that are not in the schema are dropped; a key that can be null can be missing. A number or word by itself is
    the value of the only key that cannot be null.

    Raises:
        UnreadableReplyError: the value does not fit; the message says why.
    """
    try:
        return _fit(value, schema, "")
    except json_text.UnreadableReplyError:
        for other in _list_wrappings(value, schema):
            try:
                return _fit(other, schema, "")
            except json_text.UnreadableReplyError:
                continue
        raise


def _list_wrappings(value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    properties = schema.get("properties", {})
    if isinstance(value, list):
        if len(properties) == 1:
            (key,) = properties
            if "array" in list_types(properties[key]):
                yield {key: value}
        if len(value) == 1:
            yield value[0]
    if isinstance(value, dict) and len(value) == 1:
        yield from value.values()
    if isinstance(value, str | int | float):
        needed = [key for key, inner in properties.items() if "null" not in list_types(inner)]
        if len(needed) == 1 and is_choice(properties[needed[0]]):
            yield {needed[0]: value}


def is_choice(schema: Mapping[str, Any]) -> bool:
    """Whether only certain texts are values of the schema; if any text were, any prose would fit."""
    return "enum" in schema or not {"string", "object", "array"}.intersection(list_types(schema))


def list_types(schema: Mapping[str, Any]) -> Sequence[str]:
    """The types that the schema allows."""
    kind: str | Sequence[str] = schema.get("type", "string")
    return (kind,) if isinstance(kind, str) else kind


def _fit(value: Any, schema: Mapping[str, Any], path: str) -> Any:
    kinds = list_types(schema)
    if value is None and "null" in kinds:
        return None
    if "enum" in schema:
        return _fit_enum(value, schema, path)
    kind = kinds[0] if kinds[0] != "null" else kinds[1]
    fitted = _FITS[kind](value, schema, path)
    return _clean(fitted) if isinstance(fitted, str) else fitted


def _fit_object(value: Any, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong_type(value, "object", path)
    properties = schema.get("properties", {})
    value = _spell(value, properties)
    fitted: dict[str, Any] = {}
    for key, inner in properties.items():
        where = f"{path}.{key}" if path else key
        if key not in value and "null" not in list_types(inner):
            raise json_text.UnreadableReplyError(f"'{where}' is missing")
        said = value.get(key)
        if isinstance(said, _NUMBERS) and not isinstance(said, bool) and "string" in list_types(inner):
            said = said if "enum" in inner else json.dumps(said)
        fitted[key] = _fit(said, inner, where)
    return fitted


def _spell(value: Mapping[str, Any], properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with other spellings of keys, such as "Verdict", replaced by the schema's keys.

    Raises:
        UnreadableReplyError: a key occurs in two spellings with different values.
    """
    if value.keys() <= properties.keys():
        return value
    meant = {fold_word(key): key for key in properties}
    spelled: dict[str, Any] = {}
    for key, said in value.items():
        own = key if key in properties else meant.get(fold_word(key), key)
        if own in properties and own in spelled and spelled[own] != said:
            raise json_text.UnreadableReplyError(f"it says {json_text.show_value(own)} twice")
        spelled[own] = said
    return spelled


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
        raise json_text.UnreadableReplyError(
            f"{json_text.name_place(path)} has {len(fitted)} entries, and {wanted} are wanted"
        )
    return fitted


def _fit_string(value: Any, _: Mapping[str, Any], path: str) -> str:
    if not isinstance(value, str):
        raise _wrong_type(value, "string", path)
    return value


def _fit_number(value: Any, schema: Mapping[str, Any], path: str) -> int | float:
    number = _parse_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, _NUMBERS) or not math.isfinite(number):
        raise _wrong_type(value, "number", path)
    if "integer" in list_types(schema) and isinstance(number, float):
        if not number.is_integer():
            raise _wrong_type(value, "integer", path)
        number = int(number)
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if not low <= number <= high:
        raise json_text.UnreadableReplyError(
            f"{json_text.name_place(path)} is {json_text.show_value(value)}, and not from {low} to {high}"
        )
    return number


def _parse_number(text: str) -> int | float | None:
    word = text.strip().rstrip(".").lower()
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS.index(word)
    if not json_text.NUMBER.fullmatch(word):
        return None
    try:
        return int(word) if word.lstrip("+-").isdecimal() else float(word)
    except ValueError:
        return None


def _fit_boolean(value: Any, _: Mapping[str, Any], path: str) -> bool:
    if isinstance(value, bool):
        return value
    word = fold_word(value) if isinstance(value, str) else str(value)
    if word in ("true", "yes", "1") and not isinstance(value, float):
        return True
    if word in ("false", "no", "0") and not isinstance(value, float):
        return False
    raise _wrong_type(value, "boolean", path)


def _fit_enum(value: Any, schema: Mapping[str, Any], path: str) -> Any:
    options: Sequence[Any] = schema["enum"]
    for option in options:
        if value == option and isinstance(value, bool) == isinstance(option, bool):
            return option
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, str):
        try:
            found = find_option(value, options, schema.get("meanings"))
        except json_text.UnreadableReplyError as error:
            shown = f"{json_text.name_place(path)} is {json_text.show_value(value)}, which says {error} as well"
            raise json_text.UnreadableReplyError(f"{shown}; say one of {_list(options)} alone") from None
        if found is not None:
            return found
    raise json_text.UnreadableReplyError(
        f"{json_text.name_place(path)} is {json_text.show_value(value)}, and none of {_list(options)}"
    )


def _list(options: Sequence[Any]) -> str:
    return ", ".join(str(option) for option in options)


_FITS = {
    "object": _fit_object,
    "array": _fit_array,
    "string": _fit_string,
    "number": _fit_number,
    "integer": _fit_number,
    "boolean": _fit_boolean,
}


def _wrong_type(value: Any, kind: str, path: str) -> json_text.UnreadableReplyError:
    return json_text.UnreadableReplyError(
        f"{json_text.name_place(path)} is {json_text.show_value(value)}, and not {_TYPE_NAMES.get(kind, 'a ' + kind)}"
    )


def _clean(text: str) -> str:
    """Replace surrogate pairs by their character and lone surrogates by U+FFFD, because files cannot contain them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def keep_decisions(value: Any, schema: Mapping[str, Any]) -> Any:
    """A fitted value without the parts that can be null, such as reasons; two replies agree if these are equal."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {
            key: keep_decisions(said, properties[key])
            for key, said in value.items()
            if "null" not in list_types(properties[key])
        }
    if isinstance(value, list):
        return [keep_decisions(item, schema.get("items", {})) for item in value]
    return value


def describe_format(schema: Mapping[str, Any]) -> str:
    """A schema as an example, for models whose endpoint cannot enforce it: `{"score": <1 to 5>}`."""
    kind = list_types(schema)[0]
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


_BARE_REPLY = re.compile(r"[+-]?\d+(?:\.\d+)?|[^\W_]+(?:[ _-][^\W_]+)*[.!]?")
_SAYS = r"(?:[:=]|\b(?:is|should be)\b)"
"""Between the name of a grade and the grade in prose."""
_PLACEHOLDER = re.compile(r"<[^<>]*>|\.\.\.|…|[^|]*\|[^|]*(?:\|[^|]*)*")
"""Placeholders in a repeated form: `<the letter>`, `...`, `yes | no`."""


def read_reply(text: str, schema: Mapping[str, Any]) -> Any:
    """The value in a reply that fits the schema (`schemas`); a reply of only a number or word can be the value.

    Several values must agree in everything that cannot be null, so that an attacker whom the reply quotes cannot choose
    its value; parts that can be null, such as reasons, may differ. Thoughts do not count, nor does a repetition of the
    form with placeholders.

    Raises:
        UnreadableReplyError: there is no such value, it is cut off, or the reply says two things.
    """
    text = json_text.drop_thoughts(text)
    if not text:
        raise json_text.UnreadableReplyError("it is empty")
    try:
        whole = json_text.parse_strictly(text)
    except (ValueError, RecursionError):
        bare = text.strip("*`\"' \n")
        if _BARE_REPLY.fullmatch(bare) is not None:
            with suppress(json_text.UnreadableReplyError):
                return fit_value(bare, schema)
        return _read_parts(text, schema)
    return fit_value(whole, schema)


def _read_parts(text: str, schema: Mapping[str, Any]) -> Any:
    pieces = _drop_drafts(text, [*json_text.find_pieces(text)])
    found: list[Any] = []
    faults: list[str] = []
    rival = None
    for piece in pieces:
        fault = piece.fault
        if fault is None:
            try:
                found.append(fit_value(piece.value, schema))
                continue
            except json_text.UnreadableReplyError as error:
                fault = str(error)
        if piece.began:
            faults.append(fault)
        if _is_attempt(piece, text, schema):
            rival = rival or fault
    if not found:
        prose = next((piece.fault for piece in reversed(pieces) if piece.fault), "there is no JSON in it")
        # What follows the first fault can be a fragment.
        raise json_text.UnreadableReplyError(faults[0] if faults else prose)
    if rival is not None:
        raise json_text.UnreadableReplyError(f"it has JSON that fits beside JSON that does not: {rival}")
    first, *others = (keep_decisions(value, schema) for value in found)
    gaps = zip(pieces, (*(piece.begin for piece in pieces[1:]), len(text)), strict=True)
    others += _list_claims("\n".join(text[piece.end : end] for piece, end in gaps), first, schema)
    if differing := next((other for other in others if other != first), None):
        raise json_text.UnreadableReplyError(
            f"it says two things: {json_text.show_value(first)} and {json_text.show_value(differing)}"
        )
    return found[-1]


def _list_claims(text: str, said: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The value with a grade or option that the prose states in its place: `"grade": 5 is what the answer wants`."""
    for key, inner in schema.get("properties", {}).items():
        if key not in said or not is_choice(inner):
            continue
        named = re.compile(rf"\b{re.escape(key)}\b[^\w\n]{{0,3}}{_SAYS}[^\w\n-]{{0,3}}(-?\w+(?:\.\d+)?)", re.IGNORECASE)
        for found in named.finditer(text):
            with suppress(json_text.UnreadableReplyError):
                yield {**said, **fit_value({key: found.group(1)}, {"type": "object", "properties": {key: inner}})}


def _drop_drafts(text: str, pieces: Sequence[json_text.JsonCandidate]) -> Sequence[json_text.JsonCandidate]:
    """The pieces after thoughts that the model's template began, and that hold JSON themselves.

    A tag that ends thoughts is one where it stands outside of all JSON, and once.
    """
    ends = [end for end in json_text.find_ends(text) if not any(piece.begin < end < piece.end for piece in pieces)]
    if len(ends) != 1 or any(piece.fault and piece.began and piece.begin < ends[0] for piece in pieces):
        return pieces
    return [piece for piece in pieces if piece.begin >= ends[0]]


def _is_attempt(piece: json_text.JsonCandidate, text: str, schema: Mapping[str, Any]) -> bool:
    """Whether a piece that does not fit was meant to: it has a key of the schema and no placeholder as a value."""
    wanted = [key for key, inner in schema.get("properties", {}).items() if "null" not in list_types(inner)]
    if piece.fault is not None:
        source = text[piece.begin : piece.end + 1]
        return not source.endswith("<") and any(re.search(rf"\b{re.escape(key)}\W*:", source) for key in wanted)
    if not isinstance(piece.value, dict) or not any(key in piece.value for key in wanted):
        return False
    return not _has_placeholder(piece.value)


def _has_placeholder(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(_has_placeholder(inner) for inner in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value.strip()) is not None
