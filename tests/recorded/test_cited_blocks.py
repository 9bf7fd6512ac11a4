from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.evidence.citations import load_citations
from rageval_spec.recorded.answers_and_steps import UnusableReplyError, table_of
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


def ground(*supports: dict[str, Any], texts: tuple[str, ...], chunks: list[Any]) -> dict[str, Any]:
    """A reply of Gemini's `generateContent`."""
    parts = [{"text": text} for text in texts]
    metadata = {"webSearchQueries": ["q"], "groundingChunks": chunks, "groundingSupports": [*supports]}
    content = {"parts": parts, "role": "model"}
    return {"candidates": [{"content": content, "finishReason": "STOP", "groundingMetadata": metadata}]}


def test_google() -> None:
    answer = "Größe: 8 m. Groß."  # bytes are not characters
    chunks = [
        {"web": {"uri": "https://a.org/x", "title": "a.org"}},
        {"retrievedContext": {"uri": "gs://b/d.pdf", "title": "d.pdf", "text": "It is big."}},
    ]
    supports = (
        {
            "segment": {"endIndex": 13, "text": "Größe: 8 m."},
            "groundingChunkIndices": [0, 1],
            "confidenceScores": [0.9],
        },
        {"segment": {"startIndex": 14, "endIndex": 20}, "groundingChunkIndices": [1, 7]},
    )
    reply = ground(*supports, texts=(answer,), chunks=chunks)
    assert cited(reply, answer, ["https://a.org/x"], ["Page.", "It is big."]) == [
        ("https://a.org/x", 0, "Größe: 8 m."),
        ("gs://b/d.pdf", 1, "Größe: 8 m."),  # by its text
        ("gs://b/d.pdf", 1, "Groß."),
    ]
    found = load_citations(read_citations(reply, answer, None, ["x"])) or ()
    assert [one.confidence for one in found] == [0.9, None, None]
    snake = {"grounding_metadata": {
        "grounding_chunks": chunks,
        "grounding_supports": [{"segment": {"part_index": 1, "end_index": 5}, "grounding_chunk_indices": [0]}],
    }, "content": {"parts": [{"text": "Hm.", "thought": True}, {"text": answer}]}}  # fmt: skip
    assert cited(snake, answer, ["a.org"]) == [("a.org", 0, "Grö")]


def test_the_words_of_a_citation_count_where_its_offsets_are_of_another_kind() -> None:
    answer = "😀😀 Yes. It is. Yes."
    for start, expected in ((5, 3), (17, 15)):  # UTF-16, where each face counts twice
        record = {"citations": [{"start": start, "end": start + 4, "text": "Yes.", "document_ids": ["a"]}]}
        (found,) = load_citations(read_citations(record, answer, None, ["a"])) or ()
        assert (found.start, found.end) == (expected, expected + 4)


def test_bedrock_knowledge_base() -> None:
    answer = "Spain won. It was 2-1. Nobody knows."
    reply = {"output": {"text": answer}, "sessionId": "s", "citations": [
        {
            "generatedResponsePart": {"textResponsePart": {"span": {"start": 0, "end": 9}, "text": "Spain won."}},
            "retrievedReferences": [
                {"content": {"text": "Spain beat England."}, "location": {"s3Location": {"uri": "s3://d.md"}}},
                {"content": {"text": "A win."}, "location": {"webLocation": {"url": "u"}}, "metadata": {"id": "w"}},
            ],
        },
        {
            "generatedResponsePart": {"textResponsePart": {"span": {"start": 11, "end": 21}, "text": "It was 2-1."}},
            "retrievedReferences": [{"content": {"text": "Spain beat England."}, "metadata": {}}],
        },
        {"generatedResponsePart": {"textResponsePart": {"span": {"start": 23, "end": 35}, "text": "Nobody knows."}},
         "retrievedReferences": []},
    ]}  # fmt: skip
    assert cited(reply, answer, ["x", "w"], ["Spain beat England.", "A win."])[:2] == [
        ("s3://d.md", 0, "Spain won."),
        ("w", 1, "Spain won."),
    ]
    row = ReplyLayout().read(reply)
    assert row.contexts == ("Spain beat England.", "A win.", "Spain beat England.")
    assert [(one.context, one.start) for one in load_citations(row.citations) or ()] == [(0, 0), (1, 0), (0, 11)]


def test_bedrock_converse() -> None:
    block = {"content": [{"text": "grass is green"}], "citations": [
        {"title": "n.md", "source": "n", "sourceContent": [{"text": "Grass is green."}],
         "location": {"documentChar": {"documentIndex": 0, "start": 3, "end": 9}}},
        {"location": {"documentPage": {"documentIndex": 1, "start": 1, "end": 2}}},
        {"sourceContent": [{"text": "so green"}], "location": {"web": {"url": "https://a.org", "domain": "a.org"}}},
    ]}  # fmt: skip
    content = [{"text": "They say that "}, {"citationsContent": block}, {"text": "."}]
    reply = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}
    row = ReplyLayout().read(reply)
    assert row.answer == "They say that grass is green."
    assert cited(reply, row.answer, ["n.md", "b"], ["Grass is so green.", "Sky."]) == [
        ("n.md", 0, "grass is green"),
        ("1", 1, "grass is green"),
        ("https://a.org", 0, "grass is green"),
    ]


