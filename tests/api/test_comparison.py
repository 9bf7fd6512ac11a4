"""Paired comparisons and average overlap, checked by hand, against scipy, and against a naive reference."""

from __future__ import annotations

from itertools import product
from math import sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import Comparisons, average_overlap, compare, evaluate
from rageval_spec.errors import DataError, UsageError
from tests.rankings import SCORES, Qrels, Run, rankings
from tests.reference.ranking import as_float32

QUERIES = [f"q{number}" for number in range(6)]
QRELS: Qrels = {query: {"right": 1} for query in QUERIES}


def run_with(ranks: list[int]) -> Run:
    """A run with the relevant document at these ranks, one rank for each query."""
    return {
        query: {"right": float(10 - rank), **{f"d{other}": float(10 - other) for other in range(1, 5) if other != rank}}
        for query, rank in zip(QUERIES, ranks, strict=False)
    }


# Reciprocal ranks: 1, 1/2, 1, 1/4, 1/2, 1 and 1, 1, 1/2, 1, 1, 1; differences 0, 1/2, -1/2, 3/4, 1/2, 0.
OLD, NEW = run_with([1, 2, 1, 4, 2, 1]), run_with([1, 1, 2, 1, 1, 1])
DIFFERENCES = [0.0, 0.5, -0.5, 0.75, 0.5, 0.0]


def test_by_hand() -> None:
    comparisons = compare(QRELS, {"old": OLD, "new": NEW}, ["rr", "P@1"])
    assert comparisons.test == "permutation"
    assert comparisons.means == {
        "old": {"rr": pytest.approx(4.25 / 6), "P@1": 0.5},
        "new": {"rr": pytest.approx(5.5 / 6), "P@1": pytest.approx(5 / 6)},
    }
    rr, precision = comparisons
    assert comparisons.pairs == (rr, precision)
    assert (rr.measure, rr.first, rr.second, rr.queries) == ("rr", "old", "new", 6)
    assert (rr.wins, rr.ties, rr.losses) == (3, 2, 1)
    assert rr.difference == pytest.approx(1.25 / 6)
    # Four differences are not 0: of 16 patterns of signs, 4 have a sum of at least 1.25, and as many at most -1.25.
    extreme = sum(abs(a * 0.5 + b * 0.5 + c * 0.75 + d * 0.5) >= 1.25 for a, b, c, d in product((1, -1), repeat=4))
    assert (extreme, rr.p_value) == (8, 8 / 16)
    # P@1 differs by 1, -1, 1, 1: of 16 patterns, 10 have a sum of at least 2 or at most -2.
    assert precision.p_value == 10 / 16
    assert rr.p_adjusted == 1.0
    assert precision.p_adjusted == 1.0
    deviation = sqrt(sum((d - 1.25 / 6) ** 2 for d in DIFFERENCES) / 5)
    assert rr.effect_size == pytest.approx(1.25 / 6 / deviation)
    assert rr.low is not None and rr.high is not None
    assert rr.low < rr.difference < rr.high


def differing_systems(seed: int, systems: int = 3, queries: int = 40) -> tuple[Qrels, dict[str, Run]]:
    generator = np.random.default_rng(seed)
    ids = [f"d{number}" for number in range(30)]
    qrels: Qrels = {}
    runs: dict[str, Run] = {f"s{system}": {} for system in range(systems)}
    for query in range(queries):
        grades = generator.integers(0, 3, len(ids))
        qrels[f"q{query}"] = dict(zip(ids, grades.tolist(), strict=True))
        for quality, run in enumerate(runs.values()):
            scores = generator.normal(grades * 0.25 * quality, 1.0)
            run[f"q{query}"] = dict(zip(ids, scores.tolist(), strict=True))
    return qrels, runs


def values_of(qrels: Qrels, run: Run, measure: str) -> Any:
    return evaluate(qrels, run, measure).to_polars()[measure].to_numpy()


@pytest.mark.parametrize("seed", range(3))
def test_the_t_test_equals_scipys(seed: int) -> None:
    qrels, runs = differing_systems(seed)
    for pair in compare(qrels, runs, ["ndcg@10", "map", "P@5"], test="t", resamples=100):
        first, second = (values_of(qrels, runs[system], pair.measure) for system in (pair.first, pair.second))
        assert pair.p_value == pytest.approx(scipy.stats.ttest_rel(second, first).pvalue, rel=1e-10)
        assert pair.difference == pytest.approx((second - first).mean(), rel=1e-12)
        assert pair.effect_size == pytest.approx(pair.difference / (second - first).std(ddof=1), rel=1e-10)


