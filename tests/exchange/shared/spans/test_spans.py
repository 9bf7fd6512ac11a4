""""""

from __future__ import annotations

import json
from typing import Any

import pytest

from rageval_spec.data.traces import Document
from rageval_spec.exchange.shared.spans.spans import (
    ERROR,
    SECOND,
    Span,
    SpanTree,
    answer_of,
    cost_of,
    documents_of,
    error_of,
    format_nanoseconds,
    kind_of,
    question_of,
    seconds_of,
    text_of,
)
from tests.recorded import shapes


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        (SECOND, 3 * SECOND, 2.0),
        (SECOND, SECOND, None),
        (0, SECOND, None),
        (2 * SECOND, SECOND, None),
        (SECOND, 0, None),
    ],
)
def test_seconds(start: int, end: int, seconds: float | None) -> None:
    assert seconds_of(Span("1" * 32, "2" * 16, start=start, end=end)) == seconds


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (1_772_366_400_000_000_000, "2026-03-01T12:00:00Z"),
        (1_772_366_400_123_456_789, "2026-03-01T12:00:00.123456Z"),
        (0, None),
        ((1 << 64) - 1, "2554-07-21T23:34:33.709551Z"),
        (10**21, None),
    ],
)
def test_times(time: int, text: str | None) -> None:
    assert format_nanoseconds(time) == text


def _span(number: int, parent: int | None, start: int = 1, end: int = 2, **attributes: Any) -> Span:
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return Span("1" * 32, f"{number:016x}", None if parent is None else f"{parent:016x}", "", start, end, named)


def _asked(number: int, parent: int | None, **attributes: Any) -> Span:
    return _span(number, parent, input__value=f"q{number}", output__value="a", **attributes)


def _numbers(spans: list[Span]) -> list[int]:
    return [int(span.span_id, 16) for span in spans]


def test_spans_whose_parent_is_missing_are_roots() -> None:
    tree = SpanTree([_span(3, 2), _span(2, 1), _span(5, 9)])
    assert _numbers(tree.roots) == [2, 5] and _numbers(list(tree.walk(tree.roots[0]))) == [2, 3]


def test_of_two_spans_with_one_id_the_later_counts() -> None:
    tree = SpanTree([_span(1, None, end=5, a=1), _span(1, None, end=2, a=2)])
    assert [span.attributes for span in tree.spans] == [{"a": 1}]


def test_steps_are_no_questions_of_their_own() -> None:
    tree = SpanTree([_asked(1, None), _asked(2, 1), _asked(3, 1, openinference__span__kind="LLM")])
    ((entry, parts),) = tree.questions()
    assert _numbers([entry]) == [1] and _numbers(parts) == [1, 2, 3]


def test_questions_below_a_root_without_one() -> None:
    tree = SpanTree([_span(1, None), _asked(2, 1), _span(3, 1), _asked(4, 3), _asked(5, 4)])
    assert [(_numbers([entry]), _numbers(parts)) for entry, parts in tree.questions()] == [([2], [2]), ([4], [4, 5])]


def test_models_below_a_root_without_a_question_are_one_question() -> None:
    tree = SpanTree([_span(1, None), *(_asked(n, 1, openinference__span__kind="LLM") for n in (2, 3))])
    ((entry, parts),) = tree.questions()
    assert _numbers([entry]) == [1] and len(parts) == 3


def test_no_spans_have_no_questions() -> None:
    assert SpanTree([]).questions() == []


def test_chains_that_ask_the_same_are_steps_of_one_question() -> None:
    chains = [_span(number, 1, input__value="q", output__value=f"a{number}") for number in (2, 3)]
    ((entry, parts),) = SpanTree([_span(1, None), *chains]).questions()
    assert _numbers([entry]) == [1] and len(parts) == 3


def _valued_span(**attributes: Any) -> Span:
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
    assert kind_of(_valued_span(**{attribute: value})) == kind


def test_costs_of_input_and_output_are_added_without_a_total() -> None:
    assert cost_of(_valued_span(llm__cost__prompt=0.25, llm__cost__completion=0.5)) == 0.75
    assert cost_of(_valued_span(llm__cost__total=0.1, llm__cost__prompt=0.25)) == 0.1
    assert cost_of(_valued_span()) is None


