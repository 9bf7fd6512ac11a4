from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec import kernels, registry
from rageval_spec.data.outcomes import join_notes, write_notes
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError, ModelWarning, UsageError
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
from rageval_spec.store.store import MemoryAnswers
from tests.embedded import require
from tests.plugins import build_dataset, build_system, run_of

Vector = Sequence[float]
COLUMNS = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}


class Fake(EmbeddingModel[ModelNode]):
    """Looks up vectors in a table, and records the texts it was given."""

    def __init__(
        self,
        vectors: Mapping[str, Vector],
        similarity: Literal["cosine", "dot"] = "cosine",
        *,
        cut: Names[str] = (),
        reused: int = 0,
    ) -> None:
        super().__init__(ModelNode(use="fake"), Context("fake"))
        self.vectors = vectors
        self.its_similarity = similarity
        self.cut = cut
        self.reused = reused
        self.asked: list[tuple[Role, list[str]]] = []

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        return self.its_similarity

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.asked.append((role, list(texts)))
        vectors = np.array([self.vectors[text] for text in texts], np.float32)
        return Embeddings(vectors, np.array([text in self.cut for text in texts], np.bool_), self.reused)


class Pairs(PairModel[ModelNode]):
    """A model that is not an embedding model."""

    @property
    def labels(self) -> tuple[str, ...]:
        return ("relevant",)

    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        raise AssertionError


def make_collection(corpus: Mapping[str, str | tuple[str, str]], queries: Mapping[str, str]) -> Collection:
    parts = [(key, *(("", text) if isinstance(text, str) else text)) for key, text in corpus.items()]
    documents = pl.DataFrame(parts, schema=dict.fromkeys(("doc_id", "title", "text"), pl.String), orient="row")
    texts = pl.DataFrame(list(queries.items()), schema={"query_id": pl.String, "text": pl.String}, orient="row")
    return Collection("tiny", load_queries=lambda: texts, load_corpus=lambda: documents)


def build(model: Model[Any] | None, **keys: Any) -> System[Any]:
    plugin = registry.load("systems", "dense")
    models = {} if model is None else {"fake": model}
    system: System[Any] = plugin(
        plugin.node_type(use="dense", **{"model": "fake", **keys}), Context("tested", models=models)
    )
    return system


def retrieve(model: Model[Any], collection: Collection, **keys: Any) -> Retrieval:
    found = build(model, **keys).retrieve(collection, {})
    assert isinstance(found, Retrieval)
    assert dict(found.run.schema) == COLUMNS
    return found


def rows(found: Retrieval) -> list[tuple[str, str]]:
    return found.run.select("query_id", "doc_id").rows()


def test_cosine_and_dot_by_hand() -> None:
    vectors = {"q": [3, 4], "near": [6, 8], "far": [4, -3], "long": [10, 0]}
    collection = make_collection({"d1": "near", "d2": "far", "d3": "long"}, {"q1": "q"})
    cosine = retrieve(Fake(vectors), collection).run
    assert cosine["doc_id"].to_list() == ["d1", "d3", "d2"]
    assert cosine["score"].to_list() == pytest.approx([1, 0.6, 0], abs=1e-6)
    dot = retrieve(Fake(vectors, "dot"), collection).run
    assert dot.select("doc_id", "score").rows() == [("d1", 50), ("d3", 30), ("d2", 0)]


def test_the_spec_can_override_the_similarity_of_the_model() -> None:
    collection = make_collection({"d1": "short", "d2": "long"}, {"q1": "q"})
    vectors = {"q": [1, 0], "short": [1, 0], "long": [9, 9]}
    for similarity, first in (("dot", "d2"), ("cosine", "d1")):
        other: Literal["cosine", "dot"] = "cosine" if similarity == "dot" else "dot"
        assert rows(retrieve(Fake(vectors, other), collection, similarity=similarity))[0] == ("q1", first)
        assert rows(retrieve(Fake(vectors, other), collection, similarity="auto"))[0] != ("q1", first)


WORDS = {"a": [1, 2], "b": [-1, 1], "c": [2, -1], "d": [1, 1], "e": [0, 1]}


