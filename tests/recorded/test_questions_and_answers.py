""""""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.traces import Document
from rageval_spec.exchange.shared.contracts import PlacesNode
from rageval_spec.recorded.http_replies import ReplyLayout
from rageval_spec.recorded.questions_and_answers import (
    RecordedPaths,
    choose_documents,
    find_answer,
    find_contexts,
    find_documents,
    find_listed_documents,
    find_messages,
    find_question,
    find_reply,
    find_tokens,
    join_documents,
    outermost,
    read_relevant,
    retrieves,
)
from rageval_spec.recorded.values import clean
from tests.recorded import shapes

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]


def _forms(found: Any) -> list[Any]:
    return [found] if found is None or isinstance(found, str) else [found, json.dumps(found)]


@pytest.mark.parametrize("shape", shapes.QUESTIONS)
def test_questions_of_every_shape(shape: str) -> None:
    for found in _forms(shapes.QUESTIONS[shape]):
        assert find_question(found) == shapes.Q


@pytest.mark.parametrize("shape", shapes.NO_QUESTIONS)
def test_what_is_no_question(shape: str) -> None:
    for found in _forms(shapes.NO_QUESTIONS[shape]):
        assert not find_question(found)


@pytest.mark.parametrize("shape", shapes.ANSWERS)
def test_answers_of_every_shape(shape: str) -> None:
    for found in _forms(shapes.ANSWERS[shape]):
        assert find_answer(found) == find_reply(found) == shapes.A


@pytest.mark.parametrize("shape", shapes.NO_ANSWERS)
def test_what_is_no_answer(shape: str) -> None:
    for found in _forms(shapes.NO_ANSWERS[shape]):
        assert find_answer(found) is None


@pytest.mark.parametrize("shape", shapes.DOCUMENTS)
def test_documents_of_every_shape(shape: str) -> None:
    for found in _forms(shapes.DOCUMENTS[shape]):
        (document,) = find_documents(found) or ()
        assert (document.text, document.doc_id, document.score) == ("t", "d", 0.5)


@pytest.mark.parametrize("shape", shapes.CONTEXTS)
def test_contexts_of_every_shape_are_read_over_http_and_from_traces_alike(shape: str) -> None:
    found = shapes.CONTEXTS[shape]
    for form in _forms(found):
        assert [(one.text, one.doc_id, one.score) for one in find_contexts(form) or ()] == [("t", "d", 0.5)]
    row = ReplyLayout().read(found)
    assert (row.contexts, row.context_ids, row.scores, row.answer_columns) == (("t",), ("d",), (0.5,), None)


@pytest.mark.parametrize("shape", shapes.NO_CONTEXTS)
def test_sources_without_texts_are_no_contexts(shape: str) -> None:
    found = shapes.NO_CONTEXTS[shape]
    assert find_contexts(found) is None
    assert ReplyLayout().read(found).contexts is None


def test_a_text_under_context_is_one_context() -> None:
    found = {"answer": "So.", "context": "The tower is tall."}
    assert find_contexts(found) == (Document("The tower is tall."),)
    assert ReplyLayout().read(found).contexts == ("The tower is tall.",)


@pytest.mark.parametrize("shape", shapes.TOKENS)
def test_tokens_of_every_shape(shape: str) -> None:
    for found in _forms(shapes.TOKENS[shape]):
        assert find_tokens(found) == (3, 2)


def test_tokens_that_are_not_there() -> None:
    assert find_tokens({"answer": "x", "usage": {"credits": 3}}) == find_tokens("text") == (None, None)


def test_an_answer_that_is_json_stays_as_it_is_where_a_key_says_that_it_is_one() -> None:
    for text in ('{"total": 5}', "[1, 2]", '{"answer": "inner"}'):
        assert find_answer({"answer": text}) == text
    assert find_answer({"answer": ""}) == find_answer('{"answer": ""}') == find_answer("") == ""
    assert find_documents(['{"id": "d"}']) == (Document('{"id": "d"}'),)
    assert [find_answer({"answer": one}) for one in (42, 2.5, True)] == ["42", "2.5", "true"]


def test_the_reply_of_a_server_may_be_json_under_any_name_of_an_answer() -> None:
    assert find_reply({"output": '{"total": 5}'}) == '{"total": 5}' and find_answer({"output": '{"total": 5}'}) is None
    assert find_reply({"output": "<generator object>"}) is find_reply({"detail": "overloaded"}) is None


def test_messages_are_kept_if_there_is_more_than_a_question() -> None:
    assert [dict(one) for one in find_messages({"messages": CHAT})] == CHAT
    assert find_messages([CHAT[1]]) == find_messages("Why?") == find_messages([1, 2]) == ()


def test_texts_are_documents_and_other_things_are_not() -> None:
    assert find_documents(["a", "b"]) == (Document("a"), Document("b"))
    assert find_documents([]) == ()
    assert find_documents("plain") is None
    assert find_documents({"answer": "x"}) is None
    assert find_documents(["<NodeWithScore object at 0x7f00>"]) is None
    assert find_contexts({"answer": "x", "contexts": ["a"]}) == (Document("a"),)
    assert find_contexts({"answer": "x", "output": ["a"]}) is None


