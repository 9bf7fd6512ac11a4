"""`stopping:` is checked with the gates that it needs."""

from __future__ import annotations

import pytest

from rageval_spec.diagnostics import Diagnostic, SpecError
from rageval_spec.spec import Spec, loads

TEXT = """\
version: 1
datasets: {d: {use: jsonl, path: d.jsonl}}
systems: {a: {use: python, function: "a:b"}}
metrics: [exact_match, latency@p95, latency, {use: noise_robustness}]
stopping: %s
gates: [%s]
"""
GATE = "{metric: exact_match, min: 0.5}"


def load(stopping: str, gates: str = GATE) -> Spec:
    return loads(TEXT % (stopping, gates), check_files=False)


def told(found: Diagnostic) -> str:
    return f"{found.position.line}:{found.position.column}: {found.message}" + (f"; {found.hint}" if found.hint else "")


def faults(stopping: str, gates: str = GATE) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(stopping, gates)
    return [told(found) for found in caught.value.diagnostics]


def test_defaults() -> None:
    node = load("{when: decided}").stopping
    assert node is not None
    assert (node.when, node.confidence, node.first, node.batch) == ("decided", 0.95, 30, 20)
    assert loads(TEXT.replace("stopping: %s\n", "") % GATE, check_files=False).stopping is None


def test_impossible_settings_are_refused_where_they_stand() -> None:
    assert faults("{confidence: 0.5, first: 1, batch: 0}") == [
        "5:24: 'confidence' must be above 0.5, not the number 0.5",
        "5:36: 'first' must be at least 2, not the number 1",
        "5:46: 'batch' must be at least 1, not the number 0",
    ]
    expected = "expected a mapping, found"
    assert faults("decided") == [f"5:11: {expected} the text 'decided'; write {{when: decided}}"]
    assert faults("true") == [f"5:11: {expected} true; the known keys are when, confidence, first, batch"]
    assert faults("{confidence: 1}") == ["5:24: 'confidence' must be below 1, not the number 1"]


def test_without_gates_every_question_is_asked_so_that_a_baseline_can_be_recorded() -> None:
    (warning,) = load("{when: decided}", "").warnings
    assert warning.severity == "warning"
    assert told(warning) == (
        "5:1: the spec has no gates, so there is nothing to decide and every question is asked, despite 'stopping'"
    )


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ("{metric: latency@p95, max: 3}", "it looks at a percentile, not at a mean"),
        ("{metric: latency, max: 3}", "its values have no bounds"),
        ("{metric: noise_robustness, min: 0.5}", "its values compare questions with one another"),
        ("{metric: exact_match, baseline: main, alpha: 0.05}", "it looks at a p-value"),
        ("{metric: exact_match, min: 0.5, on: lower}", "it looks at an interval over all questions"),
    ],
)
def test_a_gate_that_needs_every_question_is_a_warning(gate: str, reason: str) -> None:
    (warning,) = load("{when: decided}", f"{GATE}, {gate}").warnings
    assert warning.severity == "warning"
    assert warning.position.line == 6
    assert warning.message.endswith(f"despite 'stopping': {reason}")


def test_the_digest_of_a_spec_without_stopping_is_that_of_earlier_versions() -> None:
    without = loads(TEXT.replace("stopping: %s\n", "") % GATE, check_files=False)
    assert load("{when: decided}").digest != without.digest
    assert load("{when: decided, first: 30}").digest == load("{when: decided}").digest


def test_without_a_system_that_answers_it_has_no_effect() -> None:
    text = """\
version: 1
datasets: {d: {use: trec, qrels: q.txt, queries: q.tsv, corpus: c.jsonl}}
systems: {a: {use: bm25}}
metrics: [ndcg@10]
gates: [{metric: ndcg@10, min: 0.5}]
stopping: {when: decided}
"""
    (warning,) = loads(text, check_files=False).warnings
    assert told(warning) == (
        "6:1: no system of the spec answers questions, so 'stopping' has no effect: all queries are evaluated; "
        "remove it"
    )
