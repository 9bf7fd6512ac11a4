from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from rageval_spec.generation.duplicates import Questions, cut_shingles
from rageval_spec.plugin import Embeddings

ASKED = "What is the refund period for shoes that were bought online?"


class Meaning:
    """An embedding model for which questions about money have one direction and all others another."""

    def embed(self, texts: Sequence[str], role: str) -> Embeddings:
        assert role == "query"
        vectors = [[2.0, 0.0] if "money" in text or "refund" in text else [0.0, 3.0] for text in texts]
        return Embeddings(np.array(vectors, dtype=np.float32), np.zeros(len(texts), dtype=bool))


def test_other_case_marks_and_small_words_are_the_same_question() -> None:
    known = Questions()
    assert known.find(ASKED) is None
    known.add("What else is there to know?")
    known.add(ASKED)
    found = known.find("what is the refund period, for the shoes that were bought online")
    assert found is not None
    assert found.number == 1
    assert found.likeness.endswith("% of the shingles")


def test_another_thing_in_the_same_sentence_is_another_question() -> None:
    known = Questions()
    known.add("What is the refund period for shoes?")
    assert known.find("What is the refund period for hats?") is None


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("How many litres of water per minute does the Ember pump deliver?",
         "How many litres of water per minute does the Nimbus pump deliver?", False),
        ("What is new in version 3.11 of the database server for clusters?",
         "What is new in version 3.12 of the database server for clusters?", False),
        ("How many litres of water per minute does the Ember pump deliver?",
         "How many liters of water per minute does the Ember pump deliver", True),
        ("How many litres of water per minute does the Ember pump deliver?",
         "How many litres of water per minute does the new Ember pump deliver?", True),
    ],
)  # fmt: skip
def test_only_a_word_of_its_own_on_each_side_tells_questions_apart(first: str, second: str, is_same: bool) -> None:
    known = Questions()
    known.add(first)
    assert (known.find(second) is not None) == is_same


def test_with_a_model_the_same_in_other_words_is_found() -> None:
    known = Questions(cast(Any, Meaning()))
    known.add("How tall is the tower?")
    known.add(ASKED)
    found = known.find("When do I get my money back?")
    assert found is not None
    assert (found.number, found.likeness) == (1, "cosine 1.00")
    assert known.find("Who built the bridge over the river in the north?") == (0, "cosine 1.00")


def test_empty_and_short_texts_are_compared() -> None:
    assert cut_shingles("") != frozenset()
    known = Questions()
    known.add("a")
    assert known.find("A?") is not None
    assert known.find("b") is None
