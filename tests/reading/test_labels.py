"""Files of labels: their columns, their values, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.labels import read_labels


def write(folder: Path, text: str, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_row_is_a_label(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "query_id,system,metric,claim,value,annotator,time,comment\nq1,bot,faithfulness,2,yes,ann,2026-03-01,clear\n",
    )
    (label,) = read_labels([path])
    assert (label.query_id, label.system, label.metric, label.claim) == ("q1", "bot", "faithfulness", 2)
    assert (label.value, label.annotator, label.time, label.comment) == (1.0, "ann", "2026-03-01", "clear")
    assert label.place == f"{path}:2"


@pytest.mark.parametrize(
    ("text", "value"),
    [("yes", 1.0), ("No", 0.0), ("true", 1.0), ("3", 3.0), (" 0.5 ", 0.5), ("supported", "supported")],
)
def test_values_are_numbers_or_classes(tmp_path: Path, text: str, value: float | str) -> None:
    assert read_labels([write(tmp_path, f"id,label\nq1,{text}\n")])[0].value == value


def test_json_and_several_files_are_read_in_their_order(tmp_path: Path) -> None:
    rows = [{"id": "q1", "rating": 4, "rater": "bob"}, {"id": "q2", "rating": True, "rater": "bob"}]
    second = write(tmp_path, "".join(f"{json.dumps(row)}\n" for row in rows), "bob.jsonl")
    first = write(tmp_path, "id,rating,rater\nq1,5,ann\n", "ann.csv")
    labels = read_labels([first, second])
    assert [(label.query_id, label.value, label.annotator) for label in labels] == [
        ("q1", 5.0, "ann"),
        ("q1", 4.0, "bob"),
        ("q2", 1.0, "bob"),
    ]


def test_rows_that_nobody_judged_yet_are_no_labels(tmp_path: Path) -> None:
    path = write(tmp_path, "id,value\nq1,\nq2,1\nq3,  \n")
    assert [label.query_id for label in read_labels([path])] == ["q2"]
    with pytest.raises(DataError, match=r"labels\.csv: no row has a value, so there are no labels"):
        read_labels([write(tmp_path, "id,value\nq1,\n")])


def test_a_column_with_a_meaning_of_its_own_is_not_suggested_for_another(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Name it: --column value=COLUMN$"):
        read_labels([write(tmp_path, "query_id,metric,annotator\nq1,m,ann\n")])
    with pytest.raises(DataError, match=r"Name it: --column value=Urteil$"):
        read_labels([write(tmp_path, "query_id,metric,Urteil\nq1,m,4\n")])


def test_a_form_that_is_not_imported_yet_is_no_file_of_labels(tmp_path: Path) -> None:
    path = write(tmp_path, "no,query_id,fluency [1..5],annotator,row\n1,q1,4,ann,rv1.x\n", "review.csv")
    with pytest.raises(DataError, match=r"a form of 'review select', not .*: rageval-spec review import \S+ -o labels"):
        read_labels([path])


def test_other_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "Nr,Urteil\nq1,4\n")
    with pytest.raises(
        DataError,
        match=r"no column has the query id .* the columns are 'Nr', 'Urteil'\. Name it: --column query_id=Nr",
    ):
        read_labels([path])
    (label,) = read_labels([path], {"query_id": "Nr", "value": "Urteil"})
    assert (label.query_id, label.value) == ("q1", 4.0)
    with pytest.raises(DataError, match="there is no column 'Urtel' for value; the columns are 'Nr', 'Urteil'"):
        read_labels([path], {"query_id": "Nr", "value": "Urtel"})


def test_nobody_judges_an_item_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "id,metric,value,annotator\nq1,faithfulness,1,ann\nq1,recall,1,ann\nq1,faithfulness,0,ann\n")
    with pytest.raises(
        DataError, match=r"csv:4: 'ann' judged q1 on faithfulness already at .*csv:2; keep one of the two"
    ):
        read_labels([path])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",1,", "the label has a value and no id"),
        ("q1,nan,", "the value is nan; it must be a finite number or the name of a class"),
        ("q1,1,first", "claim is 'first'; a claim is a number from 0"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"labels\.csv:2: {message}"):
        read_labels([write(tmp_path, f"id,value,claim\n{row}\n")])


def test_a_label_says_why_and_how_likely_its_answer_was_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, "id,value,reason,probability\nq1,1,low + random,0.25\nq2,1,,\n")
    first, second = read_labels([path])
    assert (first.reasons, first.probability) == (("low", "random"), 0.25)
    assert (second.reasons, second.probability) == ((), None)


@pytest.mark.parametrize("probability", ["0", "1.5", "-1", "nan", "often"])
def test_a_probability_lies_above_0_and_at_most_at_1(tmp_path: Path, probability: str) -> None:
    path = write(tmp_path, f"id,value,probability\nq1,1,{probability}\n")
    with pytest.raises(DataError, match=rf"labels\.csv:2: the probability is '{probability}'; it must be above 0"):
        read_labels([path])


def test_yes_and_no_are_told_from_1_and_0(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    values = ('"Yes"', "false", '"1"', "0", '"true"', "4")
    path.write_text("".join(f'{{"id": "q{n}", "value": {value}}}\n' for n, value in enumerate(values)))
    found = [(label.value, label.is_yes_no) for label in read_labels([path])]
    assert found == [(1, True), (0, True), (1, False), (0, False), (1, True), (4, False)]


def test_semicolons_that_the_header_shows_need_no_spec(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("query_id;metric;value\nq1;faithfulness;1\n")
    (label,) = read_labels([path])
    assert (label.query_id, label.metric) == ("q1", "faithfulness")
