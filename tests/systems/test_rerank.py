from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import registry
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError, UsageError
from rageval_spec.plugin import (
    Context,
    EmbeddingModel,
    Embeddings,
    Model,
    ModelNode,
    PairModel,
    PairScores,
    Retrieval,
    Role,
    System,
)
from rageval_spec.plugin.block_names import names_in

COLUMNS = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
Row = tuple[str, str, float]


class Fake(PairModel[ModelNode]):
    """Looks up scores in a table of document texts, and records the pairs it was given."""

    def __init__(
        self,
        scores: Mapping[str, float],
        labels: tuple[str, ...] = ("relevant",),
        *,
        cut: Names[str] = (),
        reused: int = 0,
    ) -> None:
        super().__init__(ModelNode(use="fake"), Context("fake"))
        self.scores = scores
        self.its_labels = labels
        self.cut = cut
        self.reused = reused
        self.asked: list[tuple[str, str]] = []

    @property
    def labels(self) -> tuple[str, ...]:
        return self.its_labels

    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        self.asked.extend(pairs)
        logits = np.array([[self.scores[document]] for _, document in pairs], np.float32)
        return PairScores(logits, np.array([document in self.cut for _, document in pairs], np.bool_), self.reused)


class Embedder(EmbeddingModel[ModelNode]):
    """A model that is not a cross-encoder."""

    similarity = "cosine"

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        raise AssertionError


def make_run(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def make_collection(corpus: Mapping[str, str], queries: Mapping[str, str]) -> Collection:
    parts = [(doc_id, "", text) for doc_id, text in corpus.items()]
    documents = pl.DataFrame(parts, schema=dict.fromkeys(("doc_id", "title", "text"), pl.String), orient="row")
    texts = pl.DataFrame(list(queries.items()), schema={"query_id": pl.String, "text": pl.String}, orient="row")
    return Collection("tiny", load_queries=lambda: texts, load_corpus=lambda: documents)


LETTERS = make_collection({letter: letter.upper() for letter in "abcdefé"}, {"q1": "one", "q2": "two", "q3": " "})


def build(model: Model[Any] | None, **keys: Any) -> System[Any]:
    plugin = registry.load("systems", "rerank")
    models = {} if model is None else {"fake": model}
    node = plugin.node_type(use="rerank", system="first", model="fake", **keys)
    system: System[Any] = plugin(node, Context("tested", models=models))
    return system


def rerank(model: Model[Any], run: Sequence[Row], collection: Collection = LETTERS, **keys: Any) -> Retrieval:
    found = build(model, **keys).retrieve(collection, {"first": make_run(run)})
    assert isinstance(found, Retrieval)
    assert dict(found.run.schema) == COLUMNS
    return found


SIX: list[Row] = [("q1", letter, 10.0 - place) for place, letter in enumerate("abcdef")]


def test_the_best_documents_are_put_in_the_models_order() -> None:
    model = Fake({"A": -2.5, "B": 7, "C": 0})
    found = rerank(model, [*SIX, ("q2", "b", 1.0)], top=3)
    assert found.run.rows() == [("q1", "b", 7), ("q1", "c", 0), ("q1", "a", -2.5), ("q2", "b", 7)]
    assert model.asked == [("one", "A"), ("one", "B"), ("one", "C"), ("two", "B")]
    assert found.written_notes == ()


def test_documents_below_the_top_follow_in_their_old_order_if_they_are_kept() -> None:
    found = rerank(Fake({"A": -2.5, "B": 7}), [*SIX, ("q2", "b", 1.0)], top=2, keep_rest=True)
    assert found.run["doc_id"].to_list() == ["b", "a", "c", "d", "e", "f", "b"]
    scores = found.run["score"].to_list()
    below = np.float32(-2.5)
    for score in scores[2:6]:
        below = np.nextafter(below, np.float32("-inf"))
        assert score == float(below)


@pytest.mark.parametrize("lowest", [0.0, -0.0, 1e-45, 3e-45, 1.0, -1e30, 1e30, 16777216.0, -11.25])
def test_the_rest_is_below_any_score_and_never_ties(lowest: float) -> None:
    run = rerank(Fake({"A": lowest, "B": 2e30}), SIX, top=2, keep_rest=True).run
    assert run["doc_id"].to_list() == list("bacdef")
    assert run["score"].cast(pl.Float32).n_unique() == 6
    assert run["score"].is_sorted(descending=True)


def test_ties_come_by_document_id() -> None:
    collection = make_collection(dict.fromkeys(["d1", "d10", "d2", "é", "z"], "same"), {"q1": "one"})
    run: list[Row] = [("q1", doc_id, 5.0 - place) for place, doc_id in enumerate(["d2", "z", "d1", "é", "d10"])]
    assert rerank(Fake({"same": 1}), run, collection).run["doc_id"].to_list() == ["é", "z", "d2", "d10", "d1"]


def test_the_top_equals_trec_evals_in_any_order_of_rows() -> None:
    rows: list[Row] = [("q1", "a", 1.0), ("q1", "b", 1.0), ("q1", "c", 2.0), ("q1", "d", 1.0)]
    for order in (rows, rows[::-1]):
        model = Fake({"C": 1, "D": 2})
        assert rerank(model, order, top=2).run["doc_id"].to_list() == ["d", "c"]


@given(
    rankings=st.dictionaries(
        st.sampled_from(["q1", "q2"]), st.dictionaries(st.sampled_from("abcdefé"), st.integers(-4, 4), min_size=1)
    ),
    scores=st.fixed_dictionaries(dict.fromkeys("ABCDEFÉ", st.integers(-3, 3))),
    top=st.integers(1, 8),
    keep_rest=st.booleans(),
)
def test_agrees_with_sorting_each_query(
    rankings: dict[str, dict[str, int]], scores: dict[str, int], top: int, keep_rest: bool
) -> None:
    rows: list[Row] = []
    expected: list[tuple[str, str]] = []
    for query_id, ranking in rankings.items():
        old = sorted(ranking, key=lambda doc_id: (ranking[doc_id], doc_id.encode()), reverse=True)
        new = sorted(old[:top], key=lambda doc_id: (scores[doc_id.upper()], doc_id.encode()), reverse=True)
        rows += [(query_id, doc_id, float(ranking[doc_id])) for doc_id in old]
        expected += [(query_id, doc_id) for doc_id in (*new, *(old[top:] if keep_rest else ()))]
    run = rerank(Fake(scores), rows, top=top, keep_rest=keep_rest).run
    assert run.select("query_id", "doc_id").rows() == expected


def test_title_and_text_are_one_text() -> None:
    documents = pl.DataFrame({"doc_id": ["a"], "title": ["the title"], "text": ["the text"]})
    collection = Collection("tiny", load_queries=lambda: LETTERS.require("queries", ""), load_corpus=lambda: documents)
    model = Fake({"the title the text": 1})
    rerank(model, [("q1", "a", 1.0)], collection)
    assert model.asked == [("one", "the title the text")]


def test_an_empty_run_stays_empty_without_using_the_model() -> None:
    model = Fake({})
    found = rerank(model, [], keep_rest=True)
    assert found.run.height == 0 and found.written_notes == () and model.asked == []


def test_cut_pairs_and_pairs_without_text_are_counted() -> None:
    collection = make_collection({"a": "A", "b": " \n"}, {"q1": "one", "q3": " "})
    run: list[Row] = [("q1", "a", 2.0), ("q1", "b", 1.0), ("q3", "a", 1.0)]
    found = rerank(Fake({"A": 1, "": 0}, cut={"A"}, reused=2), run, collection)
    assert [(note.code, note.message, note.count) for note in found.written_notes] == [
        ("pairs_without_text", "2 of 3 pairs have a query or document without text and were scored so", 2),
        ("pairs_truncated", "2 of 3 pairs are longer than fake reads and were cut", 2),
    ]
    assert found.reused == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("q2", "z", 1.0), "the document 'z' for query 'q2', which is not in the corpus of 'tiny'"),
        (("q9", "a", 1.0), "the query 'q9', which is not in the queries of 'tiny'"),
    ],
)
def test_a_run_on_other_data_is_named(row: Row, message: str) -> None:
    with pytest.raises(DataError) as raised:
        rerank(Fake(dict.fromkeys("ABCDEF", 0)), [*SIX, row])
    assert str(raised.value) == f"systems.tested: the run of 'first' has {message}; was it made on other data?"


