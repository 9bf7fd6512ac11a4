"""The properties of labelled answers: their numbers, and what is said of those that cannot be compared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.labelled_samples import read_samples
from rageval_spec.calibration.properties import LeftOut, Property, compare_slices, list_properties
from rageval_spec.data.labels import Label
from tests.answered_evaluation import answered, sample, value

ENGLISH, GERMAN = "It is not the one that was built.", "Das ist nicht die Brücke, die gebaut wurde."


def describe(*contents: dict[str, Any]) -> dict[str, Property | LeftOut]:
    """The properties of answers, each with these parts of its sample; `system` and `claims` are its own."""
    values, samples, labels = [], [], []
    for number, content in enumerate(contents):
        system, claims = content.pop("system", "v1"), content.pop("claims", [])
        values.append(value(f"q{number}", "faithfulness", 0.5, system, details={"claims": claims} if claims else None))
        samples.append(sample(f"q{number}", system, **content))
        labels.append(Label(f"q{number}", "faithfulness", 1.0, "ann", system=system))
    evaluation = answered(values, samples)
    joined = join_labels(evaluation, labels, "faithfulness")
    read = read_samples(evaluation, joined)
    return {one.name: one for one in (*list_properties(evaluation, joined, read), *compare_slices(joined, read))}


def numbers(found: Property | LeftOut) -> list[float]:
    assert isinstance(found, Property)
    return [*found.numbers]


def test_lengths_contexts_and_evidence_are_counted() -> None:
    claims = [{"text": "a", "score": 1.0, "source": 2}, {"text": "b", "score": 0.0, "source": 1}]
    found = describe({"answer": "w " * 30, "contexts": ["a", "b", "c"], "claims": claims}, {"answer": None})
    assert numbers(found["length"]) == [3.0, 0.0]
    assert numbers(found["contexts"]) == [3.0, 0.0]
    assert numbers(found["evidence"]) == [1.5, 1.5]


@pytest.mark.parametrize(
    ("words", "change"),
    [(200, "100 more words make"), (199, "10 more words make"), (19, "1 more word makes"), (0, "1 more word makes")],
)
def test_lengths_are_compared_by_what_the_answers_have(words: int, change: str) -> None:
    found = describe({"answer": "w " * words})["length"]
    assert isinstance(found, Property)
    assert found.change == change


def test_small_groups_and_unclear_languages_are_kept_apart() -> None:
    contents: list[dict[str, Any]] = [{"answer": ENGLISH} for _ in range(12)]
    contents += [{"answer": GERMAN} for _ in range(10)]
    contents += [{"answer": "Paris", "columns": json.dumps({"language": "fr"})} for _ in range(3)]
    contents += [{"answer": "1911", "question": "1911?"} for _ in range(2)]
    found = describe(*contents)
    assert numbers(found["language de"]) == [0.0] * 12 + [1.0] * 10 + [0.0] * 5
    assert found["language fr"] == LeftOut("language fr", "only 3 labelled items with it; 10 are needed")
    rest = found["other language"]
    assert numbers(rest) == [0.0] * 22 + [1.0] * 5
    assert isinstance(rest, Property)
    assert not rest.is_shown


def test_the_question_says_the_language_of_an_unclear_answer() -> None:
    contents: list[dict[str, Any]] = [{"answer": "1911", "question": ENGLISH} for _ in range(10)]
    contents += [{"answer": "1911", "question": GERMAN} for _ in range(10)]
    assert numbers(describe(*contents)["language de"]) == [0.0] * 10 + [1.0] * 10


def test_slices_of_all_or_few_items_are_left_out() -> None:
    contents: list[dict[str, Any]] = [
        {"slices": ["all", *(["half"] if n % 2 else []), *(["rare"] if n < 2 else [])]} for n in range(30)
    ]
    found = describe(*contents)
    assert sum(numbers(found["slice half"])) == 15
    assert found["slice all"] == LeftOut("slice all", "all labelled items have it")
    assert found["slice rare"] == LeftOut("slice rare", "only 2 labelled items with it; 10 are needed")