@given(
    documents=st.dictionaries(st.sampled_from(["d1", "d10", "d2", "é", "z", "Z"]), st.sampled_from(sorted(WORDS))),
    queries=st.lists(st.sampled_from(sorted(WORDS)), max_size=4),
    depth=st.integers(1, 7),
    random=st.randoms(use_true_random=False),
)
def test_agrees_with_sorting_all_scores(documents: dict[str, str], queries: list[str], depth: int, random: Any) -> None:
    ids = list(documents)
    random.shuffle(ids)
    named = {f"q{number}": text for number, text in enumerate(queries)}
    collection = make_collection({doc_id: documents[doc_id] for doc_id in ids}, named)
    expected = []
    for query_id, query in named.items():
        scored = [(np.dot(WORDS[query], WORDS[text]), doc_id.encode()) for doc_id, text in documents.items()]
        best = sorted(scored, reverse=True)[:depth]
        expected += [(query_id, doc_id.decode(), float(score)) for score, doc_id in best]
    assert retrieve(Fake(WORDS, "dot"), collection, depth=depth).run.rows() == expected


def test_title_and_text_are_one_text_and_queries_are_embedded_as_queries() -> None:
    model = Fake({"title text": [1, 0], "title": [0, 1], "text": [1, 1], " q ": [1, 0]})
    corpus = {"d1": ("title", "text"), "d2": ("title", ""), "d3": ("", "text")}
    retrieve(model, make_collection(corpus, {"q1": " q "}))
    assert sorted((role, sorted(texts)) for role, texts in model.asked) == [
        ("document", ["text", "title", "title text"]),
        ("query", [" q "]),
    ]


def test_equal_texts_have_equal_scores_and_come_by_document_id() -> None:
    rng = np.random.default_rng(1)
    corpus = {f"d{number}": f"t{number % 7}" for number in range(6000)}
    vectors = {text: rng.standard_normal(37).tolist() for text in {*corpus.values(), "q"}}
    run = retrieve(Fake(vectors), make_collection(corpus, {"q1": "q"}), depth=6000).run
    assert run["score"].n_unique() == 7
    assert run.equals(run.sort(["score", "doc_id"], descending=True))


def test_texts_without_content_are_left_out_and_counted() -> None:
    model = Fake({"a": [1, 0], "q": [1, 0]})
    corpus: dict[str, str | tuple[str, str]] = {"d1": "", "d2": (" ", "\t\n\u3000"), "d3": "a"}
    found = retrieve(model, make_collection(corpus, {"q1": "  ", "q2": "q"}))
    assert rows(found) == [("q2", "d3")]
    assert [(note.code, note.message, note.count) for note in found.written_notes] == [
        ("documents_without_text", "2 of 3 documents have no text and are never retrieved", 2),
        ("queries_without_text", "1 of 2 queries has no text and gets no documents", 1),
    ]


@pytest.mark.parametrize(
    ("corpus", "queries"), [({}, {"q1": "q"}), ({"d1": " "}, {"q1": "q"}), ({"d1": "a"}, {}), ({"d1": "a"}, {"q1": ""})]
)
def test_empty_input_gives_an_empty_run_without_using_the_model(
    corpus: dict[str, str], queries: dict[str, str]
) -> None:
    model = Fake({})
    assert retrieve(model, make_collection(corpus, queries)).run.height == 0
    assert model.asked == []


def test_cut_texts_are_counted() -> None:
    model = Fake({"long": [1, 0], "short": [0, 1], "q": [1, 0]}, cut={"long", "q"})
    corpus = {"d1": "long", "d2": "short", "d3": "long", "d4": ""}
    notes = retrieve(model, make_collection(corpus, {"q1": "q", "q2": "short"})).written_notes
    assert [(note.code, note.message, note.count) for note in notes[1:]] == [
        ("documents_truncated", "2 of 3 documents are longer than fake reads and were cut", 2),
        ("queries_truncated", "1 of 2 queries is longer than fake reads and was cut", 1),
    ]


