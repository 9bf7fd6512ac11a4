"""The ranking kernel, checked against the slow reference, all orders of tied documents, and trec_eval."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec import kernels
from rageval_spec.errors import DataError, UsageError
from tests.reference import ranking as reference
from tests.reference.ranking import Measure, Settings


def evaluate_ranking(
    qrels: pl.DataFrame, run: pl.DataFrame, measures: list[str], *, threads: int | None = None, **settings: Any
) -> kernels.RankingValues:
    """Evaluate with `missing="zero"`, so that every query has a value, unless the settings say otherwise."""
    options = kernels.RankingOptions(**{"missing": "zero", **settings})
    return kernels.evaluate_ranking(qrels, run, measures, options, threads=threads)


QUERY_IDS = ["q1", "q10", "q2", "Q", "é"]
DOC_IDS = ["a", "ab", "b", "B", "9", "10", "é", "z", "ü", "q1", "Q", "文"]
SCORES = [0.0, -0.0, 1.0, 1.00000001, 0.5, -2.0, 0.1, 0.1 + 1e-12, 3.0, 1e-45, 16777216.0, 16777217.0, 1e39, 2e39]
TIED = [0.5, 0.5 + 1e-12, 2.0]
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "gain": st.sampled_from(["linear", "exp"]),
    "p": st.sampled_from([0.5, 0.8, 0.95]),
    "max_grade": st.integers(1, 5),
    "beta": st.sampled_from([0.5, 1.0, 4.0]),
    "rel": st.integers(1, 3),
    "judged_only": st.just(True),
    "recall": st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]),
}
OWN = {"ndcg": ["gain"], "dcg": ["gain"], "rbp": ["p"], "err": ["max_grade"], "set_f": ["beta"], "iprec": ["recall"]}
REQUIRED = {"precision", "recall", "capped_recall", "f1", "success"}
OPTIONAL = {"ndcg", "dcg", "rr", "map", "rbp", "err", "judged", "target_rank"}
WITHOUT_LEVEL = {"ndcg", "dcg", "err", "judged", "num_ret"}
"""Measures that do not depend on a relevance level, and so do not accept `rel`."""


@dataclass(frozen=True)
class Case:
    """Judgements and retrieved documents by query."""

    judgements: Mapping[str, Mapping[str, int]]
    retrieved: Mapping[str, list[tuple[str, float]]]

    @property
    def qrels(self) -> pl.DataFrame:
        rows = [(query, doc, relevance) for query, of in self.judgements.items() for doc, relevance in of.items()]
        return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")

    @property
    def run(self) -> pl.DataFrame:
        rows = [(query, doc, score) for query, of in self.retrieved.items() for doc, score in of]
        return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")


def judgements_of_a_query() -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(st.sampled_from(DOC_IDS), st.integers(-2, 5), min_size=1)


def cases(duplicates: bool = False) -> st.SearchStrategy[Case]:
    pairs = st.tuples(st.sampled_from(DOC_IDS), st.sampled_from(SCORES))
    ranking = st.lists(pairs, max_size=12, unique_by=None if duplicates else lambda pair: pair[0])
    return st.builds(
        Case,
        st.dictionaries(st.sampled_from(QUERY_IDS), judgements_of_a_query(), min_size=1, max_size=4),
        st.dictionaries(st.sampled_from(QUERY_IDS), ranking.filter(bool), max_size=4),
    )


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    word = draw(st.sampled_from(sorted(reference.MEASURES)))
    cutoff = draw(st.integers(1, 8)) if word in REQUIRED or (word in OPTIONAL and draw(st.booleans())) else None
    keys = [key for key in OWN.get(word, []) if key == "recall" or draw(st.booleans())]
    shared = ["judged_only"] if word in WITHOUT_LEVEL else ["rel", "judged_only"]
    keys += [key for key in shared if draw(st.integers(0, 3)) == 0]
    return Measure(word, cutoff, tuple((key, draw(KEYS[key])) for key in keys))


readings = st.builds(
    Settings,
    ties=st.sampled_from(["trec_eval", "trec_eval_2023", "float64", "input"]),
    depth=st.none() | st.integers(1, 8),
    judged_only=st.booleans(),
    drop_self=st.booleans(),
    relevance_level=st.integers(1, 3),
)


@settings(deadline=None, max_examples=300)
@given(cases(), st.lists(measures(), min_size=1, max_size=6), readings, st.sampled_from(["zero", "skip"]))
def test_the_kernel_agrees_with_the_slow_reference(
    case: Case, chosen: list[Measure], reading: Settings, missing: Any
) -> None:
    got = evaluate_ranking(
        case.qrels, case.run, [measure.text for measure in chosen], missing=missing, **asdict(reading)
    )
    expected = [query for query in case.judgements if missing == "zero" or query in case.retrieved]
    assert got.query_ids == sorted(expected, key=str.encode)
    for row, measure in zip(got.values, chosen, strict=True):
        for query, value in zip(got.query_ids, row.tolist(), strict=True):
            of_query = case.judgements[query], case.retrieved.get(query, [])
            assert value == pytest.approx(reference.value(measure, query, *of_query, reading), rel=1e-12, abs=1e-14)


@settings(deadline=None, max_examples=100)
@given(cases(), readings)
def test_missing_unjudged_and_irrelevant_queries_are_counted(case: Case, reading: Settings) -> None:
    got = evaluate_ranking(case.qrels, case.run, ["map"], **asdict(reading))
    relevant = {
        query: sum(relevance >= reading.relevance_level for relevance in of.values())
        for query, of in case.judgements.items()
    }
    assert got.missing.tolist() == [query not in case.retrieved for query in got.query_ids]
    assert got.no_relevant.tolist() == [relevant[query] == 0 for query in got.query_ids]
    assert got.unjudged_queries == sum(query not in case.judgements for query in case.retrieved)


@settings(deadline=None, max_examples=100)
@given(cases(duplicates=True), st.lists(measures(), min_size=1, max_size=3), readings)
def test_duplicates(case: Case, chosen: list[Measure], reading: Settings) -> None:
    """A document that is dropped because its id is the query's can be listed twice."""
    texts = [measure.text for measure in chosen]
    once = Case(case.judgements, {query: reference.first_of_each(of) for query, of in case.retrieved.items()})
    of_first = evaluate_ranking(once.qrels, once.run, texts, **asdict(reading)).values
    first = evaluate_ranking(case.qrels, case.run, texts, **{**asdict(reading), "duplicates": "first"})
    assert np.array_equal(first.values, of_first)
    kept = [
        reference.candidates(query, of, reading) for query, of in case.retrieved.items() if query in case.judgements
    ]
    if any(len({doc for doc, _ in of}) < len(of) for of in kept):
        with pytest.raises(DataError, match=r"twice|duplicate"):
            evaluate_ranking(case.qrels, case.run, texts, **asdict(reading))
    else:
        assert np.array_equal(evaluate_ranking(case.qrels, case.run, texts, **asdict(reading)).values, of_first)


