"""Golden sets that name passages, with chunks of several sizes, runs, answers and HTTP replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.data.datasets import EvaluatedQueries, take_fingerprints
from rageval_spec.data.tables import answers_table
from rageval_spec.engines.local import Local
from rageval_spec.pipeline.values.passage_judgements import judge_contexts, judge_run
from rageval_spec.pipeline.values.sample_tables import NO_TRAITS
from rageval_spec.store.stored_tables import StoredTable
from tests.pipeline.executing import column, evaluate
from tests.plugins import build_dataset, build_system, run_of, write

GUIDE = "Refunds take 14 days. After that, we charge a fee of 5 euros. Parcels are insured up to 500 euros."
RETURNS = "Bikes come back in their box. The service book must be in the box as well, or we refund nothing."
FEE, BOX = "After that, we charge a fee of 5 euros.", "The service book must be in the box as well"
JUDGED = ("doc_id", "relevance", "rank")
DATASET = {"use": "golden", "path": "golden.jsonl", "documents": "docs"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "docs" / "guide.md", GUIDE)
    write(tmp_path / "docs" / "returns.md", RETURNS)
    rows = [
        {"query_id": "q1", "question": "which fee", "relevant": [{"document": "guide.md", "quote": FEE}]},
        {"query_id": "q2", "question": "what in the box", "relevant": [{"document": "returns.md", "quote": BOX}]},
    ]
    write(tmp_path / "golden.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def write_answers(folder: Path, contexts: list[Any], **more: Any) -> dict[str, Any]:
    rows = [{"query_id": "q1", "answer": "5", "contexts": contexts, **more}, {"query_id": "q2", "answer": "no idea"}]
    write(folder / "answers.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return {"use": "file", "path": "answers.jsonl"}


def place(document: str, start: Any, end: Any) -> dict[str, Any]:
    return {"text": "as the system changed it", "document_id": document, "start": start, "end": end}


@pytest.mark.parametrize(
    "contexts",
    [
        [place("returns.md", 0, 60), place("guide.md", 20, 70)],
        [{"text": "x", "id": "a"}, {"text": FEE, "id": "b"}],
        ["something else", f"page 3: {FEE.upper()}", FEE],
        [{"text": "x", "id": "guide.md"}, {"text": GUIDE[10:], "id": "guide.md"}],
        [{"text": "x", "metadata": place("returns.md", 1, 2)}, place("guide.md", "22", 61.0)],
    ],
)  # fmt: skip
def test_contexts_of_recorded_answers_are_chunks_with_places_or_texts(folder: Path, contexts: list[Any]) -> None:
    """The passage is in the second context; the answer to q2 has no contexts."""
    metrics = ["rr", "recall@5", "target_rank", {"use": "context_recall", "by": "ids", "as": "context_recall"}]
    execution = evaluate(
        folder,
        datasets={"golden": DATASET},
        systems={"app": write_answers(folder, contexts)},
        metrics=metrics,
        gates=[],
    )
    assert column(execution, "app", "rr") == {"q1": 0.5, "q2": 0}
    assert column(execution, "app", "recall@5") == {"q1": 1, "q2": 0}
    assert column(execution, "app", "target_rank") == {"q1": 2, "q2": None}
    assert column(execution, "app", "context_recall")["q1"] == 1


def test_the_samples_show_each_chunk_with_what_it_is_worth(folder: Path) -> None:
    system = write_answers(folder, [FEE, GUIDE])
    (parts,) = evaluate(folder, datasets={"golden": DATASET}, systems={"app": system}, metrics=["rr"], gates=[]).samples
    samples = pl.concat(parts.stream(NO_TRAITS)).select("query_id", "context_ids", "relevant")
    contexts = [("context 1", 1, 1), ("context 2", 0, 2)]
    assert samples.rows() == [
        ("q1", ["context 1", "context 2"], [dict(zip(JUDGED, one, strict=True)) for one in contexts]),
        ("q2", None, [{"doc_id": "returns.md[30:73]", "relevance": 1, "rank": None}]),
    ]


def test_chunks_of_a_corpus_are_known_by_their_ids(folder: Path) -> None:
    write(folder / "chunks.jsonl", json.dumps({"doc_id": "c1", "text": FEE}) + "\n")
    dataset = {**DATASET, "corpus": "chunks.jsonl"}
    system = write_answers(folder, ["nothing", FEE], context_ids=["c9", "c1"])
    execution = evaluate(
        folder,
        datasets={"golden": dataset},
        systems={"app": system},
        metrics=["rr"],
        gates=[],
    )
    assert column(execution, "app", "rr") == {"q1": 0.5, "q2": 0}


def test_ids_of_documents_without_texts_stand_for_whole_documents(folder: Path) -> None:
    rows = [{"query_id": "q1", "answer": "5", "context_ids": ["returns.md", "guide.md"]}]
    write(folder / "answers.jsonl", json.dumps(rows[0]) + "\n")
    systems = {"app": {"use": "file", "path": "answers.jsonl"}}
    execution = evaluate(folder, datasets={"golden": DATASET}, systems=systems, metrics=["rr"])
    assert column(execution, "app", "rr") == {"q1": 0.5, "q2": 0}


def test_a_run_of_document_ids_needs_no_corpus(folder: Path) -> None:
    write(folder / "app.run", "q1 Q0 returns.md 1 2.0 x\nq1 Q0 guide.md 2 1.0 x\nq2 Q0 guide.md#1 1 1.0 x\n")
    systems = {"app": {"use": "file", "path": "app.run"}}
    execution = evaluate(folder, datasets={"golden": DATASET}, systems=systems, metrics=["rr"], gates=[])
    assert column(execution, "app", "rr") == {"q1": 0.5, "q2": 0}


def test_a_run_of_chunks_that_nobody_knows_is_an_error_not_a_0(folder: Path) -> None:
    write(folder / "app.run", "q1 Q0 chunk-17 1 2.0 x\n")
    systems = {"app": {"use": "file", "path": "app.run"}}
    execution = evaluate(folder, datasets={"golden": DATASET}, systems=systems, metrics=["rr"], gates=[])
    assert column(execution, "app", "rr") == {"q1": None, "q2": None}
    assert any("none of the chunks in the run" in note.message for note in execution.notes)


def test_answers_that_are_measured_in_parts_have_the_same_values(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sections: dict[str, Any] = {"datasets": {"golden": DATASET}, "systems": {"app": write_answers(folder, ["x", FEE])}}
    metrics = ["ndcg@5", {"use": "context_recall", "by": "ids", "as": "found"}]
    whole = evaluate(folder, metrics=metrics, **sections).values
    monkeypatch.setattr(Local, "count_parts", lambda *_: 2)
    assert_frame_equal(evaluate(folder, metrics=metrics, **sections).values, whole)


def test_passages_whose_text_nobody_knows_are_errors_of_the_answers(folder: Path) -> None:
    """Offsets cannot be compared with texts, and 0 would be a lie."""
    row = {"query_id": "q1", "question": "x", "relevant": [{"document": "guide.md", "start": 3, "end": 9}]}
    write(folder / "golden.jsonl", json.dumps(row) + "\n")
    dataset, system = {"use": "golden", "path": "golden.jsonl"}, write_answers(folder, [FEE])
    execution = evaluate(folder, datasets={"golden": dataset}, systems={"app": system}, metrics=["rr"])
    assert column(execution, "app", "rr", "status") == {"q1": "error"}
    assert any("the text of 'guide.md' is not known" in note.message for note in execution.notes)


def test_answers_that_lie_in_a_file_are_judged_alike(folder: Path) -> None:
    collection = build_dataset("golden", folder, path="golden.jsonl", documents="docs").open()
    table = answers_table([{"query_id": "q1", "contexts": ["x", FEE], "context_ids": None}])
    for answers in (table, StoredTable.write([table])):
        judged, named = judge_contexts(collection, answers)
        assert judged.qrels is not None
        assert judged.qrels.rows() == [("q1", "context 2", 1), ("q2", "returns.md[30:73]", 1)]
        assert named.select("context_ids").rows() == [(["context 1", "context 2"],)]


def test_what_is_compared_between_evaluations_is_the_passages_not_the_chunks(folder: Path) -> None:
    """So a comparison of two chunkings does not say that judgements changed; an edited passage does."""

    def digest(**keys: str) -> list[str | None]:
        collection = build_dataset("golden", folder, path="golden.jsonl", **keys).open()
        assert collection.queries is not None
        taken = take_fingerprints(EvaluatedQueries(collection, collection.queries["query_id"]))
        return [one.judgements for one in taken.values()]

    write(folder / "chunks.jsonl", json.dumps({"doc_id": "c1", "text": FEE}) + "\n")
    before = digest(documents="docs")
    assert digest(documents="docs", corpus="chunks.jsonl") == before
    write(folder / "golden.jsonl", (folder / "golden.jsonl").read_text().replace("we charge a fee", "we charge"))
    assert [old == new for old, new in zip(before, digest(documents="docs"), strict=True)] == [False, True]


def test_without_passages_nothing_changes(folder: Path) -> None:
    write(folder / "golden.jsonl", '{"query_id": "q1", "question": "x", "relevant": ["d1"]}\n')
    collection = build_dataset("golden", folder, path="golden.jsonl").open()
    assert judge_run(collection, pl.DataFrame()) is collection
    assert judge_contexts(collection, table := pl.DataFrame()) == (collection, table)


def cut(documents: dict[str, str], size: int | None) -> Iterator[dict[str, Any]]:
    """Chunks of a size with an overlap of a quarter; None for whole documents."""
    for name, text in documents.items():
        step = len(text) if size is None else size * 3 // 4
        for at in range(0, max(1, len(text) - (0 if size is None else size // 4)), step):
            end = len(text) if size is None else min(len(text), at + size)
            yield {"doc_id": f"{name}@{at}", "text": text[at:end], "document_id": name, "start": at, "end": end}


def test_one_golden_set_serves_chunks_of_every_size(shared_data: Path, tmp_path: Path) -> None:
    """XQuAD's answer spans, in articles of five paragraphs each, which people never cut into chunks.

    The judgements of paragraphs are the published ones; the same file then judges chunks of 256 and 512 characters
    that overlap, and whole articles, and BM25 has comparable values.
    """
    source = shared_data / "retrieval" / "xquad_en"
    rows = [json.loads(line) for line in (source / "corpus.jsonl").read_text("utf-8").splitlines()]
    articles, starts = dict[str, str](), dict[str, int]()
    for row in rows:
        name = row["_id"].partition("-")[0]
        before = articles.get(name, "")
        starts[row["_id"]] = len(before)
        articles[name] = f"{before}{row['text']}\n\n"
    qrels = pl.read_csv(source / "qrels" / "test.tsv", separator="\t", infer_schema=False)
    paragraph = dict(qrels.select("query-id", "corpus-id").iter_rows())
    with (tmp_path / "golden.jsonl").open("w") as golden:
        for line in (source / "queries.jsonl").read_text("utf-8").splitlines()[::4]:
            asked = json.loads(line)
            answer, place = asked["metadata"]["answers"][0], paragraph[asked["_id"]]
            start = starts[place] + answer["answer_start"]
            passage = {"document": place.partition("-")[0], "start": start, "end": start + len(answer["text"])}
            golden.write(
                json.dumps({"query_id": asked["_id"], "question": asked["text"], "relevant": [passage]}) + "\n"
            )
    write(tmp_path / "articles.jsonl", "".join(json.dumps({"_id": k, "text": v}) + "\n" for k, v in articles.items()))
    for row in rows:
        row |= {"document_id": row["_id"].partition("-")[0], "start": starts[row["_id"]]}
    corpora = {
        "paragraphs": rows,
        "whole": [*cut(articles, None)],
        "small": [*cut(articles, 256)],
        "large": [*cut(articles, 512)],
    }
    values = {}
    for name, chunks in corpora.items():
        write(tmp_path / f"{name}.jsonl", "".join(json.dumps(one) + "\n" for one in chunks))
        files = {"path": "golden.jsonl", "corpus": f"{name}.jsonl", "documents": "articles.jsonl"}
        collection = build_dataset("golden", tmp_path, **files).open()
        run = run_of(build_system("bm25", depth=100), collection)
        judged = judge_run(collection, run)
        assert judged.qrels is not None and collection.qrels is not None
        assert judged.qrels.group_by("query_id").agg(pl.col("relevance").sum())["relevance"].unique().to_list() == [1]
        if name == "paragraphs":
            assert collection.qrels.rows() == [(q, paragraph[q], 1) for q in collection.qrels["query_id"]]
        values[name] = evaluate_rr(judged.qrels, run)
    assert values["small"] == pytest.approx(values["large"], abs=0.1), values
    assert all(0.75 < value < 0.99 for value in values.values()), values


def evaluate_rr(qrels: pl.DataFrame, run: pl.DataFrame) -> float:
    from rageval_spec import kernels

    found = kernels.evaluate_ranking(qrels.filter(pl.col("relevance") > 0), run, ["rr@10"], kernels.RankingOptions())
    return float(found.values[0].mean())


def test_a_run_tells_of_quotes_that_were_edited_or_stand_several_times(folder: Path) -> None:
    def notes() -> list[tuple[str, int | None, str]]:
        system = write_answers(folder, [FEE])
        execution = evaluate(folder, datasets={"golden": DATASET}, systems={"app": system}, metrics=["rr"], gates=[])
        return [(note.code, note.count, note.message) for note in execution.notes if note.code.endswith("_quotes")]

    assert notes() == []
    rows = [
        {"query_id": "q1", "question": "fee", "relevant": [{"document": "guide.md", "quote": FEE.replace("5", "30")}]},
        {"query_id": "q2", "question": "box", "relevant": [{"document": "returns.md", "quote": "box"}]},
    ]
    write(folder / "golden.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    edited, repeated = notes()
    assert (*edited[:2], *repeated[:2]) == ("changed_quotes", 1, "repeated_quotes", 1)
    assert edited[2].startswith("1 quoted passage differs from the document; the most different is that of ")
    assert "golden.jsonl:1, with a similarity of 0.9" in edited[2]
    assert "1 quoted passage stands in the document several times, and the first place counts: see " in repeated[2]