def test_documents_beside_an_answer_are_no_citations() -> None:
    content: dict[str, Any] = {
        "answer": "It is so.",
        "citations": [{"id": "a", "text": "A passage.", "url": "https://a.org"}],
    }
    assert cited(content, "It is so.", ["a"]) == []
    content["citations"] = [{"text": "A passage.", "metadata": {"start": 0, "end": 9, "source": "a"}}]
    assert cited(content, "It is so.", ["a"]) == []


def test_what_cites_another_text_is_left_out() -> None:
    content = {"thinking": {"text": "Hm.", "citations": [{"start": 0, "end": 2, "document_ids": ["a"]}]}}
    assert cited(content, "It is so.", ["a"]) == []


GROUNDED = [
    {"segment": {"endIndex": "x", "partIndex": 9}, "groundingChunkIndices": ["a", -1, 7, 0]},
    {"segment": 3, "groundingChunkIndices": 4, "confidenceScores": "x"},
    None,
]
ODD = {"text": 3, "citations": [{"start": -1, "end": "x", "document_ids": [None]}]}


@pytest.mark.parametrize(
    "content",
    [
        None,
        3,
        "x",
        [],
        {"citations": 7},
        {"citations": [None, {}]},
        ODD,
        {"groundingMetadata": {"groundingChunks": 7, "groundingSupports": "x"}},
        {"groundingMetadata": {"groundingChunks": [None, {}], "groundingSupports": GROUNDED}},
        {
            "citations": [
                {"start": 0, "end": 2, "sources": [{}, None, 3], "location": 5, "sourceContent": 7, "marker": "x"}
            ]
        },
    ],
)
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


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (0, ["a"]), ([1.0], ["b"]), ("b", ["b"]), (7, ["7"]), (-1, ["-1"]),
        (None, []), ("", []), ([], []), ({}, []), ([None], []),
        ([[0]], ["[0]"]), ([0.5], ["0.5"]), ([True], ["True"]), ([{"page": {}}], ["{'page': {}}"]),
    ],
)  # fmt: skip
def test_what_a_sentence_cites_is_never_lost(written: Any, names: list[str]) -> None:
    found = unfold_sentences(
        {"run_id": "r", "references": ["a", "b"], "answer": [{"text": "S.", "citations": written}]}
    )
    assert [name for one in found["citations"] for name in one["document_ids"]] == names


def test_replies() -> None:
    row = ReplyLayout().read({"references": ["a"], "answer": [{"text": "One.", "citations": [0]}, {"text": "Two."}]})
    assert (row.answer, row.context_ids) == ("One. Two.", ("a",))
    assert load_citations(row.citations) is not None
    row = ReplyLayout().read({"answer": "One [1]. Two [3].", "contexts": ["x", "y"], "citations_from": 0})
    assert [one.context for one in load_citations(row.citations) or ()] == [1, None]
    assert ReplyLayout().read({"answer": "Nothing."}).citations is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("One [1]. Two [2].", [("1", 1, "One [1]."), ("2", 0, "Two [2].")]),
        ("One [b]. Two.", [("b", 1, "One [b].")]),
        ("One. Two.", [("b", 1, "One. Two."), ("a", 0, "One. Two."), ("c", None, "One. Two.")]),
    ],
)
def test_plain_names_say_what_numbers_mean_or_are_cited_by_the_whole_answer(
    answer: str, expected: list[tuple[str, int | None, str]]
) -> None:
    for names in (["b", "a", "c"], '["b", "a", "c"]'):
        record = {"answer": answer, "contexts": ["x", "y"], "context_ids": ["a", "b"], "citations": names}
        found = load_citations(ReplyLayout().read(record).citations) or ()
        assert [(one.document, one.context, answer[one.start : one.end].strip()) for one in found] == expected


def test_a_record_whose_numbers_begin_at_neither_0_nor_1_is_refused() -> None:
    record = {"answer": "One [1].", "contexts": ["x", "y"]}
    for first in (2, True, "one", 0.5):
        with pytest.raises(UnusableReplyError, match="'citations_from' must be 0 or 1"):
            ReplyLayout().read(record | {"citations_from": first})
    assert ReplyLayout().read(record | {"citations_from": "0"}).citations != ReplyLayout().read(record).citations


def test_a_system_that_counts_from_0_does_not_change_what_lists_and_ids_say() -> None:
    record = {"contexts": ["x", "y"], "context_ids": ["a.md", "b.md"]}

    def read(answer: str, first: int, **more: Any) -> list[int | None]:
        row = ReplyLayout().read(record | {"answer": answer} | more)
        (found,) = table_of([("q", row)], citations_from=first)["citations"]
        return [one.context for one in load_citations(found) or ()]

    listed = "Blue [1]. Red [2].\n\nSources:\n[1] b.md\n[2] c.md"
    assert (read(listed, 1), read(listed, 0)) == ([1, None], [1, None])
    assert read("Blue [1]. Red [2].", 0, context_ids=["2", "1"]) == [1, 0]
    assert (read("Blue [1]. Red [2].", 0), read("Blue [0]. Red [1].", 1)) == ([1, None], [None, 0])
    assert read("Blue [1].", 1, citations_from=0) == [1]
