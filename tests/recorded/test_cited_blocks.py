from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.evidence.citations import load_citations
from rageval_spec.recorded.cited_blocks import read_citations, unfold_sentences
from rageval_spec.recorded.http_replies import ReplyLayout


def cited(
    content: Any, answer: str, ids: list[str], texts: list[str] | None = None
) -> list[tuple[str, int | None, str]]:
    """The documents that a record cites, the contexts that they are, and what they are cited for."""
    found = load_citations(read_citations(content, answer, texts, ids)) or ()
    return [(one.document, one.context, answer[one.start : one.end]) for one in found]


def test_anthropic() -> None:
    at = {"type": "char_location", "document_index": 0, "start_char_index": 0, "end_char_index": 3}
    content = [
        {"type": "text", "text": "They say that "},
        {"type": "text", "text": "grass is green", "citations": [{**at, "cited_text": "x", "document_title": "n.md"}]},
        {"type": "text", "text": " and "},
        {
            "type": "text",
            "text": "the sky is blue",
            "citations": [
                {"type": "page_location", "cited_text": "y", "document_index": 1, "document_title": None},
                {"type": "search_result_location", "source": "https://x.org", "search_result_index": 0},
                {"type": "content_block_location", "cited_text": "is so blue", "document_index": 9},
            ],
        },
        {"type": "text", "text": "."},
    ]
    answer = "They say that grass is green and the sky is blue."
    assert cited({"content": content}, answer, ["n.md", "https://x.org"], ["green", "it is so blue"]) == [
        ("n.md", 0, "grass is green"),
        ("1", 1, "the sky is blue"),
        ("https://x.org", 1, "the sky is blue"),
        ("9", 1, "the sky is blue"),  # by its words
    ]


def test_openai() -> None:
    answer = "Blue today. ([site](https://x.org/a)) Green tomorrow."
    notes = [
        {"type": "url_citation", "start_index": 12, "end_index": 37, "url": "https://x.org/a", "title": "S"},
        {"type": "file_citation", "index": 52, "file_id": "f1", "filename": "d.md"},
        {"type": "url_citation", "start_index": 38, "end_index": 43, "url": "https://b.org"},
    ]
    content = {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": answer, "annotations": notes}]}]
    }
    assert cited(content, answer, ["d.md", "https://x.org/a"]) == [
        ("https://x.org/a", 1, "Blue today."),
        ("https://b.org", None, "Green"),
        ("d.md", 0, "Green tomorrow."),
    ]
    chat = {"choices": [{"message": {"content": "Hi.", "annotations": [
        {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 3, "url": "u", "title": "t"}}
    ]}}]}  # fmt: skip
    assert cited(chat, "Hi.", ["u"]) == [("u", 0, "Hi.")]
    said = "Blue【4:0†d.md】."
    note = {"type": "file_citation", "start_index": 4, "end_index": 14, "file_citation": {"file_id": "f"}}
    text = {"value": said, "annotations": [note]}
    assert cited({"content": [{"type": "text", "text": text}]}, said, ["f"]) == [("f", 0, said)]


def test_cohere() -> None:
    answer = "Penguins are tall. They swim."
    first = {"text": answer, "citations": [{"start": 0, "end": 8, "text": "Penguins", "document_ids": ["d0", "d7"]}]}
    assert cited(first, answer, ["d0"]) == [("d0", 0, "Penguins"), ("d7", None, "Penguins")]
    source = {"type": "document", "id": "doc:0", "document": {"id": "d0", "title": "P"}}
    message = {
        "content": [{"type": "text", "text": answer}],
        "citations": [{"start": 19, "end": 28, "sources": [source]}],
    }
    assert cited({"message": message}, answer, ["d0"]) == [("d0", 0, "They swim")]


def test_documents_beside_an_answer_are_no_citations() -> None:
    content = {"answer": "It is so.", "citations": [{"id": "a", "text": "A passage.", "url": "https://a.org"}]}
    assert cited(content, "It is so.", ["a"]) == []


def test_what_cites_another_text_is_left_out() -> None:
    content = {"thinking": {"text": "Hm.", "citations": [{"start": 0, "end": 2, "document_ids": ["a"]}]}}
    assert cited(content, "It is so.", ["a"]) == []


ODD = {"text": 3, "citations": [{"start": -1, "end": "x", "document_ids": [None]}]}


@pytest.mark.parametrize("content", [None, 3, "x", [], {"citations": 7}, {"citations": [None, {}]}, ODD])
def test_odd_records(content: Any) -> None:
    assert [one for one in cited(content, "It is so.", ["a"]) if one[1] is not None] == []


def test_sentences_of_the_tracks() -> None:
    sentences = [
        {"text": "One is so.", "citations": [0, 1]},
        {"text": "Two.", "citations": []},
        {"text": "Three.", "citations": [7]},
    ]
    found = unfold_sentences({"topic_id": "1", "references": ["a", "b"], "answer": sentences})
    assert (found["answer"], found["context_ids"]) == ("One is so. Two. Three.", ["a", "b"])
    assert cited(found, found["answer"], ["a", "b"]) == [
        ("a", 0, "One is so."),
        ("b", 1, "One is so."),
        ("7", None, "Three."),
    ]
    ragtime = unfold_sentences(
        {"responses": [{"text": "One.", "citations": {"a": 0.7}}, {"text": "Two.", "citations": ["b"]}]}
    )
    read = load_citations(read_citations(ragtime, ragtime["answer"], None, ["a"])) or ()
    assert [(one.document, one.context, one.confidence) for one in read] == [("a", 0, 0.7), ("b", None, None)]
    assert unfold_sentences({"sentences": [{"text": "S.", "citations": ["x"]}]})["answer"] == "S."
    assert unfold_sentences({"answer": "S."}) == {"answer": "S."}


def test_replies() -> None:
    row = ReplyLayout().read({"references": ["a"], "answer": [{"text": "One.", "citations": [0]}, {"text": "Two."}]})
    assert (row.answer, row.context_ids) == ("One. Two.", ("a",))
    assert load_citations(row.citations) is not None
    row = ReplyLayout().read({"answer": "One [1]. Two [3].", "contexts": ["x", "y"], "citations_from": 0})
    assert [one.context for one in load_citations(row.citations) or ()] == [1, None]
    assert ReplyLayout().read({"answer": "Nothing."}).citations is None
