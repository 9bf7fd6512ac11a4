"""The drop-in for pytrec_eval, compared with the original."""

from __future__ import annotations

import math
from collections import OrderedDict, UserDict, defaultdict
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec import evaluate
from rageval_spec.compat import pytrec_eval as drop_in
from tests.rankings import SMALL, Collection, collections, judgements

Values = dict[str, dict[str, float]]

CUTOFFS = ["P", "recall", "map_cut", "ndcg_cut", "relative_P", "success"]
LEVELS = ["iprec_at_recall", "Rprec_mult"]
PLAIN = sorted(pytrec_eval.supported_measures - set(CUTOFFS) - set(LEVELS))


def with_a_zero(judged: dict[str, int]) -> dict[str, int]:
    """pytrec_eval gives a query whose judgements are all negative the values of the query before it."""
    return {**judged, "zero": 0}


def with_a_clean_runid(values: Values) -> Values:
    """pytrec_eval returns a run's name as a number read from arbitrary memory: mostly 0, but not always."""
    return {
        query: {name: 0.0 if name == "runid" else value for name, value in of_query.items()}
        for query, of_query in values.items()
    }


def without_nan(values: Values) -> Values:
    """pytrec_eval divides 0 by 0 if judged_docs_only_flag leaves nothing of a ranking; the drop-in returns 0."""
    return {
        query: {name: 0.0 if math.isnan(value) else value for name, value in of_query.items()}
        for query, of_query in values.items()
    }


def spell(base: str, separator: str, parameters: list[str]) -> str:
    return base + separator + ",".join(parameters) if parameters else base


separators = st.sampled_from("._")
cutoffs = st.lists(st.integers(1, 1200).map(str), max_size=4, unique=True)
levels = st.lists(st.integers(0, 100).map(lambda percent: f"{percent / 100:.2f}"), max_size=4, unique=True)
multiples = st.lists(st.integers(1, 300).map(lambda percent: f"{percent / 100:.2f}"), max_size=4, unique=True)
names = st.one_of(
    st.sampled_from(PLAIN),
    st.sampled_from(sorted({"official", "set", "all_trec"})),
    st.builds(spell, st.sampled_from(CUTOFFS), separators, cutoffs),
    st.builds(spell, st.just("iprec_at_recall"), separators, levels),
    st.builds(spell, st.just("Rprec_mult"), separators, multiples),
    st.builds(spell, st.just("set_F"), separators, st.sampled_from([[], ["2"], ["0.5"], ["10", "2"]])),
)
# Without a document in a ranking, pytrec_eval reads memory that is not its own.
judged_collections = collections(judgements().map(with_a_zero), min_retrieved=1)


@settings(max_examples=400)
@given(judged_collections, st.integers(1, 3), st.booleans())
def test_all_measures_have_pytrec_evals_values(collection: Collection, level: int, judged_only: bool) -> None:
    arguments = (collection.qrels, pytrec_eval.supported_measures, level, judged_only)
    theirs = pytrec_eval.RelevanceEvaluator(*arguments).evaluate(collection.run)
    ours = drop_in.RelevanceEvaluator(*arguments).evaluate(collection.run)
    assert ours == without_nan(with_a_clean_runid(theirs))
    assert list(ours) == list(theirs) == [query for query in collection.run if query in collection.qrels]


@settings(max_examples=300)
@given(judged_collections, st.lists(names, min_size=1, max_size=5), st.integers(1, 3))
def test_every_spelling_has_pytrec_evals_names_and_values(
    collection: Collection, measures: list[str], level: int
) -> None:
    theirs = pytrec_eval.RelevanceEvaluator(collection.qrels, measures, relevance_level=level)
    ours = drop_in.RelevanceEvaluator(collection.qrels, measures, relevance_level=level)
    assert ours.evaluate(collection.run) == with_a_clean_runid(theirs.evaluate(collection.run))