def test_reused_texts_of_queries_and_documents_are_added_up() -> None:
    model = Fake({"a": [1, 0]}, reused=4)
    assert retrieve(model, make_collection({"d1": "a"}, {"q1": "a"})).reused == 8


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ({"a": [0, 0]}, "models.fake: the vector of document 'd1' is all zeros"),
        ({"q": [0, 0]}, "models.fake: the vector of query 'q1' is all zeros"),
        ({"a": [1, float("nan")]}, "models.fake: the vector of document 'd1' has the value NaN in column 1"),
        ({"q": [float("-inf"), 1]}, "models.fake: the vector of query 'q1' has the value -inf in column 0"),
        ({"a": [1e-20, 0]}, "models.fake: the vector of document 'd1' has length 1.0e-20"),
        ({"q": [1, 2, 3]}, "models.fake: vectors of queries have 3 dimensions, those of corpus have 2"),
    ],
)
def test_vectors_that_cannot_be_compared_are_named(vectors: dict[str, Vector], message: str) -> None:
    model = Fake({"a": [1, 0], "b": [0, 1], "q": [1, 1]} | vectors)
    collection = make_collection({"d0": "", "d1": "a", "d2": "b"}, {"q0": "", "q1": "q"})
    with pytest.raises(DataError) as raised:
        retrieve(model, collection)
    assert str(raised.value).startswith(message)


def test_a_vector_of_zeros_has_a_dot_product() -> None:
    model = Fake({"a": [0, 0], "b": [-1, 0], "q": [1, 0]}, "dot")
    assert rows(retrieve(model, make_collection({"d1": "b", "d2": "a"}, {"q": "q"}))) == [("q", "d2"), ("q", "d1")]


def test_a_missing_model_or_one_of_another_kind_is_an_error_in_the_spec() -> None:
    collection = make_collection({"d1": "a"}, {"q1": "a"})
    with pytest.raises(UsageError, match="there is no model 'fake'"):
        build(None).retrieve(collection, {})
    with pytest.raises(UsageError, match=r"the model 'fake' .* is not an embedding model"):
        build(Pairs(ModelNode(use="fake"), Context("fake"))).retrieve(collection, {})


def test_parts_that_the_dataset_lacks_are_named() -> None:
    queries = pl.DataFrame({"query_id": ["q"], "text": ["x"]})
    with pytest.raises(DataError, match=r"systems\.tested: dense needs a corpus, but the dataset 'bare' has none"):
        build(Fake({})).retrieve(Collection("bare", load_queries=lambda: queries), {})


def test_the_number_of_threads_does_not_change_the_result() -> None:
    rng = np.random.default_rng(2)
    corpus = {f"d{number}": f"t{number}" for number in range(9000)}
    vectors = {text: rng.standard_normal(16).tolist() for text in {*corpus.values(), "q"}}
    collection = make_collection(corpus, {"q1": "q"})
    runs = []
    for threads in (1, 3):
        system = build(Fake(vectors))
        system.context = Context("tested", models=system.context.models, threads=threads)
        found = system.retrieve(collection, {})
        assert isinstance(found, Retrieval)
        runs.append(found.run)
    assert runs[0].equals(runs[1])


def minilm() -> EmbeddingModel[Any]:
    """The embedded default model; skips the test if its weights are not installed."""
    require("minilm")
    plugin = registry.load("models", "onnx")
    context = Context("minilm", answers=MemoryAnswers())
    model: EmbeddingModel[Any] = plugin(plugin.node_type(use="onnx", model="minilm"), context)
    return model


FORMS = ("float32", "float16", "int8", "binary")


def quantise(vectors: Any) -> tuple[Any, Any]:
    """int8 values and scales, one number after another."""
    values, scales = [], []
    for vector in np.asarray(vectors, np.float32):
        scale = np.float32(max(abs(value) for value in vector) / np.float32(127))
        values.append([round(float(value / scale)) if scale else 0 for value in vector])  # halves to even numbers
        scales.append(scale)
    return np.array(values, np.int64), np.array(scales, np.float64)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.sampled_from(sorted(WORDS)), min_size=1, max_size=12),
    depth=st.integers(1, 14),
    similarity=st.sampled_from(["cosine", "dot"]),
)
def test_every_form_ranks_by_its_own_scores(form: str, texts: list[str], depth: int, similarity: str) -> None:
    corpus = {f"d{number}": text for number, text in enumerate(texts)}
    found = retrieve(Fake(WORDS), make_collection(corpus, {"q": "a"}), vectors=form, depth=depth, similarity=similarity)
    asked, known = np.array(WORDS["a"], np.float64), np.array([WORDS[text] for text in texts], np.float64)
    if form in ("int8", "binary"):  # all are within `candidates`
        values, scales = quantise(known)
        known = values * scales[:, None]
    scores = known @ asked
    if similarity == "cosine":
        scores = scores / np.linalg.norm(known, axis=1) / np.linalg.norm(asked)
    best = sorted(zip(scores.round(4), (doc_id.encode() for doc_id in corpus), strict=True), reverse=True)[:depth]
    assert found.run["score"].to_list() == pytest.approx([score for score, _ in best], abs=2e-4)
    if form != "binary" or len(set(texts)) <= 4 * depth:
        assert found.run["doc_id"].to_list() == [doc_id.decode() for _, doc_id in best]


