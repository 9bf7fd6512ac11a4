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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rageval_spec.endpoints.replies import json_text, verdict_grammar
from rageval_spec.libraries import compile_later

_NUMBERS = int, float
_TYPE_NAMES = {"object": "an object", "array": "a list", "integer": "a whole number", "string": "a text"}


def fit_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value in the shape of the schema; it can be the only item of a list, or the list of the only key.

    Keys that are not in the schema are dropped; a key that can be null can be missing. An object inside another one is
    not unwrapped, because it can be what the model quotes.
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


def is_choice(schema: Mapping[str, Any]) -> bool:
    """Whether only certain texts are values of the schema; if any text were, any prose would fit."""
    return "enum" in schema or not {"string", "object", "array"}.intersection(list_types(schema))


_HIGHEST = compile_later(
    r"(?:grade|score|rating)?(?:(?:max(?:imum)?|highest)(?:possible)?(?:score|grade|rating|points?|value)?"
    r"|(?:out)?of|scale(?:max(?:imum)?)?|range|upperbound|denominator)"
)
"""What a reply calls the highest number, or the scale that ends with it, by `verdict_grammar.fold_word`."""
_DIGITS = compile_later(r"\d+(?:\.\d+)?")


def list_types(schema: Mapping[str, Any]) -> Sequence[str]:
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
    if value.keys() - properties.keys():
        value = _spell(value, properties)
        _refuse_other_scale(value, properties)
    fitted: dict[str, Any] = {}
    for key, inner in properties.items():
        where = f"{path}.{key}" if path else key
        if (said := value.get(key)) is None and key not in value and "null" not in list_types(inner):
            raise json_text.UnreadableReplyError(f"'{where}' is missing")
        if isinstance(said, _NUMBERS) and not isinstance(said, bool) and "string" in list_types(inner):
            said = said if "enum" in inner else json.dumps(said)
        fitted[key] = _fit(said, inner, where)
    return fitted


def _refuse_other_scale(value: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
    """Refuse an object that says beside its number what the highest one is, as in `{"grade": 4, "max": 10}`."""
    highest = {float(inner["maximum"]) for inner in properties.values() if "maximum" in inner}
    for key in value.keys() - properties.keys() if highest else ():
        said = _DIGITS.findall(json.dumps(value[key])) if _HIGHEST.fullmatch(verdict_grammar.fold_word(key)) else ()
        if said and float(said[-1]) not in highest:
            raise json_text.UnreadableReplyError(
                f"{json_text.show_value(key)} is {json_text.show_value(value[key])}, and the highest number is "
                f"{max(highest):g}"
            )


def _spell(value: Mapping[str, Any], properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with other spellings of keys, such as "Verdict", replaced by the schema's keys."""
    meant = {verdict_grammar.fold_word(key): key for key in properties}
    spelled: dict[str, Any] = {}
    for key, said in value.items():
        own = key if key in properties else meant.get(verdict_grammar.fold_word(key), key)
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
    number = verdict_grammar.read_number(value, schema.get("maximum")) if isinstance(value, str) else value
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


def _fit_boolean(value: Any, _: Mapping[str, Any], path: str) -> bool:
    said = value
    if isinstance(value, str | int) and not isinstance(value, bool):
        said = verdict_grammar.read_boolean(str(value))
    if not isinstance(said, bool):
        raise _wrong_type(value, "boolean", path)
    return said


def _fit_enum(value: Any, schema: Mapping[str, Any], path: str) -> Any:
    options: Sequence[Any] = schema["enum"]
    for option in options:
        if value == option and isinstance(value, bool) == isinstance(option, bool):
            return option
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, str):
        found = verdict_grammar.read_option(value, options, schema.get("meanings"))
        if found is not None:
            return found
    says_more = isinstance(value, str) and verdict_grammar.begins_with_option(value, options)
    wrong = f"not one of {_list(options)} alone" if says_more else f"none of {_list(options)}"
    raise json_text.UnreadableReplyError(f"{json_text.name_place(path)} is {json_text.show_value(value)}, and {wrong}")


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


def read_reply(text: str, schema: Mapping[str, Any], *, only_json: bool = False) -> Any:
    """The value that a reply states: the JSON that it is, or a verdict without JSON (see `verdict_grammar`).

    Thoughts, a code fence around the whole reply and white space do not count. JSON beside other text is never read:
    whoever quotes it need not agree with it. With `only_json`, neither is a verdict without JSON.
    """
    text = json_text.drop_thoughts(text)
    if not text:
        raise json_text.UnreadableReplyError("it is empty")
    # Reasons can be null, decisions cannot.
    decisions = [key for key, inner in schema.get("properties", {}).items() if "null" not in list_types(inner)]
    if not only_json and len(decisions) == 1 and is_choice(schema["properties"][decisions[0]]):
        (key,) = decisions
        said = _read_bare(json_text.drop_fences(text), key, schema["properties"][key])
        if said is not None:
            return fit_value({key: said}, schema)
    return fit_value(json_text.read_json(text), schema)


def _read_bare(text: str, key: str, schema: Mapping[str, Any]) -> Any:
    """The value of a key in a reply without JSON; None if the reply states none."""
    if "enum" in schema:
        options, meanings = schema["enum"], schema.get("meanings")
        read: Callable[[str], Any] = partial(verdict_grammar.read_option, options=options, meanings=meanings)
        return verdict_grammar.read_verdict(text, read, (key, *verdict_grammar.OPTION_NOUNS))
    if "boolean" in list_types(schema):
        return verdict_grammar.read_verdict(text, verdict_grammar.read_boolean, (key, *verdict_grammar.WORD_NOUNS))
    read = partial(verdict_grammar.read_number, highest=schema.get("maximum"))
    return verdict_grammar.read_verdict(text, read, (key, *verdict_grammar.NUMBER_NOUNS))


_REMARKS = frozenset({"reason", "reasoning", "explanation"})
"""The keys that a JSON reply can have beside a word."""


def read_word(text: str) -> str:
    """`yes` or `no`: the whole reply, its last line, or the answer of the JSON object that is the reply.

    Such an object has no other key than a reason: `{"hallucination": "no"}` answers another question.
    """
    text = json_text.drop_fences(json_text.drop_thoughts(text))
    said = verdict_grammar.read_verdict(text, _read_yes_or_no, verdict_grammar.WORD_NOUNS)
    if said is None and text.startswith("{"):
        said = _read_answer(json_text.read_json(text))
    if said is None:
        says_more = re.match(r"\W*(?:yes|no)\b", text, re.IGNORECASE) is not None
        raise json_text.UnreadableReplyError("it says more than yes or no" if says_more else "it is neither yes nor no")
    return said


def _read_yes_or_no(text: str) -> str | None:
    word: str | None = verdict_grammar.read_option(text, ("yes", "no"))
    return word


def _read_answer(value: Mapping[str, Any]) -> str | None:
    answers = [key for key in value if verdict_grammar.fold_word(key) in verdict_grammar.WORD_NOUNS]
    others = {verdict_grammar.fold_word(key) for key in value if key not in answers}
    if len(answers) != 1 or others - _REMARKS:
        return None
    said = value[answers[0]]
    if isinstance(said, bool):
        return "yes" if said else "no"
    return _read_yes_or_no(said) if isinstance(said, str) else None