def test_a_function_gives_documents_only_if_they_are_more_than_texts() -> None:
    assert find_listed_documents([{"id": "d", "text": "t"}]) == (Document("t", "d"),)
    for found in (["a", "b"], [{"text": "t"}], [{"id": "d"}], CHAT, {"answer": "x"}, [{"id": "d", "text": "t"}, "a"]):
        assert find_listed_documents(found) is None


def test_names_of_steps_that_find_documents() -> None:
    assert [name for name in shapes.RETRIEVING if not retrieves(name)] == []
    assert [name for name in shapes.NOT_RETRIEVING if retrieves(name)] == []


def test_a_document_of_several_lists_counts_once() -> None:
    joined = join_documents([[Document("a", "1"), Document("b")], [Document("b", "2", 0.5), Document("a")]])
    assert joined == (Document("a", "1"), Document("b", "2", 0.5))
    assert join_documents([[Document("a", "1"), Document("a", "2")]]) == (Document("a", "1"), Document("a", "2"))


def test_the_documents_that_an_answer_names_count_first() -> None:
    retrieved = [Document("a", "1", 0.9), Document("b", "2", 0.4)]
    assert choose_documents([Document("b")], retrieved) == (retrieved[1],)
    assert choose_documents([Document(None, "2")], retrieved) == (retrieved[1],)
    assert choose_documents([Document("c", "3")], retrieved) == (Document("c", "3"),)
    assert choose_documents([Document("A title")], retrieved) == tuple(retrieved)
    assert choose_documents([Document(None, "7")], retrieved) == tuple(retrieved)
    assert choose_documents([], retrieved) == () and choose_documents(None, retrieved) == tuple(retrieved)
    assert choose_documents(None, None) is None and choose_documents([Document("c")], None) == (Document("c"),)


def test_steps_inside_chosen_ones_do_not_count() -> None:
    assert outermost(["a", "c", "d"], {"b": "a", "c": "b", "d": None}) == ["a", "d"]
    assert outermost(["a"], {"a": "a"}) == ["a"] and set(outermost(["a", "b"], {"a": "b", "b": "a"})) <= {"a", "b"}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "messages",
                    "id",
                    "kwargs",
                    "args",
                    "text",
                    "documents",
                    "node",
                    "metadata",
                    "input",
                    "x",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_nothing_breaks_the_reading(found: Any) -> None:
    for read in (find_question, find_answer, find_reply):
        assert isinstance(read(found), str | None)
    find_messages(found), find_tokens(found), find_listed_documents(found)
    for document in (*(find_documents(found) or ()), *(find_contexts(found) or ())):
        json.dumps(document.to_row(), allow_nan=False)
    json.dumps(clean(found), allow_nan=False)


def test_deep_nesting_ends() -> None:
    for key in ("input", "output", "message", "kwargs", "content", "documents", "node", "usage"):
        deep: Any = "Why?"
        for _ in range(5000):
            deep = {key: deep}
        assert find_question(deep) is find_answer(deep) is None
        find_documents(deep), find_tokens(deep), find_messages(deep), find_contexts({"contexts": [deep]})
        json.dumps(clean(deep))


def test_halves_of_surrogate_pairs_become_a_mark() -> None:
    assert find_question('{"question": "\\ud800?"}') == "\ufffd?"


def test_a_named_place_wins_and_finds_nothing_elsewhere() -> None:
    places = PlacesNode(question="$.a.b", answer="out[*].text").places
    assert places.question({"question": "no", "a": {"b": "yes"}}) == "yes"
    assert places.question('{"a": {"b": 5}}') == "5"
    assert places.question({"question": "no"}) is None
    assert places.answer({"out": [{"text": "x"}]}) == "x"
    assert places.answer({"out": [{"text": "x"}, {"text": "y"}]}) == '["x", "y"]'


def test_a_path_that_is_wrong_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\$\.\[\["):
        PlacesNode(question="$.[[")


@pytest.mark.parametrize(
    ("expected", "references"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("So.", ("So.",)),
        (["So.", "Thus."], ("So.", "Thus.")),
        ({"ground_truth": "So.", "answer": "old"}, ("So.",)),
        ({"output": "So."}, ("So.",)),
        ({"a": 1, "b": 2}, ('{"a": 1, "b": 2}',)),
    ],
)
def test_gold_answers_of_every_form(expected: Any, references: tuple[str, ...]) -> None:
    assert RecordedPaths().references(expected) == references


def test_relevant_documents_are_named_in_one_of_several_mappings() -> None:
    assert read_relevant(None, {"relevant_doc_ids": [1, "b"]}, {"relevant": ["c"]}) == ("1", "b")
    assert read_relevant({"relevant": "a"}, "x") is None