def waves(form: str, **keys: Any) -> Retrieval:
    """Forty documents and three queries of twelve dimensions."""
    corpus = np.sin(np.arange(40 * 12, dtype=np.float64) * 1.7 + 0.3).reshape(40, 12)
    queries = np.cos(np.arange(3 * 12, dtype=np.float64) * 0.9).reshape(3, 12)
    vectors = {f"d{row:02}": values.tolist() for row, values in enumerate(corpus)}
    vectors |= {f"q{row}": values.tolist() for row, values in enumerate(queries)}
    collection = make_collection(
        {text: text for text in vectors if text[0] == "d"}, {text: text for text in vectors if text[0] == "q"}
    )
    return retrieve(Fake(vectors, "dot"), collection, vectors=form, **keys)


FAISS = {
    "float32": ([[0, 4, 8, 12, 16], [7, 11, 3, 15, 19], [18, 14, 22, 10, 26]], [1.3290, 1.2225, 1.3324]),
    "float16": ([[0, 4, 8, 12, 16], [7, 11, 3, 15, 19], [18, 22, 14, 10, 26]], [1.3292, 1.2223, 1.3324]),
    "int8": ([[4, 0, 8, 12, 16], [3, 7, 11, 15, 19], [18, 14, 22, 10, 26]], [1.3326, 1.2190, 1.3438]),
}
"""What faiss 1.15.1 gives (IndexFlatIP) for the values that each form keeps: rows, and the first scores."""


@pytest.mark.parametrize("form", FAISS)
def test_every_form_agrees_with_faiss(form: str) -> None:
    run = waves(form, depth=5).run
    rows, scores = FAISS[form]
    assert run["doc_id"].to_list() == [f"d{row:02}" for query in rows for row in query]
    assert run["score"].to_list()[::5] == pytest.approx(scores, abs=1e-4)


def test_signs_select_the_candidates_and_int8_ranks_them() -> None:
    """faiss' IndexBinaryFlat finds distances 3 for document 37, 4 for 25, 29 and 33, and more for all others."""
    binary = waves("binary", depth=4, candidates=4).run.filter(pl.col("query_id") == "q0")
    assert set(binary["doc_id"]) == {"d37", "d25", "d29", "d33"}
    scores = dict(waves("int8", depth=40).run.filter(pl.col("query_id") == "q0").select("doc_id", "score").rows())
    assert binary["score"].to_list() == sorted((scores[doc_id] for doc_id in binary["doc_id"]), reverse=True)
    assert waves("binary", depth=5, candidates=40).run.equals(waves("int8", depth=5).run)


