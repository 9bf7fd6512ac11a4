from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.part_columns import read_parts, require_columns

PARTS = ("query_id", "value")


def test_columns_are_named_by_part() -> None:
    assert read_parts(["value=my rating", "query_id=a=b"], PARTS, "a label", "value=rating") == {
        "value": "my rating",
        "query_id": "a=b",
    }


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("rating", "--column rating: write PART=NAME, such as value=rating"),
        ("value=", "--column value=: write PART=NAME, such as value=rating"),
        ("valeu=x", "--column valeu=x: a label has no 'valeu'; did you mean 'value'?"),
        ("zzz=x", "--column zzz=x: a label has no 'zzz'; write one of query_id, value"),
    ],
)
def test_what_names_no_part_says_what_to_write(column: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_parts([column], PARTS, "a label", "value=rating")
    assert str(caught.value) == message


def test_a_named_column_must_be_there() -> None:
    require_columns(Path("labels.csv"), {"value": "rating"}, ["rating", "id"])
    with pytest.raises(DataError, match=r"labels\.csv: there is no column 'grade' for value; the columns are"):
        require_columns(Path("labels.csv"), {"value": "grade"}, ["rating", "id"])
