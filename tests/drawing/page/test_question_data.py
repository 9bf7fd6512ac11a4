""""""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl

from rageval_spec.data.tables import SampleTable, empty_samples
from rageval_spec.drawing.page.question_data import (
    BLOCK,
    Documents,
    collect_questions,
    dump_documents,
    list_samples,
    number_documents,
    separate_history,
    summarize_steps,
)
from rageval_spec.recorded.answers_and_steps import dump_steps, read_steps
from tests.reports.page import CONTEXT, OTHER, QUESTIONS, make_page_evaluation, make_page_samples
from tests.sample_evaluation import make_evaluation

EVALUATION = make_page_evaluation()


def blocks(count: int) -> list[dict[str, Any]]:
    return [json.loads(block) for block in collect_questions(make_page_evaluation(count)).blocks()]


def test_the_list_has_columns_in_the_order_of_the_questions() -> None:
    shown = collect_questions(EVALUATION).describe(EVALUATION)
    assert shown["id"] == [f"q{number}" for number in range(6)]
    assert shown["text"] == list(QUESTIONS)
    assert shown["sliceNames"] == ["difficulty=hard"]
    assert shown["slices"] == [[], [0], [], [0], [], [0]]
    assert shown["failed"] == {"1": [4]}
    assert shown["causes"]["1"] == {"generation": [0, 2, 4], "fine": [1, 3, 5]}
    assert shown["answering"] == [0, 1]


def test_values_stand_beside_their_questions() -> None:
    cells = collect_questions(EVALUATION).describe(EVALUATION)["cells"]
    assert [(cell["system"], cell["metric"]) for cell in cells] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert cells[1]["values"] == [0.65, 0.89, 0.63, 0.87, None, 0.85]
    assert cells[1]["errors"] == [4]
    assert [cell["told"] for cell in cells] == [True, True, False, False, False, False]


def test_questions_that_only_have_values_are_there_without_a_text() -> None:
    evaluation = make_evaluation(("golden", "scifact"))
    questions = collect_questions(evaluation)
    shown = questions.describe(evaluation)
    assert shown["dataset"] == [0, 0, 0, 1, 1, 1]
    assert shown["id"] == ["q1", "=q2", "q3"] * 2
    assert shown["text"] == [None] * 6
    assert shown["answering"] == []
    assert [len(json.loads(block)["questions"]) for block in questions.blocks()] == [6]


def test_cards_come_in_blocks() -> None:
    made = blocks(BLOCK + 1)
    assert [len(block["questions"]) for block in made] == [BLOCK, 1]
    assert [len(block["samples"]) for block in made] == [2 * BLOCK, 2]
    last = made[1]["samples"][1]
    assert (last["question"], last["system"], last["shown"], last["scores"]) == (BLOCK, 1, [0, 2], [9.5, 3.25])
    assert {told["question"] for told in made[1]["told"]} == {BLOCK}


def test_each_block_has_the_samples_of_all_systems_for_its_questions() -> None:
    for number, block in enumerate(blocks(4 * BLOCK)):
        mine = range(number * BLOCK, (number + 1) * BLOCK)
        assert [one["question"] for one in block["questions"]] == list(mine)
        assert [(one["question"], one["system"]) for one in block["samples"]] == [(n, s) for n in mine for s in (0, 1)]
        assert {one["question"] for one in block["told"]} <= set(mine)


def test_samples_of_earlier_versions_are_enough() -> None:
    table = EVALUATION.samples
    older = table.drop("scores", "columns", "slices", "status", "cause")
    earlier = replace(EVALUATION, sample_table=SampleTable(lambda: [older]))
    questions = collect_questions(earlier)
    shown = questions.describe(earlier)
    assert (shown["sliceNames"], shown["slices"], shown["causes"]) == ([], [], {})
    assert shown["failed"] == {"1": [4]}
    assert json.loads(next(questions.blocks()))["samples"][-2]["status"] == "answered"


def test_answers_that_were_cut_off_are_marked_where_there_are_any() -> None:
    assert all("truncated" not in one for one in blocks(3)[0]["samples"])
    first = pl.int_range(pl.len()) == 0
    table = EVALUATION.samples.with_columns(truncated=pl.when(first).then(pl.lit(True)))
    (block,) = collect_questions(replace(EVALUATION, sample_table=SampleTable(lambda: [table]))).blocks()
    told = [one["truncated"] for one in json.loads(block)["samples"]]
    assert told.count(True) == 1 and set(told) == {True, None}


def test_an_evaluation_without_questions_has_no_blocks() -> None:
    empty = replace(EVALUATION, values=EVALUATION.values.clear(), sample_table=SampleTable(lambda: [empty_samples()]))
    questions = collect_questions(empty)
    assert questions.describe(empty)["id"] == []
    assert list(questions.blocks()) == []


def test_documents_name_the_number_of_their_first() -> None:
    (documents,) = collect_questions(EVALUATION).documents.split(list_samples(EVALUATION))
    dumped = json.loads(dump_documents(documents.tail(2)))
    assert dumped["first"] == 2
    assert dumped["ids"] == ["other-1", "other-2"]


