from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.data.assessment import Criterion, Finding
from rageval_spec.data.sample import Sample
from rageval_spec.judging.material import explain_no_sources, fence_part, fence_parts, name_part, settle
from tests.judges.chat_samples import FAITHFULNESS, POLITENESS, PRECISION, RECALL

SAMPLE = Sample("q", "Where?", answer="In Paris.", contexts=("A.", "B."), references=("Paris.",))


def test_parts_are_fenced_with_the_question_first_and_the_answer_last() -> None:
    assert fence_parts(SAMPLE, ["answer", "reference", "question", "contexts", "answer"]).splitlines() == [
        *["<question>", '"Where?"', "</question>"],
        *['<context number="1">', '"A."', "</context>", '<context number="2">', '"B."', "</context>"],
        *["<reference_answer>", '"Paris."', "</reference_answer>"],
        *["<answer>", '"In Paris."', "</answer>"],
    ]


def test_a_part_can_have_another_tag_and_a_missing_part_is_empty() -> None:
    assert fence_part(SAMPLE, "contexts", "source").startswith('<source number="1">')
    assert fence_part(replace(SAMPLE, contexts=()), "contexts") == ""
    assert name_part("reference") == "reference answer"
    assert name_part("answer") == "answer"


@pytest.mark.parametrize(
    ("criterion", "sample", "settled"),
    [
        (FAITHFULNESS, SAMPLE, None),
        (FAITHFULNESS, replace(SAMPLE, answer=" "), Finding(None, reason="the answer makes no claim")),
        (
            FAITHFULNESS,
            replace(SAMPLE, contexts=("", " ")),
            Finding(0.0, reason="nothing can support the answer: there is no text in the contexts"),
        ),
        (RECALL, replace(SAMPLE, references=("",)), Finding(None, reason="the reference answer makes no claim")),
        (PRECISION, replace(SAMPLE, contexts=()), Finding(None, reason="there are no contexts")),
        (PRECISION, replace(SAMPLE, references=("",)), None),
        (POLITENESS, replace(SAMPLE, answer=""), None),
    ],
)
def test_empty_texts_need_no_model(criterion: Criterion, sample: Sample, settled: Finding | None) -> None:
    assert settle(criterion, sample) == settled


def test_the_reason_names_what_is_judged_and_what_is_empty() -> None:
    assert explain_no_sources(RECALL) == "nothing can support the reference answer: there is no text in the contexts"
