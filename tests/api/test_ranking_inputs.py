"""Every form of judgements and runs that `rageval_spec.evaluate` takes, and what it refuses in them."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RBP, RR, NumRel, NumRet, P, SetAP, SetF, SetP, Success, nDCG

from rageval_spec import evaluate
from rageval_spec.api.ranking_inputs import measure_name, measure_text
from rageval_spec.errors import DataError, UsageError
from rageval_spec.kernels import parse_measure
from tests.api.forms import FORMS, MEASURES, ONE_WORD, QRELS, RUN, as_polars, as_rows, qrels_text, run_text, values_of
from tests.rankings import SMALL, Collection, collections
from tests.reference import ranking as reference
from tests.reference.ranking import Measure, Settings


@pytest.fixture
def expected() -> dict[str, dict[str, Any]]:
    """The values of the small collection, computed by the slow reference, in the order of `Results`."""
    measures = [
        Measure("ndcg", 3),
        Measure("ndcg"),
        Measure("map"),
        Measure("rr"),
        Measure("precision", 2),
        Measure("recall", 2),
        Measure("bpref"),
        Measure("num_ret"),
        Measure("judged", 3),
        Measure("infap"),
        Measure("gm_map"),
    ]
    shared = sorted(query for query in SMALL.qrels if query in SMALL.run)
    return {
        query: {
            name: pytest.approx(reference.value(measure, query, SMALL.qrels[query], tuple_of(query), Settings()))
            for name, measure in zip(MEASURES, measures, strict=True)
        }
        for query in shared
    }


def tuple_of(query: str) -> list[tuple[str, float]]:
    return list(SMALL.run[query].items())


@pytest.mark.parametrize("run_form", FORMS)
@pytest.mark.parametrize("qrels_form", ["dicts", "polars", "pyarrow dictionaries", "arrays"])
def test_every_form_gives_the_same_values(
    expected: dict[str, dict[str, float]], qrels_form: str, run_form: str
) -> None:
    values = values_of(FORMS[qrels_form](SMALL.qrels, "relevance"), FORMS[run_form](SMALL.run, "score"))
    assert values == expected
    assert list(values) == ["q1", "q2", "ünï 文"]
    assert values == values_of(SMALL.qrels, SMALL.run)


@pytest.mark.parametrize("qrels_form", FORMS)
@pytest.mark.parametrize("run_form", ["dicts", "polars"])
def test_every_form_of_judgements_gives_the_same_values(qrels_form: str, run_form: str) -> None:
    values = values_of(FORMS[qrels_form](SMALL.qrels, "relevance"), FORMS[run_form](SMALL.run, "score"))
    assert values == values_of(SMALL.qrels, SMALL.run)


@pytest.mark.parametrize("form", ["dicts", "mapping", "polars", "pandas category", "pyarrow chunks", "arrays"])
def test_files_can_be_combined_with_every_form(files: Collection, form: str) -> None:
    expected = values_of(*ONE_WORD)
    assert values_of(files.qrels, FORMS[form](ONE_WORD.run, "score")) == expected
    assert values_of(FORMS[form](ONE_WORD.qrels, "relevance"), files.run) == expected
    assert values_of(files.qrels, files.run) == expected
    assert values_of(str(files.qrels), str(files.run)) == expected


def test_packed_files_and_beirs_layout(files: Collection, tmp_path: Path) -> None:
    lines = "".join(f"{query}\t{doc}\t{value}\n" for query, doc, value in as_rows(ONE_WORD.qrels))
    beir, run = tmp_path / "qrels.tsv.gz", tmp_path / "run.zst"
    beir.write_bytes(gzip.compress(("query-id\tcorpus-id\tscore\n" + lines).encode(), mtime=0))
    run.write_bytes(zstandard.compress(Path(str(files.run)).read_bytes()))
    assert values_of(beir, run) == values_of(*ONE_WORD)
    assert values_of(beir, ONE_WORD.run) == values_of(*ONE_WORD)


def test_frames_can_have_whole_numbers_as_ids(expected: object) -> None:
    qrels = pl.DataFrame({"query_id": [1, 1], "doc_id": [10, 9], "relevance": [1, 0]})
    for kind in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64):
        run = pl.DataFrame({"query_id": ["1", "1"], "doc_id": [9, 10], "score": [1, 1]}).cast({"doc_id": kind})
        # As text '9' comes before '10' in descending order.
        assert evaluate(qrels, run, ["rr"]).per_query() == {"1": {"rr": 0.5}}
    arrays = {"query_id": np.array([1, 1]), "doc_id": np.array([9, 10]), "score": np.array([1, 2], dtype=np.float16)}
    assert evaluate(qrels, arrays, ["rr"])["rr"] == 1.0


WHOLE_NUMBERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


@given(st.data(), st.sampled_from(WHOLE_NUMBERS), st.booleans())
def test_a_whole_number_as_id_equals_the_text_of_its_digits(data: st.DataObject, kind: Any, apart: bool) -> None:
    limits = np.iinfo(str(kind).lower())
    lowest, highest = int(limits.min), int(limits.max)
    ends = st.sampled_from([lowest, lowest + 1, 0, 9, 10, 99, 100, highest])
    docs = data.draw(st.lists(ends | st.integers(lowest, highest), min_size=1, max_size=12, unique=True))
    queries = [docs[0], docs[-1]] if apart else [docs[0]]
    rows = [(query, doc, len(docs) // 2 - row // 2) for row, doc in enumerate(docs) for query in dict.fromkeys(queries)]
    run = pl.DataFrame(rows, {"query_id": kind, "doc_id": kind, "score": pl.Int64}, orient="row")
    qrels = run.select("query_id", "doc_id", relevance=pl.int_range(pl.len()) % 3)
    ids = pl.col("query_id", "doc_id").cast(pl.String)
    assert values_of(qrels, run) == values_of(qrels.with_columns(ids), run.with_columns(ids))


@pytest.mark.parametrize("empty", [pl.DataFrame(), pl.DataFrame().to_arrow()], ids=["polars", "pyarrow"])
def test_a_frame_without_columns_is_said_to_be_empty(empty: Any) -> None:
    with pytest.raises(ValueError, match=r"^qrels is empty: it has no columns; give query_id, doc_id and relevance$"):
        evaluate(empty, {"q": {"d": 1.0}}, ["map"])
    with pytest.raises(ValueError, match=r"^run is empty: it has no columns; give query_id, doc_id and score$"):
        evaluate({"q": {"d": 1}}, empty, ["map"])


def test_booleans_are_1_and_0_in_every_form() -> None:
    qrels: Any = {"q": {"a": True, "b": False, "c": True}}
    expected = values_of({"q": {"a": 1, "b": 0, "c": 1}}, {"q": {"b": 3.0, "a": 2.0}})
    run = {"q": {"b": 3.0, "a": 2.0}}
    frame = pl.DataFrame(as_rows(qrels), ["query_id", "doc_id", "relevance"], orient="row")
    arrays = {
        "query_id": np.array(["q"] * 3),
        "doc_id": np.array(["a", "b", "c"]),
        "relevance": np.array([1, 0, 1]) == 1,
    }
    for form in (qrels, frame, frame.to_pandas(), frame.to_arrow(), arrays):
        assert values_of(form, run) == expected
        assert values_of(form, as_polars(run, "score")) == expected


@settings(max_examples=150)
@given(collections(), st.sampled_from(["skip", "zero"]))
def test_dicts_and_frames_agree(collection: Collection, missing: Any) -> None:
    """Queries without documents are excluded, because frames cannot represent them."""
    run = {query: docs for query, docs in collection.run.items() if docs}
    from_dicts = values_of(collection.qrels, run, missing=missing, drop_self=True)
    qrels_frame, run_frame = as_polars(collection.qrels, "relevance"), as_polars(run, "score")
    assert values_of(qrels_frame, run_frame, missing=missing, drop_self=True) == from_dicts
    assert values_of(qrels_frame, run, missing=missing, drop_self=True) == from_dicts
    assert values_of(collection.qrels, run_frame, missing=missing, drop_self=True) == from_dicts


@settings(max_examples=50)
@given(collections(min_retrieved=1).filter(lambda collection: collection.run))
def test_dicts_and_files_agree(collection: Collection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder, "qrels"), Path(folder, "run")
        qrels.write_text(qrels_text(collection.qrels), "utf-8")
        run.write_text(run_text(collection.run), "utf-8")
        expected = values_of(*collection)
        assert values_of(qrels, run) == expected
        assert values_of(qrels, collection.run) == expected
        assert values_of(collection.qrels, run) == expected


def test_a_run_whose_queries_are_not_contiguous() -> None:
    run = as_polars(SMALL.run, "score").sort("doc_id")
    assert run["query_id"].n_unique() < (run["query_id"] != run["query_id"].shift()).sum()
    assert values_of(SMALL.qrels, run) == values_of(*SMALL)


def large() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The run has 400,000 rows and many ties."""
    generator = np.random.default_rng(3)
    queries, documents = 400, 1000
    ids = generator.permuted(np.tile(np.arange(1500), (queries, 1)), axis=1)[:, :documents]
    run = pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(queries), documents),
            "doc_id": ids.ravel(),
            "score": generator.integers(0, 200, queries * documents) / 7,
        }
    ).cast({"query_id": pl.String, "doc_id": pl.String})
    qrels = run.sample(20_000, seed=1).select("query_id", "doc_id", pl.lit(1, pl.Int64).alias("relevance"))
    return qrels, run


