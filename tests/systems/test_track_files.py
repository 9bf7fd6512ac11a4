"""Topics and answers of TREC's tracks, in the layouts that the tracks publish. All rows here are made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.evidence.citations import load_citations
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.plugin import Answering
from rageval_spec.store.stored_tables import load_table
from tests.plugins import build_dataset, build_system, write

ASKED = "Why was the tower built?"
ARTICLE = "msmarco_v2.1_doc_04_420132660"
RAGTIME = {
    "request_id": "101",
    "collection_ids": ["ragtime/1/all"],
    "title": "The tower",
    "limit": 2000,
    "background": "I am a guide.",
    "problem_statement": ASKED,
}
TOPICS: Mapping[str, tuple[str, str, str]] = {
    "RAG 2024": (f"101\t{ASKED}\n", "101", ASKED),
    "RAG 2025": (json.dumps({"id": "101", "title": ASKED}), "101", ASKED),
    "RAG 2025, sample": (json.dumps({"narrative": ASKED, "id": "101"}), "101", ASKED),
    "AutoJudge": (json.dumps({"title": ASKED, "request_id": "101"}), "101", ASKED),
    "RAGTIME": (json.dumps(RAGTIME), "101", f"The tower\n\n{ASKED}\n\nI am a guide."),
    "NeuCLIR": (
        json.dumps({"topic_id": 101, "title": "The tower", "problem_statement": ASKED, "user_background": "I guide."}),
        "101",
        f"The tower\n\n{ASKED}\n\nI guide.",
    ),
    "RAGTIME, a title alone among others": (
        json.dumps({"request_id": "101", "title": ASKED, "problem_statement": None})
        + "\n"
        + json.dumps({**RAGTIME, "request_id": "102"}),
        "101",
        ASKED,
    ),
    "RAG 2025, without a narrative": (json.dumps({"id": "101", "title": ASKED, "narrative": " "}), "101", ASKED),
    "DRAGUN": (
        json.dumps({"docid": ARTICLE, "url": "http://a.org", "title": ASKED, "headings": "x", "body": "Long ago"}),
        ARTICLE,
        ASKED,
    ),
}
SAID = ("It was built for the fair.", "Many came.", "It stayed.")
TEXT = " ".join(SAID)


def _sentences(*cited: Any) -> list[dict[str, Any]]:
    return [{"text": f" {text} ", "citations": one} for text, one in zip(SAID, cited, strict=True)]


def _metadata(**keys: Any) -> dict[str, Any]:
    return {"metadata": {"team_id": "us", "run_id": "best", **keys}}


IDS = ["d1", "d2"]
ANSWERS: Mapping[str, dict[str, Any]] = {
    "RAG 2024": {
        "run_id": "best",
        "topic_id": 101,
        "topic": ASKED,
        "references": IDS,
        "response_length": 11,
        "answer": _sentences([0, 1], [], [1]),
    },
    "RAG 2025": {
        **_metadata(type="automatic", narrative_id=101, narrative=ASKED),
        "references": IDS,
        "answer": _sentences([0, 1], [], [1]),
    },
    "RAG 2025, ids": {
        **_metadata(type="automatic", narrative_id="101", narrative=ASKED),
        "references": IDS,
        "answer": _sentences(["d1", "d2"], [], ["d2"]),
    },
    "RAGTIME": {
        **_metadata(topic_id="101", task="multilingual"),
        "responses": _sentences({"d1": 0.75, "d2": 0.5}, {}, {"d2": 1.0}),
        "references": IDS,
    },
    "RAGTIME without references": {
        **_metadata(topic_id="101"),
        "responses": _sentences({"d1": 0.75, "d2": 0.5}, {}, {"d2": 1.0}),
    },
    "NeuCLIR": {
        "request_id": "101",
        "run_id": "best",
        "collection_ids": ["neuclir/1/zho"],
        "sentences": _sentences(["d1", "d2"], [], ["d2"]),
    },
    "DRAGUN": {
        **_metadata(topic_id="101", type="automatic", use_starter_kit=0),
        "responses": _sentences(["d1", "d2"], [], ["d2"]),
    },
    "AutoJudge": {
        **_metadata(topic_id="101", narrative_id="101", request_id="101"),
        "is_ragtime": True,
        "references": IDS,
        "responses": _sentences(["d1", "d2"], [], ["d2"]),
        "answer": _sentences(["d1", "d2"], [], ["d2"]),
        "documents": {"d2": {"id": "d2", "text": "It is still there."}, "d1": {"title": "Fair", "text": "In 1889."}},
    },
}
SEGMENTS = [
    {"docid": "d1", "url": "http://a.org", "title": "Fair", "headings": "x", "segment": "In 1889.", "start_char": 0},
    {"docid": "d2", "title": "", "segment": "It is still there.", "end_char": 9},
]


def _rows(*rows: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _open(folder: Path, corpus: str | None = None) -> Collection:
    write(folder / "topics.jsonl", _rows({"id": "101", "title": ASKED}))
    named = {} if corpus is None else {"corpus": write(folder / "corpus.jsonl", corpus).name}
    return build_dataset("trec", folder, queries="topics.jsonl", **named).open()


def _answer(folder: Path, collection: Collection, *rows: Mapping[str, Any]) -> tuple[dict[str, Any], Answering]:
    found = build_system("file", folder, path=write(folder / "run.jsonl", _rows(*rows)).name).answer(collection)
    return load_table(found.table).row(0, named=True), found


@pytest.mark.parametrize("track", TOPICS)
@pytest.mark.parametrize("word", ["trec", "jsonl"])
def test_topics(track: str, word: str, tmp_path: Path) -> None:
    content, query_id, text = TOPICS[track]
    if not content.startswith("{"):
        dataset = build_dataset("trec", tmp_path, queries=write(tmp_path / "topics.tsv", content).name)
    else:
        path = write(tmp_path / "topics.jsonl", content).name
        dataset = build_dataset(word, tmp_path, **{"queries" if word == "trec" else "path": path})
    assert not [*dataset.check_files()]
    collection = dataset.open()
    assert collection.queries is not None and collection.queries.row(0) == (query_id, text)
    assert collection.qrels is None


def test_what_topics_say_beside_the_question_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "topics.jsonl", json.dumps(RAGTIME)).name
    columns = build_dataset("jsonl", tmp_path, path=path).open().columns
    assert columns is not None and json.loads(columns["columns"][0])["limit"] == 2000


def test_a_spec_can_name_another_text(tmp_path: Path) -> None:
    content, query_id, _ = TOPICS["DRAGUN"]
    path = write(tmp_path / "topics.jsonl", content).name
    collection = build_dataset("jsonl", tmp_path, path=path, columns={"text": "body"}).open()
    assert collection.queries is not None and collection.queries.rows() == [(query_id, "Long ago")]


def test_topics_or_judgements(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name the judgements in 'qrels', the topics in 'queries', or both"):
        build_dataset("trec", tmp_path, corpus="corpus.jsonl")


@pytest.mark.parametrize("track", ANSWERS)
def test_answers(track: str, tmp_path: Path) -> None:
    row, _ = _answer(tmp_path, _open(tmp_path), ANSWERS[track])
    assert (row["query_id"], row["answer"], row["context_ids"]) == ("101", TEXT, IDS)
    cited = [(TEXT[one.start : one.end], one.document, one.context) for one in load_citations(row["citations"]) or ()]
    assert cited == [(SAID[0], "d1", 0), (SAID[0], "d2", 1), (SAID[2], "d2", 1)]
    assert row["contexts"] == (["Fair\nIn 1889.", "It is still there."] if track == "AutoJudge" else None)


@pytest.mark.parametrize("track", [track for track in ANSWERS if track != "AutoJudge"])
def test_the_corpus_has_the_texts(track: str, tmp_path: Path) -> None:
    row, found = _answer(tmp_path, _open(tmp_path, _rows(*SEGMENTS)), ANSWERS[track])
    assert row["contexts"] == ["Fair In 1889.", "It is still there."]
    assert not found.notes


def test_a_document_that_the_corpus_lacks_is_told(tmp_path: Path) -> None:
    row, found = _answer(tmp_path, _open(tmp_path, _rows(SEGMENTS[1])), ANSWERS["DRAGUN"])
    assert row["contexts"] == ["", "It is still there."]
    (note,) = found.notes
    assert isinstance(note, Note) and note.message.startswith(
        "1 of 2 documents that the answers name are not in the corpus, first 'd1'"
    )


def test_an_answer_that_cites_nothing_has_no_contexts_but_is_known_to(tmp_path: Path) -> None:
    nothing = {**_metadata(narrative_id="101"), "references": [], "answer": [{"text": "So.", "citations": []}]}
    assert _answer(tmp_path, _open(tmp_path, _rows(*SEGMENTS)), nothing)[0]["contexts"] == []
    assert _answer(tmp_path, _open(tmp_path), {**nothing, "documents": {}})[0]["contexts"] == []
    assert _answer(tmp_path, _open(tmp_path), nothing)[0]["contexts"] is None  # no text is known at all


def test_a_citation_of_a_document_that_rag_does_not_list_names_no_context(tmp_path: Path) -> None:
    row, _ = _answer(tmp_path, _open(tmp_path), {**ANSWERS["RAG 2025, ids"], "references": ["d2"]})
    assert [one.context for one in load_citations(row["citations"]) or ()] == [None, 0, 0]


def test_sentences_that_cite_nothing_and_answers_without_any(tmp_path: Path) -> None:
    bare = {**_metadata(topic_id="101"), "responses": [{"text": "One."}, {"text": "Two."}]}
    assert _answer(tmp_path, _open(tmp_path), bare)[0]["answer"] == "One. Two."
    empty = {**_metadata(topic_id="101"), "responses": [], "references": []}
    assert _answer(tmp_path, _open(tmp_path), empty)[0]["answer"] == ""
    with pytest.raises(DataError, match=r"run\.jsonl:2: the query '101' is answered twice, first at .*run\.jsonl:1"):
        _answer(tmp_path, _open(tmp_path), bare, empty)


def test_a_run_file(tmp_path: Path) -> None:
    run = "101 Q0 d2 1 3.5 Anserini\n101 Q0 d1 2 2.5 Anserini\n"
    system = build_system("file", tmp_path, path=write(tmp_path / "run.rag24.txt", run).name)
    assert not system.answers_on("rag")
    found = system.retrieve(_open(tmp_path), {})
    assert isinstance(found, pl.DataFrame) and found.rows() == [("101", "d2", 3.5), ("101", "d1", 2.5)]
