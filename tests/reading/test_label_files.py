"""Files of labels: their columns, their values, and what is wrong with them.

Label Studio's export: what becomes a label, and what is refused.

What a review page saved, as rows of labels.

Choices between two answers are read from tables as people write them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.label_files import (
    LABEL_COLUMNS,
    flatten_review,
    flatten_tasks,
    read_columns,
    read_label_file,
    read_labels,
)


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


def result(name: str, kind: str, **value: Any) -> dict[str, Any]:
    return {"from_name": name, "to_name": "answer", "type": kind, "value": value}


def task(*results: dict[str, Any], data: dict[str, Any] | None = None, **annotation: Any) -> dict[str, Any]:
    made = {"completed_by": 3, "created_at": "2026-03-01T10:00:00Z", "result": [*results], **annotation}
    return {
        "id": 12,
        "data": {"query_id": "q1", **(data or {})},
        "annotations": [made],
        "predictions": [{"result": []}],
    }


def flatten(*tasks: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for _, row in flatten_tasks([("l.json:1", one) for one in tasks])]


def test_each_control_is_a_criterion_and_a_text_box_is_the_comment() -> None:
    rows = flatten(
        task(
            result("faithful", "choices", choices=["yes"]),
            result("fluency", "rating", rating=4),
            result("share", "number", number=0.25),
            result("why", "textarea", text=["one", "two"]),
        )
    )
    assert [(row["metric"], row["value"]) for row in rows] == [("faithful", "yes"), ("fluency", 4), ("share", 0.25)]
    assert {(row["query_id"], row["annotator"], row["comment"]) for row in rows} == {("q1", "3", "one\ntwo")}
    assert rows[0]["time"] == "2026-03-01T10:00:00Z"


def test_the_criterion_of_the_task_wins_over_the_name_of_its_only_control() -> None:
    (row,) = flatten(task(result("value", "choices", choices=["no"]), data={"metric": "faithfulness"}))
    assert (row["metric"], row["value"]) == ("faithfulness", "no")


def test_several_annotators_ground_truth_and_skipped_tasks() -> None:
    one = task(result("a", "rating", rating=1))
    one["annotations"] += [
        {
            "completed_by": {"id": 5, "email": "eve@x.org"},
            "ground_truth": True,
            "result": [result("a", "rating", rating=2)],
        },
        {"completed_by": 4, "was_cancelled": True, "result": [result("a", "rating", rating=5)]},
    ]
    rows = flatten(one)
    assert [(row["annotator"], row["value"], row["adjudicated"]) for row in rows] == [
        ("3", 1, False),
        ("eve@x.org", 2, True),
    ]


@pytest.mark.parametrize("result", [None, 1, "x", [1], [{"type": []}], [{"type": "choices", "value": 1}]])
def test_results_of_any_shape_are_refused_or_hold_nothing(result: Any) -> None:
    one = task()
    one["annotations"][0]["result"] = result
    try:
        assert [row["value"] for row in flatten(one)] in ([], [None])
    except DataError as error:
        assert str(error).startswith("l.json:1: task 12: ")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"id": 1, "text": "x"}, r"l\.json:1: this is not a task of Label Studio"),
        (task(result("a", "choices", choices=["yes", "no"])), "task 12: 'a' has the choices yes or no; a label is one"),
        (task(result("a", "rectanglelabels")), "task 12: 'a' is of the type rectanglelabels; labels of answers come"),
    ],
)
def test_what_holds_no_label_is_refused(found: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        flatten(found)


LABEL = {
    "dataset": "golden",
    "system": "assistant",
    "query_id": "q1",
    "answer_digest": "ab" * 8,
    "metric": "faithfulness",
    "claim": 2,
    "value": "contradicted",
    "comment": "the date",
    "time": "2026-03-01T10:00:00.000Z",
    "saw_judge": True,
    "reason": "low + unsure",
    "probability": 0.25,
}


def save(folder: Path, **changes: Any) -> Path:
    content = {"format": "rageval-labels", "version": 1, "sheet": "0" * 16, "annotator": "Ann", "labels": [LABEL]}
    path = folder / "ann.json"
    path.write_text(json.dumps({**content, **changes}, indent=1))
    return path


@pytest.mark.parametrize("form", [None, "json"])
def test_each_label_is_a_row_of_its_annotator(tmp_path: Path, form: Any) -> None:
    other = {**LABEL, "metric": "fluency", "claim": None, "value": 4}
    first, second = read_label_file(save(tmp_path, labels=[LABEL, other]), form=form)
    assert (first.query_id, first.claim, first.value, first.annotator) == ("q1", 2, "contradicted", "Ann")
    assert (first.dataset, first.system, first.answer) == ("golden", "assistant", "ab" * 8)
    assert (first.reason, first.probability, first.comment) == ("low + unsure", 0.25, "the date")
    assert first.saw_judge
    assert (second.metric, second.claim, second.value) == ("fluency", None, 4.0)
    assert second.place.endswith("ann.json:1: label 2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, r"ann\.json:1: the file has version 2, .* update rageval-spec"),
        ({"labels": {}}, r"ann\.json:1: the file has no list 'labels'"),
        ({"labels": []}, r"ann\.json:1: the file has no labels yet"),
        ({"labels": [LABEL, 7]}, r"ann\.json:1: label 2 is not an object"),
        ({"labels": [LABEL, LABEL]}, r"label 2: 'Ann' judged q1 on faithfulness already at .*label 1"),
    ],
)
def test_a_faulty_file_is_refused_with_its_place(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_labels([save(tmp_path, **changes)])


def test_other_objects_are_refused() -> None:
    with pytest.raises(DataError, match=r"x\.json:1: this is not a file that a review page saved"):
        [*flatten_review([("x.json:1", {"labels": []})])]


def test_columns_are_named_by_part() -> None:
    assert read_columns(["value=my rating", "query_id=a=b"]) == {
        "value": "my rating",
        "query_id": "a=b",
    }


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("rating", "--column rating: write PART=NAME, such as value=rating"),
        ("value=", "--column value=: write PART=NAME, such as value=rating"),
        ("valeu=x", "--column valeu=x: a label has no 'valeu'; did you mean 'value'?"),
        ("zzz=x", f"--column zzz=x: a label has no 'zzz'; write one of {', '.join(LABEL_COLUMNS)}"),
    ],
)
def test_what_names_no_part_says_what_to_write(column: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_columns([column])
    assert str(caught.value) == message


def test_a_named_column_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("rating,id\n1,a\n")
    assert [label.value for label in read_labels([tmp_path / "labels.csv"], {"value": "rating"})] == [1]
    with pytest.raises(DataError, match=r"labels\.csv: there is no column 'grade' for value; the columns are"):
        read_labels([tmp_path / "labels.csv"], {"value": "grade"})