def test_the_exact_permutation_test_equals_scipys() -> None:
    qrels, runs = differing_systems(7, queries=9)
    for pair in compare(qrels, runs, ["ndcg@10", "map"], resamples=100):
        first, second = (values_of(qrels, runs[system], pair.measure) for system in (pair.first, pair.second))
        expected = scipy.stats.permutation_test(
            (second - first,), lambda x, axis: x.mean(axis), permutation_type="samples", vectorized=True
        )
        assert pair.p_value == pytest.approx(expected.pvalue, rel=1e-12)


def test_the_sampled_permutation_test_is_near_scipys() -> None:
    qrels, runs = differing_systems(1, systems=2, queries=40)
    [pair] = compare(qrels, runs, "ndcg@10", permutations=50_000)
    first, second = (values_of(qrels, run, "ndcg@10") for run in runs.values())
    expected = scipy.stats.permutation_test(
        (second - first,), lambda x, axis: x.mean(axis), permutation_type="samples", n_resamples=50_000, rng=1
    )
    assert pair.p_value == pytest.approx(expected.pvalue, abs=0.01)


def test_the_interval_is_near_scipys() -> None:
    qrels, runs = differing_systems(2, systems=2)
    [pair] = compare(qrels, runs, "ndcg@10", resamples=50_000, confidence=0.9)
    first, second = (values_of(qrels, run, "ndcg@10") for run in runs.values())
    expected = scipy.stats.bootstrap(
        (second - first,), np.mean, n_resamples=50_000, confidence_level=0.9, method="BCa", rng=1
    ).confidence_interval
    assert (pair.low, pair.high) == pytest.approx((expected.low, expected.high), abs=2e-3)


