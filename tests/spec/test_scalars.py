from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from rageval_spec.spec.scalars import Trap, is_number_elsewhere, is_word_for_boolean, resolve_scalar, spell_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("No", False),
        ("on", True),
        ("7", 7),
        ("-7", -7),
        ("+1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0", 0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1.5e+3", 1500.0),
        ("1e3", "1e3"),
        ("08", "08"),
        ("y", "y"),
        ("ndcg@10", "ndcg@10"),
        ("0x_", "0x_"),
    ],
)
def test_values(text: str, value: object) -> None:
    resolved = resolve_scalar(text)
    assert (type(resolved), resolved) == (type(value), value)


@pytest.mark.parametrize(
    "text", ["12:30", "1:30.5", "010", "-017", "2024-01-01", "2024-01-01 12:30:00", ".inf", "-.INF", ".nan", "9" * 30]
)
def test_traps(text: str) -> None:
    assert isinstance(resolve_scalar(text), Trap)


PLAIN = st.text(alphabet="0123456789eE+-._:xboOytrufalsn~ ", min_size=1, max_size=12)


@given(PLAIN)
def test_a_scalar_that_is_not_a_trap_has_the_value_that_pyyaml_reads(text: str) -> None:
    expected = _read(text)
    assume(isinstance(expected, str | int | float | bool | None))
    resolved = resolve_scalar(text.strip())
    if not isinstance(resolved, Trap):
        assert (type(resolved), resolved) == (type(expected), expected)


@given(st.from_regex(r"[-+]?[0-9]{1,4}(\.[0-9]{0,3})?e[0-9]{1,2}|[0-9]{1,3}e-[0-9]|0o[0-7]{1,5}", fullmatch=True))
def test_numbers_of_yaml_1_2_only_are_spelled_for_both_versions(text: str) -> None:
    assume(is_number_elsewhere(text))
    number = int(text, 8) if text.startswith("0o") else float(text)
    assume(number == 0 or 1e-15 < abs(number) < 1e15)
    spelled = resolve_scalar(spell_number(text))
    assert isinstance(spelled, int | float)
    assert math.isclose(spelled, number, rel_tol=1e-4)


@pytest.mark.parametrize("text", ["0o" + "7" * 9000, "1e400", "9" * 5000 + "e1"])
def test_numbers_of_any_length_can_be_spelled(text: str) -> None:
    assert len(spell_number(text)) < 50


def test_words_for_booleans_are_those_that_only_yaml_1_1_reads_as_booleans() -> None:
    words = {"no", "off", "on", "yes", "true", "false", "True", "y", "n"}
    assert {word for word in words if is_word_for_boolean(word)} == {"no", "off", "on", "yes"}


def _read(text: str) -> Any:
    """Read the text as the value of a key, where `---` is text and not the start of a document."""
    try:
        return yaml.safe_load(f"key: {text}")["key"]
    except (yaml.YAMLError, ValueError):
        assume(False)