CHAT = [
    {"role": "user", "content": "Rome?"},
    {"role": "assistant", "content": "Yes"},
    {"role": "user", "content": "And?"},
]


def test_earlier_turns_become_lines_and_leave_the_columns() -> None:
    columns = [json.dumps({"messages": CHAT, "level": 1}), json.dumps({"messages": "three"}), None]
    found = separate_history(pl.DataFrame({"columns": columns}))
    assert found["history"].to_list() == [["user: Rome?", "assistant: Yes"], None, None]
    assert [text and json.loads(text) for text in found["columns"]] == [{"level": 1}, {"messages": "three"}, None]


def test_questions_without_conversations_stay_as_they_are() -> None:
    questions = pl.DataFrame({"columns": ['{"level":1}', None]})
    assert separate_history(questions) is questions


def test_steps_become_their_kind_their_call_and_what_they_gave() -> None:
    steps = [
        {"name": "search", "input": "Rome", "output": [{"id": "d1", "text": "a city"}, {"text": "a name"}]},
        {"kind": "thought", "text": "hm"},
        {"name": "f", "input": "1", "error": "broken"},
    ]
    samples = pl.DataFrame({"steps": [dump_steps(read_steps(steps)), None]})
    first, second = summarize_steps(samples)["steps"]
    assert second is None
    assert json.loads(first) == [
        ["retrieval", "search(Rome)", "d1: a city\na name"],
        ["model", "thought", "hm"],
        ["tool", "f(1)", "\u2717 broken"],
    ]
    assert summarize_steps(samples.tail(1)).columns == []


def number(samples: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The documents with their texts, and the samples, which come in blocks of two."""
    documents, referring = number_documents(samples.iter_slices(2))
    return gather(documents, samples), referring


def gather(documents: Documents, samples: pl.DataFrame) -> pl.DataFrame:
    return pl.concat(documents.split(samples.iter_slices(3)))


def test_each_text_is_there_once() -> None:
    documents, samples = number(make_page_samples(6))
    assert documents.rows() == [
        (0, "refunds", CONTEXT),
        (1, "other-0", OTHER),
        (2, "other-1", OTHER),
        (3, "other-2", OTHER),
    ]
    assert samples.get_column("shown").to_list() == [[0, 1 + number % 3] for number in range(6)] * 2
    assert {"contexts", "context_ids"}.isdisjoint(samples.columns)


def test_judged_documents_refer_to_their_texts_where_they_are_known() -> None:
    _, samples = number(make_page_samples(1))
    judged = samples.get_column("relevant").to_list()[0]
    assert [(one["doc_id"], one["relevance"], one["document"]) for one in judged] == [
        ("refunds", 2, 0),
        ("elsewhere", 1, None),
        ("other-0", 0, 1),
    ]


def test_ids_or_texts_alone_are_enough() -> None:
    samples = make_page_samples(2).head(2)
    lists = pl.List(pl.String)
    only_ids = samples.with_columns(contexts=pl.lit(None, lists))
    documents, referring = number(only_ids)
    assert documents.get_column("text").to_list() == [None] * documents.height
    assert referring.get_column("shown").to_list() == [[0, 1], [0, 2]]
    only_texts = samples.with_columns(context_ids=pl.lit(None, lists))
    documents, referring = number(only_texts)
    assert documents.rows() == [(0, None, CONTEXT), (1, None, OTHER)]
    assert referring.get_column("shown").to_list() == [[0, 1], [0, 1]]


def test_samples_without_contexts_show_none() -> None:
    samples = make_page_samples(1)
    none = {name: pl.lit(None, samples.schema[name]) for name in ("contexts", "context_ids", "relevant")}
    documents, referring = number_documents([samples.with_columns(**none)])
    assert documents.count == 0
    assert referring.get_column("shown").to_list() == [None, None]
    assert list(documents.split([samples.with_columns(**none)])) == []
    assert documents.list_starts() == []


def test_parts_hold_about_a_million_characters() -> None:
    texts = [letter * 400_000 for letter in "abcdef"]
    samples = pl.DataFrame(
        {"contexts": [texts[:1], texts[:3], texts[1:]], "context_ids": None, "relevant": None},
        schema={name: empty_samples().schema[name] for name in ("contexts", "context_ids", "relevant")},
    )
    documents, _ = number_documents(samples.iter_slices(1))
    parts = list(documents.split(samples.iter_slices(2)))
    assert [part.get_column("document").to_list() for part in parts] == [[0, 1], [2, 3], [4, 5]]
    assert pl.concat(parts).get_column("text").to_list() == texts
    assert documents.list_starts() == [0, 2, 4]


def test_texts_of_one_length_under_one_id_are_different_documents() -> None:
    samples = pl.DataFrame(
        {"contexts": [["yes", "no!"], ["no!", "yes"]], "context_ids": [["a", "a"], ["a", "b"]], "relevant": None},
        schema={name: empty_samples().schema[name] for name in ("contexts", "context_ids", "relevant")},
    )
    documents, referring = number(samples)
    assert documents.rows() == [(0, "a", "yes"), (1, "a", "no!"), (2, "b", "yes")]
    assert referring.get_column("shown").to_list() == [[0, 1], [1, 2]]
