from __future__ import annotations

from typing import Any

import ir_measures
import pytest
from ir_measures import RBP, RR, NumRel, NumRet, P, SetAP, SetF, SetP, Success, nDCG

from rageval_spec.api.measure_objects import measure_name, measure_text
from rageval_spec.errors import UsageError
from rageval_spec.kernels import parse_measure


@pytest.mark.parametrize(
    ("measure", "canonical"),
    [
        ("nDCG@10", "ndcg@10"),
        (nDCG @ 10, "ndcg@10"),
        (nDCG(dcg="exp-log2", judged_only=True) @ 5, "ndcg(gain=exp,judged_only=true)@5"),
        (P(rel=2) @ 5, "precision(rel=2)@5"),
        (RR(judged_only=True), "rr(judged_only=true)"),
        (SetP(relative=True), "set_relative_precision"),
        (SetF(beta=0.5), "set_f(beta=0.5)"),
        (SetAP(rel=2), "set_map(rel=2)"),
        (NumRet, "num_ret"),
        (NumRet(rel=1), "num_rel_ret"),
        (NumRel, "num_rel"),
        (ir_measures.IPrec @ 0.1, "iprec@0.1"),
        (Success @ 1, "success@1"),
        (RBP(rel=1), "rbp"),
        (RBP(rel=2, p=0.5) @ 10, "rbp(p=0.5,rel=2)@10"),
    ],
    ids=str,
)
def test_a_measure_object_is_translated_by_its_meaning(measure: Any, canonical: str) -> None:
    read, by_name = (parse_measure(text) for text in (measure_text(measure), canonical))
    defaults: dict[str, Any] = {"p": 0.8, "beta": 1.0, "rel": 1}
    assert (read.name, read.cutoff) == (by_name.name, by_name.cutoff)
    assert {**defaults, **read.parameters} == {**defaults, **by_name.parameters}
    assert measure_name(measure) == str(measure)


@pytest.mark.parametrize(
    ("measure", "advice"),
    [
        (RBP, "; name the lowest relevance that counts as relevant: RBP\\(rel=1\\)"),
        (nDCG(gains={1: 3}) @ 5, ": gains can only be linear or exponential; map the relevance values"),
        (ir_measures.Accuracy @ 5, "$"),
        (ir_measures.alpha_nDCG @ 5, "$"),
    ],
    ids=str,
)
def test_a_measure_that_is_not_computed_is_refused(measure: Any, advice: str) -> None:
    with pytest.raises(UsageError, match=f"rageval-spec does not compute the ir_measures measure '.*'{advice}"):
        measure_text(measure)


def test_an_object_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^measure 5 is of type int; write a name like 'ndcg@10'$"):
        measure_text(5)