@pytest.mark.parametrize("form", FORMS)
def test_batches_order_and_other_corpora_do_not_change_a_ranking(form: str) -> None:
    """Equal texts and equal scores are spread over batches; another corpus has rows in the same file."""
    rng = np.random.default_rng(5)
    vectors = {f"t{number}": rng.integers(-2, 3, 9).tolist() for number in range(60)} | {"q": [1] * 9}
    texts = {f"d{number}": f"t{number * 7 % 60}" for number in range(150)}
    answers = MemoryAnswers()

    def search(corpus: Mapping[str, str], size: int) -> Retrieval:
        whole = make_collection(corpus, {"q1": "q"})
        system = build(Fake(vectors, "dot"), vectors=form, depth=40)
        system.context = Context("tested", models=system.context.models, answers=answers)
        found = system.retrieve(Batched(whole, size), {})  # type: ignore[arg-type]
        assert isinstance(found, Retrieval)
        return found

    expected = search(texts, 1000).run
    assert set(search({"x": "t3", "y": "t7"}, 1000).run["doc_id"]) == {"x", "y"}
    shuffled = dict(reversed(texts.items()))
    for corpus, size in ((texts, 7), (shuffled, 1), (shuffled, 50)):
        assert search(corpus, size).run.equals(expected)
    assert len(answers.open_vectors(Fake(vectors).key, form)) == 60  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(st.sampled_from(["", *(f"t{number}" for number in range(30))]), min_size=1, max_size=60),
    count=st.integers(2, 7),
    depth=st.integers(1, 20),
    size=st.integers(1, 40),
)
def test_parts_of_the_documents_are_joined_to_what_all_give(
    form: str, texts: list[str], count: int, depth: int, size: int
) -> None:
    """Many scores are equal, texts occur more than once, and some documents and a query have none."""
    rng = np.random.default_rng(7)
    vectors = {f"t{number}": rng.integers(-2, 3, 9).tolist() for number in range(30)} | {
        "q": [1] * 9,
        "r": [2, -1] + [0] * 7,
    }
    whole = make_collection({f"d{row}": text for row, text in enumerate(texts)}, {"q1": "q", "q2": "r", "q3": " "})
    model = Fake(vectors, "dot", cut=["t3", "t7", "q"])
    system = build(model, vectors=form, depth=depth)
    expected = system.retrieve(Batched(whole, size), {})  # type: ignore[arg-type]
    assert isinstance(expected, Retrieval)
    parts: list[Retrieval] = []
    embedded: list[str] = []
    for place in range(count):
        model.asked.clear()
        parts.append(system.search_part(Batched(whole, size), place, count))  # type: ignore[arg-type]
        embedded += {text for role, some in model.asked if role == "document" for text in some}
    joined = system.join_parts([part.run for part in parts])
    assert joined.sort("query_id", maintain_order=True).equals(expected.run)
    assert write_notes(join_notes([part.notes for part in parts])) == expected.written_notes
    assert sorted(embedded) == sorted({*texts} - {""})  # each text in one part


class Batched:
    """A collection whose corpus comes in batches of so many documents, and cannot be read as a whole."""

    def __init__(self, collection: Collection, size: int) -> None:
        self.collection, self.size = collection, size

    def require(self, part: Literal["queries"], reader: str) -> pl.DataFrame:
        return self.collection.require(part, reader)

    def stream_corpus(self, reader: str) -> Any:
        assert reader
        assert self.collection.corpus is not None
        return self.collection.corpus.iter_slices(self.size)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_vectors_that_a_form_cannot_keep_or_compare_are_named(form: str, similarity: str) -> None:
    keys = {"vectors": form, "similarity": similarity}
    collection = make_collection({"d0": "", "d1": "b", "d2": "a"}, {"q1": "q"})
    good = {"b": [0, 1], "q": [1, 1], "a": [1, 0]}
    with pytest.raises(DataError, match=r"models.fake: the vector of document 'd2' has the value NaN in column 0"):
        retrieve(Fake(good | {"a": [float("nan"), 0]}), collection, **keys)
    with pytest.raises(DataError, match=r"models.fake: vectors of queries have 3 dimensions, those of corpus have 2"):
        retrieve(Fake(good | {"q": [1, 2, 3]}), collection, **keys)
    zero = Fake(good | {"a": [0, 0]})
    if similarity == "dot":
        assert rows(retrieve(zero, collection, **keys)) == [("q1", "d1"), ("q1", "d2")]
    else:
        with pytest.raises(DataError, match=r"models.fake: the vector of document 'd2' is all zeros"):
            retrieve(zero, collection, **keys)


