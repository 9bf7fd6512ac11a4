from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import registry
from rageval_spec.data.samples import Sample
from rageval_spec.errors import DataError
from rageval_spec.plugin import Context
from tests.metrics.comparing import answer_metric, measure
from tests.metrics.expecting import check

PRICE = {
    "type": "object",
    "required": ["price"],
    "properties": {"price": {"type": "number", "minimum": 0}, "currency": {"enum": ["EUR", "USD"]}},
}


@pytest.mark.parametrize(
    ("answer", "expected", "reason"),
    [
        ('{"price": 3}', 1.0, None),
        ('```json\n{"price": 3}\n```', 1.0, None),
        ('{"price": -3}', 0.0, "$.price: -3 is less than the minimum of 0"),
        ("{}", 0.0, "$: 'price' is a required property"),
        ("3 euros", 0.0, "line 1, column 3: Extra data"),
        ("", 0.0, "the answer is empty"),
    ],
)
def test_hand_worked(answer: str, expected: float, reason: str | None) -> None:
    measurement = check("json_schema", answer, schema=PRICE)
    assert (measurement.value, measurement.reason) == (expected, reason)


def test_all_errors_are_in_the_details() -> None:
    measurement = check("json_schema", '{"price": -3, "currency": "X"}', schema=PRICE)
    assert measurement.details is not None
    assert len(measurement.details["errors"]) == 2


def test_a_schema_in_a_file_is_part_of_the_key(tmp_path: Path) -> None:
    path = tmp_path / "price.json"
    path.write_text(json.dumps(PRICE))
    cls = registry.load("metrics", "json_schema")

    def build() -> Any:
        node = cls.node_type.model_validate({"use": "json_schema", "schema": "price.json"})
        return cls(node, Context("json_schema", tmp_path))

    metric = build()
    assert [file.path for file in metric.inputs()] == [path]
    assert [*metric.check_files()] == []
    assert metric.compute([Sample("q", "?", answer="{}")]).measurements[0].value == 0.0
    before = metric.content()
    path.write_text("{}")
    assert build().content() != before
    path.write_text("{")
    (found,) = build().check_files()
    assert found.key == ("schema",)
    assert found.message.startswith("price.json is not JSON: ")


def test_an_invalid_schema_is_a_fault_of_the_spec() -> None:
    (found,) = answer_metric("json_schema", schema={"type": "nubmer"}).check_files()
    assert found.message.startswith("$.type: 'nubmer' is not valid under any of the given schemas")


def test_nothing_is_fetched() -> None:
    with pytest.raises(DataError, match="the schema refers to something that is not in it"):
        check("json_schema", "{}", schema={"$ref": "http://127.0.0.1:9/never.json"})


def test_each_question_can_have_its_own_schema() -> None:
    samples = [
        Sample("q1", "?", answer="3", columns={"form": {"type": "number"}}),
        Sample("q2", "?", answer="3", columns={"form": '{"type": "string"}'}),
        Sample("q3", "?", answer="3", columns={"form": "{"}),
        Sample("q4", "?", answer="3", columns={"form": {"type": 3}}),
        Sample("q5", "?", answer="3", columns={"form": ["a"]}),
        Sample("q6", "?", answer="3", columns={}),
    ]
    found = measure("json_schema", samples, column="form")
    assert [one.value for one in found] == [1.0, 0.0, None, None, None, None]
    assert [one.status for one in found[2:]] == ["error"] * 3 + ["unscorable"]
    assert str(found[2].reason).startswith("the column 'form' holds text that is not JSON: ")
    assert str(found[3].reason).startswith("the column 'form' holds an invalid schema: $.type: ")
    assert found[4].reason == "the column 'form' must hold a JSON Schema"
