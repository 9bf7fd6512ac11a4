"""The samples table agrees with the samples from which metrics are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import SAMPLES, UNFINISHED, Collection, answers_table, empty_samples
from rageval_spec.pipeline.answers import NOT_ANSWERED, build_samples
from rageval_spec.pipeline.queries import judged_queries
from rageval_spec.pipeline.samples import NO_TRAITS, SampleParts, Traits, stream_samples
from rageval_spec.runner import Options, run
from tests.answering import Canned
from tests.tiny import Install, install, write_spec

__all__ = ["install"]


def tabulate_samples(parts: Sequence[SampleParts], traits: Traits = NO_TRAITS) -> pl.DataFrame:
    return pl.concat([empty_samples(), *stream_samples(parts, traits)])


QUERIES = pl.DataFrame({"query_id": ["q2", "q1", "q3", "q4"], "text": ["two", "one", "three", "four"]})
REFERENCES = pl.DataFrame(
    [
        {"query_id": "q1", "references": ["eins", "uno"], "reference_contexts": ["c"], "answerable": True},
        {"query_id": "q3", "references": [], "group": "g", "condition": "noisy"},
    ],
    schema={
        "query_id": pl.String,
        "references": pl.List(pl.String),
        "reference_contexts": pl.List(pl.String),
        "answerable": pl.Boolean,
        "group": pl.String,
        "condition": pl.String,
    },
)
QRELS = pl.DataFrame(
    {"query_id": ["q1", "q2", "q1", "q9"], "doc_id": ["b", "a", "c", "d"], "relevance": [2, 0, 1, 1]},
)
ROWS: list[dict[str, Any]] = [
    {"query_id": "q1", "answer": "1", "contexts": ["x", "y"], "context_ids": ["b", "a"], "seconds": 0.5, "cost": 0.1},
    {"query_id": "q2", "answer": "", "contexts": [], "input_tokens": 3, "output_tokens": 4, "scores": [1.0]},
    {"query_id": "q3", "answer": "left out", "error": "timed out"},
    {"query_id": "q7", "answer": "to a question that nobody asked"},
]


def collect(*, references: pl.DataFrame | None = REFERENCES, qrels: pl.DataFrame | None = QRELS) -> Collection:
    return Collection(
        "golden",
        load_queries=lambda: QUERIES,
        load_references=lambda: references,
        load_qrels=lambda: qrels,
    )


@pytest.mark.parametrize("references", [REFERENCES, None])
@pytest.mark.parametrize("qrels", [QRELS, None])
def test_the_table_equals_the_samples(references: pl.DataFrame | None, qrels: pl.DataFrame | None) -> None:
    asked, answers = collect(references=references, qrels=qrels), answers_table(ROWS)
    table = tabulate_samples([SampleParts.of(asked, "bot", answers)])
    assert table.columns == list(SAMPLES)
    assert set(table["dataset"]) == {"golden"}
    assert set(table["system"]) == {"bot"}
    samples = build_samples(asked, answers)
    assert table["query_id"].to_list() == ["q2", "q1", "q3", "q4"] == [sample.query_id for sample in samples]
    for row, sample in zip(table.iter_rows(named=True), samples, strict=True):
        relevant = row.pop("relevant")
        found = None if relevant is None else {one["doc_id"]: one["relevance"] for one in relevant}
        assert found == sample.relevant
        for name in set(row) - {
            "dataset",
            "system",
            "scores",
            "columns",
            "slices",
            "status",
            "cause",
            "trace",
            "steps",
        }:
            expected = getattr(sample, name)
            assert row[name] == (list(expected) if isinstance(expected, tuple) else expected), name


def test_a_query_without_an_answer_says_why() -> None:
    table = tabulate_samples([SampleParts.of(collect(), "bot", answers_table(ROWS))])
    found = dict(table.select("query_id", "error").iter_rows())
    assert found == {"q1": None, "q2": None, "q3": "timed out", "q4": NOT_ANSWERED}
    assert table["answer"].to_list() == ["", "1", None, None]


def test_judged_documents_have_their_places_among_the_contexts() -> None:
    table = tabulate_samples([SampleParts.of(collect(), "bot", answers_table(ROWS))])
    (relevant,) = table.filter(pl.col("query_id") == "q1")["relevant"].to_list()
    assert relevant == [{"doc_id": "b", "relevance": 2, "rank": 1}, {"doc_id": "c", "relevance": 1, "rank": None}]


def test_samples_say_what_became_of_each_question() -> None:
    answers = answers_table(ROWS).with_columns((pl.col("query_id") == "q3").alias(UNFINISHED))
    table = tabulate_samples([SampleParts.of(collect(), "bot", answers)])
    found = dict(table.select("query_id", "status").iter_rows())
    assert found == {"q1": "answered", "q2": "answered", "q3": "unfinished", "q4": "failed"}
    assert table["scores"].to_list() == [[1.0], None, None, None]


def test_samples_have_slices_causes_and_the_other_columns() -> None:
    columns = pl.DataFrame({"query_id": ["q3", "q1"], "columns": ['{"a":1}', '{"a":2}']})
    slices = pl.DataFrame({"query_id": ["q1", "q2"], "slices": [["a=2", "long"], []]})
    causes = pl.DataFrame({"query_id": ["q2"], "cause": ["retrieval"]})
    asked = replace(collect(), load_columns=lambda: columns)
    traits = Traits({"golden": slices, "other": slices.clear()}, {("golden", "bot"): causes})
    table = tabulate_samples([SampleParts.of(asked, "bot", answers_table(ROWS))], traits)
    assert table["columns"].to_list() == [None, '{"a":2}', '{"a":1}', None]
    assert table["slices"].to_list() == [[], ["a=2", "long"], [], []]
    assert table["cause"].to_list() == ["retrieval", None, None, None]


CORPUS = pl.DataFrame({"doc_id": ["b", "d"], "title": ["Bee", ""], "text": ["buzzes", "dee"]})
RUN = pl.DataFrame(
    {"query_id": ["q9", "q1", "q1"], "doc_id": ["d", "a", "b"], "score": [1.0, 3.5, 2.5]},
)


def test_a_system_that_only_retrieves_has_samples_with_the_texts_of_its_documents() -> None:
    judged = judged_queries(replace(collect(), load_corpus=lambda: CORPUS))
    table = tabulate_samples([SampleParts.of_run(judged, "bm25", RUN, with_texts=True)])
    assert set(table["status"]) == {"retrieved"}
    assert table.select("query_id", "question", "answer", "context_ids", "contexts", "scores").rows() == [
        ("q1", "one", None, ["a", "b"], ["", "Bee buzzes"], [3.5, 2.5]),
        ("q2", "two", None, [], None, []),
        ("q9", None, None, ["d"], ["dee"], [1.0]),
    ]
    ranks = [[one["rank"] for one in row] for row in table["relevant"]]
    assert ranks == [[2, None], [None], [1]]


def test_a_retriever_has_only_its_first_documents_and_the_ranks_of_all() -> None:
    run = pl.DataFrame({"query_id": ["q1"] * 30, "doc_id": [f"d{at}" for at in range(29)] + ["c"], "score": [1.0] * 30})
    table = tabulate_samples([SampleParts.of_run(judged_queries(collect()), "bm25", run, with_texts=True)])
    (row,) = table.filter(pl.col("query_id") == "q1").iter_rows(named=True)
    assert (len(row["context_ids"]), row["contexts"]) == (10, None)
    assert [(one["doc_id"], one["rank"]) for one in row["relevant"]] == [("b", None), ("c", 30)]


def test_a_corpus_is_not_read_for_samples_without_texts() -> None:
    def refuse() -> pl.DataFrame:
        raise AssertionError("nobody needs the corpus")

    judged = judged_queries(replace(collect(), load_corpus=refuse))
    table = tabulate_samples([SampleParts.of_run(judged, "bm25", RUN, with_texts=False)])
    assert table["context_ids"].to_list() == [["a", "b"], [], ["d"]]


def test_no_system_gives_a_table_without_rows() -> None:
    assert (tabulate_samples([]).height, tabulate_samples([]).columns) == (0, list(SAMPLES))


def evaluate(folder: Path, out: str, **sections: Any) -> Any:
    systems = {
        "bot": {"use": "canned", "answers": {"q1": "yes", "q3": {"answer": "no", "context_ids": ["d4"]}}},
        "good": {"use": "file", "path": "data/good.run"},
        "mute": {"use": "canned", "answers": {}},
    }
    path = write_spec(folder, systems=systems, metrics=["rr", "error_rate"], reports=["samples"], **sections)
    return run(path, Options(output=folder / out))


def test_an_evaluation_has_the_samples_of_every_system(tmp_path: Path, install: Install) -> None:
    install("systems", "canned", Canned)
    samples = evaluate(tmp_path, "out").evaluation.samples
    assert samples["system"].unique(maintain_order=True).to_list() == ["bot", "good", "mute"]
    answers = samples.filter(pl.col("system") == "bot").select("query_id", "question", "answer").rows()
    assert ("q1", "red apple", "yes") in answers
    assert set(samples.filter(pl.col("system") == "mute")["error"]) == {NOT_ANSWERED}


def test_the_same_spec_and_data_give_the_same_bytes_of_samples(tmp_path: Path, install: Install) -> None:
    install("systems", "canned", Canned)
    for out in ("one", "two"):
        evaluate(tmp_path, out)
    first, second = ((tmp_path / out / "samples.parquet").read_bytes() for out in ("one", "two"))
    assert first == second
    assert pl.read_parquet(tmp_path / "one" / "samples.parquet").height > 0
