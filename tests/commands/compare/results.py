"""Two evaluations to compare: one question broke, one was fixed, one got worse, one has only another answer."""

from __future__ import annotations

from typing import Any

from rageval_spec.data.datasets import Fingerprint, Fingerprints
from rageval_spec.data.evaluation import Aggregate, Evaluation
from tests.answered_evaluation import answered, sample, value

BEFORE = {"q1": 0.9, "q2": 0.2, "q3": 0.9, "q4": 0.6, "q5": 0.7}
AFTER = {"q1": 0.1, "q2": 0.8, "q3": 0.8, "q4": 0.6, "q5": 0.7}
_ANSWERS = {"q1": "It is red.", "q2": "No idea.", "q3": "One, two.", "q4": "The tower is high.", "q5": "Five."}
_CHANGED = {**_ANSWERS, "q1": "It is blue.", "q4": "The tower is tall."}


def evaluation(numbers: dict[str, float], system: str = "v1", **changes: Any) -> Evaluation:
    """An evaluation with one metric and a latency that is always the same; `AFTER` has other answers than `BEFORE`."""
    answers = _CHANGED if numbers is AFTER else _ANSWERS
    rows = [value(query, "token_f1", number, system) for query, number in numbers.items()]
    rows += [value(query, "latency", 1.0, system) for query in numbers]
    samples = [sample(query, system, answer=answers[query]) for query in numbers]
    mean = sum(numbers.values()) / len(numbers)
    aggregates = (
        Aggregate("golden", system, "token_f1", mean, None, len(numbers), len(numbers)),
        Aggregate("golden", system, "latency", 1.0, None, len(numbers), len(numbers), "p95"),
    )
    prints = {query: Fingerprint("a", "b", None) for query in numbers}
    settled: dict[str, Any] = {
        "aggregates": aggregates,
        "load_fingerprints": lambda: Fingerprints({"golden": prints}),
        "spec": {"metrics": [{"use": "token_f1"}, {"use": "latency", "percentile": 95}]},
    }
    return answered(rows, samples, **(settled | changes))
