""""""

from __future__ import annotations

from typing import get_args

import pytest

from rageval_spec.data.samples import Part, Sample
from rageval_spec.dataclass import replace


@pytest.mark.parametrize("part", get_args(Part))
def test_a_part_without_a_value_is_lacking(part: Part) -> None:
    assert Sample("q1", "Why?").lacks(part)


def test_an_empty_answer_and_no_contexts_are_known() -> None:
    sample = Sample("q1", "Why?", answer="", contexts=(), answerable=False)
    assert not sample.lacks("answer")
    assert not sample.lacks("contexts")
    assert not sample.lacks("answerable")
    assert not sample.lacks("context_ids")
    assert replace(sample, contexts=("a text",)).lacks("context_ids")


def test_the_first_gold_answer_is_the_reference() -> None:
    sample = Sample("q1", "Why?", references=("So.", "Thus."))
    assert sample.reference == "So."
    assert not sample.lacks("reference")
    assert Sample("q1", "Why?").reference is None
