from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.tables import Collection
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import DataError
from rageval_spec.plugin import Retrieval
from rageval_spec.plugin.block_names import names_in
from rageval_spec.spec import loads
from tests.plugins import build_system

Rankings = Mapping[str, Mapping[str, float]]
NOWHERE = Collection("nowhere")


def make_run(rankings: Rankings) -> pl.DataFrame:
    rows = [
        (query_id, doc_id, score)
        for query_id, ranking in rankings.items()
        for doc_id, score in sorted(ranking.items(), key=lambda item: (item[1], item[0].encode()), reverse=True)
    ]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")


def fuse(runs: Mapping[str, Rankings], **keys: Any) -> Retrieval:
    system = build_system("hybrid", **{"systems": tuple(runs), **keys})
    found = system.retrieve(NOWHERE, {name: make_run(rankings) for name, rankings in runs.items()})
    assert isinstance(found, Retrieval)
    return found


def scores_of(found: Retrieval) -> dict[tuple[str, str], float]:
    return {(query_id, doc_id): score for query_id, doc_id, score in found.run.rows()}


TWO = {"lexical": {"q1": {"a": 9.0, "b": 5.0, "c": 1.0}}, "dense": {"q1": {"b": 0.5, "d": 0.25}}}


def test_reciprocal_ranks_by_hand() -> None:
    found = fuse(TWO)
    assert found.run["doc_id"].to_list() == ["b", "a", "d", "c"]
    assert found.run["score"].to_list() == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63])
    assert found.written_notes == ()


def test_k_and_weights_of_reciprocal_ranks() -> None:
    scores = scores_of(fuse(TWO, k=0, weights=(1, 4)))
    assert scores == pytest.approx({("q1", "a"): 1, ("q1", "b"): 4.5, ("q1", "c"): 1 / 3, ("q1", "d"): 2})


def test_weighted_scores_by_hand() -> None:
    scores = scores_of(fuse(TWO, method="weighted", weights=(3, 1)))
    assert scores == pytest.approx({("q1", "a"): 3, ("q1", "b"): 2.5, ("q1", "c"): 0, ("q1", "d"): 0})
    scores = scores_of(fuse(TWO, method="weighted", normalization="none"))
    assert scores == pytest.approx({("q1", "a"): 9, ("q1", "b"): 5.5, ("q1", "c"): 1, ("q1", "d"): 0.25})
    scores = scores_of(fuse(TWO, method="weighted", normalization="max"))
    assert scores == pytest.approx({("q1", "a"): 1, ("q1", "b"): 5 / 9 + 1, ("q1", "c"): 1 / 9, ("q1", "d"): 0.5})


def test_weights_by_name_equal_weights_in_the_order_of_the_systems() -> None:
    by_name = fuse(TWO, weights={"dense": 4, "lexical": 1})
    assert by_name.run.equals(fuse(TWO, weights=(1, 4)).run)
    assert not by_name.run.equals(fuse(TWO, weights=(4, 1)).run)


RANKINGS = st.dictionaries(
    st.sampled_from(["q1", "q2"]), st.dictionaries(st.sampled_from("abcdé"), st.integers(-3, 3), min_size=1), max_size=2
)


@given(runs=st.lists(RANKINGS, min_size=2, max_size=4), k=st.integers(0, 90), depth=st.integers(1, 6))
def test_agrees_with_summing_up_reciprocal_ranks(runs: list[Rankings], k: int, depth: int) -> None:
    expected: list[tuple[str, str, float]] = []
    for query_id in dict.fromkeys(query_id for run in runs for query_id in run):
        sums: dict[str, float] = {}
        for run in runs:
            ranked = sorted(run.get(query_id, {}).items(), key=lambda item: (item[1], item[0].encode()), reverse=True)
            for rank, (doc_id, _) in enumerate(ranked, 1):
                sums[doc_id] = sums.get(doc_id, 0.0) + 1 / (k + rank)
        best = sorted(sums.items(), key=lambda item: (as_float32(item[1]), item[0].encode()), reverse=True)[:depth]
        expected += [(query_id, doc_id, score) for doc_id, score in best]
    found = fuse({f"s{number}": run for number, run in enumerate(runs)}, k=k, depth=depth).run
    assert found.select("query_id", "doc_id").rows() == [row[:2] for row in expected]
    assert found["score"].to_list() == pytest.approx([row[2] for row in expected], rel=1e-12)


def as_float32(number: float) -> float:
    return float(pl.Series([number]).cast(pl.Float32)[0])


