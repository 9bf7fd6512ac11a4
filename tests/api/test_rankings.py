"""How `rageval_spec.evaluate` reads rankings, and which settings it refuses.

The results of `rageval_spec.evaluate`.

Paired comparisons and average overlap, checked by hand, against scipy, and against a naive reference.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import product
from math import sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec import Comparisons, Results, average_overlap, compare, evaluate
from rageval_spec.errors import DataError, NothingScoredError, UsageError
from tests.api.forms import FORMS, MEASURES, ONE_WORD, QRELS, RUN, as_polars, values_of
from tests.rankings import SCORES, SMALL, Collection, Qrels, Run, collections, rankings
from tests.reference import ranking as reference
from tests.reference.ranking import Measure, Settings, as_float32

# --- Settings ---

measures_of_reference = st.lists(
    st.sampled_from(
        [
            Measure("ndcg"),
            Measure("ndcg", 3),
            Measure("ndcg", 5, (("gain", "exp"),)),
            Measure("precision", 3),
            Measure("recall", 2, (("rel", 2),)),
            Measure("map"),
            Measure("map", 4),
            Measure("rr"),
            Measure("rr", 2),
            Measure("rprec"),
            Measure("bpref"),
            Measure("infap"),
            Measure("err", 5),
            Measure("rbp", None, (("p", 0.5),)),
            Measure("judged", 4),
            Measure("num_ret"),
            Measure("num_rel_ret"),
            Measure("set_f"),
            Measure("f1", 3, (("judged_only", True),)),
            Measure("iprec", None, (("recall", 0.5),)),
        ]
    ),
    min_size=1,
    max_size=5,
    unique=True,
)

readings = st.builds(
    Settings,
    ties=st.sampled_from(["trec_eval", "trec_eval_2023", "float64", "input"]),
    depth=st.none() | st.integers(1, 8),
    judged_only=st.booleans(),
    drop_self=st.booleans(),
    relevance_level=st.integers(1, 3),
)


def options(reading: Settings) -> dict[str, Any]:
    return {
        "profile": reading.ties,
        "depth": reading.depth,
        "judged_only": reading.judged_only,
        "drop_self": reading.drop_self,
        "relevance_level": reading.relevance_level,
    }


@settings(max_examples=300)
@given(collections(), measures_of_reference, readings, st.sampled_from(["skip", "zero"]))
def test_dicts_agree_with_the_slow_reference(
    collection: Collection, measures: list[Measure], reading: Settings, missing: Any
) -> None:
    texts = [measure.text for measure in measures]
    results = evaluate(*collection, texts, missing=missing, **options(reading))
    queries = [query for query in collection.qrels if missing == "zero" or query in collection.run]
    assert list(results.per_query()) == sorted(queries)
    for query, values in results.per_query().items():
        retrieved = list(collection.run.get(query, {}).items())
        for measure in measures:
            expected = reference.value(measure, query, collection.qrels[query], retrieved, reading)
            assert values[measure.text] == pytest.approx(expected, rel=1e-12, abs=1e-14), (query, measure.text)


def test_a_missing_query_is_excluded_or_scores_0() -> None:
    skipped, counted = evaluate(*SMALL, ["rr", "num_ret", "gm_map"]), None
    assert (len(skipped), skipped.missing_queries, skipped.unjudged_queries) == (3, [], 1)
    counted = evaluate(*SMALL, ["rr", "num_ret", "gm_map"], missing="zero")
    assert (len(counted), counted.missing_queries, counted.unjudged_queries) == (4, ["q3"], 1)
    assert counted.per_query()["q3"] == {"rr": 0.0, "num_ret": 0.0, "gm_map": pytest.approx(np.log(1e-5))}
    assert counted["rr"] == pytest.approx(skipped["rr"] * 3 / 4)


@pytest.mark.parametrize("form", ["dicts", "polars", "pandas", "arrays"])
def test_a_query_without_documents_is_an_empty_ranking(form: str, files: Collection) -> None:
    """The query is not missing: the run has it, with no documents."""
    run: Run = {**ONE_WORD.run, "q3": {}}
    for qrels in (FORMS[form](ONE_WORD.qrels, "relevance"), files.qrels):
        results = evaluate(qrels, run, ["rr"])
        assert results.per_query()["q3"] == {"rr": 0.0}
        assert results.missing_queries == []
        assert results.means == evaluate(qrels, ONE_WORD.run, ["rr"], missing="zero").means


def test_a_query_without_judgements_is_not_judged() -> None:
    results = evaluate({"q1": {"a": 1}, "q2": {}}, {"q1": {"a": 1.0}, "q2": {"a": 1.0}}, ["rr"], missing="zero")
    assert list(results.per_query()) == ["q1"]
    assert results.unjudged_queries == 1


def test_profiles() -> None:
    qrels = {"q": {"a": 1}}
    # Equal as float32, and 'b' is above 'a' by id; as float64, 'a' is above 'b'; 'c' ties with 'a' and comes first.
    run = {"q": {"c": 1.00000001, "a": 1.00000001, "b": 1.0, "q": 9.0}}
    ranks = {
        profile: round(1 / evaluate(qrels, run, "rr", profile=profile)["rr"])
        for profile in ("trec_eval", "trec_eval_2023", "float64", "input", "ranx", "beir")
    }
    assert ranks == {"trec_eval": 4, "trec_eval_2023": 3, "float64": 3, "input": 3, "ranx": 3, "beir": 3}
    assert evaluate(qrels, run, "rr", profile="beir", drop_self=False)["rr"] == 1 / 4
    assert evaluate(qrels, run, "rr", profile="input", drop_self=True)["rr"] == 1 / 2


def test_the_input_profile_keeps_the_order_of_the_rows() -> None:
    docs = [f"d{number}" for number in (5, 3, 9, 1, 7)]
    for rank, doc in enumerate(docs, 1):
        qrels = {"q": {doc: 1}}
        assert evaluate(qrels, {"q": dict.fromkeys(docs, 1.0)}, "rr", profile="input")["rr"] == 1 / rank
        frame = pl.DataFrame({"query_id": "q", "doc_id": docs, "score": 1.0})
        assert evaluate(qrels, frame, "rr", profile="input")["rr"] == 1 / rank


# Orders of documents by their place in the run, found with ranx 0.3.21 (numba 0.68.1) from `mrr` of each document.
RANX_ORDERS: dict[str, tuple[list[float], list[int]]] = {
    "all equal": (
        [1.0] * 40,
        [
            21, 22, 23, 24, 25, 26, 27, 28, 20, 29, 31, 32, 33, 34, 35, 36, 37, 38, 30, 19, 0, 1, 2, 3, 4,
            5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 39,
        ],
    ),
    "two scores": (
        [float(i % 2) for i in range(33)],
        [
            19, 17, 23, 15, 13, 25, 11, 9, 21, 7, 5, 29, 3, 1, 31, 27, 26, 28, 24, 30, 22, 16, 18, 32, 14,
            12, 10, 8, 6, 4, 2, 0, 20,
        ],
    ),
    "five scores": (
        [i * 7919 % 5 / 2 for i in range(64)],
        [
            16, 46, 51, 21, 11, 56, 26, 41, 61, 36, 1, 31, 6, 47, 27, 42, 22, 37, 32, 52, 12, 57, 7, 62,
            2, 17, 48, 43, 53, 38, 58, 33, 63, 3, 13, 28, 18, 8, 23, 14, 49, 9, 19, 44, 54, 24, 59, 39,
            29, 4, 34, 60, 55, 5, 15, 50, 0, 45, 20, 40, 25, 35, 30, 10,
        ],
    ),
    "rising": (
        [i // 4 * 0.25 for i in range(50)],
        [
            49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 36, 37, 39, 38, 35, 34, 33, 32, 31, 30, 29, 28, 25,
            27, 26, 24, 23, 22, 21, 20, 19, 18, 17, 16, 13, 12, 15, 14, 11, 10, 9, 8, 7, 6, 5, 4, 0, 3, 2,
            1,
        ],
    ),
    "falling": (
        [-(i // 3) * 1.5 for i in range(50)],
        [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 26, 24,
            25, 27, 28, 29, 30, 31, 32, 33, 34, 35, 38, 37, 36, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49,
        ],
    ),
    "equal as float32": (
        [1.0 + (i * 31 % 3) * 1e-9 for i in range(48)],
        [
            44, 41, 38, 35, 32, 29, 26, 20, 17, 14, 11, 47, 5, 23, 8, 2, 46, 43, 1, 40, 37, 34, 4, 31, 28,
            10, 25, 13, 22, 16, 19, 7, 45, 9, 15, 42, 18, 39, 6, 3, 21, 33, 0, 30, 12, 24, 27, 36,
        ],
    ),
    "pairs": (
        [float(i * 5 % 9) for i in range(17)],
        [
            16, 7, 14, 5, 3, 12, 1, 10, 8, 6, 15, 4, 13, 11, 2, 9, 0,
        ],
    ),
    "fifteen": (
        [float(i % 3) for i in range(15)],
        [
            2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12,
        ],
    ),
    "sixteen": (
        [float(i % 3) for i in range(16)],
        [
            2, 14, 5, 8, 11, 7, 1, 4, 13, 10, 12, 0, 15, 6, 3, 9,
        ],
    ),
    "hundred": (
        [float(i * i % 11) for i in range(100)],
        [
            25, 91, 30, 96, 19, 36, 80, 14, 41, 69, 74, 58, 52, 3, 85, 63, 8, 47, 37, 48, 92, 51, 40, 73,
            62, 59, 70, 29, 7, 15, 81, 18, 4, 84, 95, 26, 53, 86, 90, 57, 64, 9, 46, 2, 75, 42, 13, 35,
            20, 79, 31, 97, 24, 68, 83, 82, 71, 72, 61, 60, 49, 5, 6, 16, 17, 28, 38, 39, 27, 93, 50, 94,
            1, 87, 54, 10, 98, 12, 89, 21, 23, 76, 56, 65, 32, 34, 45, 67, 43, 78, 0, 77, 66, 55, 99, 44,
            33, 22, 11, 88,
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RANX_ORDERS)
@pytest.mark.parametrize("form", ["dicts", "polars"])
def test_the_ranx_profile_has_ranxs_order(case: str, form: str) -> None:
    scores, order = RANX_ORDERS[case]
    documents = {f"d{place}": score for place, score in enumerate(scores)}
    qrels = {f"q{place}": {f"d{place}": 1} for place in range(len(scores))}
    run = FORMS[form](dict.fromkeys(qrels, documents), "score")
    ranks = evaluate(qrels, run, "rr", profile="ranx").per_query()
    assert sorted(range(len(scores)), key=lambda place: 1 / ranks[f"q{place}"]["rr"]) == order


@pytest.mark.parametrize("profile", ["ranx", "input"])
def test_a_dropped_document_does_not_disturb_the_order(profile: Any) -> None:
    scores = [float(place * 7919 % 5) for place in range(64)]
    documents = {f"d{place}": score for place, score in enumerate(scores)}
    with_self = {"q": {**dict(list(documents.items())[:30]), "q": 2.0, **documents}}
    qrels = {"q": {f"d{place}": 1 + place % 3 for place in range(0, 64, 3)}}
    expected = evaluate(qrels, {"q": documents}, MEASURES, profile=profile).means
    for form in ("dicts", "polars"):
        run = FORMS[form](with_self, "score")
        assert evaluate(qrels, run, MEASURES, profile=profile, drop_self=True).means == expected


@pytest.mark.parametrize("profile", ["trec_eval", "trec_eval_2023", "input", "ranx", "beir"])
@pytest.mark.parametrize("distinct", [1, 3, 100])
def test_large_groups_of_tied_documents(profile: Any, distinct: int) -> None:
    """The kernel handles few and many judged documents of a group differently; ranking them one by one is the check."""
    generator = np.random.default_rng(distinct)
    docs = [f"d{number}" for number in generator.permutation(200)]
    run = {"q": dict(zip(docs, (generator.integers(0, distinct, 200) / 3).tolist(), strict=True)), "p": {}}
    alone = {doc: evaluate({"q": {doc: 1}}, run, "rr", profile=profile)["rr"] for doc in docs}
    assert sorted(round(1 / value) for value in alone.values()) == list(range(1, 201))
    ranked = sorted(docs, key=alone.__getitem__, reverse=True)
    judged = {doc: 1 + number % 3 for number, doc in enumerate(docs[::2])}
    expected = reference.value(
        Measure("ndcg"), "q", judged, [(doc, -float(rank)) for rank, doc in enumerate(ranked)], Settings()
    )
    for form in ("dicts", "polars"):
        value = evaluate({"q": judged}, FORMS[form](run, "score"), "ndcg", profile=profile)["ndcg"]
        assert value == pytest.approx(expected, rel=1e-12)


def test_duplicates_are_refused_or_the_first_counts() -> None:
    run = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b", "a"], "score": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match=r"run, row 2: document 'a' is retrieved twice for query 'q'"):
        evaluate({"q": {"a": 1}}, run, ["rr"])
    first = evaluate({"q": {"a": 1}}, run, ["rr", "num_ret"], duplicates="first")
    assert first.means == {"rr": 0.5, "num_ret": 2.0}
    twice = pl.DataFrame({"query_id": "q", "doc_id": ["a", "a"], "relevance": [1, 1]})
    for other in (run.head(2), {"q": {"a": 1.0}}):
        with pytest.raises(DataError, match=r"qrels, row 1: document 'a' is judged twice for query 'q'"):
            evaluate(twice, other, ["rr"])


def test_duplicates_in_files(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q 0 a 1\nq 0 a 2\n")
    run.write_text("q Q0 a 1 1.0 t\nq Q0 a 2 3.0 t\n")
    with pytest.raises(DataError, match=r"run:2: document 'a' is retrieved twice"):
        evaluate({"q": {"a": 1}}, run, ["rr"])
    assert evaluate({"q": {"a": 1}}, run, "num_ret", duplicates="first")["num_ret"] == 1.0
    for other in (run, {"q": {"a": 1.0}}, as_polars({"q": {"a": 1.0}}, "score")):
        with pytest.raises(DataError, match=r"qrels:2: document 'a' is judged twice"):
            evaluate(qrels, other, ["rr"])


# --- Ties ---

TIED = [0.5, 0.5 + 1e-12, 2.0]


@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(TIED), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2), min_size=1),
    measures_of_reference,
    st.sampled_from(["trec_eval", "trec_eval_2023"]),
)
def test_tie_range_equals_the_range_over_all_orders(
    retrieved: dict[str, float], judged: dict[str, int], measures: list[Measure], ties: Any
) -> None:
    texts = [measure.text for measure in measures]
    results = evaluate({"q": judged}, {"q": retrieved}, texts, tie_range=True, profile=ties)
    for measure in measures:
        pairs = list(retrieved.items())
        low, high = reference.tie_range(measure, "q", judged, pairs, Settings(ties=ties))
        assert results.tie_range[measure.text] == pytest.approx((low, high), rel=1e-12, abs=1e-14), measure.text
        assert results.tied_queries[measure.text] == (high - low > 1e-12)


def test_tie_range_of_several_queries() -> None:
    results = evaluate(*SMALL, ["rr", "P@1", "num_ret"], missing="zero", tie_range=True)
    # q1: d1 (relevant) ties with d8 at ranks 2 and 3. q2: d1 and d4 (relevant) tie with d5. The last query: é with d1.
    low, high = (1 / 3 + 1 / 2 + 0 + 1 / 2) / 4, (1 / 2 + 1 + 0 + 1) / 4
    assert results.tie_range["rr"] == pytest.approx((low, high))
    assert results.tie_range["P@1"] == (0.0, 0.5)
    assert results.tie_range["num_ret"] == (results["num_ret"], results["num_ret"])
    assert results.tied_queries == {"rr": 3, "P@1": 2, "num_ret": 0}


def test_tie_range_must_be_requested() -> None:
    results = evaluate(*SMALL, ["rr"])
    for attribute in ("tie_range", "tied_queries"):
        with pytest.raises(UsageError, match="tie_range=True"):
            getattr(results, attribute)


# --- Scores and ids at their limits ---


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (float("inf"), 1e38),
        (1e38, float("-inf")),
        (-1e38, -1e300),
        (1e-44, 0.0),
        (0.0, -1e-44),
        (2**60, 2**59),
        (np.float32(2), np.float64(1)),
        (np.int8(2), True),
        (3, 2.5),
    ],
)
def test_higher_scores_come_first(first: float, second: float) -> None:
    for form in ("dicts", "polars"):
        run = FORMS[form]({"q": {"a": first, "b": second}}, "score")
        assert evaluate({"q": {"a": 1}}, run, "rr")["rr"] == 1.0
        assert evaluate({"q": {"b": 1}}, run, "rr")["rr"] == 0.5


@pytest.mark.parametrize(
    ("first", "second"),
    [(1e300, 1e301), (1e300, float("inf")), (0.0, -0.0), (1e-50, 0.0), (5e-324, -5e-324), (16777216, 16777217)],
)
def test_scores_that_are_equal_as_float32_tie(first: float, second: float) -> None:
    for form in ("dicts", "polars"):
        for a, b in ((first, second), (second, first)):
            run = FORMS[form]({"q": {"a": a, "b": b}}, "score")
            assert evaluate({"q": {"a": 1}}, run, "rr")["rr"] == 0.5
            assert evaluate({"q": {"b": 1}}, run, "rr")["rr"] == 1.0


def test_ids_can_contain_any_text() -> None:
    qrels = {"q\0 ": {"a\0b": 1, "": 0, "a\0c": 0, "x" * 100_000: 1}}
    run = {"q\0 ": {"a\0b": 1.0, "": 1.0, "a\0c": 1.0, "x" * 100_000: 0.5}}
    for form in ("dicts", "polars", "pyarrow"):
        values = values_of(FORMS[form](qrels, "relevance"), FORMS[form](run, "score"))
        assert values == values_of(qrels, run)
        assert values["q\0 "]["rr"] == 0.5


def test_a_lone_surrogate_can_be_in_a_doc_id_of_dicts_but_not_in_a_query_id() -> None:
    run = {"q": {"\udc80": 1.0, "b": 1.0}}
    assert evaluate({"q": {"\udc80": 1}}, run, "rr")["rr"] == 1.0
    assert evaluate({"q": {"b": 1}}, run, "rr")["rr"] == 0.5
    assert evaluate({"q": {"b": 1}}, {**run, "\ud800": {}}, "rr").unjudged_queries == 1
    with pytest.raises(ValueError, match=r"qrels: the query_id '\\udc80' contains half a surrogate pair"):
        evaluate({"\udc80": {"a": 1}}, {"\udc80": {"a": 1.0}}, "rr")
    with pytest.raises(ValueError, match=r"qrels: the doc_id '\\udc80' contains half a surrogate pair"):
        evaluate({"q": {"\udc80": 1}}, as_polars({"q": {"b": 1.0}}, "score"), "rr")


class Text(str):
    """A subclass of str."""


def test_subclasses_of_str_and_numbers() -> None:
    qrels: Any = {Text("q"): {np.str_("b"): np.int64(1), Text("\udc80"): np.float32(0.0), np.str_("c"): True}}
    run: Any = {np.str_("q"): {Text("a"): np.float32(1), Text("b"): np.float64(1), np.str_("c"): np.int16(0)}}
    plain = evaluate({"q": {"b": 1, "c": 1, "x": 0}}, {"q": {"a": 1.0, "b": 1.0, "c": 0.0}}, MEASURES)
    assert evaluate(qrels, run, MEASURES).per_query() == plain.per_query()


# --- What is refused ---


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        (
            "profile",
            "trec",
            "profile 'trec' is not known; write one of trec_eval, trec_eval_2023, float64, input, ranx, beir",
        ),
        ("missing", "zeros", "missing 'zeros' is not known; write one of zero, skip"),
        ("duplicates", "frist", "duplicates 'frist' is not known; write one of error, first"),
        ("depth", 0, "depth must be between 1 and"),
        ("depth", 2.5, "depth 2.5 is not a whole number"),
        ("depth", "5", "depth '5' is not a whole number"),
        ("relevance_level", 0, "relevance_level must be between 1 and"),
        ("relevance_level", 2**31, "relevance_level must be between 1 and"),
        ("threads", 0, "threads must be between 1 and"),
        ("threads", -1, "threads must be between 1 and"),
    ],
)
def test_a_wrong_setting_is_refused(setting: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(QRELS, RUN, "rr", **{setting: value})


def test_whole_numbers_of_numpy_are_accepted_as_settings() -> None:
    assert evaluate(QRELS, RUN, "rr", depth=np.int64(1), threads=np.int8(1))["rr"] == 0.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        (["ncdg@10"], r"unknown measure 'ncdg@10'; did you mean 'ndcg@10'\?"),
        (["ndcg@0"], "cutoff '0' is not a whole number from 1"),
        ([], "no measures given"),
        ([""], "unknown measure ''"),
    ],
)
def test_a_wrong_measure_is_refused(measures: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(QRELS, RUN, measures)


# --- Foreign code ---


class Meddling:
    """A number that changes the dictionary that holds it when it is read."""

    def __init__(self, dictionary: dict[Any, Any], change: Callable[[dict[Any, Any]], object]) -> None:
        self.dictionary, self.change = dictionary, change

    def __float__(self) -> float:
        self.change(self.dictionary)
        return 1.0

    def __index__(self) -> int:
        self.change(self.dictionary)
        return 1


CHANGES: dict[str, Callable[[dict[Any, Any]], object]] = {
    "empty": lambda dictionary: dictionary.clear(),
    "grow": lambda dictionary: dictionary.update({f"new{number}": 1.0 for number in range(len(dictionary) + 100)}),
    "shrink": lambda dictionary: dictionary.pop(next(iter(dictionary), None), None),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", [0, 5, 19])
@pytest.mark.parametrize("profile", ["trec_eval", "input", "ranx", "beir"])
def test_numbers_that_change_their_dictionary_do_no_harm(change: str, place: int, profile: Any) -> None:
    """The result is undefined, but it is either values or an exception, not a crash."""
    for side in ("run", "qrels", "queries"):
        documents: dict[Any, Any] = {f"d{number}": 1 for number in range(20)}
        run, qrels = {"q": {f"d{n}": 1 for n in range(20)}, "p": {"a": 1}}, {"q": {f"d{n}": 1 for n in range(20)}}
        owner = {"run": run, "qrels": qrels, "queries": qrels}[side]
        owner["q"] = documents
        documents[f"d{place}"] = Meddling(qrels if side == "queries" else documents, CHANGES[change])
        try:
            results = evaluate(qrels, run, ["ndcg", "bpref"], profile=profile, tie_range=True)
        except (ValueError, TypeError):
            continue
        assert isinstance(results, Results)


class MeddlingText(str):
    """An id that changes dictionaries when it is compared."""

    changes: Callable[[], object] = staticmethod(lambda: None)

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        type(self).changes()
        return str.__eq__(self, other)


@pytest.mark.parametrize("profile", ["trec_eval", "ranx", "beir"])
@pytest.mark.parametrize("seed", range(20))
def test_ids_that_change_dictionaries_do_no_harm(profile: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(seed)
    documents: dict[Any, Any] = {MeddlingText(f"d{number}"): float(number % 3) for number in range(30)}
    judged: dict[Any, Any] = {MeddlingText(f"d{number}"): 1 for number in range(0, 30, 2)}
    run, qrels = {MeddlingText("q"): documents, "p": {"a": 1.0}}, {MeddlingText("q"): judged, "p": {"a": 1}}

    def change() -> None:
        if generator.random() < 0.3:
            dictionary: dict[Any, Any] = [documents, judged, run, qrels][generator.integers(4)]
            list(CHANGES.values())[generator.integers(3)](dictionary)

    monkeypatch.setattr(MeddlingText, "changes", staticmethod(change))
    try:
        evaluate(qrels, run, ["ndcg", "bpref"], profile=profile, missing="zero", tie_range=True)
    except (ValueError, TypeError, RuntimeError) as error:
        assert str(error)


class Once:
    """A number that can be read only a given number of times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __float__(self) -> float:
        self.times -= 1
        if self.times < 0:
            raise OSError("gone")
        return 1.0