@pytest.mark.parametrize("seed", range(3))
def test_long_rankings_have_pytrec_evals_values(seed: int) -> None:
    """Tests more documents, and larger groups of tied ones, than hypothesis tries."""
    generator = np.random.default_rng(seed)
    ids = [f"d{number}" for number in range(1500)]
    qrels, run = {}, {}
    for query in range(20):
        judged = generator.permutation(ids)[: generator.integers(1, 400)].tolist()
        grades = generator.integers(-1, 4, len(judged)).tolist()
        qrels[f"q{query}"] = with_a_zero(dict(zip(judged, grades, strict=True)))
        retrieved = generator.permutation(ids)[:1100].tolist()
        scores = generator.integers(0, 90, len(retrieved)) / 7
        run[f"q{query}"] = dict(zip(retrieved, scores.tolist(), strict=True))
    for level, judged_only in ((1, False), (2, False), (1, True)):
        arguments = (qrels, pytrec_eval.supported_measures, level, judged_only)
        theirs = pytrec_eval.RelevanceEvaluator(*arguments).evaluate(run)
        assert drop_in.RelevanceEvaluator(*arguments).evaluate(run) == without_nan(theirs)


def test_names() -> None:
    assert drop_in.supported_measures == pytrec_eval.supported_measures
    assert drop_in.__all__[:1] == ["RelevanceEvaluator"]
    assert set(pytrec_eval.__all__) <= set(drop_in.__all__)
    for nickname, measures in drop_in.supported_nicknames.items():
        assert measures == pytrec_eval.supported_nicknames[nickname]
    # The others name measures of preferences, which pytrec_eval itself does not know.
    for nickname in pytrec_eval.supported_nicknames.keys() - drop_in.supported_nicknames.keys():
        for module in (pytrec_eval, drop_in):
            with pytest.raises(ValueError, match="unsupported measure"):
                module.RelevanceEvaluator(SMALL.qrels, {nickname})


@pytest.mark.parametrize(
    ("measures", "outputs"),
    [
        ({"ndcg_cut.10"}, ["ndcg_cut_10"]),
        ({"ndcg_cut_10"}, ["ndcg_cut_10"]),
        ({"P_5,10"}, ["P_5", "P_10"]),
        ({"P.5", "P_10"}, ["P_5", "P_10"]),
        (("P", "P_3"), ["P_3"]),
        ({"success"}, ["success_1", "success_5", "success_10"]),
        ({"iprec_at_recall_0.10"}, ["iprec_at_recall_0.10"]),
        ({"iprec_at_recall.0.1,0.25"}, ["iprec_at_recall_0.10", "iprec_at_recall_0.25"]),
        ({"set_F_0.5"}, ["set_F"]),
        (["map", "map"], ["map"]),
        ([], []),
    ],
)
def test_parameters(measures: Any, outputs: list[str]) -> None:
    theirs = pytrec_eval.RelevanceEvaluator(SMALL.qrels, measures).evaluate(SMALL.run)
    ours = drop_in.RelevanceEvaluator(SMALL.qrels, measures).evaluate(SMALL.run)
    assert ours == theirs
    assert [set(values) for values in ours.values()] == [set(outputs)] * 3


@pytest.mark.parametrize(
    "measure",
    [
        "foo",
        "",
        "ndcg@10",
        "map_cut_",
        "P_5,",
        "P_-1",
        "P_five",
        "ndcg_cut_10x",
        # pytrec_eval ends the process on these.
        "P_0",
        "ndcg_10",
        "G.1",
        "Rndcg_1",
        "utility_1",
        "iprec_at_recall_1.50",
    ],
)
def test_an_unknown_measure_is_refused(measure: str) -> None:
    with pytest.raises(ValueError, match=r"unsupported measure|not supported|is below 1|not between 0 and 1"):
        drop_in.RelevanceEvaluator(SMALL.qrels, {measure})


class Text(str):
    """A str whose `__str__` returns another text."""

    def __str__(self) -> str:
        return "something else"


def test_every_kind_of_mapping_key_and_number_is_accepted() -> None:
    expected = drop_in.RelevanceEvaluator(SMALL.qrels, {"map", "ndcg"}).evaluate(SMALL.run)
    qrels: Any = {
        np.str_(query): MappingProxyType({Text(doc): np.int32(relevance) for doc, relevance in docs.items()})
        for query, docs in SMALL.qrels.items()
    }
    for kind in (dict, OrderedDict, UserDict, MappingProxyType, lambda data: defaultdict(dict, data)):
        run: Any = kind({Text(query): kind({np.str_(d): np.float64(s) for d, s in docs.items()})
                         for query, docs in SMALL.run.items()})  # fmt: skip
        for of in (SMALL.qrels, qrels, UserDict(qrels)):
            values = drop_in.RelevanceEvaluator(of, {"map", "ndcg"}).evaluate(run)
            assert values == expected
            assert {type(query) for query in values} == {str}
            assert {type(value) for of_query in values.values() for value in of_query.values()} == {float}