def test_threads_and_chunks_do_not_change_a_byte() -> None:
    qrels, run = large()
    one = evaluate(qrels, run, MEASURES, threads=1, tie_range=True)
    chunks = pl.concat([run[start : start + 33_333] for start in range(0, run.height, 33_333)], rechunk=False)
    for form, threads in ((run, 2), (run, 7), (chunks, 3), (run.sample(fraction=1, shuffle=True, seed=2), None)):
        other = evaluate(qrels, form, MEASURES, threads=threads, tie_range=True)
        assert other.to_polars().equals(one.to_polars())
        assert (other.means, other.tie_range, other.tied_queries) == (one.means, one.tie_range, one.tied_queries)


# --- What is refused ---

NAN = float("nan")

BAD_DICTS: list[tuple[Any, Any, type[Exception], str]] = [
    (QRELS, {"q": {"a": NAN}}, ValueError, r"run\['q'\]\['a'\]: the score is NaN"),
    (QRELS, {"q": {"a": 1.0, "x": NAN}}, ValueError, r"run\['q'\]\['x'\]: the score is NaN"),
    (QRELS, {"q": {"a": 1.0, "x": np.float32("nan")}}, ValueError, r"run\['q'\]\['x'\]: the score is NaN"),
    (QRELS, {"q": {"a": "1.5"}}, TypeError, r"run\['q'\]\['a'\]: the score '1.5' is not a number"),
    (QRELS, {"q": {"x": None}}, TypeError, r"run\['q'\]\['x'\]: the score None is not a number"),
    (QRELS, {"q": {"x": 10**400}}, ValueError, r"run\['q'\]\['x'\]: the score does not fit in float64"),
    (QRELS, {"q": {1: 1.0}}, TypeError, r"run\['q'\]: the doc_id 1 is of type int; ids must be str"),
    (QRELS, {"q": {b"a": 1.0}}, TypeError, r"run\['q'\]: the doc_id b'a' is of type bytes"),
    (QRELS, {1: {"a": 1.0}}, TypeError, r"run: the query_id 1 is of type int; ids must be str"),
    (QRELS, {"q": ["a"]}, TypeError, r"run\['q'\] is of type list, not a dict of doc_id to score"),
    (QRELS, {"q": None}, TypeError, r"run\['q'\] is of type NoneType, not a dict"),
    ({1: {"a": 1}}, RUN, TypeError, "qrels: the query_id 1 is of type int; ids must be str"),
    ({"q": {1: 1}}, RUN, TypeError, "qrels: the doc_id 1 is of type int; ids must be str"),
    ({"q": ["a"]}, RUN, TypeError, r"qrels\['q'\] is of type list, not a dict of doc_id to relevance"),
    ({"q": {"a": 0.5}}, RUN, TypeError, r"qrels\['q'\]\['a'\]: the relevance 0.5 is not a whole number"),
    ({"q": {"a": NAN}}, RUN, TypeError, r"qrels\['q'\]\['a'\]: the relevance nan is not a whole number"),
    ({"q": {"a": float("inf")}}, RUN, TypeError, r"qrels\['q'\]\['a'\]: the relevance inf is not a whole number"),
    ({"q": {"a": "1"}}, RUN, TypeError, r"qrels\['q'\]\['a'\]: the relevance '1' is not a whole number"),
    ({"q": {"a": None}}, RUN, TypeError, r"qrels\['q'\]\['a'\]: the relevance None is not a whole number"),
    ({"q": {"a": 2**31}}, RUN, ValueError, r"qrels\['q'\]\['a'\]: the relevance 2147483648 does not fit in 32 bits"),
    ({"q": {"a": -(10**30)}}, RUN, ValueError, r"qrels\['q'\]\['a'\]: the relevance -1000+ does not fit in 32 bits"),
    ({"q": {"a": 3e9}}, RUN, ValueError, r"qrels\['q'\]\['a'\]: the relevance 3000000000.0 does not fit in 32 bits"),
]