@pytest.mark.parametrize("times", range(6))
@pytest.mark.parametrize("profile", ["trec_eval", "input"])
def test_an_exception_of_a_number_is_raised(times: int, profile: Any) -> None:
    for doc in ("a", "x"):
        run: Any = {"q": {"a": 1.0, "b": 1.0, doc: Once(times)}}
        try:
            evaluate(QRELS, run, "rr", profile=profile)
        except TypeError as error:
            assert f"run['q']['{doc}']" in str(error)
        except OSError as error:
            assert str(error) == "gone"


# --- Cost ---


def test_dicts_and_files_need_neither_numpy_nor_polars(files: Collection) -> None:
    code = f"""
import sys, rageval_spec
rageval_spec.evaluate({QRELS!r}, {RUN!r}, ["ndcg@10", "map"]).per_query()
rageval_spec.evaluate({str(files.qrels)!r}, {str(files.run)!r}, ["ndcg@10", "map"]).means
heavy = {{"numpy", "polars", "pandas", "pyarrow", "scipy"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_results() -> None:
    results = evaluate(*SMALL, (name for name in ("NDCG@10", "recip_rank", "P_2")))
    assert list(results.means) == ["NDCG@10", "recip_rank", "P_2"]
    assert results["recip_rank"] == results.means["recip_rank"] == pytest.approx((1 / 3 + 1 / 2 + 1) / 3)
    assert repr(results).startswith("Results(NDCG@10=0.")
    assert repr(results).endswith(", queries=3)")
    per_query = results.per_query()
    assert list(per_query) == ["q1", "q2", "ünï 文"]
    assert all(list(values) == list(results.means) for values in per_query.values())
    assert all(type(value) is float for values in per_query.values() for value in values.values())
    frame = results.to_polars()
    assert frame.schema == {"query_id": pl.String, "NDCG@10": pl.Float64, "recip_rank": pl.Float64, "P_2": pl.Float64}
    assert frame.rows_by_key("query_id", named=True, unique=True) == per_query
    assert frame["P_2"].mean() == results["P_2"]


def test_measures_can_be_objects_of_ir_measures() -> None:
    chosen = [ir_measures.nDCG @ 3, ir_measures.AP(rel=2), ir_measures.RR]
    results = evaluate(*SMALL, chosen)
    assert results.means == evaluate(*SMALL, ["nDCG@3", "AP(rel=2)", "RR"]).means
    assert results[ir_measures.nDCG @ 3] == results["nDCG@3"]
    assert evaluate(*SMALL, ir_measures.RR).means == {"RR": results["RR"]}


@pytest.mark.parametrize("measures", [[5], [None], 5])
def test_a_measure_of_another_type_is_refused(measures: Any) -> None:
    with pytest.raises(UsageError, match=r"measure (5|None) is of type \w+; write a name like 'ndcg@10'"):
        evaluate(*SMALL, measures)


def test_a_lazy_frame_error_names_collect() -> None:
    lazy = as_polars(SMALL.run, "score").lazy()
    with pytest.raises(UsageError, match=r"run is a polars LazyFrame, which holds no rows yet; call \.collect\(\)"):
        evaluate(SMALL.qrels, lazy, "rr")  # type: ignore[arg-type]


def test_a_single_measure_can_be_a_bare_name() -> None:
    assert evaluate(*SMALL, "map").means == evaluate(*SMALL, ["map"]).means


def test_the_aggregate_is_the_mean_the_geometric_mean_or_the_sum() -> None:
    results = evaluate(*SMALL, ["map", "gm_map", "num_rel"], missing="zero")
    maps = results.to_polars()["map"].to_list()
    assert results["map"] == pytest.approx(sum(maps) / 4)
    assert results["gm_map"] == pytest.approx(float(np.exp(np.log(np.maximum(maps, 1e-5)).mean())))
    assert results["num_rel"] == 6.0


EMPTY: list[tuple[Qrels, Run, str]] = [
    ({}, {}, "the qrels are empty"),
    (SMALL.qrels, {}, "the run is empty"),
    ({}, SMALL.run, "the qrels are empty"),
    (SMALL.qrels, {"other": {"a": 1.0}}, "no query of the qrels is in the run.*; check that their ids agree"),
]


@pytest.mark.parametrize("form", ["dicts", "polars", "pandas", "pyarrow", "polars categorical", "pandas category"])
def test_empty_input_has_no_means(form: str) -> None:
    for qrels, run, why in EMPTY:
        empty = evaluate(FORMS[form](qrels, "relevance"), FORMS[form](run, "score"), ["rr", "gm_map"], tie_range=True)
        assert (len(empty), repr(empty), empty.per_query()) == (0, "Results(no means, queries=0)", {})
        with pytest.raises(NothingScoredError, match=why):
            _ = empty.means
        assert empty.to_polars().schema == {"query_id": pl.String, "rr": pl.Float64, "gm_map": pl.Float64}
        with pytest.raises(NothingScoredError):
            _ = empty.tie_range
    assert evaluate(FORMS[form](SMALL.qrels, "relevance"), FORMS[form]({}, "score"), "rr", missing="zero")["rr"] == 0


UNTYPED: dict[str, Any] = {
    "polars": pl.DataFrame({"query_id": [], "doc_id": [], "score": []}),
    "pandas": pd.DataFrame({"query_id": [], "doc_id": [], "score": []}),
    "lists": {"query_id": [], "doc_id": [], "score": []},
    "pyarrow": pa.table({"query_id": pa.nulls(0), "doc_id": pa.nulls(0), "score": pa.nulls(0)}),
    "dictionary": pa.table(
        {
            "query_id": pa.array([], pa.dictionary(pa.int8(), pa.string())),
            "doc_id": pa.array([], pa.dictionary(pa.int32(), pa.large_string())),
            "score": pa.array([], pa.float64()),
        }
    ),
    "no chunk": pa.table({"query_id": [], "doc_id": [], "score": []}).slice(0, 0),
}


@pytest.mark.parametrize("name", UNTYPED)
def test_tables_without_rows_need_no_types(name: str, files: Collection) -> None:
    for qrels in (SMALL.qrels, as_polars(SMALL.qrels, "relevance"), files.qrels):
        assert len(evaluate(qrels, UNTYPED[name], "rr")) == 0


def test_one_document() -> None:
    assert evaluate({"q": {"a": 1}}, {"q": {"a": 0}}, ["ndcg", "map", "P@5"]).means == {
        "ndcg": 1.0,
        "map": 1.0,
        "P@5": 0.2,
    }


QUERIES = [f"q{number}" for number in range(6)]
COMPARED_QRELS: Qrels = {query: {"right": 1} for query in QUERIES}


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
    comparisons = compare(COMPARED_QRELS, {"old": OLD, "new": NEW}, ["rr", "P@1"])
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


def compared_values(qrels: Qrels, run: Run, measure: str) -> Any:
    return evaluate(qrels, run, measure).to_polars()[measure].to_numpy()


@pytest.mark.parametrize("seed", range(3))
def test_the_t_test_equals_scipys(seed: int) -> None:
    qrels, runs = differing_systems(seed)
    for pair in compare(qrels, runs, ["ndcg@10", "map", "P@5"], test="t", resamples=100):
        first, second = (compared_values(qrels, runs[system], pair.measure) for system in (pair.first, pair.second))
        assert pair.p_value == pytest.approx(scipy.stats.ttest_rel(second, first).pvalue, rel=1e-10)
        assert pair.difference == pytest.approx((second - first).mean(), rel=1e-12)
        assert pair.effect_size == pytest.approx(pair.difference / (second - first).std(ddof=1), rel=1e-10)


def test_the_exact_permutation_test_equals_scipys() -> None:
    qrels, runs = differing_systems(7, queries=9)
    for pair in compare(qrels, runs, ["ndcg@10", "map"], resamples=100):
        first, second = (compared_values(qrels, runs[system], pair.measure) for system in (pair.first, pair.second))
        expected = scipy.stats.permutation_test(
            (second - first,), lambda x, axis: x.mean(axis), permutation_type="samples", vectorized=True
        )
        assert pair.p_value == pytest.approx(expected.pvalue, rel=1e-12)


def test_the_sampled_permutation_test_is_near_scipys() -> None:
    qrels, runs = differing_systems(1, systems=2, queries=40)
    [pair] = compare(qrels, runs, "ndcg@10", permutations=50_000)
    first, second = (compared_values(qrels, run, "ndcg@10") for run in runs.values())
    expected = scipy.stats.permutation_test(
        (second - first,), lambda x, axis: x.mean(axis), permutation_type="samples", n_resamples=50_000, rng=1
    )
    assert pair.p_value == pytest.approx(expected.pvalue, abs=0.01)


def test_the_interval_is_that_of_random_means() -> None:
    """The slow reference: quantiles of random means of the differences and one more, the least or the greatest."""
    qrels, runs = differing_systems(2, systems=2)
    [pair] = compare(qrels, runs, "ndcg@10", confidence=0.9)
    first, second = (compared_values(qrels, run, "ndcg@10") for run in runs.values())
    weights = np.random.default_rng(1).dirichlet(np.ones(len(first) + 1), 50_000)
    low, high = (np.quantile(weights @ [*(second - first), end], at) for end, at in ((-1.0, 0.05), (1.0, 0.95)))
    assert (pair.low, pair.high) == pytest.approx((low, high), abs=3e-3)


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
    assert len(list(compare(COMPARED_QRELS, {"old": OLD, "new": NEW}, ["rr", "map", "rr"]))) == 2


def test_only_queries_that_both_have_are_compared() -> None:
    part = {query: NEW[query] for query in QUERIES[:3]}
    [pair] = compare(COMPARED_QRELS, {"old": OLD, "new": part}, "rr")
    assert (pair.queries, pair.difference, pair.wins, pair.ties, pair.losses) == (3, 0.0, 1, 1, 1)
    [zeroed] = compare(COMPARED_QRELS, {"old": OLD, "new": part}, "rr", missing="zero")
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
    expected = compare(COMPARED_QRELS, {"old": OLD, "new": NEW}, ["rr"])
    for new in (path, frame):
        assert compare(COMPARED_QRELS, MappingProxyType({"old": OLD, "new": new}), ["rr"]) == expected


def test_one_query_has_a_difference_but_no_test() -> None:
    runs = {"one": {"q0": OLD["q1"]}, "two": {"q0": NEW["q0"]}}
    [pair] = compare(COMPARED_QRELS, runs, "rr", test="t")
    assert (pair.difference, pair.wins, pair.queries) == (0.5, 1, 1)
    assert (pair.low, pair.high, pair.p_value, pair.p_adjusted, pair.effect_size) == (None,) * 5
    [permuted] = compare(COMPARED_QRELS, runs, "rr")
    assert permuted.p_value == 1.0


def test_equal_differences_have_no_spread() -> None:
    runs = {"old": run_with([2] * 6), "new": run_with([1] * 6)}
    [pair] = compare(COMPARED_QRELS, runs, "rr", test="t")
    weight = 1 - 0.025 ** (1 / 6)  # of one more difference, of -1 or 1
    assert (pair.difference, pair.low, pair.high) == pytest.approx((0.5, 0.5 - 1.5 * weight, 0.5 + 0.5 * weight))
    assert (pair.p_value, pair.p_adjusted, pair.effect_size) == (None, None, None)
    [permuted] = compare(COMPARED_QRELS, runs, "rr")
    assert permuted.p_value == 2 / 2**6
    [same] = compare(COMPARED_QRELS, {"old": OLD, "again": OLD}, "rr", test="t")
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
    assert [pair.p_value for pair in other] != [pair.p_value for pair in first]
    assert [pair.low for pair in other] == [pair.low for pair in first], "these intervals are computed, not drawn"
    assert [pair.difference for pair in other] == [pair.difference for pair in first]


def test_as_a_frame() -> None:
    comparisons = compare(COMPARED_QRELS, {"old": OLD, "new": NEW}, ["rr", "P@1"])
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
    one = compare(COMPARED_QRELS, {"one": {"q0": {}}, "two": {"q0": {}}}, "rr", test="t").to_polars()
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
        compare(COMPARED_QRELS, runs, measures, **options)


def test_a_bad_run_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be read"):
        compare(COMPARED_QRELS, {"old": OLD, "new": "no such file"}, "rr")
    with pytest.raises(ValueError, match=r"run\['q0'\]\['right'\]: the score is NaN"):
        compare(COMPARED_QRELS, {"old": OLD, "new": {"q0": {"right": float("nan")}}}, "rr")


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
