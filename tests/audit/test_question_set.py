""""""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from rageval_spec.audit.question_set import (
    combine,
    contains,
    drop_fillers,
    find_numbers,
    find_overlap,
    is_yes_or_no,
    read_outputs,
    read_questions,
    split_compared_words,
)
from rageval_spec.data.tables import empty_samples, type_samples
from tests.plugins import build_dataset


def test_a_question_has_its_place_references_judgements_and_columns(tmp_path: Path) -> None:
    rows = [
        {
            "id": "a",
            "question": "Who?",
            "reference": ["Ann", "Anna"],
            "relevant": {"d1": 2, "d2": 0},
            "type": "factual",
        },
        {"id": "b", "question": "How?", "answerable": False},
    ]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl")
    found = read_questions(dataset, dataset.open(), ["a", "b"])
    first, second = found.questions
    assert (first.place, first.references, first.relevant) == (
        f"{tmp_path}/golden.jsonl:1", ("Ann", "Anna"), {"d1": 2, "d2": 0}
    )  # fmt: skip
    assert first.relevant_ids == {"d1"} and first.read_columns()["type"] == "factual"
    assert (second.references, second.relevant, second.answerable) == ((), None, False)
    assert found.has_references and found.has_judgements and found.by_id["b"] is second


def test_judgements_alone_are_questions_without_text(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("b 0 d1 1\n")
    dataset = build_dataset("trec", tmp_path, qrels="qrels.txt")
    found = read_questions(dataset, dataset.open(), ["b"])
    assert (found.questions[0].text, found.questions[0].row.place, found.lost) == ("", "", ())


def test_a_long_question_is_quoted_in_part(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(json.dumps({"id": "a", "question": "x" * 5000}) + "\n")
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl")
    assert len(read_questions(dataset, dataset.open(), ["a"]).questions[0].row.question) == 300


def test_questions_that_share_a_line_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    content = {"question": ["Who?", "How?"], "ground_truth": ["Ann", "So"]}
    (tmp_path / "golden.json").write_text(json.dumps(content))
    dataset = build_dataset("jsonl", tmp_path, path="golden.json")
    found = read_questions(dataset, dataset.open(), ["1", "2"])
    assert [str(question.row).removeprefix(f"{tmp_path}/") for question in found.questions] == [
        "golden.json:1 (query 1)", "golden.json:1 (query 2)"
    ]  # fmt: skip


def test_only_questions_with_a_value_of_every_system_count() -> None:
    columns = {"a": {"q1": 0.0, "q2": 1.0, "q3": 0.5}, "b": {"q2": 1.0, "q1": 0.0}}
    found = combine("ndcg@10", columns, 1.0, 0.0)
    assert (found.systems, found.query_ids) == (("a", "b"), ("q1", "q2"))
    assert found.values.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert (found.failed, found.solved) == ([0], [1])
    assert combine("m", {}, None, 0.0).failed == combine("m", columns, None, 0.0).solved == []


def test_outputs_are_the_documents_answers_and_ranks_of_samples() -> None:
    judged = [{"doc_id": "d1", "relevance": 1, "rank": 12}, {"doc_id": "d9", "relevance": 0, "rank": None}]
    rows = [
        {"system": "s", "query_id": "q1", "answer": None, "context_ids": ["d2"], "relevant": judged},
        {"system": "s", "query_id": "q2", "answer": "so", "context_ids": None, "relevant": None},
    ]
    block = type_samples(pl.concat([empty_samples(), pl.DataFrame(rows)], how="diagonal_relaxed"))
    found = read_outputs([(" (main)", block)])
    (first,), (second,) = found["q1"], found["q2"]
    assert (first.system, first.doc_ids, first.answer) == ("s (main)", ("d2",), None)
    assert (first.ranks, first.relevant) == ({"d1": 12}, {"d1": 1, "d9": 0})
    assert (second.doc_ids, second.answer, second.relevant) == (None, "so", {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Who won Super Bowl XLIX?", ("who", "won", "super", "bowl", "xlix")),
        ("It cost $1,200.50 (5%)", ("it", "cost", "1200.50", "5%")),
        ("Bob Marley's face", ("bob", "marley", "face")),
        ("ＡＢＣ straße", ("abc", "strasse")),
        ("東京 tower", ("東", "京", "tower")),
        ("नमस्ते", ("नमस्ते",)),
        ("", ()),
    ],
)
def test_words_have_no_case_and_no_punctuation(text: str, words: tuple[str, ...]) -> None:
    assert split_compared_words(text) == words


def test_articles_are_fillers_unless_nothing_else_is_there() -> None:
    assert drop_fillers(["what", "is", "the", "price"]) == ("what", "is", "price")
    assert drop_fillers(["the", "the"]) == ("the", "the")


def test_small_numbers_can_be_words() -> None:
    assert find_numbers(["three", "and", "14"]) == {"3", "14"}


def test_yes_and_no_are_told_by_the_first_word() -> None:
    assert is_yes_or_no(("nein", "das", "stimmt"))
    assert not is_yes_or_no(("nobody",)) and not is_yes_or_no(())


def test_a_part_stands_in_order_and_without_gaps() -> None:
    words = ("the", "new", "york", "times")
    assert contains(words, ("new", "york"))
    assert not contains(words, ("york", "new")) and not contains(words, ("new", "times")) and not contains(words, ())


def test_overlap_counts_repeated_words() -> None:
    assert find_overlap(("a", "a", "b"), ("a", "b", "b")) == pytest.approx(2 / 3)
    assert find_overlap((), ("a",)) == 0.0
