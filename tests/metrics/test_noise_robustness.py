from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.findings import Ability, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.paired_metrics import holds
from tests.metrics.judges import RuleJudge, calls, measure, metric, sample

PARIS, BONN = "It is Paris.", "It is Bonn."


def query(query_id: str, group: str, condition: str, answer: str, **parts: Any) -> Sample:
    given = {"reference": "Paris", **parts}
    return sample(query_id, answer=answer, group=group, condition=condition, **given)


PAIRS = [
    query("a1", "a", "clean", PARIS),
    query("b1", "b", "noisy", PARIS),
    query("a2", "a", "noisy", BONN),
    query("b2", "b", "clean", PARIS),
    query("c1", "c", "clean", BONN),
    query("c2", "c", "noisy", PARIS),
]


def test_hand_worked() -> None:
    built = metric("noise_robustness")
    found = measure(built, *PAIRS)
    # a is lost to noise, b is kept, c was wrong even without noise
    assert [one.value for one in found] == [0.0, 1.0, None, None, None, None]
    assert found[2].reason == "the value of group 'a' is at its query a1"
    assert found[3].reason == "the value of group 'b' is at its query b1"
    assert found[4].reason == "the answer is not right under 'clean' either"
    assert {one.status for one in found[2:]} == {"unscorable"}
    assert found[1].details == {
        "group": "b",
        "right": {"clean": 1.0, "noisy": 1.0},
        "answers": [
            {"query_id": "b1", "condition": "noisy", "right": 1.0},
            {"query_id": "b2", "condition": "clean", "right": 1.0},
        ],
    }


def test_a_note_has_the_accuracy_under_each_condition() -> None:
    (note,) = metric("noise_robustness").compute(PAIRS).written_notes
    assert note.message == "answers are right: 0.667 under 'clean', 0.667 under 'noisy', over 3 groups"


def test_accuracy_is_measured_on_the_queries_with_noise() -> None:
    built = metric("noise_robustness", mode="accuracy")
    assert built.needs == {"answer", "reference", "condition"}
    found = measure(built, *PAIRS)
    assert [one.value for one in found] == [None, 1.0, 0.0, None, None, 1.0]
    assert found[0].reason == "its condition is not 'noisy'"


def test_several_queries_of_a_condition_are_averaged() -> None:
    queries = [query("1", "a", "clean", PARIS), query("2", "a", "0.4", PARIS), query("3", "a", "0.4", BONN)]
    found = measure(metric("noise_robustness", noisy="0.4"), *queries)
    assert [one.value for one in found] == [0.5, None, None]


def test_retained_shares_are_at_most_1() -> None:
    queries = [
        query("1", "a", "clean", "Paris", reference="Paris in France"),  # F1 1/2
        query("2", "a", "noisy", "in", reference="Paris in France and more things here"),  # F1 2/8
        query("3", "b", "clean", "Paris", reference="Paris in France"),
        query("4", "b", "noisy", "Paris", reference="Paris"),
    ]
    found = measure(metric("noise_robustness", by="token_f1"), *queries)
    assert found[0].value == pytest.approx(0.5)
    assert found[2].value == 1.0


def test_incomplete_groups_and_other_conditions() -> None:
    queries = [query("1", "a", "clean", PARIS), query("2", "b", "noisy", PARIS), query("3", "c", "dirty", PARIS)]
    assert [(one.status, one.reason) for one in measure(metric("noise_robustness"), *queries)] == [
        ("unscorable", "group 'a' has no answer under 'noisy'"),
        ("unscorable", "group 'b' has no answer under 'clean'"),
        ("unscorable", "its condition 'dirty' is neither 'clean' nor 'noisy'"),
    ]
    [other] = measure(metric("noise_robustness", clean="without 'noise'"), query("1", "a", "dirty", PARIS))
    assert other.reason == """its condition 'dirty' is neither "without 'noise'" nor 'noisy'"""
    assert metric("noise_robustness").compute(queries).written_notes == ()