@pytest.mark.parametrize(
    "output",
    [
        '[{"page_content": "t", "metadata": {"doc_uri": "d"}}]',
        '{"documents": [{"text": "t", "id": "d", "metadata": {"doc_uri": "other"}}]}',
        [{"content": "t", "document_id": "d"}],
    ],
)
def test_documents_in_the_output_of_a_retriever(output: Any) -> None:
    (document,) = documents_of(_valued_span(openinference__span__kind="RETRIEVER", output__value=output)) or ()
    assert (document.text, document.doc_id, document.score) == ("t", "d", None)


def test_texts_in_the_output_of_a_retriever() -> None:
    assert documents_of(_valued_span(mlflow__spanType='"RETRIEVER"', mlflow__spanOutputs='["a", "b"]')) == (
        Document("a"),
        Document("b"),
    )
    assert documents_of(_valued_span(openinference__span__kind="RETRIEVER", output__value="[]")) == ()
    assert documents_of(_valued_span(openinference__span__kind="CHAIN", output__value='["a"]')) is None


def test_a_document_with_a_number_as_id_and_a_metadata_text() -> None:
    (document,) = documents_of(_valued_span(**{
        "retrieval.documents.0.document.id": 7, "retrieval.documents.0.document.score": "0.5",
        "retrieval.documents.0.document.metadata": '{"page": 3}', "retrieval.documents.0.document.content": "",
    })) or ()  # fmt: skip
    assert document == Document("", "7", 0.5, {"page": 3})


def test_questions_of_retrievers_are_their_queries() -> None:
    assert question_of(_valued_span(gen_ai__operation__name="retrieval", gen_ai__retrieval__query__text="q")) == "q"
    assert (
        question_of(_valued_span(openinference__span__kind="RERANKER", reranker__query="q", input__value="no")) == "q"
    )


def test_values_of_mlflow_are_json() -> None:
    span = _valued_span(mlflow__spanInputs='{"question": "q"}', mlflow__spanOutputs='"a"')
    assert (question_of(span), answer_of(span)) == ("q", "a")


def test_an_error_without_words_is_still_one() -> None:
    assert error_of(_valued_span()._replace(status=ERROR)) == "failed"
    assert error_of(_valued_span()) is None


def test_ids_that_are_numbers_become_texts() -> None:
    assert text_of(_valued_span(session__id=12), "session") == "12"
    assert text_of(_valued_span(session__id=[1]), "session") is None


def call(tool: str, reply: Any) -> Span:
    """The call of a tool and what it gave, as text or as JSON."""
    output = reply if isinstance(reply, str) else json.dumps(reply)
    said = {"openinference.span.kind": "TOOL", "tool.name": tool, "output.value": output}
    return Span("1" * 32, "2" * 16, "3" * 16, tool, 1, 2, said)


@pytest.mark.parametrize("tool", ["look_up", "find_articles", "query_kb", "search"])
@pytest.mark.parametrize("shape", shapes.PASSAGES)
def test_the_text_of_a_tool_that_retrieves_is_a_document(shape: str, tool: str) -> None:
    found = documents_of(call(tool, shapes.PASSAGES[shape]))
    assert found is not None
    assert [one.text for one in found] == [shapes.T]


@pytest.mark.parametrize("tool", ["calculate", "get_weather", "rewrite_search_query", "summarize_documents"])
@pytest.mark.parametrize("shape", [shape for shape in shapes.PASSAGES if "document" not in shape])
def test_the_text_of_another_tool_is_none(shape: str, tool: str) -> None:
    assert documents_of(call(tool, shapes.PASSAGES[shape])) is None


@pytest.mark.parametrize("shape", shapes.NO_PASSAGES)
def test_what_holds_no_words_is_no_document(shape: str) -> None:
    assert not documents_of(call("look_up", shapes.NO_PASSAGES[shape]))


def test_a_tool_of_pydantic_ai_called_look_up_gives_a_context() -> None:
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up", "gen_ai.tool.call.result": shapes.T}
    found = documents_of(Span("1" * 32, "2" * 16, "3" * 16, "running tool", 1, 2, said))
    assert found is not None
    assert [one.text for one in found] == [shapes.T]
