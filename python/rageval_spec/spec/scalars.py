"""The value of a scalar without quotes, as PyYAML resolves YAML 1.1, and readings that nobody intends.

Three readings of YAML 1.1 are errors for every key: `12:30` (750 in base 60), `010` (8 in base 8) and dates. Others
are errors depending on the type of the key: `no` for text, `1e3` for a number.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple, TypeAlias

import yaml

from rageval_spec.spec.places import cut

ScalarValue: TypeAlias = str | int | float | bool | None

_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers
_TRUE = frozenset({"yes", "true", "on"})
_PREFIXES = {"0x": 16, "0b": 2}
LARGEST = 2**63 - 1
"""The largest number that a spec can use."""
_LONGEST_NUMBER = 40
_YAML_1_2_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")


class Trap(NamedTuple):
    """A scalar that YAML reads differently from what its author meant."""

    message: str
    code: str
    hint: str


def resolve_scalar(text: str) -> ScalarValue | Trap:
    """The value of a scalar without quotes."""
    kind = _kind(text)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in _TRUE
    if kind == "timestamp":
        return Trap(f"YAML reads {cut(text)} as a date", "yaml-trap", f'quote it: "{cut(text)}"')
    if kind == "int":
        return _resolve_integer(text)
    return _resolve_float(text) if kind == "float" else text


def is_number_elsewhere(text: str) -> bool:
    """Whether YAML 1.2 reads a text of YAML 1.1 as a number: `1e3`, `0o17`."""
    return bool(_YAML_1_2_NUMBER.fullmatch(text)) and _kind(text) == "str"


def spell_number(text: str) -> str:
    """How to write such a number so that both versions read it as a number: `1000` for `1e3`."""
    value = int(text[:_LONGEST_NUMBER], 0) if text.startswith("0o") else float(text)
    if not math.isfinite(value) or abs(value) > LARGEST:
        return "a number that is not so large"
    if value == int(value):
        return str(int(value))
    spelled = repr(value)
    return spelled if "e" not in spelled else f"{value:.20f}".rstrip("0")


def is_word_for_boolean(text: str) -> bool:
    """Whether YAML 1.1 reads `text` as true or false and YAML 1.2 does not: `no`, `on`."""
    return text.lower() not in ("true", "false") and _kind(text) == "bool"


def _kind(text: str) -> str:
    candidates = _RESOLVERS.get(text[:1], ())
    return next((tag.rpartition(":")[2] for tag, pattern in candidates if pattern.match(text)), "str")


def _resolve_integer(text: str) -> ScalarValue | Trap:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").replace("_", "")
    if ":" in digits:
        return _base_60(text)
    if len(digits) > _LONGEST_NUMBER:
        return _too_large()
    base = _PREFIXES.get(digits[:2])
    if base is None and len(digits) > 1 and digits[0] == "0":
        octal, decimal = int(digits, 8), digits.lstrip("0") or "0"
        hint = f'write {decimal}, or quote it: "{text}"'
        return Trap(f"YAML 1.1 reads {text} as {octal} (base 8); YAML 1.2 reads it as {decimal}", "yaml-trap", hint)
    if base is not None and len(digits) == 2:
        return text
    value = sign * (int(digits[2:], base) if base else int(digits))
    return value if abs(value) <= LARGEST else _too_large()


def _resolve_float(text: str) -> ScalarValue | Trap:
    if ":" in text:
        return _base_60(text)
    if text.lstrip("+-").lower() in (".inf", ".nan"):
        return Trap(f"{text} is not a number that a spec can use", "number", f'quote it if it is text: "{text}"')
    value = float(text.replace("_", ""))
    return value if math.isfinite(value) else _too_large()


def _base_60(text: str) -> Trap:
    return Trap(f"YAML reads {cut(text)} as a number in base 60", "yaml-trap", f'quote it: "{cut(text)}"')


def _too_large() -> Trap:
    return Trap("this number is too large", "number", f"the largest whole number is {LARGEST}")
