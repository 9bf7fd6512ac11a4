"""`calibration.json`: its published schema, and reading back what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rageval_spec.data.json_documents import FORMAT_VERSION
from rageval_spec.data.judge_calibration import (
    CalibratedThreshold,
    CalibrationFile,
    CalibrationLabels,
    Figure,
    Guaranteed,
    JudgeCalibration,
    ScoreMap,
    StepBounds,
    build_schema,
)
from rageval_spec.errors import DataError

SCHEMA = Path(__file__).parent.parent.parent / "schemas" / "calibration.schema.json"
LABELLED = CalibrationLabels("people", "d1", items=60, yes=40, no=20, questions=60, labels=60, annotators=1)
BARE = JudgeCalibration("fast", "faithfulness", "c1", "answers", (0.0, 1.0), {"use": "overlap"}, "i1", LABELLED)
FULL = JudgeCalibration(
    "tiers", "faithfulness", "c1", "claims", (1.0, 5.0),
    {"use": "cascade", "settings": {"steps": [0, 1], "empty": None}}, "i2", LABELLED,
    map=ScoreMap("platt", slope=2.0, intercept=-1.0),
    threshold=CalibratedThreshold(0.5, "youden"),
    guarantee=Guaranteed(0.02, 150, 0, 200, 0.95),
    steps=(StepBounds(0, 0.1, 0.9), StepBounds("retrieval", reject=0.2, accept=0.8)),
    held_out=(Figure("kappa", 0.5, 0.25, 0.75), Figure("f1")),
)  # fmt: skip


def make(*entries: JudgeCalibration) -> CalibrationFile:
    return CalibrationFile(FORMAT_VERSION, "1.0", "support", "s1", entries)


def schema() -> Any:
    return json.loads(SCHEMA.read_text("utf-8"))


def test_the_published_schema_matches_the_types() -> None:
    told = "run: python -m rageval_spec.data.judge_calibration > schemas/calibration.schema.json"
    assert schema() == build_schema(), told
    jsonschema.Draft202012Validator.check_schema(schema())


def test_a_calibration_is_valid_and_survives_writing_and_reading() -> None:
    file = make(BARE, FULL)
    jsonschema.validate(json.loads(file.dump()), schema())
    assert CalibrationFile.parse(file.dump(), "calibration.json") == file
    assert CalibrationFile.parse(file.dump(), "calibration.json").dump() == file.dump()


@pytest.mark.parametrize("key", ["format_version", "judges"])
def test_the_schema_reports_a_missing_key(key: str) -> None:
    content = json.loads(make(BARE).dump())
    del content[key]
    with pytest.raises(jsonschema.ValidationError, match=key):
        jsonschema.validate(content, schema())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "calibration.json is not a calibration: .*; it is incomplete"),
        (make(FULL).dump()[:-40], "calibration.json is not a calibration: .*; it is incomplete"),
        (b'{"format_version": 1, "x": NaN}', "NaN is not a number"),
        (b"[" * 100_000, "calibration.json is not a calibration"),
        (b"\xff\xfe", "calibration.json is not a calibration"),
        (b"[1]", "calibration.json is not a calibration of format_version 1: it has no format_version"),
        (b'{"judges": []}', "it has no format_version; write it again with: rageval-spec calibrate"),
        (b'{"format_version": 2}', "not a calibration of format_version 1: its format_version is 2; write it again"),
        (b'{"format_version": 1}', "calibration.json is not a calibration: made_with: "),
        (make(BARE).dump().replace(b'"answers"', b'"words"'), r"judges\.0\.of: "),
    ],
)
def test_what_is_not_a_calibration_is_refused_with_the_reason(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        CalibrationFile.parse(content, "calibration.json")
