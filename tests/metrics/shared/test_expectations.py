from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.sample import Sample
from rageval_spec.metrics.shared.expectations import explain_nothing, find_expectation, fold, read_texts
from tests.metrics.expecting import fault


@pytest.mark.parametrize(
    ("expected", "texts"),
    [
        ("a", ("a",)),
        (["a", 3, 0.5], ("a", "3", "0.5")),
        ('["a", "b"]', ("a", "b")),
        ("[1]", ("[1]",)),
        ('["a"', ('["a"',)),
        (7, ("7",)),
    ],
)
def test_a_column_holds_one_text_or_several(expected: Any, texts: tuple[str, ...]) -> None:
    assert read_texts(expected) == texts


@pytest.mark.parametrize("expected", [{"a": 1}, [["a"]], True, [None]])
def test_a_column_that_holds_no_text_is_refused(expected: Any) -> None:
    with pytest.raises(ValueError, match="must hold text or a list of texts"):
        read_texts(expected)


def test_what_is_expected_is_in_a_column_or_the_reference() -> None:
    sample = Sample("q1", "?", references=("x", "y"), columns={"must": "a", "empty": "", "no": None})
    assert find_expectation(sample, "must") == "a"
    assert find_expectation(sample, "reference") == ["x", "y"]
    assert find_expectation(Sample("q1", "?"), "must") is None
    for name, reason in {
        "empty": "the column 'empty' is empty",
        "no": "the column 'no' is empty",
        "mist": "the query has no column 'mist'; there are empty, must, no",
    }.items():
        assert find_expectation(sample, name) is None
        assert explain_nothing(sample, name) == reason
    assert explain_nothing(Sample("q1", "?"), "must") == "the query has no column 'must'"
    assert explain_nothing(Sample("q1", "?"), "reference") == "the query has no reference"


def test_equal_texts_are_equal_in_every_form() -> None:
    assert fold("Cafe\u0301", ignore_case=False) == "Caf\u00e9"
    assert fold("STRASSE", ignore_case=True) == fold("Straße", ignore_case=True)
    assert fold("A", ignore_case=False) != fold("a", ignore_case=False)


@pytest.mark.parametrize("word", ["contains", "not_contains", "matches", "json_schema", "max_words"])
def test_the_expectation_is_in_one_place(word: str) -> None:
    key, value = {"matches": ("pattern", "a"), "json_schema": ("schema", {}), "max_words": ("value", 3)}.get(
        word, ("value", "a")
    )
    assert fault(word) == f"'{word}' needs '{key}:', or 'column:' with the name of a column of the questions"
    assert fault(word, **{key: value}, column="c") == f"'{key}' and 'column' exclude each other; remove one"
    assert fault(word, **{key: value}) is None
    assert fault(word, column="c") is None
