"""The provider for ir_measures, compared with the own provider of ir_measures, which uses pytrec_eval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ir_measures
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import (
    AP,
    ERR,
    RBP,
    RR,
    Bpref,
    IPrec,
    Judged,
    NumQ,
    NumRel,
    NumRet,
    P,
    R,
    Rprec,
    SetAP,
    SetF,
    SetP,
    SetR,
    Success,
    infAP,
    nDCG,
)

import rageval_spec
from rageval_spec.compat.ir_measures import RagevalProvider
from rageval_spec.errors import UsageError
from tests.compat.test_pytrec_eval import with_a_zero
from tests.rankings import SMALL, Collection, collections, judgements

OURS: Any = ir_measures.providers.registry["rageval_spec"]
THEIRS: Any = ir_measures.providers.registry["pytrec_eval"]

MEASURES = [
    nDCG,
    nDCG @ 10,
    nDCG(gains={1: 1, 2: 3, 3: 7}) @ 5,
    AP,
    AP(rel=2),
    AP @ 3,
    RR,
    RR(rel=3),
    P @ 1,
    P(rel=2) @ 5,
    R @ 2,
    Rprec,
    Bpref,
    Bpref(rel=2),
    infAP,
    Success @ 1,
    Success(rel=2) @ 5,
    IPrec @ 0.1,
    IPrec @ 0.55,
    SetP,
    SetP(relative=True),
    SetR,
    SetF,
    SetF(beta=0.5),
    SetF(beta=2.0),
    SetAP,
    NumRet,
    NumRet(rel=2),
    NumRel,
    NumQ,
]
JUDGED_ONLY = [nDCG(judged_only=True) @ 5, AP(judged_only=True), P(judged_only=True) @ 3, RR(judged_only=True)]


def values_of(provider: Any, measures: list[Any], qrels: Any, run: Any) -> tuple[dict[Any, float], list[Any]]:
    """The aggregates, and the sorted (query, measure, value)."""
    result = provider.calc(measures, qrels, run)
    return result.aggregated, sorted(result.per_query, key=lambda metric: (metric.query_id, str(metric.measure)))


@settings(max_examples=100)
@given(collections(judgements(lowest=0).map(with_a_zero), min_retrieved=1), st.booleans())
def test_all_measures_have_ir_measures_values(collection: Collection, judged_only: bool) -> None:
    measures = MEASURES + (JUDGED_ONLY if judged_only else [])
    assert values_of(OURS, measures, *collection) == values_of(THEIRS, measures, *collection)


def test_every_measure_that_ir_measures_leaves_to_pytrec_eval_is_tried() -> None:
    assert {measure.NAME for measure in MEASURES} == {measure.NAME for measure in THEIRS.SUPPORTED_MEASURES}
    for measure in MEASURES + JUDGED_ONLY:
        assert OURS.supports(measure)


OTHERS: dict[str, list[Any]] = {
    "judged": [Judged, Judged @ 1, Judged @ 3],
    "msmarco": [RR @ 1, RR @ 2, RR(rel=2) @ 3],
    "cwl_eval": [RBP(rel=1), RBP(rel=2, p=0.5)],
}


@settings(max_examples=60)
@given(collections(judgements(lowest=0).map(with_a_zero), min_retrieved=1))
def test_measures_that_pytrec_eval_lacks_equal_the_other_providers_values(collection: Collection) -> None:
    """Compared on runs without ties, because the providers order ties differently."""
    run = {
        query: {doc: float(place) for place, doc in enumerate(sorted(docs, key=lambda doc: (docs[doc], doc)))}
        for query, docs in collection.run.items()
    }
    for name, measures in OTHERS.items():
        other: Any = ir_measures.providers.registry[name]
        if not other.is_available():
            continue
        theirs = other.calc_aggregate(measures, collection.qrels, run)
        assert OURS.calc_aggregate(measures, collection.qrels, run) == pytest.approx(theirs, abs=1e-9), name


def test_exponential_gains_equal_gdevals() -> None:
    """gdeval prints five decimals, and accepts only numbers as query ids."""
    gdeval: Any = ir_measures.providers.registry["gdeval"]
    if not gdeval.is_available():
        pytest.skip("needs perl")
    qrels = {"1": {"a": 4, "b": 1, "c": 0, "d": 2}, "2": {"a": 1, "e": 3}}
    run = {"1": {"b": 4.0, "x": 3.0, "a": 2.0, "c": 1.0}, "2": {"e": 1.0, "x": 1.0, "a": 0.5}}
    measures = [nDCG(dcg="exp-log2") @ 3, nDCG(dcg="exp-log2") @ 10, ERR @ 3, ERR @ 10]
    assert OURS.calc_aggregate(measures, qrels, run) == pytest.approx(
        gdeval.calc_aggregate(measures, qrels, run), abs=1e-5
    )


def test_the_provider_serves_what_evaluate_has() -> None:
    measures = [RR @ 2, Judged, Judged @ 2, ERR, ERR @ 2, RBP(rel=1), RBP(rel=2, p=0.5) @ 2]
    measures += [nDCG(dcg="exp-log2"), nDCG(dcg="exp-log2", judged_only=True) @ 2, NumRel(rel=2), R(rel=2) @ 2]
    for measure in measures:
        assert OURS.supports(measure)
    ours = OURS.calc(measures, *SMALL)
    results = rageval_spec.evaluate(*SMALL, measures)
    assert results.means == evaluate_by_name(
        "rr@2", "judged", "judged@2", "err", "err@2", "rbp", "rbp(p=0.5,rel=2)@2",
        "ndcg(gain=exp)", "ndcg(gain=exp,judged_only=true)@2", "num_rel(rel=2)", "recall(rel=2)@2",
        names=list(map(str, measures)),
    )  # fmt: skip
    for query, row in results.per_query().items():
        assert row == {str(metric.measure): metric.value for metric in ours.per_query if metric.query_id == query}


def evaluate_by_name(*texts: str, names: list[str]) -> dict[str, float]:
    means = rageval_spec.evaluate(*SMALL, list(texts)).means
    return dict(zip(names, means.values(), strict=True))


OTHER_MEANINGS = [RBP, nDCG(dcg="exp-log2", gains={1: 2}), ir_measures.Accuracy @ 5, ir_measures.Compat]


@pytest.mark.parametrize("measure", OTHER_MEANINGS, ids=str)
def test_measures_with_another_meaning_here_are_not_served(measure: Any) -> None:
    assert not OURS.supports(measure)
    with pytest.raises(UsageError, match="rageval-spec does not compute the ir_measures measure"):
        rageval_spec.evaluate(*SMALL, [measure])


@pytest.mark.parametrize("provider", [OURS, RagevalProvider()])  # type: ignore[no-untyped-call]
def test_forms_of_ir_measures(provider: Any, tmp_path: Path) -> None:
    qrels, run = SMALL
    judged = [ir_measures.Qrel(q, d, r) for q, docs in qrels.items() for d, r in docs.items()]
    retrieved = [ir_measures.ScoredDoc(q, d, s) for q, docs in run.items() for d, s in docs.items()]
    expected = values_of(THEIRS, MEASURES, qrels, run)
    assert values_of(provider, MEASURES, judged, retrieved) == expected
    frames = [pl.DataFrame(rows).to_pandas() for rows in (judged, retrieved)]
    assert values_of(provider, MEASURES, *frames) == expected


def test_the_provider_is_available_and_named() -> None:
    assert OURS.is_available()
    assert OURS.NAME == "rageval_spec"
    assert "rageval-spec" in OURS.install_instructions()
    assert OURS.calc_aggregate([nDCG @ 10, AP], *SMALL) == THEIRS.calc_aggregate([nDCG @ 10, AP], *SMALL)
    # ir_measures still prefers its own provider.
    assert list(ir_measures.providers.registry)[-1] == "rageval_spec"


def test_an_evaluator_takes_several_runs() -> None:
    evaluator = OURS.evaluator([RR, NumRet], SMALL.qrels)
    first, second = evaluator.calc_aggregate(SMALL.run), evaluator.calc_aggregate({"q1": {"d1": 1.0}})
    assert first != second
    assert second == THEIRS.calc_aggregate([RR, NumRet], SMALL.qrels, {"q1": {"d1": 1.0}})
