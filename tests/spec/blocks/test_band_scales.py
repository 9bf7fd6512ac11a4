from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import Spec, loads

TEXT = """\
version: 1
datasets: {d: {use: jsonl, path: d.jsonl}}
systems: {a: {use: file, path: a.jsonl}}
metrics: [ndcg@10, token_f1, {use: faithfulness, judge: overlap, as: grounded}, 'latency@p95']
"""


def load(rest: str) -> Spec:
    return loads(TEXT + rest, check_files=False)


def fault(rest: str) -> str:
    with pytest.raises(SpecError) as caught:
        load(rest)
    (found,) = caught.value.diagnostics
    return f"{found.position.line}: {found.message}; {found.hint}"


def test_a_bare_scale_covers_the_metrics_that_it_knows() -> None:
    assert [*load("bands: industry").bands] == ["ndcg@10", "grounded"]
    assert [*load("bands: published").bands] == ["grounded"]


def test_each_metric_can_have_a_scale_of_its_own() -> None:
    bands = load("bands: {grounded: medical, token_f1: {good: 0.8, fair: 0.5}, latency@p95: {fast: 1, slow: 3}}").bands
    assert bands["grounded"].find(0.9).word == "insufficient"
    assert [level.word for level in bands["token_f1"].levels] == ["good", "fair", "too low"]
    assert [level.word for level in bands["latency@p95"].levels] == ["fast", "slow", "too high"]


def test_without_bands_there_are_none() -> None:
    assert dict(load("").bands) == {}


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("bands: {grounding: medical}", "5: the spec has no metric 'grounding'; did you mean 'grounded'?"),
        ("bands: {token_f1: medical}", "5: the scale 'medical' does not cover 'token_f1'; it covers faithfulness"),
        ("bands: {token_f1: {}}", "5: the bands of 'token_f1' are empty; write words with their bounds"),
        ("bands: {token_f1: {good: 0.5, fair: 0.5}}", "5: two bands of 'token_f1' have the same bound; give each word"),
        ("gates: [{metric: token_f1, at_least: good}]", "5: 'token_f1' has no bands, so 'good' means nothing"),
        (
            "bands: published\ngates: [{metric: grounded, at_least: great}]",
            "6: 'great' is not a level of 'grounded' that a gate can require; there are excellent, good",
        ),
        (
            "bands: published\ngates: [{metric: grounded, at_least: critical}]",
            "6: 'critical' is not a level of 'grounded' that a gate can require",
        ),
        ("diagnosis: {correctness: token_f2}", "5: the spec has no metric 'token_f2'; did you mean 'token_f1'?"),
        (
            "diagnosis: {wrong_below: 0.8}",
            "5: 'wrong_below' (0.8) is above 'right_from' (0.7); set 'right_from' too, to 0.8 or more",
        ),
        (
            "diagnosis: {right_from: 0.4}",
            "5: 'wrong_below' (0.5) is above 'right_from' (0.4); set 'wrong_below' too, to 0.4 or less",
        ),
        (
            "diagnosis: {wrong_below: 0.8, right_from: 0.6}",
            "5: 'wrong_below' (0.8) is above 'right_from' (0.6); swap the two",
        ),
    ],
)
def test_faults_have_a_line_and_advice(rest: str, message: str) -> None:
    assert fault(rest).startswith(message)


def test_a_scale_that_covers_no_metric_is_told() -> None:
    text = TEXT.replace("ndcg@10, token_f1, {use: faithfulness, judge: overlap, as: grounded}, ", "")
    with pytest.raises(SpecError, match="'medical' covers none of the spec's metrics"):
        loads(text + "bands: medical", check_files=False)


def test_an_unknown_scale_of_one_metric_is_told_once() -> None:
    with pytest.raises(SpecError) as caught:
        loads(TEXT + "bands: {token_f1: publised}", check_files=False)
    (diagnostic,) = caught.value.diagnostics
    assert "expected a mapping, published, industry" in diagnostic.message
    assert diagnostic.hint == "did you mean 'published'?"


def test_an_unknown_scale_is_told() -> None:
    with pytest.raises(SpecError, match="bands"):
        load("bands: publishd")


def test_bands_are_part_of_the_digest() -> None:
    assert load("").digest != load("bands: published").digest != load("bands: medical").digest


def test_a_fault_elsewhere_does_not_take_the_bands_of_a_gate_away() -> None:
    gate = "gates: [{metric: token_f1, at_least: good}]"
    assert fault(f"bands: {{token_f1: {{good: 0.7}}}}\n{gate}\nsamples: text").startswith("7: expected full, texts")
