from __future__ import annotations

import errno
import importlib.util
import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.tables import Collection, CorpusReader, CorpusSize, document_texts
from rageval_spec.errors import DataError, StoreWarning, UsageError
from rageval_spec.plugin import Retrieval
from rageval_spec.store.inventory import list_entries, remove
from rageval_spec.systems.shared.lexical_tokens import split_unicode
from tests.plugins import build_dataset, build_system, run_of
from tests.reference.bm25 import score_documents
from tests.reference.bm25s_runs import rank_documents

WORDS = st.lists(st.sampled_from(["cat", "dog", "owl", "ant", "the", "x", "Cat,"]), max_size=8).map(" ".join)


def make_collection(corpus: Mapping[str, str | tuple[str, str]], queries: Mapping[str, str]) -> Collection:
    parts = [(key, *(("", text) if isinstance(text, str) else text)) for key, text in corpus.items()]
    documents = pl.DataFrame(parts, schema=dict.fromkeys(("doc_id", "title", "text"), pl.String), orient="row")
    texts = pl.DataFrame(list(queries.items()), schema={"query_id": pl.String, "text": pl.String}, orient="row")
    return Collection("tiny", load_queries=lambda: texts, load_corpus=lambda: documents)


def retrieve(corpus: Mapping[str, str | tuple[str, str]], queries: Mapping[str, str], **keys: Any) -> pl.DataFrame:
    run = run_of(build_system("bm25", **keys), make_collection(corpus, queries))
    assert dict(run.schema) == {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return run


def test_lucenes_formula_by_hand() -> None:
    run = retrieve({"d1": "red fox", "d2": "red red hen hen", "d3": "owl"}, {"q": "red fox"}, k1=1.2, b=0.75)
    # Three documents of 2, 4 and 1 words, 7/3 on average; red is in two of them, fox in one.
    red, fox = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    first = (red + fox) * 1 / (1 + 1.2 * (0.25 + 0.75 * 2 / (7 / 3)))
    second = red * 2 / (2 + 1.2 * (0.25 + 0.75 * 4 / (7 / 3)))
    assert run["doc_id"].to_list() == ["d1", "d2"]
    assert run["score"].to_list() == pytest.approx([first, second], rel=1e-6)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire", "bm25+", "bm25l"])
@given(texts=st.lists(WORDS, min_size=1, max_size=8), query=WORDS, k1=st.floats(0.1, 3), b=st.floats(0, 1))
def test_every_formula_agrees_with_the_slow_reference(
    method: str, texts: list[str], query: str, k1: float, b: float
) -> None:
    corpus = {f"d{number}": text for number, text in enumerate(texts)}
    formula: dict[str, Any] = {"method": method, "k1": k1, "b": b, "delta": 0.5}
    expected = score_documents(query, corpus, **formula)
    run = retrieve(corpus, {"q": query}, stop_words="none", **formula)
    found = dict(run.select("doc_id", "score").rows())
    assert found == pytest.approx({key: score for key, score in expected.items() if score > 0}, rel=1e-4, abs=1e-6)
    assert run.equals(run.sort(["score", "doc_id"], descending=True))


def test_title_and_text_are_one_document() -> None:
    run = retrieve({"d1": ("red fox", "hen"), "d2": ("", "owl")}, {"q1": "fox", "q2": "hen"})
    assert run.select("query_id", "doc_id").rows() == [("q1", "d1"), ("q2", "d1")]
    assert run["score"].n_unique() == 1


def test_ties_come_by_document_id_whatever_the_order_of_the_corpus() -> None:
    ids = ["d1", "d10", "d2", "é", "z"]
    for order in (ids, ids[::-1]):
        run = retrieve(dict.fromkeys(order, "fox") | {"other": "hen"}, {"q": "fox"})
        assert run["doc_id"].to_list() == ["é", "z", "d2", "d10", "d1"]


def test_a_lower_depth_gives_the_beginning_of_the_same_ranking() -> None:
    corpus = {f"d{number}": "fox " * (number % 3) + "hen" for number in range(40)} | {"other": "owl"}
    whole = retrieve(corpus, {"q": "fox hen"})
    assert whole.height == 40
    for depth in (1, 7, 27, 39, 40, 41):
        assert retrieve(corpus, {"q": "fox hen"}, depth=depth).equals(whole.head(depth))


def test_queries_keep_their_order_and_those_without_a_match_get_no_rows() -> None:
    corpus = {"d1": "red fox", "d2": "", "d3": "hen"}
    queries = {"q2": "hen", "q3": "unheard", "q4": "", "q5": "the", "q1": "fox"}
    assert retrieve(corpus, queries).select("query_id", "doc_id").rows() == [("q2", "d3"), ("q1", "d1")]


@pytest.mark.parametrize("queries", [{"q": "fox"}, {}])
@pytest.mark.parametrize("corpus", [{"d1": "", "d2": "the"}, {}])
def test_nothing_to_find_gives_an_empty_run(queries: dict[str, str], corpus: dict[str, str]) -> None:
    assert retrieve(corpus, queries).height == 0


def test_stop_words_are_left_out_of_documents_and_queries() -> None:
    corpus = {"d1": "the fox", "d2": "the hen"}
    assert retrieve(corpus, {"q": "the"}, stop_words="english").height == 0
    assert retrieve(corpus, {"q": "the"}, stop_words="none").height == 2
    assert retrieve({"d1": "der fuchs", "d2": "huhn"}, {"q": "der"}, stop_words="german").height == 0


@pytest.mark.skipif(importlib.util.find_spec("Stemmer") is not None, reason="PyStemmer is installed")
def test_a_stemmer_that_is_not_installed_says_what_to_install() -> None:
    with pytest.raises(UsageError, match=r"systems\.tested\.stemmer: needs the package PyStemmer"):
        retrieve({"d1": "foxes"}, {"q": "fox"}, stemmer="english")


def test_a_stemmer_joins_the_forms_of_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stub:
        class Stemmer:
            def __init__(self, language: str) -> None:
                assert language == "english"

            def stemWord(self, word: str) -> str:  # noqa: N802 - PyStemmer's name
                return word.removesuffix("es")

    monkeypatch.setitem(__import__("sys").modules, "Stemmer", Stub)
    run = retrieve({"d1": "foxes", "d2": "hen"}, {"q": "fox", "r": "henes"}, stemmer="english")
    assert run.select("query_id", "doc_id").rows() == [("q", "d1"), ("r", "d2")]


def test_parts_that_the_dataset_lacks_are_named() -> None:
    queries = pl.DataFrame({"query_id": ["q"], "text": ["x"]})
    with pytest.raises(DataError, match=r"systems\.tested: bm25 needs a corpus, but the dataset 'bare' has none"):
        build_system("bm25").retrieve(Collection("bare", load_queries=lambda: queries), {})


def test_progress_counts_documents_and_queries(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[int, int]] = []
    system = build_system("bm25", progress=lambda done, total, unit=None: calls.append((done, total)))
    corpus = {f"d{number}": "fox" for number in range(1200)}
    system.retrieve(make_collection(corpus, {"q": "fox", "r": "hen"}), {})
    assert calls == sorted(calls)
    assert calls[0] == (1200, 1202) and calls[-1] == (1202, 1202)
    assert capsys.readouterr() == ("", "")


def test_scifact_gets_the_published_value(shared_data: Path) -> None:
    """BEIR (Thakur et al., NeurIPS 2021, table 2) gives BM25 an nDCG@10 of 0.665."""
    collection = build_dataset("beir", shared_data / "retrieval", path="scifact").open()
    assert collection.qrels is not None and collection.queries is not None
    judged = collection.queries.join(collection.qrels, on="query_id", how="semi", maintain_order="left")
    run = run_of(
        build_system("bm25"), Collection("scifact", load_queries=lambda: judged, load_corpus=collection.load_corpus)
    )
    qrels: dict[str, dict[str, int]] = {}
    for query_id, doc_id, relevance in collection.qrels.rows():
        qrels.setdefault(query_id, {})[doc_id] = relevance
    ranking: dict[str, dict[str, float]] = {}
    for query_id, doc_id, score in run.rows():
        ranking.setdefault(query_id, {})[doc_id] = score
    values = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(ranking)
    mean = sum(value["ndcg_cut_10"] for value in values.values()) / len(qrels)
    assert mean == pytest.approx(0.665, abs=0.01)


CHINESE = {
    "d1": "上海图书馆每天早上九点开门",
    "d2": "这家面包店卖新鲜的面包和牛奶",
    "d3": "火车站离这里只有五分钟",
}


def test_chinese_is_found_and_the_note_says_how() -> None:
    collection = make_collection(CHINESE, {"q1": "图书馆几点开门", "q2": "哪里可以买面包"})
    found = build_system("bm25").retrieve(collection, {})
    assert isinstance(found, Retrieval)
    best = found.run.group_by("query_id", maintain_order=True).first()
    assert best.select("query_id", "doc_id").rows() == [("q1", "d1"), ("q2", "d2")]
    (note,) = found.written_notes
    assert note.code == "tokenizer"
    assert "100% of the corpus's letters (Han) need the tokenizer 'unicode', which is used" in note.message


def test_the_tokenizer_can_be_named() -> None:
    queries = {"q1": "图书馆"}
    assert retrieve(CHINESE, queries, tokenizer="words").height == 0
    assert retrieve(CHINESE, queries, tokenizer="unicode").height == 1
    named = build_system("bm25", tokenizer="unicode").retrieve(make_collection(CHINESE, queries), {})
    assert isinstance(named, Retrieval) and named.notes == ()


def test_the_choice_of_auto_is_not_in_the_key_of_stored_runs() -> None:
    assert "tokenizer" not in build_system("bm25").content()["node"]
    assert build_system("bm25", tokenizer="words").content()["node"]["tokenizer"] == "words"


def rows_of(run: pl.DataFrame) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for query_id, doc_id, score in run.rows():
        found.setdefault(query_id, []).append((doc_id, score))
    return found


def expect_runs(corpus: pl.DataFrame, queries: pl.DataFrame, **keys: Any) -> dict[str, list[tuple[str, float]]]:
    texts = dict(zip(corpus["doc_id"], document_texts(corpus), strict=True))
    ranked = rank_documents(texts, queries["text"].to_list(), **keys)
    return {query_id: rows for query_id, rows in zip(queries["query_id"], ranked, strict=True) if rows}


@pytest.mark.parametrize("word", ["trec", "beir"])
def test_bits_of_real_sets_are_those_of_bm25s(shared_data: Path, word: str) -> None:
    name = {"trec": "cranfield", "beir": "scifact"}[word]
    collection = build_dataset("beir", shared_data / "retrieval", path=name).open()
    queries, corpus = collection.require("queries", "test").head(40), collection.require("corpus", "test").head(1500)
    part = Collection(name, load_queries=lambda: queries, load_corpus=lambda: corpus)
    for method, stop_words in (("lucene", "english"), ("bm25+", "none"), ("bm25l", "english")):
        run = run_of(build_system("bm25", method=method, stop_words=stop_words), part)
        stops = None if stop_words == "none" else stop_words
        assert rows_of(run) == expect_runs(corpus, queries, method=method, stop_words=stops)


@pytest.mark.parametrize("name", ["xquad_de", "medline"])
def test_bits_with_a_stemmer_or_the_tokenizer_unicode_are_those_of_bm25s(shared_data: Path, name: str) -> None:
    stemmer = pytest.importorskip("Stemmer")
    collection = build_dataset("beir", shared_data / "retrieval", path=name).open()
    queries, corpus = collection.require("queries", "test").head(40), collection.require("corpus", "test")
    part = Collection(name, load_queries=lambda: queries, load_corpus=lambda: corpus)
    run = run_of(build_system("bm25", stemmer="german", stop_words="german", tokenizer="unicode"), part)
    expected = expect_runs(
        corpus, queries, stemmer=stemmer.Stemmer("german"), stop_words="german", splitter=split_unicode
    )
    assert rows_of(run) == expected


LARGE = {f"d{number}": f"fox w{number % 7} w{number % 11} hen" for number in range(500)} | {"other": "owl", "none": ""}


@pytest.fixture
def _batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus of any size is read in batches of a few documents."""
    monkeypatch.setattr("rageval_spec.systems.bm25.BATCH", -1)
    monkeypatch.setattr("rageval_spec.data.tables.BATCH", 2000)


@pytest.mark.usefixtures("_batches")
@pytest.mark.parametrize("corpus", [LARGE, CHINESE, LARGE | CHINESE, CHINESE | LARGE, {"d": ""}, {}])
def test_a_corpus_in_batches_gives_the_run_of_a_corpus_in_memory(
    corpus: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = make_collection(corpus, {"q1": "w1 w2 fox", "q2": "图书馆几点开门", "q3": "owl"})
    large = build_system("bm25").retrieve(collection, {})
    monkeypatch.undo()
    small = build_system("bm25").retrieve(collection, {})
    assert isinstance(large, Retrieval) and isinstance(small, Retrieval)
    assert large.run.equals(small.run) and large.notes == small.notes


def build_storing(store: Path, **keys: Any) -> Any:
    system = build_system("bm25", **keys)
    return type(system)(system.node, replace(system.context, store=store))


@pytest.mark.usefixtures("_batches")
def test_an_index_is_kept_in_the_store_and_used_without_the_corpus(tmp_path: Path) -> None:
    queries = {"q": "w1 fox"}
    kept = replace(make_collection(LARGE, queries), identify=lambda: "mine")
    first = build_storing(tmp_path).retrieve(kept, {})
    (path,) = (tmp_path / "indexes").iterdir()
    assert [*(tmp_path / "temporary").iterdir()] == []
    assert [(one.kind, one.key) for one in list_entries(tmp_path)] == [("index", path.name)]

    def stream() -> Any:
        raise AssertionError("the corpus is read again")

    unread = replace(kept, load_corpus=lambda: CorpusReader(stream, lambda: CorpusSize(502, 9999, is_exact=False)))
    again = build_storing(tmp_path, k1=1.5).retrieve(unread, {})
    assert again.run.equals(first.run)
    with pytest.raises(AssertionError, match="read again"):
        build_storing(tmp_path, stop_words="german").retrieve(unread, {})
    assert remove(tmp_path, list_entries(tmp_path)) and list_entries(tmp_path) == []


@pytest.mark.usefixtures("_batches")
def test_a_damaged_index_is_built_again(tmp_path: Path) -> None:
    kept = replace(make_collection(LARGE, {"q": "w1 fox"}), identify=lambda: "mine")
    first = build_storing(tmp_path).retrieve(kept, {})
    (path,) = (tmp_path / "indexes").iterdir()
    content = path.read_bytes()
    for damaged in (b"", content[:-1], bytes([content[0] ^ 1]) + content[1:]):
        path.write_bytes(damaged)
        with pytest.warns(StoreWarning, match="is damaged and will be computed again"):
            assert build_storing(tmp_path).retrieve(kept, {}).run.equals(first.run)
        assert path.read_bytes() == content


@pytest.mark.usefixtures("_batches")
def test_an_error_of_the_corpus_leaves_nothing_behind(tmp_path: Path) -> None:
    whole = make_collection(LARGE, {"q": "fox"})

    def stream() -> Any:
        yield from whole.stream_corpus()
        raise DataError("corpus.jsonl:7: not JSON")

    reader = CorpusReader(stream, lambda: CorpusSize(502, 9999, is_exact=False))
    broken = replace(whole, load_corpus=lambda: reader, identify=lambda: "mine")
    with pytest.raises(DataError, match=r"corpus\.jsonl:7"):
        build_storing(tmp_path).retrieve(broken, {})
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".gitignore"] == []


@pytest.mark.usefixtures("_batches")
@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there")
def test_a_store_that_cannot_be_written_to_is_read_or_replaced_by_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, temporary = tmp_path / "store", tmp_path / "temporary"
    temporary.mkdir()
    left = temporary / "rageval-bm25-left"
    left.mkdir()
    (left / "lock").touch()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    kept = replace(make_collection(LARGE, {"q": "w1 fox"}), identify=lambda: "mine")
    first = build_system("bm25").retrieve(kept, {})
    assert isinstance(first, Retrieval) and [*temporary.iterdir()] == []
    with monkeypatch.context() as patch:
        patch.setattr("rageval_spec.systems.bm25.prepare", refuse_to_write)
        with pytest.warns(
            StoreWarning, match="store: cannot write to .*: Read-only file system; BM25 indexes are"
        ) as of:
            for _ in range(2):
                assert build_storing(store).retrieve(kept, {}).run.equals(first.run)
        assert len(of) == 1 and not store.exists() and [*temporary.iterdir()] == []
    assert build_storing(store).retrieve(kept, {}).run.equals(first.run)
    monkeypatch.setattr("rageval_spec.systems.bm25.prepare", refuse_to_write)
    assert build_storing(store).retrieve(kept, {}).run.equals(first.run)


def refuse_to_write(store: Path, name: str) -> Path:
    raise OSError(errno.EROFS, "Read-only file system", str(store / name))
