"""Only some queries of a dataset are evaluated, and their tables are not taken for those of all.

The queries of a dataset that are evaluated.

The random order of questions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.pipeline.planning.question_selection import (
    judged_queries,
    list_ids,
    queries_to_ask,
    restrict,
    shuffle,
    sorted_ids,
)
from rageval_spec.runner import Options, plan, run


def write(folder: Path) -> Path:
    rows = [{"id": f"q{row}", "question": "?", "answer": "a b", "reference": "a b" if row else "c"} for row in range(6)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "version": 1,
        "datasets": {name: {"use": "jsonl", "path": "rows.jsonl"} for name in ("first", "second")},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "metrics": ["token_f1"],
    }
    (folder / "spec.yaml").write_text(json.dumps(spec))
    return folder / "spec.yaml"


def find(path: Path, queries: dict[str, set[str]]) -> dict[str, list[str]]:
    values = run(path, Options(output=None, no_history=True, queries=queries)).evaluation.values
    return {name: values.filter(dataset=name)["query_id"].to_list() for name in ("first", "second")}


def test_only_the_wanted_queries_have_values(tmp_path: Path) -> None:
    path, everything = write(tmp_path), [f"q{row}" for row in range(6)]
    assert find(path, {"first": {"q2", "q0", "absent"}}) == {"first": ["q0", "q2"], "second": everything}
    assert find(path, {}) == {"first": everything, "second": everything}
    assert find(path, {"first": {"q1"}, "second": {"q5"}}) == {"first": ["q1"], "second": ["q5"]}


def test_each_part_has_tables_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path)

    def key(queries: dict[str, set[str]]) -> str:
        steps = plan(path, Options(queries=queries)).plan.steps
        return next(step.key for step in steps if step.kind == "evaluate" and step.dataset == "first")

    whole = key({})
    assert key({"second": {"q1"}}) == whole
    assert len({whole, key({"first": {"q1"}}), key({"first": {"q1", "q2"}})}) == 3
    assert key({"first": {"q2", "q1"}}) == key({"first": {"q1", "q2"}})


def test_a_dataset_without_any_of_them_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="dataset 'first' has none of the 2 wanted queries"):
        find(write(tmp_path), {"first": {"x", "y"}})


QUERIES = {"q1": "one", "q2": "two", "q3": "three"}


def collect(
    judged: Sequence[str] | None, references: Sequence[str] | None = None, queries: Mapping[str, str] = QUERIES
) -> Collection:
    asked = pl.DataFrame({"query_id": list(queries), "text": list(queries.values())}, schema=["query_id", "text"])
    qrels = None if judged is None else pl.DataFrame({"query_id": judged, "doc_id": "d", "relevance": 1})
    gold = None if references is None else pl.DataFrame({"query_id": references})
    return Collection(
        "golden",
        load_queries=lambda: asked,
        load_qrels=None if qrels is None else lambda: qrels,
        load_references=None if gold is None else lambda: gold,
        why_no_qrels="qrels.tsv is not there",
    )


def asked(collection: Collection) -> list[str]:
    assert collection.queries is not None
    return collection.queries["query_id"].to_list()


def test_rankings_are_evaluated_on_judged_queries_in_the_order_of_the_qrels() -> None:
    judged = judged_queries(collect(["q3", "q1", "q3", "q9"]))
    assert sorted_ids(judged.qrels)["query_id"].to_list() == ["q1", "q3", "q9"]
    assert asked(judged) == ["q1", "q3"]
    first = judged_queries(collect(["q3", "q1", "q3", "q9"]), 1)
    assert sorted_ids(first.qrels)["query_id"].to_list() == ["q3"]
    assert asked(first) == ["q3"]


def test_without_judgements_there_is_nothing_to_rank() -> None:
    with pytest.raises(DataError, match=r"'golden' has no relevance judgements; qrels\.tsv is not there"):
        judged_queries(collect(None))


@pytest.mark.parametrize(
    ("judged", "references", "expected"),
    [
        (None, None, ["q1", "q2", "q3"]),
        (["q2"], None, ["q2"]),
        ([], None, ["q1", "q2", "q3"]),
        (["q2"], ["q1"], ["q1", "q2", "q3"]),
        (None, ["q1"], ["q1", "q2", "q3"]),
    ],
)
def test_with_gold_answers_all_queries_are_asked_else_the_judged_ones_else_all(
    judged: list[str] | None, references: list[str] | None, expected: list[str]
) -> None:
    assert asked(queries_to_ask(collect(judged, references))) == expected
    assert asked(queries_to_ask(collect(judged, references), 1)) == expected[:1]


def test_asked_ids_are_sorted() -> None:
    assert sorted_ids(collect(None, queries={"b": "", "a": ""}).queries)["query_id"].to_list() == ["a", "b"]


def test_a_dataset_without_queries_has_nothing_to_ask() -> None:
    with pytest.raises(DataError, match="dataset 'golden' has no queries to ask"):
        queries_to_ask(collect(["q1"], queries={}))


IDS = [f"q{number}" for number in range(200)]


def test_each_question_has_one_place_that_depends_on_the_seed_alone() -> None:
    order = shuffle([*IDS, "q3"], seed=1)
    assert sorted(order) == sorted(IDS)
    assert shuffle(reversed(IDS), seed=1) == order
    assert shuffle(IDS, seed=2) != order
    assert shuffle(["\ud800", "ü"], seed=1)


def test_new_questions_do_not_change_the_order_of_the_others() -> None:
    order = shuffle([*IDS, "new"], seed=1)
    assert tuple(query_id for query_id in order if query_id != "new") == shuffle(IDS, seed=1)


def test_every_place_is_as_likely() -> None:
    """The mean place of a question over many seeds is in the middle, and neighbours are not drawn together."""
    orders = [shuffle(IDS[:20], seed) for seed in range(400)]
    places = [sum(order.index(query_id) for order in orders) / 400 for query_id in IDS[:20]]
    assert places == pytest.approx([9.5] * 20, abs=1.5)
    together = sum(abs(order.index("q0") - order.index("q1")) == 1 for order in orders) / 400
    assert together == pytest.approx(0.1, abs=0.05)


def test_a_restricted_collection_keeps_the_order_of_the_dataset() -> None:
    queries = pl.DataFrame({"query_id": ["a", "b", "c"], "text": ["A", "B", "C"]})
    qrels = pl.DataFrame({"query_id": ["c", "b", "a"], "doc_id": ["1", "2", "3"], "relevance": [1, 1, 1]})
    part = restrict(Collection("golden", load_qrels=lambda: qrels, load_queries=lambda: queries), ["c", "a"])
    assert part.queries is not None and part.qrels is not None
    assert part.queries["query_id"].to_list() == ["a", "c"]
    assert part.qrels["query_id"].to_list() == ["c", "a"]
    assert restrict(Collection("empty"), ["a"]).queries is None
    assert list_ids(queries, None, qrels) == ["a", "b", "c", "c", "b", "a"]
