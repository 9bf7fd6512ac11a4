from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rageval_spec.data import tables
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.reading import corpus_files
from rageval_spec.reading.formats import json_files, records, text_files
from tests.plugins import COMPRESSIONS, build_dataset, write

ROWS = [{"_id": f"d{number}", "title": f"T{number}", "text": "words " * (number % 7)} for number in range(200)]
TABLE = [(row["_id"], row["title"], row["text"]) for row in ROWS]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (text_files, json_files, records):
        monkeypatch.setattr(module, "BLOCK", 512)


def dump(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def beir(folder: Path, text: str, compression: str = "") -> Collection:
    write(folder / "corpus.jsonl", text, compression)
    write(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\n")
    return build_dataset("beir", folder, path=".").open()


def table(folder: Path, form: str) -> Collection:
    frame = pl.DataFrame(TABLE, schema=["doc_id", "title", "text"], orient="row")
    judged = pl.DataFrame({"query_id": ["q"], "doc_id": ["d1"], "relevance": [1]})
    for name, one in (("corpus", frame), ("qrels", judged)):
        path = folder / f"{name}.{form}"
        one.write_csv(path, separator="\t" if form == "tsv" else ",") if form != "parquet" else one.write_parquet(path)
    use = "parquet" if form == "parquet" else "csv"
    return build_dataset(use, folder, path=f"qrels.{form}", corpus=f"corpus.{form}").open()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_json_lines_come_in_batches_in_the_order_of_the_file(tmp_path: Path, compression: str) -> None:
    collection = beir(tmp_path, dump(ROWS), compression)
    batches = [*collection.stream_corpus()]
    assert len(batches) > 10
    assert [row for batch in batches for row in batch.iter_rows()] == TABLE
    assert collection.corpus is not None and collection.corpus.rows() == TABLE


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_tables_come_in_batches_in_the_order_of_the_file(tmp_path: Path, form: str) -> None:
    batches = [*table(tmp_path, form).stream_corpus()]
    assert len(batches) > 5
    assert [row for batch in batches for row in batch.iter_rows()] == TABLE


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
DOCUMENTS = st.lists(
    st.fixed_dictionaries(
        {"_id": st.one_of(st.integers(0, 10**6), WORDS.filter(str.strip)), "text": WORDS},
        optional={
            "title": st.one_of(st.none(), WORDS),
            "metadata": st.dictionaries(st.sampled_from(["text", "a"]), WORDS),
        },
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda row: str(row["_id"]),
)


@pytest.mark.usefixtures("small_blocks")
@given(DOCUMENTS, st.sampled_from(["\n", "\r\n", "\n \n"]), st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_batches_are_what_json_says_of_every_line(
    tmp_path: Path, rows: list[dict[str, Any]], between: str, is_ascii: bool
) -> None:
    text = between.join(json.dumps(row, ensure_ascii=is_ascii) for row in rows)
    (tmp_path / "corpus.jsonl").write_bytes(text.encode())
    found = [*beir_of(tmp_path).stream_corpus()]
    assert pl.concat(found).rows() == [(str(row["_id"]), row.get("title") or "", row["text"]) for row in rows]


def beir_of(folder: Path) -> Collection:
    return build_dataset("beir", folder, path=".").open()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("compression", ["", ".gz"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "d3", "text": "again"}', "151: the document 'd3' is listed twice, first at {path}:4"),
        ('{"_id": "x", "text": "again"', "151:29: not JSON: Expecting ',' delimiter"),
        ('{"_id": "x", "text": ["a"]}', """151: 'text' must be text, not ["a"]"""),
        ('{"_id": " ", "text": "a"}', "151: no doc_id"),
        ('{"_id": "x"}', "151: the document 'x' has neither title nor text"),
        ('{"_id": "x", "text": "a", "text": "b"}', "151: the key 'text' is there twice in one object; keep one"),
    ],
)
def test_what_is_wrong_in_a_later_batch_is_named_by_its_line(
    tmp_path: Path, compression: str, line: str, message: str
) -> None:
    lines = dump(ROWS).splitlines()
    collection = beir(tmp_path, "\n".join([*lines[:150], line, *lines[150:]]), compression)
    path = tmp_path / f"corpus.jsonl{compression}"
    given: list[pl.DataFrame] = []
    with pytest.raises(DataError) as caught:
        given.extend(collection.stream_corpus())
    assert str(caught.value) == f"{path}:{message.format(path=path)}"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("form", "place"), [("csv", ":{}"), ("parquet", ": row {}")])
def test_an_id_in_two_batches_of_a_table_is_named_with_both_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, place: str
) -> None:
    monkeypatch.setattr(f"{__name__}.TABLE", [*TABLE[:180], TABLE[7], *TABLE[180:]])
    header = 1 if form == "csv" else 0
    again, first = place.format(181 + header), place.format(8 + header)
    path = tmp_path / f"corpus.{form}"
    with pytest.raises(DataError) as caught:
        list(table(tmp_path, form).stream_corpus())
    assert str(caught.value) == f"{path}{again}: the document 'd7' is listed twice, first at {path}{first}"


@pytest.mark.usefixtures("small_blocks")
def test_equal_hashes_accuse_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "_hash", lambda ids: pl.Series(range(ids.len())).cast(pl.UInt64))
    assert pl.concat(beir(tmp_path, dump(ROWS)).stream_corpus()).rows() == TABLE


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=9), max_size=20))
def test_hashes_that_were_met_before_are_found(batches: list[list[int]]) -> None:
    seen, before = corpus_files._SeenHashes(), set[int]()
    for batch in batches:
        known = seen.add(pl.Series(batch, dtype=pl.UInt64))
        expected = [one in before for one in batch]
        assert (known.to_list() if known is not None else [False] * len(batch)) == expected
        before.update(batch)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_the_size_of_a_large_corpus_is_estimated_from_its_beginning(tmp_path: Path, compression: str) -> None:
    size = beir(
        tmp_path, dump([{"_id": f"d{number:03}", "text": "a b c"} for number in range(200)]), compression
    ).corpus_size
    assert size is not None and not size.is_exact
    assert size.documents == pytest.approx(200, rel=0.1)
    assert size.content == pytest.approx(200 * len("d100a b c"), rel=0.1)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_size_of_a_small_corpus_is_exact(tmp_path: Path, form: str) -> None:
    content = sum(len(part) for row in TABLE for part in row)
    assert table(tmp_path, form).corpus_size == tables.CorpusSize(200, content, is_exact=True)