@pytest.mark.parametrize(
    ("by", "answer", "right"),
    [
        ("contains", "The capital is Paris, of course.", 1.0),
        ("contains", "It is Parisian.", 0.0),
        ("exact", "the paris!", 1.0),
        ("exact", "It is Paris.", 0.0),
        ("token_f1", "It is Paris.", 0.5),
        ("contains", "It is Lutetia Parisiorum.", 1.0),  # any of the references
    ],
)
def test_rules_for_correct_answers(by: str, answer: str, right: float) -> None:
    one = sample(answer=answer, references=("Paris", "Lutetia Parisiorum"), condition="noisy")
    (found,) = measure(metric("noise_robustness", by=by, mode="accuracy"), one)
    assert (found.value, found.details) == (right, {"by": by, "right": right})


def test_containing() -> None:
    assert holds("Barack Hussein Obama", ["Obama"])
    assert not holds("Barack Hussein Obama", ["Barack Obama"])
    assert holds("答案是北京市", ["北京"])
    assert not holds("anything", ["the", ""])


@pytest.mark.parametrize("abilities", [{"support"}, {"grade"}])
def test_a_judge_decides(abilities: set[Ability]) -> None:
    judge = RuleJudge(abilities=frozenset(abilities), say=lambda one: Finding(0.8 if one.answer == "a" else 0.2))
    queries = [query("1", "g", "clean", "a"), query("2", "g", "noisy", "b"), query("3", "h", "clean", "a")]
    built = metric("noise_robustness", judge, by="judge")
    found = measure(built, *queries)
    assert found[0].value == pytest.approx(0.25)
    assert [ids for _, ids in judge.asked] == [("1", "2")]  # h has no partner
    assert built.criteria() == tuple(judge.criteria)
    assert judge.criteria[0].kind in abilities


def test_estimates() -> None:
    queries = [query("1", "g", "clean", "a"), query("2", "g", "noisy", "b"), query("3", "g", "other", "c")]
    retained = metric("noise_robustness", RuleJudge(), by="judge")
    assert calls(retained.estimate(queries)) == ["support Paris > a", "support Paris > b"]
    accuracy = metric("noise_robustness", RuleJudge(), by="judge", mode="accuracy")
    assert calls(accuracy.estimate(queries)) == ["support Paris > b"]
    assert calls(metric("noise_robustness").estimate(queries)) == []


def test_one_failure_is_the_groups_failure() -> None:
    judge = RuleJudge(say=lambda one: Failed("502", "<html>") if one.answer == "b" else None)
    queries = [query("1", "g", "clean", "a"), query("2", "g", "noisy", "b")]
    found = measure(metric("noise_robustness", judge, by="judge"), *queries)
    assert (found[0].status, found[0].reason, found[0].details) == ("error", "query 2: 502", {"raw": "<html>"})
    assert found[1].status == "unscorable"


def test_empty_texts() -> None:
    queries = [query("1", "g", "clean", "Paris"), query("2", "g", "noisy", " ")]
    assert measure(metric("noise_robustness"), *queries)[0].value == 0.0
    queries = [query("1", "g", "clean", "Paris", reference=""), query("2", "g", "noisy", "Paris")]
    found = measure(metric("noise_robustness"), *queries)
    assert (found[0].status, found[0].reason) == ("unscorable", "query 1: the reference is empty")


def test_check() -> None:
    assert metric("noise_robustness", noisy="clean").check() == "'clean' and 'noisy' are both 'clean'"
    assert "this metric needs a judge" in str(metric("noise_robustness", by="judge").check())
    assert "these keys need no judge" in str(metric("noise_robustness", RuleJudge()).check())
    assert metric("noise_robustness", by="exact", noisy="0.4").name == "noise_robustness(by=exact,noisy=0.4)"
