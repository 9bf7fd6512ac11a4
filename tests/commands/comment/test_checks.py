from __future__ import annotations

from dataclasses import replace

from rageval_spec.commands.comment.checks import list_checks
from rageval_spec.commands.results import Opened
from tests.sample_evaluation import make_evaluation

EVALUATION = make_evaluation(metrics={"ndcg@10": (0.41234, 0.48765, 0.51239), "map": (0.3, 0.4, 0.5)})


def test_gates_come_first_and_worst_first() -> None:
    checks = list_checks(EVALUATION, None)
    assert [one.is_gate for one in checks] == [True] * 3 + [False] * 3
    assert [one.name[0] for one in checks[:3]] == ["❌", "⚠", "✅"]
    assert checks[0].name == "❌ `ndcg@10` · `bm25` ≥ 0.45"
    assert checks[0].reason == "❌ ndcg@10 of bm25 is 0.412, below the minimum 0.450"
    assert checks[2].reason == ""
    assert checks[3].name == "`map` · `bm25`"


def test_without_a_baseline_the_base_is_the_first_system() -> None:
    hybrid = list_checks(EVALUATION, None)[2]
    assert hybrid.list_cells()[1:] == ["0.512", "0.412 (bm25)", "+0.100 ▲ better \\[0.068, 0.132\\]", "23", "12"]
    assert list_checks(EVALUATION, None)[0].list_cells()[1:] == ["0.412", "–", "", "", ""]


def test_a_gate_on_another_system_keeps_its_comparison_beside_a_baseline() -> None:
    gate = replace(EVALUATION.gates[0], bound="drop from bm25 ≤ 0.02", gate=3, baseline="bm25")
    asked = replace(EVALUATION.comparisons[1], system="hybrid", baseline="bm25")
    evaluation = replace(EVALUATION, gates=(gate,), baselines=(asked,))
    (check, *_others) = list_checks(evaluation, Opened("main", EVALUATION))
    assert check.base == "0.412 (bm25)"


def test_the_base_of_a_gate_on_an_earlier_evaluation_is_its_number_on_the_compared_questions() -> None:
    asked = replace(EVALUATION.comparisons[1], system="bm25", baseline="main", baseline_mean=0.4567)
    evaluation = replace(EVALUATION, gates=(replace(EVALUATION.gates[0], baseline="main"),), baselines=(asked,))
    shown = {check.name: check.base for check in list_checks(evaluation, None)}
    assert "0.457 (main)" in shown.values()


def test_with_a_baseline_the_base_is_its_number() -> None:
    checks = list_checks(EVALUATION, Opened("main", make_evaluation(metrics={"ndcg@10": (0.4, 0.5, 0.6)})))
    assert [(one.head, one.base) for one in checks[:3]] == [("0.412", "0.400"), ("0.488", "0.500"), ("0.512", "0.600")]
    assert [one.base for one in checks[3:]] == ["–"] * 3


def test_datasets_and_slices_are_named_where_there_are_several() -> None:
    evaluation = make_evaluation(("golden", "other"), ("bm25",), {"map": (0.3,)})
    gate = replace(evaluation.gates[0], slice="level=easy")
    assert list_checks(replace(evaluation, gates=(gate,)), None)[0].name == "✅ `map` · `golden` · `level=easy` ≥ 0.45"
