from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.plugin import Context
from rageval_spec.reports.json import JsonNode, JsonReport, Results, build_schema
from tests.reports.golden import assert_golden
from tests.sample_evaluation import HOSTILE, make_evaluation, make_hostile_evaluation

SCHEMA = Path(__file__).parent.parent.parent / "schemas" / "results.schema.json"


def render(evaluation: Evaluation) -> bytes:
    return JsonReport(JsonNode(use="json"), Context("json")).render(evaluation)


def schema() -> Any:
    return json.loads(SCHEMA.read_text("utf-8"))


def test_golden() -> None:
    assert_golden("results.json", render(make_evaluation()))


def test_the_published_schema_is_that_of_the_types() -> None:
    assert schema() == build_schema(), "run: python -m rageval_spec.reports.json > schemas/results.schema.json"
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("evaluation", [make_evaluation(("golden", "scifact")), make_hostile_evaluation()])
def test_a_report_is_valid(evaluation: Evaluation) -> None:
    jsonschema.validate(json.loads(render(evaluation)), schema())


@pytest.mark.parametrize("key", ["format_version", "verdict", "aggregates", "gates"])
def test_the_schema_misses_a_key(key: str) -> None:
    report = json.loads(render(make_evaluation()))
    del report[key]
    with pytest.raises(jsonschema.ValidationError, match=key):
        jsonschema.validate(report, schema())


def test_the_schema_refuses_a_text_for_a_number() -> None:
    report = json.loads(render(make_evaluation()))
    report["aggregates"][0]["mean"] = "0.4"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, schema())


def test_numbers_and_names_survive() -> None:
    report = json.loads(render(make_hostile_evaluation()))
    assert report["name"] == HOSTILE
    third = 1 / 3
    aggregate = replace(make_evaluation().aggregates[0], mean=third, interval=None)
    report = json.loads(render(replace(make_evaluation(), aggregates=(aggregate,))))
    assert report["aggregates"][0]["mean"] == third
    assert report["aggregates"][0]["interval"] is None


def test_a_lone_surrogate_survives() -> None:
    assert json.loads(render(replace(make_evaluation(), name="a\ud800b")))["name"] == "a\ud800b"


def test_keys_are_sorted() -> None:
    pairs: list[list[str]] = []
    json.loads(render(make_evaluation()), object_pairs_hook=lambda found: pairs.append([key for key, _ in found]))
    assert pairs
    assert all(keys == sorted(keys) for keys in pairs)


def test_not_a_number_is_refused() -> None:
    aggregate = replace(make_evaluation().aggregates[0], mean=float("nan"))
    with pytest.raises(ValueError, match="Out of range float"):
        render(replace(make_evaluation(), aggregates=(aggregate,)))


def test_it_reads_what_it_writes() -> None:
    evaluation = make_evaluation()
    results = Results.parse(render(evaluation), "results.json")
    assert results == Results.of(evaluation)
    assert results.evaluation(evaluation.values).aggregates == evaluation.aggregates
