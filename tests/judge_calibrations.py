"""Entries of `calibration.json` made by hand, for tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rageval_spec.data.findings import Criterion
from rageval_spec.data.json_documents import FORMAT_VERSION
from rageval_spec.data.judge_calibration import (
    CalibratedThreshold,
    CalibrationFile,
    CalibrationLabels,
    Guaranteed,
    JudgeCalibration,
    ScoreMap,
)
from rageval_spec.judging.calibrated_judge import find_surroundings
from rageval_spec.plugin import Judge
from rageval_spec.plugin.judge_identity import digest_criterion, digest_identity, identify_judge

LINE = ScoreMap("isotonic", values=(0.2, 0.6), results=(0.0, 0.8))
"""0.4 becomes 0.4, 0.5 becomes 0.6, and everything from 0.6 on 0.8."""
LABELLED = CalibrationLabels("people", "d1", items=60, yes=40, no=20, questions=60, labels=60, annotators=1)


def describe(judge: Judge[Any], criterion: Criterion, **changes: Any) -> JudgeCalibration:
    """An entry for a judge as it is configured, with a map, a threshold of 0.5 and a guarantee from 0.7 on."""
    identity = identify_judge(judge, find_surroundings(judge))
    settled: dict[str, Any] = {
        "judge": judge.context.name,
        "metric": criterion.name,
        "criterion": digest_criterion(criterion),
        "of": "answers",
        "scale": (0.0, 1.0),
        "identity": identity,
        "digest": digest_identity(identity),
        "labelled": LABELLED,
        "map": LINE,
        "threshold": CalibratedThreshold(0.5, "youden"),
        "guarantee": Guaranteed(0.05, 30, 1, 60, 0.95, 0.7),
    }
    return JudgeCalibration(**(settled | changes))


def write(path: Path, *entries: JudgeCalibration) -> Path:
    """Write a file of these entries."""
    path.write_bytes(CalibrationFile(FORMAT_VERSION, "1.0", "tiny", "s1", entries).dump())
    return path
