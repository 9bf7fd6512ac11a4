from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from rageval_spec.data.tables import empty_samples
from rageval_spec.reports.shared.page.questions import BLOCK, collect_questions, dump_documents, list_samples
from tests.reports.page import QUESTIONS, make_page_evaluation
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
    earlier = replace(EVALUATION, load_samples=lambda: older)
    questions = collect_questions(earlier)
    shown = questions.describe(earlier)
    assert (shown["sliceNames"], shown["slices"], shown["causes"]) == ([], [], {})
    assert shown["failed"] == {"1": [4]}
    assert json.loads(next(questions.blocks()))["samples"][-2]["status"] == "answered"


def test_an_evaluation_without_questions_has_no_blocks() -> None:
    empty = replace(EVALUATION, values=EVALUATION.values.clear(), load_samples=empty_samples)
    questions = collect_questions(empty)
    assert questions.describe(empty)["id"] == []
    assert list(questions.blocks()) == []


def test_documents_name_the_number_of_their_first() -> None:
    (documents,) = collect_questions(EVALUATION).documents.split(list_samples(EVALUATION))
    dumped = json.loads(dump_documents(documents.tail(2)))
    assert dumped["first"] == 2
    assert dumped["ids"] == ["other-1", "other-2"]
