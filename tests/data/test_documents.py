"""Documents are numbered once each, in the order of the samples."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.documents import DocumentNumbers, empty_documents, restore_contexts


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


def test_texts_without_ids_are_documents_of_their_own() -> None:
    numbers, new = DocumentNumbers().take(samples((["x", "x", "y"], None), (["x", "y"], ["", ""])))
    assert numbers.to_list() == [[0, 0, 1], [2, 3]]
    assert new.rows() == [(0, None, "x"), (1, None, "y"), (2, "", "x"), (3, "", "y")]


def test_contexts_are_restored_from_their_numbers() -> None:
    table = samples((["x", "y"], ["a", "b"]), (None, ["a"]), ([], None))
    numbers, documents = DocumentNumbers().take(table)
    written = table.drop("contexts").with_columns(numbers)
    assert restore_contexts(written, documents).select(table.columns).equals(table)


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
