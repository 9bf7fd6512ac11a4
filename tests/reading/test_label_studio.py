"""Label Studio's export: what becomes a label, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.label_studio import flatten_tasks


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
