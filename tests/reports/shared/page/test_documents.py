from __future__ import annotations

import polars as pl

from rageval_spec.reports.shared.page.documents import number_documents, split_documents
from tests.reports.page import CONTEXT, OTHER, make_page_samples


def test_each_text_is_there_once() -> None:
    documents, samples = number_documents(make_page_samples(6))
    assert documents.rows() == [
        (0, "refunds", CONTEXT),
        (1, "other-0", OTHER),
        (2, "other-1", OTHER),
        (3, "other-2", OTHER),
    ]
    assert samples.get_column("shown").to_list() == [[0, 1 + number % 3] for number in range(6)] * 2
    assert {"contexts", "context_ids"}.isdisjoint(samples.columns)


def test_judged_documents_refer_to_their_texts_where_they_are_known() -> None:
    _, samples = number_documents(make_page_samples(1))
    judged = samples.get_column("relevant").to_list()[0]
    assert [(one["doc_id"], one["relevance"], one["document"]) for one in judged] == [
        ("refunds", 2, 0),
        ("elsewhere", 1, None),
        ("other-0", 0, 1),
    ]


def test_ids_or_texts_alone_are_enough() -> None:
    samples = make_page_samples(2).head(2)
    lists = pl.List(pl.String)
    only_ids = samples.with_columns(contexts=pl.lit(None, lists))
    documents, referring = number_documents(only_ids)
    assert documents.get_column("text").to_list() == [None] * documents.height
    assert referring.get_column("shown").to_list() == [[0, 1], [0, 2]]
    only_texts = samples.with_columns(context_ids=pl.lit(None, lists))
    documents, referring = number_documents(only_texts)
    assert documents.rows() == [(0, None, CONTEXT), (1, None, OTHER)]
    assert referring.get_column("shown").to_list() == [[0, 1], [0, 1]]


def test_samples_without_contexts_show_none() -> None:
    samples = make_page_samples(1)
    none = {name: pl.lit(None, samples.schema[name]) for name in ("contexts", "context_ids", "relevant")}
    documents, referring = number_documents(samples.with_columns(**none))
    assert documents.height == 0
    assert referring.get_column("shown").to_list() == [None, None]
    assert list(split_documents(documents)) == []


def test_parts_hold_about_a_million_characters() -> None:
    texts = ["x" * 400_000] * 6
    documents = pl.DataFrame({"document": range(6), "doc_id": list("abcdef"), "text": texts})
    parts = list(split_documents(documents))
    assert [part.height for part in parts] == [2, 2, 2]
    assert pl.concat(parts).equals(documents)
