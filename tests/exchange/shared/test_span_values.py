from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.trace import Document
from rageval_spec.exchange.shared.span_values import (
    amount_of,
    answer_of,
    cost_of,
    count_of,
    documents_of,
    error_of,
    kind_of,
    question_of,
    text_of,
)
from rageval_spec.exchange.shared.spans import ERROR, Span


def _span(**attributes: Any) -> Span:
    return Span("1" * 32, "2" * 16, attributes={key.replace("__", "."): value for key, value in attributes.items()})


@pytest.mark.parametrize(
    ("attribute", "value", "kind"),
    [
        ("openinference__span__kind", "RETRIEVER", "retrieval"),
        ("gen_ai__operation__name", "execute_tool", "tool"),
        ("traceloop__span__kind", "workflow", "chain"),
        ("langfuse__observation__type", "generation", "model"),
        ("mlflow__spanType", '"CHAT_MODEL"', "model"),
        ("openinference__span__kind", "SOMETHING", ""),
        ("openinference__span__kind", 5, ""),
    ],
)
def test_kinds_of_every_convention(attribute: str, value: Any, kind: str) -> None:
    assert kind_of(_span(**{attribute: value})) == kind


@pytest.mark.parametrize(
    ("value", "amount", "count"),
    [
        (3, 3.0, 3), (2.5, 2.5, None), ("4", 4.0, 4), (True, None, None), ("x", None, None), (float("nan"), None, None),
        (float("inf"), None, None), (-1, -1.0, None), ([1], None, None), (10**400, None, None), (None, None, None),
    ],
)  # fmt: skip
def test_numbers(value: Any, amount: float | None, count: int | None) -> None:
    assert (amount_of(value), count_of(value)) == (amount, count)


def test_costs_of_input_and_output_are_added_without_a_total() -> None:
    assert cost_of(_span(llm__cost__prompt=0.25, llm__cost__completion=0.5)) == 0.75
    assert cost_of(_span(llm__cost__total=0.1, llm__cost__prompt=0.25)) == 0.1
    assert cost_of(_span()) is None


@pytest.mark.parametrize(
    "output",
    [
        '[{"page_content": "t", "metadata": {"doc_uri": "d"}}]',
        '{"documents": [{"text": "t", "id": "d", "metadata": {"doc_uri": "other"}}]}',
        [{"content": "t", "document_id": "d"}],
    ],
)
def test_documents_in_the_output_of_a_retriever(output: Any) -> None:
    (document,) = documents_of(_span(openinference__span__kind="RETRIEVER", output__value=output)) or ()
    assert (document.text, document.doc_id, document.score) == ("t", "d", None)


def test_texts_in_the_output_of_a_retriever() -> None:
    assert documents_of(_span(mlflow__spanType='"RETRIEVER"', mlflow__spanOutputs='["a", "b"]')) == (
        Document("a"),
        Document("b"),
    )
    assert documents_of(_span(openinference__span__kind="RETRIEVER", output__value="[]")) == ()
    assert documents_of(_span(openinference__span__kind="CHAIN", output__value='["a"]')) is None


def test_a_document_with_a_number_as_id_and_a_metadata_text() -> None:
    (document,) = documents_of(_span(**{
        "retrieval.documents.0.document.id": 7, "retrieval.documents.0.document.score": "0.5",
        "retrieval.documents.0.document.metadata": '{"page": 3}', "retrieval.documents.0.document.content": "",
    })) or ()  # fmt: skip
    assert document == Document("", "7", 0.5, {"page": 3})


def test_questions_of_retrievers_are_their_queries() -> None:
    assert question_of(_span(gen_ai__operation__name="retrieval", gen_ai__retrieval__query__text="q")) == "q"
    assert question_of(_span(openinference__span__kind="RERANKER", reranker__query="q", input__value="no")) == "q"


def test_values_of_mlflow_are_json() -> None:
    span = _span(mlflow__spanInputs='{"question": "q"}', mlflow__spanOutputs='"a"')
    assert (question_of(span), answer_of(span)) == ("q", "a")


def test_an_error_without_words_is_still_one() -> None:
    assert error_of(_span()._replace(status=ERROR)) == "failed"
    assert error_of(_span()) is None


def test_ids_that_are_numbers_become_texts() -> None:
    assert text_of(_span(session__id=12), "session") == "12"
    assert text_of(_span(session__id=[1]), "session") is None