def test_a_query_that_only_some_systems_have_is_ranked_by_those_and_counted() -> None:
    runs: dict[str, Rankings] = {
        "lexical": {"q1": {"a": 1.0}},
        "dense": {"q2": {"b": 2.0}, "q1": {"a": 1.0}},
        "empty": {},
    }
    found = fuse(runs)
    assert found.run.select("query_id", "doc_id").rows() == [("q1", "a"), ("q2", "b")]
    assert [(note.code, note.message, note.count) for note in found.written_notes] == [
        ("queries_without_documents", "lexical has no documents for 1 of 2 queries", 1),
        ("queries_without_documents", "empty has no documents for 2 of 2 queries", 2),
    ]


def test_empty_runs_give_an_empty_run() -> None:
    found = fuse({"lexical": {}, "dense": {}})
    assert found.run.height == 0 and found.written_notes == ()
    assert dict(found.run.schema) == {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}


def test_other_systems_runs_are_left_alone() -> None:
    system = build_system("hybrid", systems=("b", "a"), weights=(0, 1))
    runs = {name: make_run({"q": {name: 1.0}}) for name in ("a", "b", "c")}
    found = system.retrieve(NOWHERE, runs)
    assert isinstance(found, Retrieval)
    assert found.run.rows() == [("q", "a", 1 / 61), ("q", "b", 0.0)]


def test_a_run_that_cannot_be_fused_is_named() -> None:
    runs: dict[str, Rankings] = {"lexical": {"q": {"a": 1.0}}, "dense": {"q": {"a": 1.0, "b": float("inf")}}}
    with pytest.raises(
        DataError, match=r"^the run of 'dense', row \d+: the score of document .?b.? for query .?q.? is"
    ):
        fuse(runs)
    with pytest.raises(DataError, match=r"^the run of 'lexical'.*the highest is -1"):
        fuse({"lexical": {"q": {"a": -1.0}}, "dense": {}}, method="weighted", normalization="max")


def test_the_node_names_its_systems_in_order() -> None:
    node = build_system("hybrid", systems=("b", "a")).node
    assert names_in(node, "systems") == ("b", "a")


SPEC = """\
version: 1
datasets: {golden: {use: trec, qrels: qrels.txt}}
systems:
  a: {use: bm25}
  b: {use: bm25, k1: 1}
  fused: {use: hybrid, KEYS}
metrics: [ndcg@10]
"""


@pytest.mark.parametrize(
    ("keys", "marked", "message"),
    [
        ("systems: [a]", "systems", "'systems' must have at least 2 entries, but has 1"),
        ("systems: [a, b, a]", "systems", "'systems': 'a' is listed twice; list it once, and give it a weight instead"),
        ("systems: [a, b], weights: [1, -1]", "weights", "'weights': a weight must be at least 0, not -1"),
        ("systems: [a, b], weights: {a: 1, b: -0.5}", "weights", "'weights': a weight must be at least 0, not -0.5"),
        (
            "systems: [a, b], weights: [0, 0.0]",
            "weights",
            "'weights': all weights are 0; give at least one system a weight above 0",
        ),
        ("systems: [a, b], weights: [1]", "weights", "'weights': 1 weight for 2 systems; give each system one weight"),
        ("systems: [a, b], weights: {c: 2}", "weights", "'weights': 'c' is not among 'systems:', which has a, b"),
        ("systems: [a, b], weights: {a: 1}", "weights", "'weights': 'b' has no weight; write 0 if it should not count"),
        ("systems: [a, b], weights: [1, x]", "x", "expected a number, found the text 'x'"),
        ("systems: [a, b], weights: 2", "2", "expected a list or a mapping, found the number 2"),
        ("systems: [a, b], k: -1", "-1", "'k' must be at least 0, not the number -1"),
        ("systems: [a, b], k: 7, method: weighted", "7", "'k': only 'method: rrf' reads it"),
        ("systems: [a, b], normalization: max", "max", "'normalization': only 'method: weighted' reads it"),
        ("systems: [a, b], method: rff", "rff", "expected rrf or weighted, found the text 'rff'"),
    ],
)
def test_errors_in_the_block_point_to_their_key(keys: str, marked: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        loads(SPEC.replace("KEYS", keys), check_files=False)
    (diagnostic,) = raised.value.diagnostics
    at = diagnostic.source_line[diagnostic.position.column - 1 :][: diagnostic.position.width]
    assert (diagnostic.position.line, at) == (6, marked)
    assert diagnostic.message.startswith(message)


def test_settings_of_either_method_are_read() -> None:
    for keys in ("k: 10, weights: [0, 2]", "method: weighted, normalization: none, weights: {b: 1, a: 0.5}"):
        assert "fused" in loads(SPEC.replace("KEYS", f"systems: [a, b], {keys}"), check_files=False).systems
