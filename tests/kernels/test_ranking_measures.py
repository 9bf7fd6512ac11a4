"""The ranking kernel, checked against the slow reference, all orders of tied documents, and trec_eval.

Fusing and sorting runs, checked by hand, against the slow reference, and against ranx.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec import kernels
from rageval_spec.errors import DataError, UsageError
from rageval_spec.kernels import RankingOptions
from tests.reference import fusion as fusion_reference
from tests.reference import ranking as reference
from tests.reference.ranking import Measure, Settings

if TYPE_CHECKING:
    from rageval_spec.kernels import Normalization


QRELS = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": [1]})
RUN = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [16_777_217.0, 16_777_216.0]})


@pytest.mark.parametrize(
    ("ties", "value"), [("trec_eval", 0.5), ("trec_eval_2023", 1.0), ("float64", 1.0), ("input", 1.0), ("ranx", 1.0)]
)
def test_each_rule_reads_scores_in_its_precision(ties: Any, value: float) -> None:
    """16777217 has no exact float32; as float32 it ties with 16777216, and the higher doc_id comes first."""
    assert kernels.evaluate_ranking(QRELS, RUN, ["rr"], RankingOptions(ties=ties)).values.tolist() == [[value]]


def test_the_tie_range_uses_the_same_precision() -> None:
    options = RankingOptions(ties="trec_eval_2023", tie_range=True)
    ranked = kernels.evaluate_ranking(QRELS, RUN, ["rr"], options)
    assert ranked.low is not None and ranked.high is not None
    assert (ranked.low[0, 0], ranked.high[0, 0]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("setting", "value", "error", "message"),
    [
        ("ties", "fair", UsageError, "ties 'fair' is not known; write one of trec_eval, trec_eval_2023, float64, "),
        ("missing", 0, UsageError, "missing 0 is not known; write one of zero, skip"),
        ("duplicates", "last", UsageError, "duplicates 'last' is not known; write one of error, first"),
        ("depth", 2.5, UsageError, "depth 2.5 is not a whole number"),
        ("depth", 0, ValueError, "depth must be .*, not 0"),
        ("relevance_level", "1", UsageError, "relevance_level '1' is not a whole number"),
        ("relevance_level", 2**31, ValueError, "relevance_level must be between 1 and 2147483647, not 2147483648"),
    ],
)
def test_a_wrong_setting_is_refused(setting: str, value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RankingOptions(**{setting: value})  # type: ignore[arg-type]


def test_whole_numbers_of_numpy_are_accepted_as_settings() -> None:
    options = RankingOptions(depth=np.int64(1), relevance_level=np.uint8(1))  # type: ignore[arg-type]
    assert kernels.evaluate_ranking(QRELS, RUN, ["rr"], options).values.tolist() == [[0.0]]


SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
FUSED_QUERY_IDS = ["q1", "q10", "a query with more than twelve bytes", "é"]
FUSED_DOC_IDS = [
    "",
    "a",
    "ab",
    "b",
    "B",
    "9",
    "10",
    "é",
    "文",
    "a document with more than twelve bytes",
    "another such one",
]
FUSED_SCORES = [0.0, -0.0, 1.0, 1.00000001, 0.5, 0.1, 0.1 + 1e-12, 3.0, 1e-45, 16777216.0, 16777217.0]


def table(run: fusion_reference.Run) -> pl.DataFrame:
    rows = [(query, document, score) for query, ranking in run.items() for document, score in ranking]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def rows(run: str) -> pl.DataFrame:
    """A run of one query `q`: `a 3, b 2`."""
    documents = [part.split() for part in run.split(",") if part.strip()]
    return table({"q": [(document, float(score)) for document, score in documents]})


def runs(scores: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, list[tuple[str, float]]]]:
    ranking = st.lists(st.tuples(st.sampled_from(FUSED_DOC_IDS), scores), max_size=8, unique_by=lambda row: row[0])
    return st.dictionaries(st.sampled_from(FUSED_QUERY_IDS), ranking, max_size=4)


class TestReciprocalRankFusion:
    def test_hand_worked_example(self) -> None:
        fused = kernels.fuse_runs([rows("a 9, b 8, c 7"), rows("c 0.9, d 0.8")], method="rrf", depth=10)
        assert fused.schema == pl.Schema(SCHEMA)
        assert fused.rows() == [
            ("q", "c", 1 / 63 + 1 / 61),
            ("q", "a", 1 / 61),
            ("q", "d", 1 / 62),
            ("q", "b", 1 / 62),
        ]

    def test_ranks_follow_the_order_of_the_rows(self) -> None:
        fused = kernels.fuse_runs([rows("a 1, b 2")], method="rrf", depth=10, k=0, weights=[3])
        assert fused.rows() == [("q", "a", 3.0), ("q", "b", 1.5)]

    def test_numbers_of_ranx(self) -> None:
        """`fuse(runs=TWO_RUNS, norm=None, method="rrf", params={"k": 60})` of ranx 0.3.21."""
        fused = kernels.fuse_runs(TWO_RUNS, method="rrf", depth=10)
        assert_same_scores(
            fused,
            {
                "q1": {
                    "d1": 0.032266458495966696,
                    "d3": 0.032266458495966696,
                    "d2": 0.016129032258064516,
                    "d5": 0.016129032258064516,
                    "d4": 0.015625,
                },
                "q2": {
                    "d5": 0.03252247488101534,
                    "d7": 0.032266458495966696,
                    "d6": 0.016129032258064516,
                    "d8": 0.015873015873015872,
                    "d9": 0.015625,
                },
            },
        )


class TestWeightedFusion:
    def test_hand_worked_example(self) -> None:
        pair = [rows("a 30, b 20, c 10"), rows("c 5, b 4, d 1")]
        fused = kernels.fuse_runs(pair, method="weighted", weights=[0.4, 0.6], depth=3)
        assert fused.rows() == [("q", "b", 0.4 * 0.5 + 0.6 * 0.75), ("q", "c", 0.6), ("q", "a", 0.4)]

    def test_equal_scores_become_1_so_that_an_only_document_counts(self) -> None:
        fused = kernels.fuse_runs([rows("a 3"), rows("b 5, c 4")], method="weighted", weights=[2, 1], depth=3)
        assert fused.rows() == [("q", "a", 2.0), ("q", "b", 1.0), ("q", "c", 0.0)]

    def test_z_scores_give_an_absent_document_the_lowest_score(self) -> None:
        pair = [rows("a 3, b 1"), rows("c 3, b 1")]  # mean 2, deviation 1: the values are 1 and -1
        fused = kernels.fuse_runs(pair, method="weighted", weights=[1, 2], normalization="z_score", depth=3)
        assert fused.rows() == [("q", "c", 1.0), ("q", "a", -1.0), ("q", "b", -3.0)]

    @pytest.mark.parametrize(
        ("normalization", "expected"),
        [
            (
                "min_max",
                {
                    "q1": {
                        "d3": 0.8342105263157894,
                        "d1": 0.3,
                        "d5": 0.2947368421052633,
                        "d2": 0.2526315789473684,
                        "d4": 0.0,
                    },
                    "q2": {"d5": 0.9124999999999999, "d7": 0.7, "d8": 0.2625, "d6": 0.25, "d9": 0.0},
                },
            ),
            (
                "max",
                {
                    "q1": {
                        "d3": 0.8739999999999999,
                        "d1": 0.8538461538461537,
                        "d5": 0.6153846153846153,
                        "d2": 0.264,
                        "d4": 0.072,
                    },
                    "q2": {
                        "d5": 0.8833333333333333,
                        "d7": 0.7749999999999999,
                        "d6": 0.2625,
                        "d8": 0.11666666666666667,
                        "d9": -0.23333333333333334,
                    },
                },
            ),
            (
                "none",
                {
                    "q1": {"d1": 4.254, "d2": 3.3, "d3": 2.812, "d4": 0.8999999999999999, "d5": 0.5599999999999999},
                    "q2": {
                        "d5": 1.5499999999999998,
                        "d6": 1.05,
                        "d7": 0.72,
                        "d8": 0.06999999999999999,
                        "d9": -0.13999999999999999,
                    },
                },
            ),
        ],
    )
    def test_numbers_of_ranx(self, normalization: Normalization, expected: dict[str, dict[str, float]]) -> None:
        """`fuse(runs=TWO_RUNS, norm=..., method="wsum", params={"weights": [0.3, 0.7]})` of ranx 0.3.21."""
        fused = kernels.fuse_runs(
            TWO_RUNS, method="weighted", weights=[0.3, 0.7], normalization=normalization, depth=10
        )
        assert_same_scores(fused, expected)


TWO_RUNS = [
    table(
        {
            "q1": [("d1", 12.5), ("d2", 11.0), ("d3", 7.25), ("d4", 3.0)],
            "q2": [("d5", 4.0), ("d6", 3.5), ("d7", 1.0)],
        }
    ),
    table(
        {
            "q1": [("d3", 0.91), ("d5", 0.80), ("d1", 0.72)],
            "q2": [("d7", 0.6), ("d5", 0.5), ("d8", 0.1), ("d9", -0.2)],
        }
    ),
]


def assert_same_scores(fused: pl.DataFrame, expected: dict[str, dict[str, float]]) -> None:
    scores: dict[str, dict[str, float]] = {}
    for query, document, score in fused.iter_rows():
        scores.setdefault(query, {})[document] = score
    assert {query: pytest.approx(of, abs=1e-15) for query, of in expected.items()} == scores
    for of in scores.values():
        assert list(of.values()) == sorted(of.values(), reverse=True)


class TestFusion:
    @given(
        st.lists(
            st.tuples(runs(st.sampled_from(FUSED_SCORES)), st.sampled_from([0.0, 0.3, 1.0, 7.0])),
            min_size=1,
            max_size=4,
        ),
        st.sampled_from(["rrf", "min_max", "z_score", "none"]),
        st.sampled_from([0.0, 1.0, 60.0]),
        st.integers(1, 9),
    )
    def test_agrees_with_the_slow_reference(
        self, weighted: list[tuple[dict[str, list[tuple[str, float]]], float]], form: str, k: float, depth: int
    ) -> None:
        given_runs = [run for run, _ in weighted]
        weights = [weight for _, weight in weighted]
        weights[0] = weights[0] or 1.0
        options: dict[str, Any] = {"method": "rrf" if form == "rrf" else "weighted", "weights": weights, "k": k}
        options |= {"normalization": "none" if form == "rrf" else form, "depth": depth}
        expected = table(fusion_reference.fuse(given_runs, **options))
        for threads in (1, 3):
            fused = kernels.fuse_runs([table(run) for run in given_runs], threads=threads, **options)
            assert fused.rows() == expected.rows()

    def test_the_rows_of_a_query_need_not_be_adjacent(self) -> None:
        run = table({"q": [("a", 2.0), ("b", 1.0)], "p": [("c", 5.0), ("d", 4.0)]})
        mixed = run[[0, 2, 1, 3]]
        assert kernels.fuse_runs([mixed], method="rrf", depth=5).equals(kernels.fuse_runs([run], method="rrf", depth=5))

    def test_runs_without_rows_give_no_rows(self) -> None:
        empty = table({})
        assert kernels.fuse_runs([empty, empty], method="rrf", depth=1).rows() == []
        assert kernels.fuse_runs([empty], method="rrf", depth=1).schema == pl.Schema(SCHEMA)

    @pytest.mark.parametrize("method", ["rrf", "weighted"])
    @pytest.mark.parametrize("score", ["nan", "inf", "-inf"])
    def test_scores_that_are_not_finite_are_named(self, method: kernels.FusionMethod, score: str) -> None:
        shown = {"nan": "NaN"}.get(score, score)
        message = rf"runs\[1\], row 1: the score of document 'b' for query 'q' is {shown}; it must be finite"
        with pytest.raises(DataError, match=message):
            kernels.fuse_runs([rows("a 1"), rows(f"a 1, b {score}")], method=method, depth=9)

    @pytest.mark.parametrize(
        ("run", "options", "message"),
        [
            ("a 1, b 1, a 0", {}, r"runs\[1\], row 2: document 'a' is retrieved twice for query 'q'"),
            ("a 0, b -1", {"normalization": "max"}, r"scores for query 'q': the highest is 0, .* use 'min_max'"),
            ("a 1e308, b -1e308", {}, r"document 'a' gets the fused score NaN for query 'q'; .* too large"),
            ("a 1e308", {"normalization": "none", "weights": [1, 9]}, "fused score inf"),
        ],
    )
    def test_runs_that_cannot_be_fused_are_named(self, run: str, options: dict[str, Any], message: str) -> None:
        with pytest.raises(DataError, match=message):
            kernels.fuse_runs([rows("a 1"), rows(run)], **{"method": "weighted", "depth": 9, **options})

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"weights": [1]}, "1 weights for 2 runs"),
            ({"weights": [1, -1]}, "at least 0, not -1"),
            ({"weights": [1, float("nan")]}, "finite and at least 0, not NaN"),
            ({"weights": [0, 0]}, "all weights are 0"),
            ({"k": -1}, "k must be finite and at least 0, not -1"),
            ({"k": float("inf")}, "k must be finite and at least 0, not inf"),
            ({"depth": 0}, "depth must be between 1"),
            ({"method": "condorcet"}, "'rrf' or 'weighted', not 'condorcet'"),
            ({"method": "weighted", "normalization": "rank"}, "not 'rank'"),
        ],
    )
    def test_wrong_settings_are_refused(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            kernels.fuse_runs([rows("a 1"), rows("b 1")], **{"method": "rrf", "depth": 9, **options})

    def test_wrong_tables_are_named(self) -> None:
        with pytest.raises(ValueError, match=r"runs\[1\] has no column 'score'; its columns are query_id, doc_id"):
            kernels.fuse_runs([rows("a 1"), rows("a 1").drop("score")], method="rrf", depth=9)
        nothing = rows("a 1").with_columns(doc_id=pl.lit(None, pl.String))
        with pytest.raises(ValueError, match=r"runs\[0\], row 0: doc_id is null"):
            kernels.fuse_runs([nothing], method="rrf", depth=9)
        with pytest.raises(ValueError, match="no runs to fuse"):
            kernels.fuse_runs([], method="rrf", depth=9)


class TestRankDocuments:
    def test_hand_worked_example(self) -> None:
        run = table({"q": [("a", 1.0), ("b", 3.0), ("é", 2.0), ("z", 2.0)], "p": [("c", -1.0)]})
        ranked = kernels.rank_documents(run, 3)
        assert ranked.rows() == [("q", "b", 3.0), ("q", "é", 2.0), ("q", "z", 2.0), ("p", "c", -1.0)]
        assert ranked.schema == pl.Schema(SCHEMA)

    @given(runs(st.sampled_from(FUSED_SCORES)), st.none() | st.integers(1, 9), st.randoms())
    def test_agrees_with_sorting(self, run: dict[str, list[tuple[str, float]]], depth: int | None, random: Any) -> None:
        shuffled = table(run).rows()
        random.shuffle(shuffled)
        rankings: dict[str, list[tuple[str, float]]] = {}
        for query, document, score in shuffled:
            rankings.setdefault(query, []).append((document, score))
        expected = table({query: fusion_reference.order(ranking)[:depth] for query, ranking in rankings.items()})
        ranked = kernels.rank_documents(pl.DataFrame(shuffled, SCHEMA, orient="row"), depth)
        assert ranked.rows() == expected.rows()

    def test_keeps_the_documents_that_an_evaluation_at_this_depth_uses(self) -> None:
        run = rows("a 0.1000000000001, b 0.1, c 0.10000000000001")
        qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["b"], "relevance": [1]})
        for depth in (1, 2, 3):
            cut = kernels.rank_documents(run, depth)
            whole = kernels.evaluate_ranking(qrels, run, [f"recall@{depth}"], kernels.RankingOptions(missing="zero"))
            assert (
                kernels.evaluate_ranking(qrels, cut, ["num_rel_ret"], kernels.RankingOptions(missing="zero")).values
                == whole.values
            )

    def test_bad_rows_are_named(self) -> None:
        with pytest.raises(DataError, match="run, row 1: the score of document 'b' for query 'q' is NaN"):
            kernels.rank_documents(rows("a 1, b nan"))
        with pytest.raises(DataError, match="run, row 2: document 'a' is retrieved twice for query 'q'"):
            kernels.rank_documents(rows("a 1, b 2, a 3"))
        with pytest.raises(ValueError, match="depth must be between 1"):
            kernels.rank_documents(rows("a 1"), 0)


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
