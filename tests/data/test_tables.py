"""Documents are numbered once each, in the order of the samples."""

from __future__ import annotations

from io import BytesIO
from typing import get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from rageval_spec.data import tables
from rageval_spec.data.tables import (
    ANSWERS,
    LATER_ANSWERS,
    REFERENCES,
    SAMPLE_COLUMNS,
    SAMPLES,
    Collection,
    DocumentNumbers,
    answers_table,
    document_texts,
    dump_parquet,
    empty_documents,
    empty_samples,
    only_queries,
    references_of,
    restore_contexts,
)
from rageval_spec.errors import DataError
from rageval_spec.spec.blocks.spec_node import RedactedColumn


def test_answers_have_all_columns_and_types_even_without_values() -> None:
    table = answers_table([{"query_id": "q1", "answer": "yes"}, {"query_id": "q2", "contexts": ["a"], "seconds": 1}])
    assert table.columns == [*ANSWERS, *LATER_ANSWERS]
    assert table["contexts"].to_list() == [None, ["a"]]
    assert table.schema == answers_table([]).schema
    assert table.schema["scores"] == pl.List(pl.Float64)


def test_the_samples_table_has_a_column_for_each_field_of_a_sample() -> None:
    empty = empty_samples()
    assert (empty.height, empty.columns) == (0, list(SAMPLES))
    assert empty.schema["references"] == pl.List(pl.String)
    assert empty.schema["answerable"] == pl.Boolean


def test_only_queries_keeps_rows_and_their_order() -> None:
    run = pl.DataFrame({"query_id": ["q2", "q1", "q2", "q3"], "doc_id": ["a", "b", "c", "d"]})
    wanted = pl.DataFrame({"query_id": ["q3", "q2", "q2"]})
    assert only_queries(run, wanted)["doc_id"].to_list() == ["a", "c", "d"]


def test_a_part_is_loaded_once_when_first_read() -> None:
    loaded: list[str] = []

    def load() -> pl.DataFrame:
        loaded.append("queries")
        return pl.DataFrame({"query_id": ["q1"], "text": ["Why?"]})

    collection = Collection("golden", load_queries=load)
    assert loaded == []
    assert collection.require("queries", "bm25") is collection.queries
    assert loaded == ["queries"]
    assert collection.corpus is None
    with pytest.raises(DataError, match="bm25 needs a corpus, but the dataset 'golden' has none"):
        collection.require("corpus", "bm25")


def test_title_and_text_are_joined_and_stripped() -> None:
    corpus = pl.DataFrame({"doc_id": ["a", "b"], "title": ["Tea", ""], "text": ["is hot", " alone "]})
    assert document_texts(corpus).to_list() == ["Tea is hot", "alone"]


def test_equal_tables_give_equal_parquet_bytes() -> None:
    table = pl.DataFrame({"query_id": ["q1", "q2"], "value": [0.5, None]})
    content = dump_parquet(table, {"key": "text"})
    assert content == dump_parquet(table.clone(), {"key": "text"})
    assert_frame_equal(pl.read_parquet(BytesIO(content)), table)
    assert pl.read_parquet_metadata(BytesIO(content))["key"] == "text"


def test_references_have_all_columns_and_types_even_without_values() -> None:
    table = references_of([("q1", ["a"], None, None, None, None)])
    assert table.columns == list(REFERENCES)
    assert table.schema["reference_contexts"] == pl.List(pl.String) and table.schema["answerable"] == pl.Boolean
    assert references_of([]).schema == table.schema


def samples(*rows: tuple[list[str] | None, list[str | None] | None]) -> pl.DataFrame:
    schema = {"contexts": pl.List(pl.String), "context_ids": pl.List(pl.String)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_each_text_of_an_id_is_one_document_across_blocks() -> None:
    numbering = DocumentNumbers()
    first, new = numbering.take(samples((["x", "y"], ["a", "b"]), (None, ["a"]), ([], None)))
    assert first.to_list() == [[0, 1], None, []]
    assert new.rows() == [(0, "a", "x"), (1, "b", "y")]
    second, more = numbering.take(samples((["y", "x"], ["b", "a"]), (["x", "x2"], ["c", "a"])))
    assert second.to_list() == [[1, 0], [2, 3]]
    assert more.rows() == [(2, "c", "x"), (3, "a", "x2")]


def test_documents_have_the_same_numbers_however_their_digests_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(start: int, row: int) -> tuple[list[str], list[str | None]]:
        return [f"t{(start * 7 + row) % 23}", f"t{row % 5}"], ["a", f"d{row % 3}"]

    blocks = [samples(*(make(start, row) for row in range(20))) for start in range(9)]
    expected = DocumentNumbers()
    found = [expected.take(block) for block in blocks]
    monkeypatch.setattr(tables, "_MOST_RECENT", 3)
    numbering = DocumentNumbers()
    for block, (numbers, new) in zip(blocks, found, strict=True):
        again, newly = numbering.take(block)
        assert again.equals(numbers)
        assert newly.equals(new)
    assert numbering._settled is not None and sum(len(known) for known, _ in numbering._settled) > 3


def test_texts_without_ids_are_documents_of_their_own() -> None:
    numbers, new = DocumentNumbers().take(samples((["x", "x", "y"], None), (["x", "y"], ["", ""])))
    assert numbers.to_list() == [[0, 0, 1], [2, 3]]
    assert new.rows() == [(0, None, "x"), (1, None, "y"), (2, "", "x"), (3, "", "y")]


def test_contexts_are_restored_from_their_numbers() -> None:
    table = samples((["x", "y"], ["a", "b"]), (None, ["a"]), ([], None))
    numbers, documents = DocumentNumbers().take(table)
    written = table.drop("contexts").with_columns(numbers)
    assert restore_contexts(written, documents).select(table.columns).equals(table)


def test_a_spec_can_leave_out_the_columns_that_have_a_word_for_it() -> None:
    words = {one.redact for one in SAMPLE_COLUMNS} - {None}
    assert words == set(get_args(RedactedColumn))


def test_no_samples_give_a_table_with_all_columns() -> None:
    _, documents = DocumentNumbers().take(samples())
    assert documents.equals(empty_documents())


texts = st.sampled_from(["", "x", "y", "1:x", "\0"])
rows = st.lists(
    st.tuples(
        st.none() | st.lists(texts, max_size=3),
        st.none() | st.lists(st.none() | st.sampled_from(["", "a"]), max_size=4),
    ),
    max_size=4,
)


def number_slowly(
    known: dict[tuple[str | None, str], int], contexts: list[str] | None, ids: list[str | None] | None
) -> list[int] | None:
    padded = [*(ids or []), *[None] * 3]
    pairs = [(padded[place], text) for place, text in enumerate(contexts or [])]
    return None if contexts is None else [known.setdefault(pair, len(known)) for pair in pairs]


@given(st.lists(rows, max_size=3))
def test_blocks_are_numbered_like_one_context_after_the_other(
    blocks: list[list[tuple[list[str] | None, list[str | None] | None]]],
) -> None:
    numbering = DocumentNumbers()
    known: dict[tuple[str | None, str], int] = {}
    new: list[tuple[int, str | None, str]] = []
    for block in blocks:
        numbers, documents = numbering.take(samples(*block))
        assert numbers.to_list() == [number_slowly(known, contexts, ids) for contexts, ids in block]
        new += documents.rows()
    assert new == [(number, doc_id, text) for (doc_id, text), number in known.items()]
