from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.metrics.comparing import answer_metric, compare, value_of


@pytest.mark.parametrize(
    ("answer", "references", "expected"),
    [
        ("The Eiffel Tower!", ["eiffel tower"], 1.0),
        ("Eiffel", ["Eiffel Tower"], 0.0),
        ("in 1889", ["1889", "in 1889."], 1.0),
        ("", ["Paris"], 0.0),
        ("", [""], 1.0),  # the reference is empty, and so is the answer
    ],
)
def test_squad(answer: str, references: list[str], expected: float) -> None:
    assert value_of("exact_match", answer, *references) == expected


def test_without_normalisation_every_character_counts() -> None:
    assert value_of("exact_match", "Paris", "paris", "Paris", normalize="none") == 1.0
    assert value_of("exact_match", "Paris", "paris", normalize="none") == 0.0
    assert value_of("exact_match", "Paris ", "Paris", normalize="none") == 0.0


def test_names() -> None:
    assert answer_metric("exact_match").name == "exact_match"
    assert answer_metric("exact_match", normalize="none").name == "exact_match(normalize=none)"
    assert answer_metric("exact_match", normalize="squad").name == "exact_match"


def test_an_unknown_normalisation_is_refused() -> None:
    with pytest.raises(ValidationError, match="normalize"):
        answer_metric("exact_match", normalize="nltk")


def test_without_references_there_is_no_value() -> None:
    assert compare("exact_match", "Paris").status == "unscorable"
    assert answer_metric("exact_match").needs == {"answer", "reference"}