tied_documents = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(TIED)), max_size=6, unique_by=itemgetter(0)
)
judged_documents = st.dictionaries(st.sampled_from("abcdef"), st.integers(-1, 2), min_size=1)


def range_is_exact(measure: Measure, judgements: Mapping[str, int], reading: Settings) -> bool:
    """Whether the best order puts relevant documents first, then others that are judged, and the worst puts them last.

    Not so for infap, which a pooled document above a relevant one may raise, and for the precision of what judged_only
    leaves of a cut ranking, where unjudged documents do better than judged ones.
    """
    if measure.word == "infap":
        return min(judgements.values()) >= 0
    judged_only = reading.judged_only or dict(measure.parameters).get("judged_only")
    return measure.word not in {"set_precision", "set_f"} or not (judged_only and reading.depth)


@settings(deadline=None, max_examples=500)
@given(tied_documents, judged_documents, st.lists(measures(), min_size=1, max_size=8), readings)
def test_tie_range_equals_the_range_over_all_orders(
    retrieved: list[tuple[str, float]], judgements: dict[str, int], chosen: list[Measure], reading: Settings
) -> None:
    case = Case({"q": judgements}, {"q": retrieved} if retrieved else {})
    got = evaluate_ranking(
        case.qrels, case.run, [measure.text for measure in chosen], tie_range=True, **asdict(reading)
    )
    assert got.low is not None
    assert got.high is not None
    for measure, value, *seen in zip(chosen, got.values[:, 0], got.low[:, 0], got.high[:, 0], strict=True):
        low, high = reference.tie_range(measure, "q", judgements, retrieved, reading)
        height = reference.height(measure)
        assert height(seen[0]) <= height(value) <= height(seen[1])
        if range_is_exact(measure, judgements, reading):
            assert seen == pytest.approx([low, high], rel=1e-12, abs=1e-14), measure.text
        else:
            assert low - 1e-14 <= seen[0]
            assert seen[1] <= high + 1e-14


