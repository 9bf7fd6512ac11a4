"""The form as a project of Label Studio, validated by its own package where that is installed."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.review.criteria import make_criterion
from rageval_spec.review.forms.label_studio import write_config, write_tasks
from rageval_spec.review.tasks import ReviewSheet
from tests.review.forms.sheets import CLAIMS, FAITHFULNESS, FLUENCY, make_hostile_sheet, make_sheet, make_task


def tasks(sheet: ReviewSheet) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(write_tasks(sheet))
    return found


def test_an_answer_is_a_task_and_a_criterion_a_choice() -> None:
    first, second = tasks(make_sheet())
    assert (first["data"]["query_id"], second["data"]["query_id"]) == ("q1", "007")
    assert first["data"]["controls"] == {"faithfulness": "faithfulness [yes/no]", "fluency": "fluency [1..5]"}
    assert first["data"]["probability"] == 0.25
    tree = ElementTree.fromstring(write_config(make_sheet()))
    choices = {one.get("name"): [choice.get("value") for choice in one] for one in tree.iter("Choices")}
    assert choices == {"faithfulness": ["yes", "no"], "fluency": ["1", "2", "3", "4", "5"]}


def test_a_claim_is_a_task_of_its_own() -> None:
    found = tasks(make_sheet(CLAIMS))
    assert [(one["data"]["metric"], one["data"]["claim"], one["data"]["claim_text"]) for one in found[:2]] == [
        ("faithfulness", 0, "It is 120 m long."),
        ("faithfulness", 1, "It was built in 1911."),
    ]
    tree = ElementTree.fromstring(write_config(make_sheet(CLAIMS)))
    assert [one.get("name") for one in tree.iter("Choices")] == ["verdict"]


def test_what_the_judge_says_is_a_prediction_and_only_if_it_is_asked_for() -> None:
    assert "predictions" not in tasks(make_sheet(CLAIMS))[0]
    shown = tasks(make_sheet(CLAIMS, shows_judge=True))[1]
    assert shown["predictions"][0]["result"][0]["value"] == {"choices": ["contradicted"]}
    assert tasks(make_sheet(shows_judge=True))[0]["data"]["judge"] == "faithfulness: 0.5, fluency: no value"


def test_answers_and_claims_need_two_projects() -> None:
    with pytest.raises(UsageError, match="a project of Label Studio has one form"):
        write_tasks(make_sheet(CLAIMS, FLUENCY))


def test_names_that_xml_cannot_have_get_others() -> None:
    sheet = make_sheet(FAITHFULNESS, make_criterion('my "metric"@1'), make_criterion("comment"))
    assert [*tasks(sheet)[0]["data"]["controls"].items()][1:] == [
        ("criterion_2", 'my "metric"@1 [yes/no]'), ("criterion_3", "comment [yes/no]"),
    ]  # fmt: skip
    ElementTree.fromstring(write_config(sheet))


def test_hostile_texts_stay_texts() -> None:
    sheet = make_hostile_sheet()
    assert len(tasks(sheet)) == len(sheet.tasks)
    tree = ElementTree.fromstring(write_config(make_sheet(guidelines='$answer <b> & "x"\n\x00')))
    header = next(one for one in tree.iter("Text") if "<b>" in str(one.get("value")))
    assert header.get("value") == ' $answer <b> & "x"\n\\x00'


@pytest.mark.parametrize("criteria", [(FAITHFULNESS, FLUENCY), (CLAIMS,)])
@pytest.mark.parametrize("shows_judge", [False, True])
def test_label_studio_takes_the_tasks_and_the_annotations(criteria: Any, shows_judge: bool) -> None:
    package = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    sheet = make_sheet(*criteria, tasks=(make_task(), *make_hostile_sheet().tasks), shows_judge=shows_judge)
    interface = package.LabelInterface(write_config(sheet).decode())
    interface.validate()
    found = tasks(sheet)
    for number, task in enumerate(found):
        assert interface.validate_task({"id": number, "data": task["data"]})
        for prediction in task.get("predictions", ()):
            assert interface.validate_prediction(prediction)
    control, choice, target = ("verdict", "contradicted", "claim_text") if criteria == (CLAIMS,) else (
        "faithfulness", "yes", "answer",
    )  # fmt: skip
    result = {"from_name": control, "to_name": target, "type": "choices", "value": {"choices": [choice]}}
    assert interface.validate_annotation({"result": [result]})
    assert not interface.validate_annotation({"result": [{**result, "value": {"choices": ["perhaps"]}}]})
