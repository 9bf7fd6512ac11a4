"""The keys of a gate, as a spec writes them.

Gates that their metric can never reach are found before anything runs.
"""

from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import Spec, loads
from rageval_spec.spec.blocks.gates import GateNode, SeveritiesNode

SPEC = """\
version: 1
datasets: {a: {use: jsonl, path: a.jsonl}}
systems: {bot: {use: file, path: b.jsonl}}
metrics: [token_f1]
gates:
  - {metric: token_f1, baseline: main, %s}
"""


def complain(keys: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loads(SPEC % keys, check_files=False)
    return [str(fault).splitlines()[0] for fault in caught.value.diagnostics]


def test_keys_that_older_versions_lack_are_left_out_of_the_content_of_a_gate_without_them() -> None:
    content = GateNode(metric="token_f1", max_drop=0.02).content()
    assert content.keys().isdisjoint({"slice", "decide", "accept_changes", "severities"})
    assert GateNode(metric="token_f1", baseline="main", max_drop="5%").content()["max_drop"] == "5%"


def test_severities_are_read_from_the_least_to_the_worst() -> None:
    drops = SeveritiesNode(high=0.3, low="5%").drops
    assert {word: str(drop) for word, drop in drops.items()} == {"low": "5%", "high": "0.3"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "max_drop: 5",
            "6:50: 'token_f1' never drops by more than 5: its values are between 0 and 1; for 5% write 0.05",
        ),
        ("max_drop: -1", "'max_drop': must be a number of 0 or more such as 0.02, or a share of the baseline's number"),
        (
            "max_drop: many",
            "must be a number of 0 or more such as 0.02, or a share of the baseline's number such as 5%",
        ),
        ("accept_changes: [reference]", "did you mean 'references'?"),
        ("accept_changes: [corpus]", "references"),
        ("severities: {}", "no severity has a size"),
        ("severities: {low: 10%, high: 5%}", "'high' severity (5%) must begin above 'low' severity (10%)"),
        ("severities: {hihg: 5%}", "did you mean 'high'?"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write_instead(keys: str, message: str) -> None:
    assert any(message in fault for fault in complain(keys)), complain(keys)


def test_shares_and_amounts_are_accepted() -> None:
    for keys in ("max_drop: 5%", "max_drop: 0.02", "max_drop: 0", "severities: {low: 5%, medium: 10%, high: 15%}"):
        loads(SPEC % keys, check_files=False)


def test_keys_of_a_comparison_need_a_baseline() -> None:
    text = (SPEC % "severities: {low: 5%}, accept_changes: [references]").replace("baseline: main, ", "min: 0.1, ")
    with pytest.raises(SpecError) as caught:
        loads(text, check_files=False)
    told = str(caught.value)
    assert "'severities' needs a 'baseline' to compare with" in told
    assert "'accept_changes' needs a 'baseline' to compare with" in told


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
            "a gate without a baseline is only inconclusive with 'decide: certain' or 'on: lower | upper'; add "
            "'decide: certain'",
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


GATED_SPEC = """\
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
    loads(GATED_SPEC % gate, check_files=False)


@pytest.mark.parametrize(
    ("gate", "key", "message"),
    [
        (
            "{metric: faithfulness, min: 7}",
            "min",
            "'faithfulness' is never 7 or more: its values are between 0 and 1; for 7% write 0.07 [wrong-gate]",
        ),
        (
            "{metric: faithfulness, min: 0.5, target: 85}",
            "target",
            "'faithfulness' is never 85 or more: its values are between 0 and 1; for 85% write 0.85 [wrong-gate]",
        ),
        (
            "{metric: error_rate, max: 5}",
            "max",
            "'error_rate' is never above 5, so the gate can never fail: its values are between 0 and 1; "
            "for 5% write 0.05 [wrong-gate]",
        ),
        (
            "{metric: error_rate, target: -1}",
            "target",
            "'error_rate' is never -1 or less: its values are between 0 and 1 [wrong-gate]",
        ),
        (
            "{metric: ndcg@10, max: -0.1}",
            "max",
            "'ndcg@10' is never -0.1 or less: its values are between 0 and 1 [wrong-gate]",
        ),
        (
            "{metric: latency@p95, max: -3}",
            "max",
            "'latency@p95' is never -3 or less: its values are 0 or more [wrong-gate]",
        ),
        (
            "{metric: ndcg@10, baseline: main, max_drop: 2}",
            "max_drop",
            "'ndcg@10' never drops by more than 2: its values are between 0 and 1; for 2% write 0.02; "
            "for 2% of the baseline's number write 2% [wrong-gate]",
        ),
        (
            "{metric: ndcg@10, baseline: main, max_drop: 150%}",
            "max_drop",
            "'ndcg@10' never drops by more than 100%: its values are between 0 and 1 [wrong-gate]",
        ),
        (
            "{metric: ndcg@10, baseline: main, severities: {low: 5%, high: 7}}",
            "high",
            "'ndcg@10' never drops by more than 7: its values are between 0 and 1; for 7% write 0.07; "
            "for 7% of the baseline's number write 7% [wrong-gate]",
        ),
        (
            "{metric: ndcg@10, min: -0.1}",
            "min",
            "'ndcg@10' is never below -0.1, so the gate can never fail: its values are between 0 and 1 [wrong-gate]",
        ),
        (
            "{metric: ndcg@10, target: -0.1}",
            "target",
            "'ndcg@10' is never below -0.1, so the gate can never warn: its values are between 0 and 1 [wrong-gate]",
        ),
        (
            "{metric: error_rate, target: 3}",
            "target",
            "'error_rate' is never above 3, so the gate can never warn: its values are between 0 and 1; "
            "for 3% write 0.03 [wrong-gate]",
        ),
        (
            "{metric: num_ret, baseline: main}",
            "baseline",
            "'num_ret' is a count, so it cannot be compared with a baseline; use 'min' or 'max' [wrong-gate]",
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
    text = GATED_SPEC.replace("gates:", "  - {use: rubric, judge: strict, criteria: Polite?, scale: [-2, 2]}\ngates:")
    text = text.replace("overlap}}", "overlap}, strict: {use: grade, model: gpt}}")
    loads(text % "{metric: rubric, min: -1}", check_files=False)
    with pytest.raises(SpecError, match="'rubric' is never 3 or more: its values are between -2 and 2"):
        loads(text % "{metric: rubric, min: 3}", check_files=False)


SHOWN = """\
version: 1
datasets: {a: {use: jsonl, path: a.jsonl}}
systems: {bot: {use: file, path: b.jsonl}}
metrics: [{use: %s, show_as: percent}]
"""


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("latency", "'latency' cannot be shown as a percentage: its values are in seconds"),
        ("latency, percentile: 95", "'latency@p95' cannot be shown as a percentage: its values are in seconds"),
        ("tokens", "'tokens' cannot be shown as a percentage: its values are in tokens"),
        ("cost", "'cost' cannot be shown as a percentage: its values are in US dollars"),
        ("num_ret", "'num_ret' cannot be shown as a percentage: its number is a sum"),
        ("target_rank", "'target_rank' cannot be shown as a percentage: its values are 1 or more"),
        ("semantic_similarity, model: m",
         "'semantic_similarity' cannot be shown as a percentage: its values are between -1 and 1"),
        ("python, function: 'math:sqrt'", "'sqrt' cannot be shown as a percentage: its values can be any number"),
    ],
)  # fmt: skip
def test_only_shares_are_shown_as_percentages(metric: str, reason: str) -> None:
    with pytest.raises(SpecError) as caught:
        loads(SHOWN % metric, check_files=False)
    told = [str(fault).splitlines()[0] for fault in caught.value.diagnostics]
    hint = "remove 'show_as'; only a metric whose values are from 0 to 1 can have it [wrong-value]"
    assert any(line.endswith(f"{reason}; {hint}") for line in told), told
    assert all("show_as" not in line or reason in line for line in told)


@pytest.mark.parametrize("metric", ["recall, cutoff: 5", "ndcg, cutoff: 10", "token_f1", "error_rate", "exact_match"])
def test_shares_can_be_shown_as_percentages(metric: str) -> None:
    assert loads(SHOWN % metric, check_files=False).metrics[0].node.show_as == "percent"