@pytest.mark.parametrize("word", sorted(reference.MEASURES))
def test_a_relevance_level_is_refused_where_it_changes_nothing(word: str) -> None:
    at = "@5" if word in REQUIRED else "@0.5" if word == "iprec" else ""
    if word not in WITHOUT_LEVEL:
        assert kernels.parse_measure(f"{word}(rel=2){at}").parameters["rel"] == 2
        return
    with pytest.raises(UsageError, match=f"no parameter 'rel'; '{word}' takes"):
        kernels.parse_measure(f"{word}(rel=2){at}")


@pytest.mark.parametrize("p", ["0", "1", "1.5", "-0.5"])
def test_a_persistence_of_0_or_1_or_beyond_is_refused(p: str) -> None:
    with pytest.raises(UsageError, match="is not between 0 and 1"):
        kernels.parse_measure(f"rbp(p={p})")


@given(st.lists(st.integers(0, 50).map(float)))
def test_a_mean_of_ranks_excludes_queries_without_a_rank(ranks: list[float]) -> None:
    mean = kernels.aggregate_measure("target_rank@50", np.array(ranks))
    assert mean == pytest.approx(reference.aggregate("target_rank", ranks), rel=1e-15)


def trec_eval(case: Case, names: set[str], level: int = 1, judged_only: bool = False) -> dict[str, dict[str, float]]:
    judgements = {query: dict(of) for query, of in case.judgements.items()}
    retrieved = {query: dict(of) for query, of in case.retrieved.items() if query in judgements}
    evaluator = pytrec_eval.RelevanceEvaluator(
        judgements, names, relevance_level=level, judged_docs_only_flag=judged_only
    )
    values: dict[str, dict[str, float]] = evaluator.evaluate(retrieved)
    return values


TREC_EVAL = {
    "ndcg": "ndcg",
    "ndcg@3": "ndcg_cut_3",
    "ndcg@10": "ndcg_cut_10",
    "precision@5": "P_5",
    "recall@5": "recall_5",
    "success@1": "success_1",
    "success@5": "success_5",
    "rr": "recip_rank",
    "map": "map",
    "map@5": "map_cut_5",
    "rprec": "Rprec",
    "bpref": "bpref",
    "infap": "infAP",
    "gm_map": "gm_map",
    "num_ret": "num_ret",
    "num_rel": "num_rel",
    "num_rel_ret": "num_rel_ret",
    "set_precision": "set_P",
    "set_recall": "set_recall",
    "set_f": "set_F",
    **{f"iprec@{level / 10:g}": f"iprec_at_recall_{level / 10:.2f}" for level in range(11)},
}


TREC_EVAL_NAMES = {re.sub(r"_([\d.]+)$", r".\1", name) for name in TREC_EVAL.values()}


def with_a_judgement(case: Case) -> Case:
    """Add a judgement of 0: pytrec_eval reads foreign memory if all judgements of a query are negative."""
    judgements = {query: {**of, "zero": 0} for query, of in case.judgements.items()}
    return Case(judgements, case.retrieved)


@settings(deadline=None, max_examples=300)
@given(cases().map(with_a_judgement), st.integers(1, 3), st.booleans())
def test_values_equal_trec_evals_to_the_last_bit(case: Case, level: int, judged_only: bool) -> None:
    """Except for iprec if judged_only leaves nothing of a ranking: trec_eval then divides by 0 and prints nan."""
    expected = trec_eval(case, TREC_EVAL_NAMES, level, judged_only)
    got = evaluate_ranking(
        case.qrels, case.run, list(TREC_EVAL), relevance_level=level, judged_only=judged_only, missing="skip"
    )
    assert got.query_ids == sorted(expected, key=str.encode)
    for measure, row in zip(TREC_EVAL, got.values.tolist(), strict=True):
        theirs = [expected[query][TREC_EVAL[measure]] for query in got.query_ids]
        assert row == [0.0 if isnan(value) else value for value in theirs], measure


