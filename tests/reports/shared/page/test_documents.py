from __future__ import annotations

import polars as pl

from rageval_spec.data.tables import empty_samples
from rageval_spec.reports.shared.page.documents import Documents, number_documents
from tests.reports.page import CONTEXT, OTHER, make_page_samples


def number(samples: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The documents with their texts, and the samples, which come in blocks of two."""
    documents, referring = number_documents(samples.iter_slices(2))
    return gather(documents, samples), referring


def gather(documents: Documents, samples: pl.DataFrame) -> pl.DataFrame:
    return pl.concat(documents.split(samples.iter_slices(3)))


def test_each_text_is_there_once() -> None:
    documents, samples = number(make_page_samples(6))
    assert documents.rows() == [
        (0, "refunds", CONTEXT),
        (1, "other-0", OTHER),
        (2, "other-1", OTHER),
        (3, "other-2", OTHER),
    ]
    assert samples.get_column("shown").to_list() == [[0, 1 + number % 3] for number in range(6)] * 2
    assert {"contexts", "context_ids"}.isdisjoint(samples.columns)


def test_judged_documents_refer_to_their_texts_where_they_are_known() -> None:
    _, samples = number(make_page_samples(1))
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
    documents, referring = number(only_ids)
    assert documents.get_column("text").to_list() == [None] * documents.height
    assert referring.get_column("shown").to_list() == [[0, 1], [0, 2]]
    only_texts = samples.with_columns(context_ids=pl.lit(None, lists))
    documents, referring = number(only_texts)
    assert documents.rows() == [(0, None, CONTEXT), (1, None, OTHER)]
    assert referring.get_column("shown").to_list() == [[0, 1], [0, 1]]


def test_samples_without_contexts_show_none() -> None:
    samples = make_page_samples(1)
    none = {name: pl.lit(None, samples.schema[name]) for name in ("contexts", "context_ids", "relevant")}
    documents, referring = number_documents([samples.with_columns(**none)])
    assert documents.count == 0
    assert referring.get_column("shown").to_list() == [None, None]
    assert list(documents.split([samples.with_columns(**none)])) == []
    assert documents.list_starts() == []


def test_parts_hold_about_a_million_characters() -> None:
    texts = [letter * 400_000 for letter in "abcdef"]
    samples = pl.DataFrame(
        {"contexts": [texts[:1], texts[:3], texts[1:]], "context_ids": None, "relevant": None},
        schema={name: empty_samples().schema[name] for name in ("contexts", "context_ids", "relevant")},
    )
    documents, _ = number_documents(samples.iter_slices(1))
    parts = list(documents.split(samples.iter_slices(2)))
    assert [part.get_column("document").to_list() for part in parts] == [[0, 1], [2, 3], [4, 5]]
    assert pl.concat(parts).get_column("text").to_list() == texts
    assert documents.list_starts() == [0, 2, 4]


def test_texts_of_one_length_under_one_id_are_different_documents() -> None:
    samples = pl.DataFrame(
        {"contexts": [["yes", "no!"], ["no!", "yes"]], "context_ids": [["a", "a"], ["a", "b"]], "relevant": None},
        schema={name: empty_samples().schema[name] for name in ("contexts", "context_ids", "relevant")},
    )
    documents, referring = number(samples)
    assert documents.rows() == [(0, "a", "yes"), (1, "a", "no!"), (2, "b", "yes")]
    assert referring.get_column("shown").to_list() == [[0, 1], [1, 2]]