def test_whole_scores_and_booleans() -> None:
    qrels: Any = {"q": {"a": True, "b": False, "c": 1}}
    run: Any = {"q": {"a": 1, "b": 2, "c": True, "d": 2**70, "e": -5}}
    measures = {"map", "recip_rank", "num_rel"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    assert drop_in.RelevanceEvaluator(qrels, measures).evaluate(run) == theirs


@pytest.mark.parametrize(
    "run",
    [
        {},
        {"q1": {"d1": 1.0}},
        {"unjudged": {"d1": 1.0}, "q2": {"d1": 1.0}},
        {"q1": {"d1": float("inf"), "d3": float("-inf"), "x": 1e300, "y": -0.0}},
    ],
)
@pytest.mark.parametrize("qrels", [SMALL.qrels, {}, {"q1": {}}, {"q1": {}, "q2": {"d1": 1}}])
def test_empty_and_unjudged_queries(qrels: Any, run: Any) -> None:
    measures = pytrec_eval.supported_measures
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    assert drop_in.RelevanceEvaluator(qrels, measures).evaluate(run) == theirs


def test_an_empty_ranking_has_the_values_that_trec_eval_gives_a_missing_query() -> None:
    evaluator = drop_in.RelevanceEvaluator(SMALL.qrels, drop_in.supported_measures - {"relstring", "runid"})
    values = evaluator.evaluate({"q1": {}, "q2": {"d1": 1.0}})["q1"]
    assert values == evaluate(SMALL.qrels, {}, values, missing="zero").per_query()["q1"]
    assert {name: value for name, value in values.items() if value} == {
        "num_q": 1.0,
        "num_rel": 2.0,
        "gm_map": pytest.approx(math.log(1e-5)),
        "gm_bpref": pytest.approx(math.log(1e-5)),
    }


@pytest.mark.parametrize("qrels", [None, [1], 5, "q"])
def test_judgements_that_are_not_a_mapping_raise_what_pytrec_eval_raises(qrels: Any) -> None:
    for module in (pytrec_eval, drop_in):
        with pytest.raises(AttributeError, match="has no attribute 'items'"):
            module.RelevanceEvaluator(qrels, {"map"})
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'measures'"):
            module.RelevanceEvaluator(qrels)


@pytest.mark.parametrize("run", [[1], 5, "q"])
def test_a_run_that_is_not_a_mapping_raises_what_pytrec_eval_raises(run: Any) -> None:
    for module in (pytrec_eval, drop_in):
        with pytest.raises(TypeError, match="dict"):
            module.RelevanceEvaluator({"q": {"a": 1}}, {"map"}).evaluate(run)


def test_the_profile_of_2023_reads_scores_as_float64() -> None:
    """16777217 has no exact float32; as float32 it ties with 16777216, and the higher doc_id comes first."""
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 16_777_217.0, "b": 16_777_216.0}}
    of_2020 = drop_in.RelevanceEvaluator(qrels, {"recip_rank"})
    of_2023 = drop_in.RelevanceEvaluator(qrels, {"recip_rank"}, profile="trec_eval_2023")
    values = [evaluator.evaluate(run)["q"]["recip_rank"] for evaluator in (of_2020, of_2023)]
    assert values == [0.5, 1.0]
    assert pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)["q"]["recip_rank"] == 0.5


