from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import Spec, loads

TEXT = """\
version: 1
datasets: {d: {use: trec, qrels: q.txt}}
systems: {a: {use: file, path: a.run}, b: {use: file, path: b.run}}
metrics: [%s]
gates: [%s]
"""


def load(gates: str, metrics: str = "ndcg@10, {use: recall, cutoff: 5, as: found}") -> Spec:
    return loads(TEXT % (metrics, gates), check_files=False)


def fault(gates: str, metrics: str = "ndcg@10, {use: recall, cutoff: 5, as: found}") -> str:
    with pytest.raises(SpecError) as caught:
        load(gates, metrics)
    (found,) = caught.value.diagnostics
    return f"{found.message}; {found.hint}" if found.hint else found.message


def test_a_gate_can_use_another_spelling_of_a_metric() -> None:
    gates = load("{metric: ndcg_cut_10, min: 0.1}, {metric: found, min: 0.1}").gates
    assert [gate.metric for gate in gates] == ["ndcg@10", "found"]


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("{metric: ndgc@10, min: 0}", "the spec has no metric 'ndgc@10'; did you mean 'ndcg@10'?"),
        ("{metric: recall@5, min: 0}", "the spec has no metric 'recall@5'; it is called 'found' here"),
        ("{metric: map, min: 0}", "the spec has no metric 'map'; add map to 'metrics:'"),
        ("{metric: found, min: 0, system: c}", "the spec has no system 'c'"),
        ("{metric: found, min: 0, dataset: e}", "the spec has no dataset 'e'"),
        ("{metric: found}", "the gate has no bound; add 'min', 'max', 'target', 'at_least' or 'baseline'"),
        ("{metric: found, max_drop: 0.1}", "'max_drop' needs a 'baseline' to compare with; add 'baseline:'"),
        ("{metric: found, min: 0.6, max: 0.5}", "no value is at least 0.6 and at most 0.5; swap 'min' and 'max'"),
        ("{metric: found, min: 0.6, target: 0.5}", "the target 0.5 is below 'min', 0.6, so it can never warn"),
        ("{metric: found, min: 0.1, decide: certain, on: lower}", "'on: lower' has no effect with 'decide: certain'"),
        (
            "{metric: found, baseline: main, decide: certain, alpha: 0.05}",
            "'alpha' has no effect with 'decide: certain'",
        ),
        (
            "{metric: found, min: 0.1, on_inconclusive: fail}",
            "a gate without a baseline is only inconclusive with 'decide: certain'; add 'decide: certain'",
        ),
        ("{metric: found, system: a, baseline: a}", "the gate compares 'a' with itself"),
    ],
)
def test_gates_that_cannot_hold_are_refused(gate: str, message: str) -> None:
    assert fault(gate).startswith(message)


def test_a_metric_can_be_listed_only_once() -> None:
    assert fault("", "ndcg@10, ndcg_cut_10").startswith("the metric 'ndcg@10' is listed twice, first on line 4")


def test_a_baseline_that_resembles_a_system_draws_a_warning() -> None:
    text = TEXT.replace("b: {", "bm25: {") % ("ndcg@10", "{metric: ndcg@10, baseline: bm52, max_drop: 0.1}")
    (warning,) = loads(text, check_files=False).warnings
    assert (warning.severity, warning.hint) == ("warning", "did you mean 'bm25'?")
