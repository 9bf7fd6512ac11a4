"""Criteria that several metrics share, so that no judge is asked twice."""

from __future__ import annotations

from rageval_spec.data.assessment import Criterion

QUESTIONS = 3
"""How many questions a judge writes for an answer, as in RAGAS. Metrics with the same number share the calls."""

ANSWER_IN_CONTEXTS = Criterion(
    "faithfulness",
    "support",
    "Is everything that the answer says supported by the contexts?",
    text="answer",
    against="contexts",
    shown=("question", "answer", "contexts"),
)
REFERENCE_IN_CONTEXTS = Criterion(
    "context_recall",
    "support",
    "Is everything that the reference answer says supported by the contexts?",
    text="reference",
    against="contexts",
    shown=("question", "reference", "contexts"),
)
ANSWER_IN_REFERENCE = Criterion(
    "correctness",
    "support",
    "Is everything that the answer says supported by the reference answer?",
    text="answer",
    against="reference",
    shown=("question", "answer", "reference"),
)
REFERENCE_IN_ANSWER = Criterion(
    "completeness",
    "support",
    "Does the answer say everything that the reference answer says?",
    text="reference",
    against="answer",
    shown=("question", "reference", "answer"),
)
