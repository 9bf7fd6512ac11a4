import polars as pl
import pytest

from rageval_spec.errors import DataError
from rageval_spec.metrics.target_rank import TargetRank, TargetRankNode
from rageval_spec.plugin import Context
from rageval_spec.tables import Collection

QRELS = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
RUN = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}


def target_rank(
    qrels: list[tuple[str, str, int]], run: list[tuple[str, str, float]], **keys: int
) -> dict[str, tuple[float | None, str, str | None]]:
    """`{query_id: (value, status, reason)}`."""
    collection = Collection("c", lambda: pl.DataFrame(qrels, QRELS, orient="row"))
    metric = TargetRank(TargetRankNode.model_validate({"use": "target_rank", **keys}), Context("target_rank"))
    table = metric.compute(collection, pl.DataFrame(run, RUN, orient="row"))
    assert table.columns == ["query_id", "value", "status", "reason"]
    return {query: (value, status, reason) for query, value, status, reason in table.iter_rows()}


def test_hand_worked() -> None:
    # q1: x (3.0) stands before a (2.0): rank 2. q2: a is first. q3: a was not retrieved. q4 is not in the run.
    qrels = [("q1", "a", 1), ("q2", "a", 2), ("q2", "n", 0), ("q3", "a", 1), ("q4", "a", 1)]
    run = [("q1", "x", 3.0), ("q1", "a", 2.0), ("q1", "y", 1.0), ("q2", "a", 9.0), ("q3", "x", 1.0)]
    values = target_rank(qrels, run)
    missed = (None, "unscorable", "missed")
    assert values == {"q1": (2.0, "scored", None), "q2": (1.0, "scored", None), "q3": missed, "q4": missed}
    assert list(values) == ["q1", "q2", "q3", "q4"]


def test_queries_without_one_target() -> None:
    qrels = [("none", "a", 0), ("none", "b", -1), ("two", "a", 1), ("two", "b", 3)]
    run = [("none", "a", 1.0), ("two", "a", 1.0)]
    assert target_rank(qrels, run) == {
        "none": (None, "unscorable", "no relevant document"),
        "two": (None, "unscorable", "2 relevant documents, not one target"),
    }
    assert target_rank(qrels, [*run, ("two", "b", 0.5)], rel=3)["two"] == (2.0, "scored", None)


def test_ties_are_ordered_as_in_trec_eval() -> None:
    # 1.0 and 1.00000001 are one float32; of the tied b, c and a, c and b (ids descending) stand before a: rank 3
    run = [("q", "a", 1.00000001), ("q", "b", 1.0), ("q", "c", 1.0), ("q", "d", 0.5)]
    assert target_rank([("q", "a", 1)], run) == {"q": (3.0, "scored", None)}


def test_cutoff() -> None:
    run = [("q", "x", 2.0), ("q", "a", 1.0)]
    assert target_rank([("q", "a", 1)], run, cutoff=2) == {"q": (2.0, "scored", None)}
    assert target_rank([("q", "a", 1)], run, cutoff=1) == {"q": (None, "unscorable", "missed")}


def test_large_ranks_are_whole_numbers() -> None:
    run = [("q", f"d{number}", float(-number)) for number in range(1, 5000)]
    for target in (3, 49, 4999):
        assert target_rank([("q", f"d{target}", 1)], run) == {"q": (float(target), "scored", None)}


def test_duplicates_count_once() -> None:
    run = [("q", "x", 3.0), ("q", "x", 2.0), ("q", "a", 1.0), ("q", "a", 9.0)]
    assert target_rank([("q", "a", 1)], run) == {"q": (2.0, "scored", None)}


def test_empty_run_and_no_judgements() -> None:
    assert target_rank([("q", "a", 1)], []) == {"q": (None, "unscorable", "missed")}
    assert target_rank([], []) == {}
    metric = TargetRank(TargetRankNode(use="target_rank"), Context("target_rank"))
    with pytest.raises(DataError, match="dataset 'c' has no relevance judgements"):
        metric.compute(Collection("c"), pl.DataFrame(schema=RUN))


def test_name() -> None:
    node = TargetRankNode(use="target_rank", cutoff=10, rel=2)
    assert TargetRank(node, Context("target_rank")).name == "target_rank(rel=2)@10"
