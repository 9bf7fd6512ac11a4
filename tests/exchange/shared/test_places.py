from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.exchange.shared.places import Places, PlacesNode, read_relevant


def test_a_named_place_wins_and_finds_nothing_elsewhere() -> None:
    places = PlacesNode(question="$.a.b", answer="out[*].text").places
    assert places.question({"question": "no", "a": {"b": "yes"}}) == "yes"
    assert places.question('{"a": {"b": 5}}') == "5"
    assert places.question({"question": "no"}) is None
    assert places.answer({"out": [{"text": "x"}]}) == "x"
    assert places.answer({"out": [{"text": "x"}, {"text": "y"}]}) == '["x", "y"]'


def test_a_path_that_is_wrong_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\$\.\[\["):
        PlacesNode(question="$.[[")


@pytest.mark.parametrize(
    ("expected", "references"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("So.", ("So.",)),
        (["So.", "Thus."], ("So.", "Thus.")),
        ({"ground_truth": "So.", "answer": "old"}, ("So.",)),
        ({"output": "So."}, ("So.",)),
        ({"a": 1, "b": 2}, ('{"a": 1, "b": 2}',)),
    ],
)
def test_gold_answers_of_every_form(expected: Any, references: tuple[str, ...]) -> None:
    assert Places().references(expected) == references


def test_relevant_documents_are_named_in_one_of_several_mappings() -> None:
    assert read_relevant(None, {"relevant_doc_ids": [1, "b"]}, {"relevant": ["c"]}) == ("1", "b")
    assert read_relevant({"relevant": "a"}, "x") is None