def holm(p_values: list[float]) -> list[float]:
    adjusted, bound = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        bound = max(bound, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = bound
    return adjusted


@pytest.mark.parametrize("test", ["permutation", "t"])
def test_holms_correction_is_over_all_comparisons_of_the_call(test: Any) -> None:
    qrels, runs = differing_systems(3, systems=4)
    pairs = list(compare(qrels, runs, ["ndcg@10", "map"], test=test, resamples=100))
    assert len(pairs) == 12
    p_values = [pair.p_value for pair in pairs if pair.p_value is not None]
    assert [pair.p_adjusted for pair in pairs] == pytest.approx(holm(p_values))
    assert any(p < 0.05 for p in p_values)


def test_pairs_and_their_order() -> None:
    qrels, runs = differing_systems(4, queries=5)
    names = [(pair.first, pair.second, pair.measure) for pair in compare(qrels, runs, ["map", "rr"], resamples=100)]
    pairs = [("s0", "s1"), ("s0", "s2"), ("s1", "s2")]
    assert names == [(*pair, measure) for pair in pairs for measure in ("map", "rr")]
    against = compare(qrels, runs, "map", baseline="s1", resamples=100)
    assert [(pair.first, pair.second) for pair in against] == [("s1", "s0"), ("s1", "s2")]
    unnamed = compare(qrels, {"": runs["s0"], **runs}, "map", baseline="", resamples=100)
    assert [pair.second for pair in unnamed] == ["s0", "s1", "s2"]
    assert next(iter(unnamed)).p_value == 1.0


def test_a_measure_named_twice_is_compared_once() -> None:
    assert len(list(compare(QRELS, {"old": OLD, "new": NEW}, ["rr", "map", "rr"]))) == 2


def test_only_queries_that_both_have_are_compared() -> None:
    part = {query: NEW[query] for query in QUERIES[:3]}
    [pair] = compare(QRELS, {"old": OLD, "new": part}, "rr")
    assert (pair.queries, pair.difference, pair.wins, pair.ties, pair.losses) == (3, 0.0, 1, 1, 1)
    [zeroed] = compare(QRELS, {"old": OLD, "new": part}, "rr", missing="zero")
    assert (zeroed.queries, zeroed.losses) == (6, 4)
    assert zeroed.difference == pytest.approx((0.5 - 0.5 - 0.25 - 0.5 - 1) / 6)


def test_settings_of_evaluate_are_accepted() -> None:
    first, second = {"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1.0, "b": 0.5}}
    qrels = {"q": {"a": 2, "b": 1}}
    [pair] = compare(qrels, {"one": first, "two": second}, "rr", relevance_level=2)
    assert pair.difference == 0.5
    [same] = compare(qrels, {"one": first, "two": second}, "rr", relevance_level=2, profile="input")
    assert same.difference == 0.0
    with pytest.raises(TypeError, match="relevance"):
        compare(qrels, {"one": first, "two": second}, "rr", relevance=2)


def test_files_and_frames_are_runs_too(tmp_path: Path) -> None:
    rows = [(query, doc, score) for query, docs in NEW.items() for doc, score in docs.items()]
    path = tmp_path / "new.run"
    path.write_text("".join(f"{query} Q0 {doc} 0 {score!r} tag\n" for query, doc, score in rows))
    frame = pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")
    expected = compare(QRELS, {"old": OLD, "new": NEW}, ["rr"])
    for new in (path, frame):
        assert compare(QRELS, MappingProxyType({"old": OLD, "new": new}), ["rr"]) == expected


def test_one_query_has_a_difference_but_no_test() -> None:
    runs = {"one": {"q0": OLD["q1"]}, "two": {"q0": NEW["q0"]}}
    [pair] = compare(QRELS, runs, "rr", test="t")
    assert (pair.difference, pair.wins, pair.queries) == (0.5, 1, 1)
    assert (pair.low, pair.high, pair.p_value, pair.p_adjusted, pair.effect_size) == (None,) * 5
    [permuted] = compare(QRELS, runs, "rr")
    assert permuted.p_value == 1.0


def test_equal_differences_have_no_spread() -> None:
    runs = {"old": run_with([2] * 6), "new": run_with([1] * 6)}
    [pair] = compare(QRELS, runs, "rr", test="t")
    assert (pair.difference, pair.low, pair.high) == (0.5, 0.5, 0.5)
    assert (pair.p_value, pair.p_adjusted, pair.effect_size) == (None, None, None)
    [permuted] = compare(QRELS, runs, "rr")
    assert permuted.p_value == 2 / 2**6
    [same] = compare(QRELS, {"old": OLD, "again": OLD}, "rr", test="t")
    assert (same.difference, same.p_value, same.effect_size, same.ties) == (0.0, 1.0, 0.0, 6)


def test_undefined_p_values_do_not_count_in_the_correction() -> None:
    """P@1 differs by 1 on every query, for which the t-test is undefined."""
    qrels, runs = differing_systems(5, systems=2, queries=12)
    for run, rank in zip(runs.values(), (2, 1), strict=True):
        for query, docs in run.items():
            docs["top"] = 100.0 - rank
            docs["other"] = 100.0 - (3 - rank)
            qrels[query]["top"] = 2
            qrels[query]["other"] = 0
    pairs = {pair.measure: pair for pair in compare(qrels, runs, ["P@1", "map"], test="t", resamples=100)}
    assert (pairs["P@1"].p_value, pairs["P@1"].p_adjusted) == (None, None)
    assert pairs["map"].p_adjusted == pairs["map"].p_value


def test_the_same_seed_gives_the_same_numbers() -> None:
    qrels, runs = differing_systems(6)
    first = compare(qrels, runs, ["map", "P@5"], resamples=500, permutations=500)
    assert compare(qrels, runs, ["map", "P@5"], resamples=500, permutations=500, threads=1) == first
    other = compare(qrels, runs, ["map", "P@5"], resamples=500, permutations=500, seed=1)
    assert [pair.low for pair in other] != [pair.low for pair in first]
    assert [pair.difference for pair in other] == [pair.difference for pair in first]


def test_as_a_frame() -> None:
    comparisons = compare(QRELS, {"old": OLD, "new": NEW}, ["rr", "P@1"])
    frame = comparisons.to_polars()
    assert frame.schema == {
        "measure": pl.String,
        "first": pl.String,
        "second": pl.String,
        "difference": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "p_value": pl.Float64,
        "p_adjusted": pl.Float64,
        "effect_size": pl.Float64,
        "wins": pl.Int64,
        "ties": pl.Int64,
        "losses": pl.Int64,
        "queries": pl.Int64,
    }
    assert frame.rows(named=True)[1]["measure"] == "P@1"
    assert frame["p_value"].to_list() == [pair.p_value for pair in comparisons]
    one = compare(QRELS, {"one": {"q0": {}}, "two": {"q0": {}}}, "rr", test="t").to_polars()
    assert one.schema == frame.schema
    assert Comparisons({}, (), "t").to_polars().schema == frame.schema


BOTH: dict[str, Any] = {"old": OLD, "new": NEW}


@pytest.mark.parametrize(
    ("runs", "measures", "options", "message"),
    [
        ({}, "rr", {}, "a comparison takes at least two runs, not 0"),
        ({"old": OLD}, "rr", {}, "a comparison takes at least two runs, not 1"),
        (BOTH, "rr", {"baseline": "older"}, "the baseline 'older' is not among the runs old, new"),
        (BOTH, "rr", {"test": "wilcoxon"}, "unknown test 'wilcoxon'; write 'permutation' or 't'"),
        (BOTH, ["rr", "num_ret", "num_rel_ret"], {}, "num_ret, num_rel_ret: counts have no mean to compare"),
        (BOTH, ["ncdg@10"], {}, r"did you mean 'ndcg@10'\?"),
        ({"old": OLD, "none": {}}, "rr", {}, "old and none have no evaluated query in common"),
        (BOTH, "rr", {"permutations": 0}, "permutations must be between 1"),
        (BOTH, "rr", {"resamples": 0}, "resamples must be between 1"),
        (BOTH, "rr", {"confidence": 1.0}, "confidence"),
        (BOTH, "rr", {"seed": -1}, "seed must be between 0"),
        (BOTH, "rr", {"missing": "zeros"}, "missing 'zeros' is not known"),
    ],
)
def test_invalid_comparisons_are_refused(runs: Any, measures: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(QRELS, runs, measures, **options)


def test_a_bad_run_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be read"):
        compare(QRELS, {"old": OLD, "new": "no such file"}, "rr")
    with pytest.raises(ValueError, match=r"run\['q0'\]\['right'\]: the score is NaN"):
        compare(QRELS, {"old": OLD, "new": {"q0": {"right": float("nan")}}}, "rr")


# --- Average overlap ----------------------------------------------------------------------------------------


def ranking(text: str) -> dict[str, float]:
    return {doc: -float(rank) for rank, doc in enumerate(text)}


def overlap(first: str, second: str, depth: int) -> float:
    return average_overlap({"q": ranking(first)}, {"q": ranking(second)}, depth)["q"]


def test_average_overlap_by_hand() -> None:
    assert overlap("abc", "abc", 3) == 1.0
    assert overlap("abc", "xyz", 3) == 0.0
    # Shared at depths 1, 2, 3: 0, 2, 3.
    assert overlap("abc", "bac", 3) == pytest.approx((0 / 1 + 2 / 2 + 3 / 3) / 3)
    # Shared: 1, 1, 2, 3, of which the last two fall below the depth where it is 2.
    assert overlap("abcd", "axbc", 4) == pytest.approx((1 / 1 + 1 / 2 + 2 / 3 + 3 / 4) / 4)
    assert overlap("abcd", "axbc", 2) == pytest.approx((1 / 1 + 1 / 2) / 2)
    # A short ranking has nothing below its end.
    assert overlap("a", "a", 4) == pytest.approx((1 / 1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert overlap("", "", 3) == 0.0


def test_only_queries_of_both_runs_have_an_overlap() -> None:
    first = {"q1": ranking("ab"), "q2": ranking("ab")}
    assert average_overlap(first, {"q2": ranking("ab"), "q3": ranking("ab")}, 2) == {"q2": 1.0}
    assert average_overlap({}, first) == average_overlap(first, {}) == {}


def test_ties_are_ordered_as_in_trec_eval() -> None:
    tied = {"q": {"a": 1.0, "b": 1.0, "c": 1.00000001}}
    assert average_overlap(tied, {"q": ranking("cba")}, 3) == {"q": 1.0}
    assert average_overlap(tied, {"q": ranking("cab")}, 3)["q"] < 1.0
    infinite = {"q": {"a": 1e300, "b": float("inf"), "c": 2e38}}
    assert average_overlap(infinite, {"q": ranking("bac")}, 3) == {"q": 1.0}


def naive_overlap(first: dict[str, float], second: dict[str, float], depth: int) -> float:
    def order(docs: dict[str, float]) -> list[str]:
        return sorted(docs, key=lambda doc: (as_float32(docs[doc]), doc.encode()), reverse=True)

    shares = [len(set(order(first)[:d]) & set(order(second)[:d])) / d for d in range(1, depth + 1)]
    return sum(shares) / depth


@given(rankings(), rankings(), st.integers(1, 20))
def test_average_overlap_is_the_mean_share(first: dict[str, float], second: dict[str, float], depth: int) -> None:
    value = average_overlap({"q": first}, {"q": second}, depth)["q"]
    assert value == pytest.approx(naive_overlap(first, second, depth), rel=1e-12, abs=1e-15)
    assert value == average_overlap({"q": second}, {"q": first}, depth)["q"]


@pytest.mark.parametrize(
    ("docs", "depth", "error", "message"),
    [
        ({"a": 1.0}, 0, UsageError, "depth 0 is below 1"),
        ({"a": float("nan")}, 5, ValueError, r"second\['q'\]\['a'\]: the score is NaN, which cannot be ranked"),
        ({"a": "1"}, 5, TypeError, r"second\['q'\]\['a'\]: the score '1' is not a number"),
        ({"a": None}, 5, TypeError, r"second\['q'\]\['a'\]: the score None is not a number"),
        ({1: 1.0}, 5, TypeError, r"second\['q'\]: the doc_id 1 is of type int; ids must be str"),
    ],
)
def test_a_bad_ranking_is_refused(docs: Any, depth: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        average_overlap({"q": {"a": 1.0}}, {"q": docs}, depth)


def test_every_number_and_id_can_be_ordered() -> None:
    kinds: dict[str, Any] = {"a": 5, "b": np.float32(4), "c": np.int64(3), "\udc80": True, "e": False}
    assert average_overlap({"q": kinds}, {"q": ranking("abc\udc80e")}, 5) == {"q": 1.0}
    assert all(isinstance(score, int | float) for score in SCORES)