def test_documents_that_are_not_read_can_be_missing() -> None:
    run: list[Row] = [("q1", "a", 2.0), ("q1", "z", 1.0)]
    assert rerank(Fake({"A": 0}), run, top=1, keep_rest=True).run["doc_id"].to_list() == ["a", "z"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_model_score_that_is_not_a_number_is_named(score: float) -> None:
    with pytest.raises(
        DataError, match=r"^models\.fake: gives the query 'q1' and the document 'b' the score -?(nan|inf)"
    ):
        rerank(Fake({"A": 0, "B": score, "C": score}), SIX, top=3, keep_rest=True)


def test_a_run_that_cannot_be_ranked_is_named() -> None:
    with pytest.raises(DataError, match=r"^the run of 'first', row \d+: document .?a.? is retrieved twice"):
        rerank(Fake({}), [("q1", "a", 2.0), ("q1", "a", 1.0)])


@pytest.mark.parametrize(("labels", "shown"), [(("contradiction", "neutral"), "contradiction, neutral"), ((), "none")])
def test_a_model_with_other_than_one_label_is_an_error_of_the_spec(labels: tuple[str, ...], shown: str) -> None:
    with pytest.raises(UsageError) as raised:
        rerank(Fake({}, labels), SIX)
    expected = f"systems.tested.model: a reranker has one label, but the model 'fake' has {shown}"
    assert str(raised.value) == expected


def test_a_missing_cross_encoder_or_another_model_is_an_error_in_the_spec() -> None:
    runs = {"first": make_run(SIX)}
    with pytest.raises(UsageError, match="there is no model 'fake'"):
        build(None).retrieve(LETTERS, runs)
    with pytest.raises(UsageError, match=r"the model 'fake' .* is not a model that reads two texts together"):
        build(Embedder(ModelNode(use="fake"), Context("fake"))).retrieve(LETTERS, runs)


def test_parts_that_the_dataset_lacks_are_named() -> None:
    bare = Collection("bare", load_queries=lambda: LETTERS.require("queries", ""))
    with pytest.raises(DataError, match=r"systems\.tested: rerank needs a corpus, but the dataset 'bare' has none"):
        rerank(Fake({}), SIX, bare)


def test_the_node_names_its_system_and_its_model() -> None:
    node = build(None).node
    assert (names_in(node, "systems"), names_in(node, "models")) == (("first",), ("fake",))