def test_judgements_are_copied() -> None:
    qrels = {"q": {"a": 1}}
    evaluator = drop_in.RelevanceEvaluator(qrels, {"recip_rank"})
    qrels["q"]["b"] = 1
    qrels["p"] = {"a": 1}
    run = {"q": {"b": 2.0, "a": 1.0}, "p": {"a": 1.0}}
    assert evaluator.evaluate(run) == {"q": {"recip_rank": 0.5}}
    assert evaluator.evaluate({"q": {"a": 2.0}}) == {"q": {"recip_rank": 1.0}}


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        ({"q": {"a": float("nan")}}, ValueError, r"run\['q'\]\['a'\]: the score is NaN"),
        ({"q": {"x": np.float64("nan"), "a": 1.0}}, ValueError, r"run\['q'\]\['x'\]: the score is NaN"),
        ({"q": {"a": "1"}}, TypeError, r"run\['q'\]\['a'\]: the score '1' is not a number"),
        ({"q": {"a": 10**400}}, ValueError, r"run\['q'\]\['a'\]: the score does not fit in float64"),
        ({"q": {1: 1.0}}, TypeError, r"run\['q'\]: the doc_id 1 is of type int; ids must be str"),
        ({1: {"a": 1.0}}, TypeError, "run: the query_id 1 is of type int; ids must be str"),
        ({"q": ["a"]}, TypeError, r"run\['q'\] is of type list, not a dict"),
        ({"q": None}, TypeError, r"run\['q'\] is of type NoneType, not a dict"),
    ],
)
def test_a_bad_run_is_refused(run: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        drop_in.RelevanceEvaluator({"q": {"a": 1}}, {"map"}).evaluate(run)


@pytest.mark.parametrize(
    ("qrels", "error", "message"),
    [
        ({1: {"a": 1}}, TypeError, "qrels: the query_id 1 is of type int; ids must be str"),
        ({"q": {1: 1}}, TypeError, "qrels: the doc_id 1 is of type int; ids must be str"),
        ({"q": {"a": 0.5}}, TypeError, r"qrels\['q'\]\['a'\]: the relevance 0.5 is not a whole number"),
        ({"q": {"a": "1"}}, TypeError, r"qrels\['q'\]\['a'\]: the relevance '1' is not a whole number"),
        ({"q": {"a": 2**40}}, ValueError, r"qrels\['q'\]\['a'\]: the relevance 1099511627776 does not fit in 32 bits"),
        ({"q": ["a"]}, TypeError, r"qrels\['q'\] is of type list, not a dict"),
    ],
)
def test_bad_judgements_are_refused(qrels: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        drop_in.RelevanceEvaluator(qrels, {"map"}).evaluate({"q": {"a": 1.0}})


@pytest.mark.parametrize("level", [0, -1, 2**31])
def test_an_invalid_relevance_level_is_refused(level: int) -> None:
    with pytest.raises(ValueError, match="relevance_level must be between 1 and"):
        drop_in.RelevanceEvaluator(SMALL.qrels, {"map"}, relevance_level=level)


RUN_LINES = ["q1 Q0 d1 1 2.5 tag\n", "q1\tQ0\td2\t2\t-1e3\ttag\r\n", "  q2 Q0 d1 1 inf tag"]
QRELS_LINES = ["q1 0 d1 1\n", "q1\t0\td2\t-1\r\n", "  q2 0 d1 2"]


def test_parsing() -> None:
    assert drop_in.parse_run(RUN_LINES) == pytrec_eval.parse_run(RUN_LINES)
    assert drop_in.parse_qrel(QRELS_LINES) == pytrec_eval.parse_qrel(QRELS_LINES)
    assert drop_in.parse_run([]) == drop_in.parse_qrel([]) == {}


def test_malformed_lines_are_refused_with_their_number() -> None:
    with pytest.raises(ValueError, match="run, line 2: has 5 columns, expected 6"):
        drop_in.parse_run([RUN_LINES[0], "q1 Q0 d2 1 2.5"])
    with pytest.raises(ValueError, match="qrels, line 1: has 0 columns, expected 4"):
        drop_in.parse_qrel(["\n"])
    with pytest.raises(ValueError, match=r"run, line 1: .*'two'"):
        drop_in.parse_run(["q1 Q0 d1 1 two tag"])
    with pytest.raises(ValueError, match=r"qrels, line 2: .*'0.5'"):
        drop_in.parse_qrel([QRELS_LINES[0], "q1 0 d2 0.5"])
    for module in (drop_in, pytrec_eval):
        with pytest.raises(AssertionError):
            module.parse_run(RUN_LINES[:1] * 2)
        with pytest.raises(AssertionError):
            module.parse_qrel(QRELS_LINES[:1] * 2)


@given(
    st.sampled_from(["map", "num_ret", "gm_map", "P_5"]),
    st.lists(st.floats(-20, 20), min_size=1, max_size=50),
)
def test_aggregates(measure: str, values: list[float]) -> None:
    expected = pytrec_eval.compute_aggregated_measure(measure, values)
    assert drop_in.compute_aggregated_measure(measure, values) == expected


def test_no_values_have_no_mean() -> None:
    assert drop_in.compute_aggregated_measure("num_ret", []) == 0.0
    with pytest.raises(ValueError, match="map: there are no values, so there is no mean"):
        drop_in.compute_aggregated_measure("map", [])
