"""The keys of a gate, as a spec writes them."""

from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads
from rageval_spec.spec.gates import GateNode, SeveritiesNode

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
