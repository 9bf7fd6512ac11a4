""""""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.findings import Failed
from rageval_spec.data.outcomes import write_notes
from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.reference_metrics import (
    Comparer,
    LexicalMetric,
    compare_meanings,
    exact_match,
    normalize_answer,
    token_f1,
    tokenize_answer,
)
from rageval_spec.plugin import Context, MetricInfo, MetricNode
from tests.metrics.judges import TableModel


class Echo(LexicalMetric[MetricNode]):
    """1 if an answer equals one of its references, else 0."""

    node_type = MetricNode
    info = MetricInfo("Echo.", "", (), "")
    asked = 0

    def comparer(self) -> Comparer:
        self.asked += 1

        def compare(answer: str, references: Sequence[str]) -> float:
            return float(answer in references)

        return compare


def test_empty_references_are_left_out_and_without_any_there_is_no_value() -> None:
    metric = Echo(MetricNode(use="echo"), Context("echo"))
    samples = [
        Sample("q1", "?", answer="a", references=(" ", "a")),
        Sample("q2", "?", answer="", references=("", "\n")),
        Sample("q3", "?", answer="", references=("a",)),
    ]
    found = metric.compute(samples).measurements
    assert [(one.value, one.reason) for one in found] == [(1.0, None), (None, "the reference is empty"), (0.0, None)]
    assert metric.usable_references(samples[0]) == ["a"]
    assert metric.asked == 1


def test_preparing_builds_the_comparer_and_imports_its_libraries() -> None:
    metric = Echo(MetricNode(use="echo"), Context("echo"))
    metric.prepare()
    assert metric.asked == 1


ASCII = st.text(string.ascii_letters[:6] + " .,'-$\t\nthe", max_size=30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Eiffel Tower.", "eiffel tower"),
        ("  an\tapple\n a  day ", "apple day"),
        ("U.S.A. (1945-1950)", "usa 19451950"),
        ("$1,000 + tax", "1000 tax"),
        ("theatre, another", "theatre another"),  # articles are whole words
        ("a-the", "athe"),  # punctuation is removed first, so the article is found
        ("« L’Œuvre » — 1886…", "lœuvre 1886"),
        ("¿Qué?", "qué"),
        ("cafe\u0301", "café"),  # accents are composed
        ("ÉCOLE", "école"),
        ("x² is not x2; 5 €", "x² is not x2 5 €"),
        ("…", ""),
        ("", ""),
    ],
)
def test_case_punctuation_and_articles_are_removed(text: str, expected: str) -> None:
    assert normalize_answer(text) == expected


def test_scripts_without_spaces_are_compared_by_character() -> None:
    assert tokenize_answer("東京タワー、1958年") == ["東", "京", "タ", "ワ", "ー", "1958", "年"]
    assert tokenize_answer("서울 타워") == ["서울", "타워"]
    assert token_f1("東京都", ["東京"]) == pytest.approx(0.8)


def test_exact_match_takes_any_reference() -> None:
    assert exact_match("the Beatles!", ["The Rolling Stones", "Beatles"])
    assert not exact_match("the Beatles and others", ["Beatles"])
    assert exact_match("", ["..."])
    assert not exact_match("", ["Beatles"])


def test_token_f1_worked_by_hand() -> None:
    # answer: paris is lovely lovely; reference: lovely paris. 2 common, precision 2/4, recall 2/2: 2/3
    assert token_f1("Paris is lovely, lovely", ["lovely Paris"]) == pytest.approx(2 / 3)
    # a word counts as often as both texts have it: lovely x 2, precision 2/2, recall 2/3: 4/5
    assert token_f1("lovely lovely", ["lovely lovely lovely"]) == pytest.approx(0.8)
    assert token_f1("Berlin", ["Paris", "the Berlin"]) == 1.0
    assert token_f1("Rome", ["Paris"]) == 0.0


def test_texts_without_words() -> None:
    assert token_f1("", [""]) == 1.0
    assert token_f1("the", ["..."]) == 1.0
    assert token_f1("", ["Paris"]) == 0.0
    assert token_f1("Paris", [""]) == 0.0


def test_without_a_reference_there_is_no_value() -> None:
    with pytest.raises(ValueError, match="at least one reference"):
        token_f1("Paris", [])
    with pytest.raises(ValueError, match="at least one reference"):
        exact_match("Paris", [])


def slow_normalize(text: str) -> str:
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def slow_f1(answer: str, reference: str) -> float:
    said, wanted = slow_normalize(answer).split(), slow_normalize(reference).split()
    if not said or not wanted:
        return float(said == wanted)
    left = Counter(wanted)
    common = 0
    for word in said:
        if left[word] > 0:
            left[word] -= 1
            common += 1
    return 2 * common / (len(said) + len(wanted))


@given(ASCII, st.lists(ASCII, min_size=1, max_size=3))
def test_ascii_texts_follow_the_rule_of_squad(answer: str, references: list[str]) -> None:
    assert normalize_answer(answer) == slow_normalize(answer)
    assert exact_match(answer, references) == (slow_normalize(answer) in map(slow_normalize, references))
    assert token_f1(answer, references) == pytest.approx(max(slow_f1(answer, reference) for reference in references))


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_has_a_value(answer: str, reference: str) -> None:
    value = token_f1(answer, [reference])
    assert 0.0 <= value <= 1.0
    assert value == pytest.approx(token_f1(reference, [answer]))
    assert token_f1(answer, [answer]) == 1.0
    assert exact_match(answer, [answer])


def test_all_texts_are_embedded_in_one_call_and_each_only_once() -> None:
    model = TableModel({"x": [1, 0], "y": [0, 2], "xy": [3, 3], "none": [0, 0]}, cut=["xy"])
    pairs = [("x", "y"), ("x", "xy"), ("x", "x"), ("none", "x"), ("y", "none")]
    cosines, notes = compare_meanings(model, pairs, "query")
    assert model.asked == [("query", ("x", "y", "xy", "none"))]
    assert cosines[:3] == pytest.approx([0.0, math.sqrt(0.5), 1.0])
    assert cosines[3:] == [Failed("minilm gives a vector of zeros for 'none'")] * 2
    (note,) = write_notes(notes)
    assert (note.code, note.count) == ("texts_truncated", 1)
    assert note.message == "1 of 4 texts is longer than minilm reads and was cut"


def test_without_pairs_no_model_is_needed() -> None:
    model = TableModel({})
    assert compare_meanings(model, [], "query") == ([], ())
    assert model.asked == []


@given(st.lists(st.lists(st.integers(-5, 5), min_size=3, max_size=3), min_size=2, max_size=6))
def test_cosines_equal_numpys(rows: list[list[int]]) -> None:
    vectors = {str(place): [float(number) for number in row] for place, row in enumerate(rows)}
    pairs = [(first, second) for first in vectors for second in vectors]
    for (first, second), cosine in zip(pairs, compare_meanings(TableModel(vectors), pairs, "document")[0], strict=True):
        a, b = np.array(vectors[first]), np.array(vectors[second])
        if not a.any() or not b.any():
            assert isinstance(cosine, Failed)
        else:
            assert cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-6)
