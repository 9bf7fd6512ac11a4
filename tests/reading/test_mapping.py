from __future__ import annotations

import pytest
import yaml

from rageval_spec.reading.mapping import guess_names, guess_question, list_names, write_mapping


@pytest.mark.parametrize("name", ["Frage", "the question?", "a: b", "no", "{x}", "#1", "", "質問", "it's", "12"])
def test_a_mapping_is_yaml_for_any_name(name: str) -> None:
    written = write_mapping(("columns", "queries"), {"text": name, "reference": "gold"})
    assert "\n" not in written
    assert yaml.safe_load(written) == {"columns": {"queries": {"text": name, "reference": "gold"}}}


def test_a_mapping_looks_handwritten() -> None:
    assert write_mapping(("columns",), {"doc_id": "page"}) == "columns: {doc_id: page}"


def test_names_are_listed_up_to_a_dozen() -> None:
    assert list_names([]) == "nothing"
    assert list_names(["a", "b"]) == "'a', 'b'"
    assert list_names([str(number) for number in range(13)]).endswith("'11', ...")


@pytest.mark.parametrize(
    ("wanted", "present", "expected"),
    [
        (["doc_id"], ["query_id", "page", "relevance"], {"doc_id": "page"}),
        (["query_id", "doc_id", "relevance"], ["topic", "page", "grade"], None),
        (["query_id", "doc_id", "relevance"], ["grade", "topic", "page"], None),
        (["text", "reference"], ["Antwort", "Frage"], {"text": "Frage", "reference": "Antwort"}),
        (["reference"], ["expected-output"], {"reference": "expected-output"}),
        (["query_id"], ["x", "y"], {"query_id": "x"}),
        (["query_id"], ["relevant", "title"], {}),
        (["query_id", "text"], ["a"], {"query_id": "a"}),
    ],
)
def test_names_are_guessed_by_their_words_and_then_by_order(
    wanted: list[str], present: list[str], expected: dict[str, str] | None
) -> None:
    assert guess_names(wanted, present) == (expected or {} if expected is not None else dict(TOPICS))


TOPICS = {"query_id": "topic", "doc_id": "page", "relevance": "grade"}


def test_each_free_column_is_guessed_at_most_once() -> None:
    assert guess_names(["text", "reference"], ["question"]) == {"text": "question"}
    assert guess_names(["text"], ["question", "b"], taken=["question"]) == {"text": "b"}


def test_the_question_is_the_column_that_mostly_ends_in_a_question_mark() -> None:
    rows = [{"a": "yes", "b": "is it? "}, {"a": "no?", "b": "何ですか\uff1f"}, {"a": "no", "b": "say it"}]
    assert guess_question(rows, ["a", "b"]) == "b"
    assert guess_question(rows[2:], ["a", "b"]) is None
    assert guess_question([], []) is None