@settings(deadline=None, max_examples=50)
@given(cases().map(with_a_judgement))
def test_aggregates_equal_trec_evals(case: Case) -> None:
    expected = trec_eval(case, {"map", "gm_map", "num_ret"})
    got = evaluate_ranking(case.qrels, case.run, ["map", "gm_map", "num_ret"], missing="skip")
    for measure, row in zip(got.measures, got.values, strict=True):
        values = [expected[query][measure] for query in got.query_ids]
        aggregate = kernels.aggregate_measure(measure, row)
        if values:
            assert aggregate == reference.aggregate(measure, values)
            assert aggregate == pytest.approx(pytrec_eval.compute_aggregated_measure(measure, values), rel=1e-15)
        else:
            assert aggregate == 0.0


def long_rankings(seed: int, documents: int = 150, tied: int = 40) -> Case:
    """Tests more judged documents, and larger groups of tied ones, than hypothesis tries."""
    generator = np.random.default_rng(seed)
    ids = [f"d{number}" for number in range(2 * documents)]
    judgements, retrieved = {}, {}
    for query in range(20):
        chosen = generator.permutation(ids)[: generator.integers(1, documents)].tolist()
        judgements[f"q{query}"] = dict(zip(chosen, generator.integers(-1, 4, len(chosen)).tolist(), strict=True))
        shuffled = generator.permutation(ids)[:documents].tolist()
        scores = generator.integers(0, tied, documents) / 7
        retrieved[f"q{query}"] = list(zip(shuffled, scores.tolist(), strict=True))
    return with_a_judgement(Case(judgements, retrieved))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("in_order", [False, True])
def test_long_rankings_equal_trec_evals(seed: int, in_order: bool) -> None:
    case = long_rankings(seed)
    run = case.run.sort("query_id", "score", "doc_id", descending=[False, True, True]) if in_order else case.run
    expected = trec_eval(case, TREC_EVAL_NAMES)
    got = evaluate_ranking(case.qrels, run, list(TREC_EVAL))
    for measure, row in zip(TREC_EVAL, got.values.tolist(), strict=True):
        assert row == [expected[query][TREC_EVAL[measure]] for query in got.query_ids], measure


def test_scores_that_are_nan_or_infinite() -> None:
    case = Case({"q": {"a": 1}}, {"q": [("b", 1.0), ("a", float("inf"))]})
    assert evaluate_ranking(case.qrels, case.run, ["rr"]).values.tolist() == [[1.0]]
    broken = case.run.with_columns(pl.lit(float("nan")).alias("score"))
    with pytest.raises(DataError, match="NaN"):
        evaluate_ranking(case.qrels, broken, ["rr"])


def test_empty_tables() -> None:
    case = Case({"q": {"a": 1}}, {})
    assert evaluate_ranking(case.qrels, case.run, ["rr"]).values.tolist() == [[0.0]]
    assert evaluate_ranking(case.qrels, case.run, ["rr"], missing="skip").values.shape == (1, 0)
    nothing = evaluate_ranking(case.qrels.clear(), case.run, ["rr", "map"])
    assert (nothing.query_ids, nothing.values.shape) == ([], (2, 0))


def test_threads_do_not_change_a_bit() -> None:
    generator = np.random.default_rng(7)
    rows = [(f"q{q}", f"d{d}") for q in range(200) for d in range(30)]
    query_ids, doc_ids = zip(*rows, strict=True)
    qrels = pl.DataFrame({"query_id": query_ids, "doc_id": doc_ids, "relevance": generator.integers(-1, 4, len(rows))})
    run = pl.DataFrame({"query_id": query_ids, "doc_id": doc_ids, "score": generator.integers(0, 9, len(rows)) / 3.0})
    texts = [*TREC_EVAL, "err@20", "rbp", "judged@10", "f1@5", "capped_recall@5", "dcg@10"]
    one = evaluate_ranking(qrels, run, texts, threads=1, tie_range=True)
    two = evaluate_ranking(qrels.sample(fraction=1, shuffle=True, seed=1), run, texts, threads=2, tie_range=True)
    assert np.array_equal(one.values, two.values)
    assert one.low is not None and two.low is not None and np.array_equal(one.low, two.low)
    assert one.high is not None and two.high is not None and np.array_equal(one.high, two.high)
    assert bool(np.all(one.low <= one.values)) and bool(np.all(one.values <= one.high))