@pytest.mark.parametrize(("qrels", "run", "error", "message"), BAD_DICTS, ids=[case[3] for case in BAD_DICTS])
def test_a_bad_entry_is_named(qrels: Any, run: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate(qrels, run, "rr")
    for other in (MappingProxyType(qrels), qrels):
        with pytest.raises(error, match=message):
            evaluate(other, MappingProxyType(run), "rr")


@pytest.mark.parametrize("case", [case for case in BAD_DICTS if case[1] is RUN], ids=lambda case: case[3])
def test_a_bad_judgement_is_named_with_every_form_of_run(case: tuple[Any, Any, Any, str], files: Collection) -> None:
    qrels, _, error, message = case
    for run in (as_polars(RUN, "score"), files.run):
        with pytest.raises(error, match=message):
            evaluate(qrels, run, "rr")


@pytest.mark.parametrize("case", [case for case in BAD_DICTS if case[0] is QRELS], ids=lambda case: case[3])
def test_a_bad_score_is_named_with_every_form_of_qrels(case: tuple[Any, Any, Any, str], tmp_path: Path) -> None:
    _, run, error, message = case
    (tmp_path / "qrels").write_text(qrels_text(QRELS))
    for qrels in (as_polars(QRELS, "relevance"), tmp_path / "qrels"):
        with pytest.raises(error, match=message):
            evaluate(qrels, run, "rr")


def frame(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, 2.0], **columns})


