"""Gates that their metric can never reach are found before anything runs."""

from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads

SPEC = """\
version: 1
datasets: {a: {use: jsonl, path: a.jsonl}}
systems: {bot: {use: file, path: b.jsonl}}
judges: {words: {use: overlap}}
models: {gpt: {use: chat, base_url: "http://127.0.0.1:1/v1", model: m}}
metrics:
  - ndcg@10
  - num_ret
  - error_rate
  - latency@p95
  - semantic_similarity
  - {use: faithfulness, judge: words}
gates:
  - %s
"""


def read(gate: str) -> None:
    loads(SPEC % gate, check_files=False)


@pytest.mark.parametrize(
    ("gate", "key", "message"),
    [
        (
            "{metric: faithfulness, min: 7}",
            "min",
            "'faithfulness' is never 7 or more: its values are between 0 and 1; for 7% write 0.07",
        ),
        (
            "{metric: faithfulness, min: 0.5, target: 85}",
            "target",
            "'faithfulness' is never 85 or more: its values are between 0 and 1; for 85% write 0.85",
        ),
        (
            "{metric: error_rate, max: 5}",
            "max",
            "'error_rate' is never above 5, so the gate can never fail: its values are between 0 and 1; "
            "for 5% write 0.05",
        ),
        (
            "{metric: error_rate, target: -1}",
            "target",
            "'error_rate' is never -1 or less: its values are between 0 and 1",
        ),
        ("{metric: ndcg@10, max: -0.1}", "max", "'ndcg@10' is never -0.1 or less: its values are between 0 and 1"),
        ("{metric: latency@p95, max: -3}", "max", "'latency@p95' is never -3 or less: its values are 0 or more"),
        (
            "{metric: ndcg@10, baseline: main, max_drop: 2}",
            "max_drop",
            "'ndcg@10' never drops by more than 2: its values are between 0 and 1; for 2% write 0.02; "
            "for 2% of the baseline's number write 2%",
        ),
        (
            "{metric: ndcg@10, baseline: main, max_drop: 150%}",
            "max_drop",
            "'ndcg@10' never drops by more than 100%: its values are between 0 and 1",
        ),
        (
            "{metric: ndcg@10, baseline: main, severities: {low: 5%, high: 7}}",
            "high",
            "'ndcg@10' never drops by more than 7: its values are between 0 and 1; for 7% write 0.07; "
            "for 7% of the baseline's number write 7%",
        ),
        (
            "{metric: ndcg@10, min: -0.1}",
            "min",
            "'ndcg@10' is never below -0.1, so the gate can never fail: its values are between 0 and 1",
        ),
        (
            "{metric: ndcg@10, target: -0.1}",
            "target",
            "'ndcg@10' is never below -0.1, so the gate can never warn: its values are between 0 and 1",
        ),
        (
            "{metric: error_rate, target: 3}",
            "target",
            "'error_rate' is never above 3, so the gate can never warn: its values are between 0 and 1; "
            "for 3% write 0.03",
        ),
        (
            "{metric: num_ret, baseline: main}",
            "baseline",
            "'num_ret' is a count, so it cannot be compared with a baseline; use 'min' or 'max'",
        ),
    ],
)
def test_bounds_that_no_value_can_meet_are_reported_at_their_place(gate: str, key: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(gate)
    [fault] = [one for one in caught.value.diagnostics if one.severity == "error"]
    assert str(fault).splitlines()[0].endswith(f": {message}")
    assert fault.source_line[: fault.position.column - 1].endswith(f"{key}: ")


@pytest.mark.parametrize(
    "gate",
    [
        "{metric: faithfulness, min: 1, target: 1}",
        "{metric: faithfulness, min: 0}",
        "{metric: error_rate, max: 1, target: 0}",
        "{metric: latency@p95, max: 30, target: 5}",
        "{metric: semantic_similarity, min: -0.5, baseline: main, max_drop: 1.5}",
        "{metric: num_ret, min: 100}",
        "{metric: latency@p95, baseline: main, max_drop: 150%}",
    ],
)
def test_bounds_that_values_can_meet_pass(gate: str) -> None:
    read(gate)


def test_a_rubric_is_bounded_by_its_scale() -> None:
    text = SPEC.replace("gates:", "  - {use: rubric, judge: strict, criteria: Polite?, scale: [-2, 2]}\ngates:")
    text = text.replace("overlap}}", "overlap}, strict: {use: grade, model: gpt}}")
    loads(text % "{metric: rubric, min: -1}", check_files=False)
    with pytest.raises(SpecError, match="'rubric' is never 3 or more: its values are between -2 and 2"):
        loads(text % "{metric: rubric, min: 3}", check_files=False)
