"""Fusing and sorting runs, checked by hand, against the slow reference, and against ranx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import kernels
from rageval_spec.errors import DataError
from tests.reference import fusion as reference

if TYPE_CHECKING:
    from rageval_spec.kernels import Normalization

SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
QUERY_IDS = ["q1", "q10", "a query with more than twelve bytes", "é"]
DOC_IDS = ["", "a", "ab", "b", "B", "9", "10", "é", "文", "a document with more than twelve bytes", "another such one"]
SCORES = [0.0, -0.0, 1.0, 1.00000001, 0.5, 0.1, 0.1 + 1e-12, 3.0, 1e-45, 16777216.0, 16777217.0]


def table(run: reference.Run) -> pl.DataFrame:
    rows = [(query, document, score) for query, ranking in run.items() for document, score in ranking]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def rows(run: str) -> pl.DataFrame:
    """A run of one query `q`: `a 3, b 2`."""
    documents = [part.split() for part in run.split(",") if part.strip()]
    return table({"q": [(document, float(score)) for document, score in documents]})


def runs(scores: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, list[tuple[str, float]]]]:
    ranking = st.lists(st.tuples(st.sampled_from(DOC_IDS), scores), max_size=8, unique_by=lambda row: row[0])
    return st.dictionaries(st.sampled_from(QUERY_IDS), ranking, max_size=4)


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
            st.tuples(runs(st.sampled_from(SCORES)), st.sampled_from([0.0, 0.3, 1.0, 7.0])), min_size=1, max_size=4
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
        expected = table(reference.fuse(given_runs, **options))
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

    @given(runs(st.sampled_from(SCORES)), st.none() | st.integers(1, 9), st.randoms())
    def test_agrees_with_sorting(self, run: dict[str, list[tuple[str, float]]], depth: int | None, random: Any) -> None:
        shuffled = table(run).rows()
        random.shuffle(shuffled)
        rankings: dict[str, list[tuple[str, float]]] = {}
        for query, document, score in shuffled:
            rankings.setdefault(query, []).append((document, score))
        expected = table({query: reference.order(ranking)[:depth] for query, ranking in rankings.items()})
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
