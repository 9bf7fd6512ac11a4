"""The rows of a test set that is made without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rageval_spec
from rageval_spec.errors import UsageError
from rageval_spec.generation.documents import DocumentSet, read_documents
from rageval_spec.generation.offline_questions import make_offline_set
from tests.generation.manual import write_manual


@pytest.fixture
def manual(tmp_path: Path) -> DocumentSet:
    return read_documents(write_manual(tmp_path / "manual"))


def test_rows_say_how_they_were_made_and_where_they_come_from(manual: DocumentSet) -> None:
    made = make_offline_set(manual, 20, size=60)
    texts = {document.doc_id: document.text for document in manual.documents}
    assert len(made.rows) == len({row["query_id"] for row in made.rows}) == 20
    for row in made.rows:
        assert row["made_by"] == "no-model"
        assert row["language"] == "en"
        assert row["difficulty"] in {"easy", "medium", "hard"}
        assert [source["document"] for source in row["sources"]] == row["relevant_documents"]
        for found in row["evidence"]:
            text = texts[found["document"]]
            assert text[found["document_start"] : found["document_end"]] == found["quote"]


def test_the_corpus_holds_all_chunks_without_what_was_asked(manual: DocumentSet) -> None:
    made = make_offline_set(manual, 20, size=60)
    texts = {row["doc_id"]: row["text"] for row in made.corpus}
    assert {doc_id for row in made.rows for doc_id in row["relevant"]} <= set(texts)
    quotes = [(found["quote"], found["chunk"]) for row in made.rows for found in row["evidence"]]
    assert quotes
    assert not [quote for quote, chunk in quotes if quote in texts[chunk]]


def test_a_corpus_keeps_its_documents_and_their_ids(tmp_path: Path) -> None:
    sentence = (
        "The {0} of plant {1} opens at dawn. Visitors of plant {1} must see the {0} first. Plant {1} closes early. "
    )
    rows = [{"_id": f"k{n}", "title": "", "text": sentence.format(f"gate{n}", n) * 9} for n in range(6)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = make_offline_set(read_documents(tmp_path), 5, size=20)
    assert [row["doc_id"] for row in made.corpus] == [f"k{n}" for n in range(6)]
    assert {doc_id for row in made.rows for doc_id in row["relevant"]} <= {f"k{n}" for n in range(6)}


def test_no_document_is_on_both_sides_of_a_split(manual: DocumentSet) -> None:
    made = make_offline_set(manual, 30, split="30:70", size=60)
    sides = {(row["split"], name) for row in made.rows for name in row["relevant_documents"]}
    assert {side for side, _ in sides} == {"validation", "test"}
    assert len({name for _, name in sides}) == len(sides)
    with pytest.raises(UsageError, match="such as 30:70"):
        make_offline_set(manual, 30, split="thirty")


def test_it_is_said_when_the_corpus_gives_fewer_questions(manual: DocumentSet) -> None:
    made = make_offline_set(manual, 500, size=60)
    assert len(made.rows) < 500
    assert made.remarks[0].startswith(f"the corpus gives only {len(made.rows)} of 500 questions")


def test_dropped_questions_have_their_reason(tmp_path: Path) -> None:
    folder = write_manual(tmp_path / "manual")
    (folder / "copy.md").write_text((folder / "pump.md").read_text())
    rejected = make_offline_set(read_documents(folder), 500, size=60).rejected
    assert "several_sources" in {row["reason"] for row in rejected}
    assert all(row["reason"] and row["why"] and row["question"] and row["chunks"] for row in rejected)


def test_the_set_runs_in_a_spec_as_it_is(manual: DocumentSet, tmp_path: Path) -> None:
    made = make_offline_set(manual, 20, size=60)
    for name, rows in (("golden.jsonl", made.rows), ("golden.corpus.jsonl", made.corpus)):
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    spec = {
        "version": 1,
        "name": "own-documents",
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl", "corpus": "golden.corpus.jsonl"}},
        "systems": {"bm25": {"use": "bm25"}},
        "metrics": ["ndcg@10", "target_rank"],
    }
    evaluation = rageval_spec.run(spec, folder=tmp_path, store=None, record=False, quiet=True)
    ndcg = evaluation.aggregates.filter(evaluation.aggregates["metric"] == "ndcg@10").row(0, named=True)
    assert ndcg["scored"] == 20
    assert 0.3 < ndcg["mean"] < 1
