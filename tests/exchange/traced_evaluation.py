"""Evaluations of answers that were read from traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rageval_spec.data.bands import BandScale, Level
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.traces import Trace
from tests.answered_evaluation import answered, sample, value

CLAIMS = (
    {"text": "Hold the button.", "start": 0, "end": 16, "verdict": "supported", "score": 1.0, "source": 0},
    {"text": "For an hour.", "start": 17, "end": 29, "verdict": "contradicted", "score": 0.0, "source": 1,
     "reason": "the text says a second"},
)  # fmt: skip
USEFUL = (
    {"text": "first", "verdict": "relevant", "score": 1.0, "reason": "it says how"},
    {"text": "second", "score": 0.25},
)


def evaluate(
    traces: Sequence[Trace], shift: float = 0.0, details: Mapping[str, Any] | None = None, **changes: Any
) -> Evaluation:
    """An evaluation of the traces' answers: a judged metric with `details`, by default claims, and ndcg@10.

    A value without an answer is unscorable.
    """
    samples, values = [], []
    for number, trace in enumerate(traces):
        documents = trace.documents or ()
        grades = {document.doc_id: 1 for document in documents[:1]} | {"elsewhere": 1}
        more: Mapping[str, Any] = {
            "question": trace.question,
            "answer": trace.answer,
            "error": trace.error,
            "contexts": [document.text for document in documents] if documents else None,
            "context_ids": [document.doc_id for document in documents] if documents else None,
            "relevant": [{"doc_id": doc_id, "relevance": grade} for doc_id, grade in grades.items()],
            "seconds": trace.seconds,
            "trace": trace.link.dump(),
        }
        samples.append(sample(trace.id, **more))
        faithful = None if trace.answer is None else (number % 10) / 10 + shift
        judged = details or {"claims": list(CLAIMS)}
        told = {"details": judged} if faithful is not None else {"reason": "there is no answer"}
        values.append(value(trace.id, "faithfulness", faithful, **told))
        values.append(value(trace.id, "ndcg@10", 0.25))
    settled = {
        "bands": {"faithfulness": BandScale("custom", (Level("good", 0.5), Level("poor", None)))},
        "spec": {"metrics": [{"use": "faithfulness", "judge": "strict"}, {"use": "ndcg", "cutoff": 10}]},
    }
    return answered(values, samples, **(settled | changes))
