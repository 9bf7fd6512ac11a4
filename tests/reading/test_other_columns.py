"""Values of any kind become JSON objects that parse back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.reading.other_columns import dump_columns, other_columns_table

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES))
def test_what_json_has_comes_back(values: dict[str, Any]) -> None:
    assert json.loads(dump_columns(values)) == values


def test_keys_are_sorted_and_numbers_that_json_lacks_are_null() -> None:
    assert dump_columns({"b": float("nan"), "a": [float("inf"), 1]}) == '{"a":[null,1],"b":null}'


def test_rows_in_many_blocks_stay_in_order() -> None:
    rows = ((f"q{number}", {"n": number, "other": "x"}) for number in range(10_000))
    table = other_columns_table(rows, ["n"])
    assert table is not None
    assert table.height == 10_000
    assert table.row(9_999) == ("q9999", '{"n":9999}')


def test_no_names_give_no_table() -> None:
    assert other_columns_table([("q1", {"n": 1})], []) is None
