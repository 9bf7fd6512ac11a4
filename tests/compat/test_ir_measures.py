"""The provider for ir_measures against ir_measures' own, which computes with pytrec_eval."""

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
    RR,
    Bpref,
    IPrec,
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

from rageval_spec.compat.ir_measures import RagevalProvider
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
    """Aggregates, and (query, measure, value) in an order of their own."""
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
    # ir_measures goes on to prefer its own provider.
    assert list(ir_measures.providers.registry)[-1] == "rageval_spec"


def test_an_evaluator_takes_several_runs() -> None:
    evaluator = OURS.evaluator([RR, NumRet], SMALL.qrels)
    first, second = evaluator.calc_aggregate(SMALL.run), evaluator.calc_aggregate({"q1": {"d1": 1.0}})
    assert first != second
    assert second == THEIRS.calc_aggregate([RR, NumRet], SMALL.qrels, {"q1": {"d1": 1.0}})
