"""An evaluation as JSON: its published schema, and reading back what was written.

A series says where its numbers come from.
"""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.results import Record, Series, build_schema, dump_results, parse_results
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation

SCHEMA = Path(__file__).parent.parent.parent / "schemas" / "results.schema.json"


def render(evaluation: Evaluation) -> bytes:
    return dump_results(evaluation)


def schema() -> Any:
    return json.loads(SCHEMA.read_text("utf-8"))


def test_the_published_schema_matches_the_types() -> None:
    assert schema() == build_schema(), "run: python -m rageval_spec.data.results > schemas/results.schema.json"
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("evaluation", [make_evaluation(("golden", "scifact")), make_hostile_evaluation()])
def test_a_report_is_valid(evaluation: Evaluation) -> None:
    jsonschema.validate(json.loads(render(evaluation)), schema())


@pytest.mark.parametrize("key", ["format_version", "verdict", "aggregates", "gates"])
def test_the_schema_reports_a_missing_key(key: str) -> None:
    report = json.loads(render(make_evaluation()))
    del report[key]
    with pytest.raises(jsonschema.ValidationError, match=key):
        jsonschema.validate(report, schema())


def test_the_schema_rejects_text_for_a_number() -> None:
    report = json.loads(render(make_evaluation()))
    report["aggregates"][0]["mean"] = "0.4"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, schema())


def test_names_are_written_without_control_characters() -> None:
    dumped = dump_results(make_evaluation(systems=("a\u202e\x9b",))).decode()
    assert dumped.replace("\n", "").isprintable()
    assert "a\\u202e\\u009b" in dumped


def test_results_survive_writing_and_reading() -> None:
    evaluation = make_evaluation()
    results = parse_results(render(evaluation), "results.json")
    assert replace(results, values=evaluation.values) == evaluation


def test_time_commit_and_label_belong_to_the_record_and_not_to_the_evaluation() -> None:
    record = Record("1", datetime(2026, 1, 1, tzinfo=UTC), "abc", "main", make_evaluation())
    with pytest.raises(FrozenInstanceError):
        record.label = "other"  # type: ignore[misc]
    assert {field.name for field in fields(Record)} - {"evaluation"} == {"id", "time", "commit", "label"}
    assert not {"id", "time", "commit", "label"} & {field.name for field in fields(Evaluation)}


def test_the_place_names_what_is_known() -> None:
    assert Series("ndcg@10", "golden", "bm25", "level=hard", ()).place == "golden, bm25, level=hard"
    assert Series("cost", "", "", None, ()).place == ""