def test_float16_refuses_what_it_cannot_hold() -> None:
    message = r"the vector of document 'd1' has the value 70000.0 in column 0, which float16 cannot hold"
    with pytest.raises(DataError, match=message):
        retrieve(Fake({"a": [70000, 1], "q": [1, 1]}), make_collection({"d1": "a"}, {"q1": "q"}), vectors="float16")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"candidates": 100}, "'candidates' are for 'vectors: binary'"),
        ({"candidates": 100, "vectors": "int8"}, "'candidates' are for 'vectors: binary'"),
        ({"candidates": 9, "depth": 10, "vectors": "binary"}, "'candidates: 9' is less than 'depth: 10'"),
        ({"candidates": 0, "vectors": "binary"}, "greater than or equal to 1"),
        ({"vectors": "int4"}, "'float32', 'float16', 'int8' or 'binary'"),
    ],
)
def test_keys_that_do_not_fit_together_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        registry.load("systems", "dense").node_type(use="dense", **keys)


def test_runs_stored_before_there_were_forms_are_still_found() -> None:
    content = build(None).content()["node"]
    assert set(content) == {"use", "model", "similarity", "depth"}
    assert build(None, vectors="int8").content()["node"]["vectors"] == "int8"


@pytest.fixture(scope="module")
def embedded(shared_data: Path) -> tuple[Collection, EmbeddingModel[Any]]:
    """A real collection, and a model that has stored the vectors of its documents; each form is made from them."""
    collection, model = build_dataset("beir", shared_data / "retrieval", path="xquad_en").open(), minilm()
    corpus = collection.corpus
    assert corpus is not None
    texts = [" ".join(filter(None, row)) for row in corpus.select("title", "text").rows()]
    model.embed(texts, "document")
    return collection, model


def test_minilm_agrees_with_sentence_transformers_and_gains_from_bm25(
    embedded: tuple[Collection, EmbeddingModel[Any]],
) -> None:
    """sentence-transformers 6.2 with the same weights gives an nDCG@10 of 0.94351 on these 240 documents."""
    collection, model = embedded
    qrels = collection.qrels
    assert qrels is not None
    dense = retrieve(model, collection).run
    lexical = run_of(build_system("bm25"), collection)
    fused = run_of(build_system("hybrid", systems=("a", "b")), collection, {"a": dense, "b": lexical})
    means = [
        kernels.evaluate_ranking(qrels, run, ["ndcg@10"], kernels.RankingOptions(missing="zero")).values.mean()
        for run in (dense, lexical, fused)
    ]
    assert means[0] == pytest.approx(0.94351, abs=0.001)
    assert means[2] > max(means[:2])


def test_small_forms_rank_almost_as_float32_does(embedded: tuple[Collection, EmbeddingModel[Any]]) -> None:
    collection, model = embedded
    qrels = collection.qrels
    assert qrels is not None
    means = {}
    for form in FORMS:
        found = retrieve(model, collection, vectors=form, depth=50)
        assert found.reused >= 240, "the documents are not embedded again for each form"
        run = found.run
        scores = kernels.evaluate_ranking(qrels, run, ["ndcg@10"], kernels.RankingOptions(missing="zero"))
        means[form] = scores.values.mean()
    assert means["float16"] == pytest.approx(means["float32"], abs=0.0005)
    assert means["int8"] == pytest.approx(means["float32"], abs=0.003)
    assert means["binary"] == pytest.approx(means["int8"], abs=0.003)


class Monolingual(Fake):
    """Reports, before embedding anything, that it does not know the letters."""

    def __init__(self, share: float | None, vectors: Mapping[str, Vector]) -> None:
        super().__init__(vectors)
        self.share = share

    def unread_share(self, texts: Sequence[str]) -> float | None:
        assert not self.asked, "the warning comes before the work"
        return self.share


def test_an_unknown_script_is_reported_before_embedding() -> None:
    model = Monolingual(0.97, {"кот": [1, 0], "пёс": [0, 1]})
    with pytest.warns(ModelWarning, match="tested: fake has no words for 97% of the letters in the documents"):
        found = retrieve(model, make_collection({"d1": "кот", "d2": "пёс"}, {"q1": "кот"}))
    assert [note.code for note in found.written_notes] == ["unread_script"]
    assert "name a model for their language under 'models:'" in found.written_notes[0].message


@pytest.mark.parametrize("share", [None, 0.0, 0.2])
def test_a_script_that_the_model_knows_causes_no_note(share: float | None) -> None:
    model = Monolingual(share, {"cat": [1, 0]})
    assert retrieve(model, make_collection({"d1": "cat"}, {"q1": "cat"})).written_notes == ()
