"""The metrics that a first spec offers: what each needs, and what other tools call it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Offer(NamedTuple):
    """A metric of a first spec.

    Attributes:
        line: how a spec writes it.
        meaning: what it tells, as a comment.
        needs: the parts without which it has no value.
    """

    line: str
    meaning: str
    needs: frozenset[str]


def _offer(line: str, meaning: str, *needs: str) -> Offer:
    return Offer(line, meaning, frozenset(needs))


OFFERS = (
    _offer("token_f1", "words shared with the gold answer", "answer", "reference"),
    _offer("rouge_l", "words shared with the gold answer, in the same order", "answer", "reference"),
    _offer("{use: completeness, judge: overlap}", "how much of the gold answer is there", "answer", "reference"),
    _offer("{use: faithfulness, judge: overlap}", "do the contexts support the answer", "answer", "contexts"),
    _offer("{use: context_recall, judge: overlap}", "is the gold answer in the contexts", "contexts", "reference"),
    _offer("{use: answerability, by: phrases, as: answerability}", "does it decline exactly when there is no answer",
           "answer", "answerable"),
    _offer("ndcg@10", "are the relevant documents at the top", "relevant", "ranking"),
    _offer("recall@10", "the share of the relevant documents among the first ten", "relevant", "ranking"),
    _offer("precision@5", "the share of relevant documents among the first five", "relevant", "ranking"),
    _offer("rr", "1 / rank of the first relevant document", "relevant", "ranking"),
    _offer("latency@p95", "seconds that 95% of the answers stay below", "seconds"),
    _offer("cost", "US dollars for each answer", "cost"),
    _offer("error_rate", "how often the system gave no answer", "system"),
)  # fmt: skip
"""Metrics without a model, in the order in which a spec lists them."""
JUDGED = (
    _offer("{use: faithfulness, judge: strict}", "claims that the contexts support", "answer", "contexts"),
    _offer("{use: answer_relevancy, judge: strict}", "does the answer address the question", "answer"),
    _offer(
        "{use: factual_correctness, judge: strict}", "claims that agree with the gold answer", "answer", "reference"
    ),
    _offer("{use: context_precision, judge: strict}", "do the useful contexts come first", "contexts"),
)
"""Metrics that ask a language model."""
LACKS: Mapping[str, str] = {
    "answer": "answers",
    "reference": "gold answers (`reference`)",
    "contexts": "`contexts`",
    "relevant": "`relevant_doc_ids`",
    "ranking": "`context_ids`",
    "answerable": "`answerable`: true or false",
    "seconds": "`seconds`",
    "cost": "`cost`",
    "system": "a system that answers",
}
"""What the rows of a file have to have for a part; names are those of columns."""
NAMES: Mapping[str, Mapping[str, str]] = {
    "ragas": {
        "Faithfulness": "faithfulness",
        "ResponseRelevancy": "answer_relevancy",
        "LLMContextPrecision...": "context_precision",
        "LLMContextRecall": "context_recall",
        "ContextEntityRecall": "context_entity_recall",
        "FactualCorrectness": "factual_correctness",
        "NoiseSensitivity": "noise_sensitivity",
        "SemanticSimilarity": "semantic_similarity",
    },
    "deepeval": {
        "FaithfulnessMetric": "faithfulness",
        "AnswerRelevancyMetric": "answer_relevancy",
        "ContextualPrecisionMetric": "context_precision",
        "ContextualRecallMetric": "context_recall",
        "ContextualRelevancyMetric": "context_relevance",
        "GEval": "rubric",
    },
    "promptfoo": {
        "equals": "exact_match",
        "contains": "contains",
        "is-json": "is_json",
        "similar": "semantic_similarity",
        "factuality": "factual_correctness",
        "llm-rubric": "rubric",
        "context-faithfulness": "faithfulness",
        "context-recall": "context_recall",
        "context-relevance": "context_relevance",
        "answer-relevance": "answer_relevancy",
        "latency": "latency",
        "cost": "cost",
    },
}
"""What other tools call metrics, and what they are called here."""