BAD_RUNS: list[tuple[Any, type[Exception], str]] = [
    (frame().rename({"query_id": "qid"}), ValueError, "run has no column 'query_id'; its columns are qid, doc_id, sc"),
    (frame().drop("score"), ValueError, "run has no column 'score'; its columns are query_id, doc_id"),
    (pl.DataFrame(), ValueError, "run is empty: it has no columns; give query_id, doc_id and score"),
    (frame(query_id=["q", None]), ValueError, "run, row 1: query_id is null"),
    (frame(doc_id=[None, "b"]), ValueError, "run, row 0: doc_id is null"),
    (frame(doc_id=[None, None]), ValueError, "run, row 0: doc_id is null"),
    (frame(score=[1.0, None]), ValueError, "run, row 1: score is null"),
    (frame(score=[None, None]), ValueError, "run, row 0: score is null"),
    (frame(score=[1.0, NAN]), DataError, "run, row 1: the score of document 'b' for query 'q' is NaN"),
    (frame(score=["1", "2"]), TypeError, "run: column 'score' is Utf8View, expected numbers"),
    (frame(query_id=[1.0, 2.0]), TypeError, "run: column 'query_id' is Float64, expected text or whole numbers"),
    (frame(doc_id=[b"a", b"b"]), TypeError, "run: column 'doc_id' is BinaryView, expected text or whole numbers"),
    (frame(score=[[1.0], [2.0]]), TypeError, r"run: column 'score' is LargeList\(.*\), expected numbers"),
    (pl.Series([1, 2]), ValueError, "run cannot be read: .*"),
    (pa.chunked_array([[1, 2]]), ValueError, "run cannot be read: .*"),
    (
        pa.table(
            {
                "query_id": ["q", "q"],
                "doc_id": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])),
                "score": [1.0, 2.0],
            }
        ),
        ValueError,
        "run, row 1: doc_id is null",
    ),
    ({"query_id": ["q"], "doc_id": ["a"]}, UsageError, "run has no column 'score'; its columns are query_id, doc_id"),
    (
        {"query_id": ["q"], "docid": ["a"], "score": [1.0]},
        UsageError,
        "run has no column 'doc_id'; its .* docid, score",
    ),
    ({"query_id": ["q"], "doc_id": ["a"], "score": [1.0, 2.0]}, UsageError, "do not form a table: .*height"),
    (
        {"query_id": np.array([b"\xff"]), "doc_id": ["a"], "score": [1.0]},
        UsageError,
        "do not form a table: 'utf-8' codec",
    ),
    (
        {"query_id": ["q"], "doc_id": ["a"], "score": np.ma.array([1.0], mask=[True])},
        ValueError,
        "run, row 0: score is",
    ),
    (None, UsageError, "run is of type NoneType; give a dict of dicts"),
    ([RUN], UsageError, "run is of type list; give a dict of dicts"),
    (Path("nowhere", "run.txt"), DataError, "run.txt: cannot be read: no such file"),
    ("run\0.txt", DataError, "cannot be read"),
    ("", DataError, "cannot be read"),
]