@pytest.mark.usefixtures("small_blocks")
def test_parquet_says_how_many_documents_it_has(tmp_path: Path) -> None:
    size = table(tmp_path, "parquet").corpus_size
    assert size is not None and size.documents == 200 and not size.is_exact


def test_a_dataset_that_loads_a_whole_table_gives_it_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame(TABLE, schema=["doc_id", "title", "text"], orient="row")
    monkeypatch.setattr(tables.bound_batches, "__defaults__", (1024,))
    collection = Collection("golden", load_corpus=lambda: frame)
    batches = [*collection.stream_corpus()]
    assert len(batches) > 3 and pl.concat(batches).equals(frame)
    assert collection.corpus is frame or collection.corpus.equals(frame)  # type: ignore[union-attr]


def test_a_corpus_is_read_when_it_is_asked_for_and_from_the_start_each_time(tmp_path: Path) -> None:
    collection = beir(tmp_path, dump(ROWS))
    stream: Iterator[pl.DataFrame] = collection.stream_corpus()
    (tmp_path / "corpus.jsonl").write_text(dump(ROWS[:3]))
    assert pl.concat(stream).height == 3
    assert pl.concat(collection.stream_corpus()).height == 3


def test_a_dataset_without_a_corpus_says_so_at_once() -> None:
    collection = Collection("golden")
    assert collection.corpus_size is None
    with pytest.raises(DataError, match=r"^bm25 needs a corpus, but the dataset 'golden' has none$"):
        collection.stream_corpus("bm25")


def test_a_table_keeps_texts_that_look_like_conversations(tmp_path: Path) -> None:
    text = '[{"role": "user", "content": "How?"}]'
    frame = pl.DataFrame({"doc_id": ["d"], "text": [text]})
    frame.write_csv(tmp_path / "corpus.csv")
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,relevance\nq,d,1\n")
    collection = build_dataset("csv", tmp_path, path="qrels.csv", corpus="corpus.csv").open()
    assert collection.corpus is not None and collection.corpus["text"].to_list() == [text]
