"""A system's answers become samples and a run.

The samples table agrees with the samples from which metrics are computed.

Samples give their question's other columns, which are read only if somebody looks at them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.evidence.citations import Citation, dump_citations, load_citations
from rageval_spec.data.samples import Sample
from rageval_spec.data.tables import SAMPLES, UNFINISHED, Collection, answers_table, empty_samples
from rageval_spec.errors import DataError
from rageval_spec.pipeline.planning.plan import StepTask, TaskResult, make_plan
from rageval_spec.pipeline.planning.question_selection import judged_queries
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.pipeline.values.sample_tables import (
    NO_TRAITS,
    NOT_ANSWERED,
    SampleParts,
    Traits,
    answer_queries,
    build_samples,
    describe_answers,
    stream_samples,
    take_step,
)
from rageval_spec.pipeline.values.step_inputs import Materials
from rageval_spec.plugin import Answering, GeneratingNode
from rageval_spec.recorded.answers_and_steps import AnswerRow, table_of
from rageval_spec.recorded.cited_blocks import read_citations
from rageval_spec.runner import Options, run
from rageval_spec.spec import load
from rageval_spec.store.store import MemoryStore
from tests.answering import Canned
from tests.tiny import Install, install, write_spec

__all__ = ["install"]

QUERIES = pl.DataFrame({"query_id": ["q2", "q1"], "text": ["two", "one"]})


def collection() -> Collection:
    return Collection("golden", load_queries=lambda: QUERIES)


def test_contexts_become_a_ranking_with_each_document_at_its_first_place() -> None:
    rows: list[dict[str, Any]] = [
        {"query_id": "q1", "answer": "yes", "context_ids": ["d3", "d1", "d3"]},
        {"query_id": "q2", "answer": "no"},
    ]
    answered = describe_answers(answers_table(rows), collection())
    assert answered.run is not None
    assert answered.run.rows() == [("q1", "d3", 2.0), ("q1", "d1", 1.0)]
    assert describe_answers(answers_table(rows[1:]), collection()).run is None


def test_a_query_without_an_answer_has_an_error_and_a_note_counts_them() -> None:
    answered = describe_answers(answers_table([{"query_id": "q1", "answer": "yes"}]), collection())
    assert answered.table.select("query_id", "error").rows() == [("q2", NOT_ANSWERED), ("q1", None)]
    (note,) = answered.remark()
    assert (note.code, note.count) == ("unanswered", 1)


def test_answers_that_were_cut_off_are_counted() -> None:
    rows: list[dict[str, Any]] = [
        {"query_id": "q1", "answer": "The tower is", "truncated": True},
        {"query_id": "q2", "answer": "yes"},
    ]
    answered = describe_answers(answers_table(rows), collection())
    assert dict(answered.table.select("query_id", "is_truncated").iter_rows()) == {"q1": True, "q2": False}
    (note,) = answered.remark()
    assert (note.code, note.count, note.level) == ("truncated_answers", 1, "warning")
    assert note.message == (
        "1 of 2 answers was cut off at the token limit; raise max_tokens where the system asks its model"
    )


@pytest.mark.parametrize(
    ("answers", "first", "is_told"),
    [
        (("One [0]. Two [1].", "Three [1]."), None, True),
        (("One [0]. Two [1].", "Three [1]."), 0, False),  # the system says so
        (("One [0]. Two [1].", "Three [1]."), 1, False),
        (("One [0]. Two [1].", "Three."), None, False),
        (("One [2].", "Three [1]."), None, False),
        (("One [0].", "Three [7]."), None, False),  # which names no context either way
    ],
)
def test_answers_whose_numbers_may_begin_at_0_are_counted(
    answers: Sequence[str], first: int | None, is_told: bool
) -> None:
    rows = [
        (f"q{number}", AnswerRow(text, contexts=("x", "y"), citations=read_citations({}, text, ("x", "y"), None)))
        for number, text in enumerate(answers, 1)
    ]
    notes = [*describe_answers(table_of(rows, first), collection()).remark()]
    assert [(note.code, note.count, note.level) for note in notes] == is_told * [("citation_numbers", 1, "warning")]
    assert not notes or notes[0].message == (
        "1 answer cites number 0, but the numbers of 1 of 2 answers were counted from 1; if the system's numbers begin "
        "at 0, write 'citations_from: 0' in it; else write 'citations_from: 1'"
    )


def test_samples_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"q{number}" for number in range(5)]
    queries = pl.DataFrame({"query_id": ids, "text": [f"What is {name}?" for name in ids]})
    gold = pl.DataFrame({"query_id": ["q4", "q1"], "references": [["four"], ["one", "1"]], "text": ["x", "y"]})
    rows: list[dict[str, Any]] = [
        {"query_id": name, "answer": name.upper(), "contexts": [name]} for name in ("q3", "q0", "q1")
    ]
    asked = Collection("golden", load_queries=lambda: queries, load_references=lambda: gold)
    answers = answers_table(rows).with_columns(question=pl.lit("a column of the system's own"))
    whole = build_samples(asked, answers)
    monkeypatch.setattr("rageval_spec.data.tables._ROWS_AT_ONCE", 2)
    assert build_samples(asked, answers) == whole
    assert [(one.query_id, one.question, one.answer, one.contexts, one.references) for one in whole] == [
        ("q0", "What is q0?", "Q0", ("q0",), ()),
        ("q1", "What is q1?", "Q1", ("q1",), ("one", "1")),
        ("q2", "What is q2?", None, None, ()),
        ("q3", "What is q3?", "Q3", ("q3",), ()),
        ("q4", "What is q4?", None, None, ("four",)),
    ]


def answer(folder: Path, table: pl.DataFrame, install: Install) -> TaskResult:
    class Given(Canned):
        def answer(self, collection: Collection) -> Answering:
            return Answering(table)

    install("systems", "given", Given)
    spec = load(write_spec(folder, systems={"bot": {"use": "given"}}, metrics=["error_rate"]))
    parts = build_parts(spec)
    plan = make_plan(spec, parts, MemoryStore().fingerprint)
    return answer_queries(Materials(spec, parts), StepTask(plan.retrieval("fruit", "bot")))


def test_answers_are_passed_on_unchanged(tmp_path: Path, install: Install) -> None:
    table = answers_table([{"query_id": "q1", "answer": "yes"}])
    made = answer(tmp_path, table, install)
    assert made.table is not None
    assert made.table.equals(table)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"query_id": "q1", "answer": "yes"}, {"query_id": "q1", "answer": "no"}], "the query 'q1' is answered twice"),
        (None, "the answers have no column 'answer'"),
    ],
)
def test_invalid_answers_are_refused(
    tmp_path: Path, install: Install, rows: list[dict[str, Any]] | None, message: str
) -> None:
    table = answers_table([]).drop("answer") if rows is None else answers_table(rows)
    with pytest.raises(DataError, match=message):
        answer(tmp_path, table, install)


def test_samples_leave_out_contexts_but_keep_their_ids() -> None:
    rows = [{"query_id": "q1", "answer": "yes", "contexts": ["a", "b"], "context_ids": ["d1", "d2"]}]
    samples = build_samples(collection(), answers_table(rows).drop("contexts"))
    (sample,) = (one for one in samples if one.query_id == "q1")
    assert (sample.contexts, sample.context_ids) == (None, ("d1", "d2"))


def tabulate_samples(parts: Sequence[SampleParts], traits: Traits = NO_TRAITS) -> pl.DataFrame:
    return pl.concat([empty_samples(), *stream_samples(parts, traits)])


FOUR_QUERIES = pl.DataFrame({"query_id": ["q2", "q1", "q3", "q4"], "text": ["two", "one", "three", "four"]})
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
        load_queries=lambda: FOUR_QUERIES,
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
        for name in row.keys() & {field.name for field in fields(Sample)} - {"scores", "columns"}:
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


COLUMNS = pl.DataFrame({"query_id": ["q1", "q2"], "columns": ['{"level":"hard","tags":["a"]}', "{}"]})


def test_a_sample_has_the_columns_of_its_question() -> None:
    asked = Collection("golden", load_queries=lambda: QUERIES, load_columns=lambda: COLUMNS)
    two, one = build_samples(asked, answers_table([]))
    assert one.columns is not None and two.columns is not None
    assert dict(one.columns) == {"level": "hard", "tags": ["a"]}
    assert one.columns.get("missing") is None
    assert len(two.columns) == 0


def test_nothing_is_read_until_a_column_is_looked_up() -> None:
    reads = []

    def read() -> pl.DataFrame:
        reads.append(1)
        return COLUMNS

    samples = build_samples(Collection("golden", load_queries=lambda: QUERIES, load_columns=read), answers_table([]))
    assert reads == []
    for sample in samples:
        assert sample.columns is not None
        sample.columns.get("level")
    assert reads == [1]


@pytest.mark.parametrize("is_absent_in_the_file", [False, True])
def test_a_dataset_without_other_columns_has_nothing_to_look_up(is_absent_in_the_file: bool) -> None:
    asked = Collection(
        "golden", load_queries=lambda: QUERIES, load_columns=(lambda: None) if is_absent_in_the_file else None
    )
    for sample in build_samples(asked, answers_table([])):
        assert not sample.columns


def search(*documents: tuple[str | None, str | None]) -> dict[str, Any]:
    return {"kind": "retrieval", "documents": [{"id": name, "text": text} for name, text in documents]}


STEPS_OF = {
    "both": [search(("a", "A")), {"kind": "tool", "name": "mail"}, search(("b", "B"), ("c", "C"))],
    "nothing": [search()],
    "ids": [search(("a", None))],
    "none": [{"kind": "tool", "name": "mail"}],
    "unknown": None,
}


@pytest.mark.parametrize(
    ("step", "contexts", "ids"),
    [
        (1, [["A"], [], None, None, None], [["a"], [], ["a"], None, None]),
        (2, [["B", "C"], None, None, None, None], [["b", "c"], None, None, None, None]),
        (3, [None] * 5, [None] * 5),
        ("last", [["B", "C"], [], None, None, None], [["b", "c"], [], ["a"], None, None]),
        (None, [["X"]] * 5, [["x"]] * 5),
    ],
)
def test_a_step_has_the_contexts_that_are_evaluated(step: Any, contexts: list[Any], ids: list[Any]) -> None:
    answers = answers_table(
        {"query_id": name, "answer": "!", "contexts": ["X"], "context_ids": ["x"], "scores": [1.0],
         "citations": "[]", "steps": None if steps is None else json.dumps(steps)}
        for name, steps in STEPS_OF.items()
    )  # fmt: skip
    found = take_step(GeneratingNode(use="x", retrieval_step=step), answers)
    assert found["contexts"].to_list() == contexts
    assert found["context_ids"].to_list() == ids
    assert found.schema == answers.schema
    if step is not None:
        assert found["scores"].null_count() == 5
        assert found["citations"].to_list() == ["[]"] * 5


@pytest.mark.parametrize("named", [["a", "b", "c"], None])
def test_citations_keep_the_documents_that_they_mean_in_the_whole_answer(named: list[str] | None) -> None:
    cited = [Citation(0, 2, "1", (3, 6), 0), Citation(7, 9, "3", (9, 12), 2), Citation(0, 2, "9", (3, 6))]
    row = {"query_id": "q", "answer": "!", "contexts": ["A", "B", "C"], "context_ids": named}
    answers = answers_table([row | {"citations": dump_citations(cited), "steps": json.dumps(STEPS_OF["both"])}])

    def places(step: Any) -> list[int | None]:
        (text,) = take_step(GeneratingNode(use="x", retrieval_step=step), answers)["citations"]
        return [one.context for one in load_citations(text) or ()]

    assert (places(1), places(2), places(3)) == ([0, None, None], [None, 1, None], [None, None, None])


def test_a_step_of_no_answers() -> None:
    answers = answers_table([])
    assert take_step(GeneratingNode(use="x", retrieval_step=1), answers).schema == answers.schema