@pytest.mark.parametrize(("run", "error", "message"), BAD_RUNS, ids=[case[2] for case in BAD_RUNS])
def test_a_bad_run_is_refused(run: Any, error: type[Exception], message: str) -> None:
    for qrels in (QRELS, as_polars(QRELS, "relevance")):
        with pytest.raises(error, match=message):
            evaluate(qrels, run, "rr")


BAD_QRELS: list[tuple[Any, type[Exception], str]] = [
    (frame(), ValueError, "qrels has no column 'relevance'; its columns are query_id, doc_id, score"),
    (frame(relevance=[1, None]), ValueError, "qrels, row 1: relevance is null"),
    (frame(relevance=[1.0, 0.5]), DataError, "qrels, row 1: the relevance 0.5 is not a whole number"),
    (frame(relevance=[1.0, NAN]), DataError, "qrels, row 1: the relevance NaN is not a whole number"),
    (frame(relevance=[1, 2**31]), DataError, "qrels, row 1: the relevance 2147483648 does not fit in 32 bits"),
    (None, UsageError, "qrels is of type NoneType; give a dict of dicts, a frame with the columns .* and relevance"),
]


@pytest.mark.parametrize(("qrels", "error", "message"), BAD_QRELS, ids=[case[2] for case in BAD_QRELS])
def test_bad_qrels_are_refused(qrels: Any, error: type[Exception], message: str) -> None:
    for run in (RUN, as_polars(RUN, "score")):
        with pytest.raises(error, match=message):
            evaluate(qrels, run, "rr")


def test_bad_lines_are_refused_with_their_place(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q 0 a 1\nq 0 b one\n")
    run.write_text("q Q0 a 1 1.0 t\nq Q0 b 2 two t\n")
    for other in (RUN, as_polars(RUN, "score"), run):
        with pytest.raises(DataError, match=r"qrels:2: "):
            evaluate(qrels, other, "rr")
    for judged in (QRELS, as_polars(QRELS, "relevance")):
        with pytest.raises(DataError, match=r"run:2: "):
            evaluate(judged, run, "rr")


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
