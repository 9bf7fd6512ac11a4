"""`calibrate -o`: writes what was found about judges to `calibration.json`, where a spec's judges take it from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec import registry
from rageval_spec.calibration.freezing import freeze_anchors
from rageval_spec.data.judge_calibration import FORMAT_VERSION, CalibrationFile, JudgeCalibration
from rageval_spec.errors import DataError, UsageError
from rageval_spec.pipeline.plan import package_version
from rageval_spec.store.disk import write_atomically
from rageval_spec.wording import list_choices, list_names

if TYPE_CHECKING:
    from rageval_spec.calibration.joining import Joined
    from rageval_spec.calibration.measuring import Calibration
    from rageval_spec.data.evaluation import Evaluation


def write_anchors(path: Path, evaluation: Evaluation, measured: Sequence[tuple[Joined, Calibration]]) -> str:
    """Freeze the labelled answers of a metric, and return a sentence on how to use them.

    Raises:
        UsageError: several metrics are labelled, or claims are.
    """
    if len(measured) != 1:
        metrics = list_choices([joined.metric for joined, _ in measured])
        raise UsageError(f"anchors are frozen for one metric at a time; name it with --metric: {metrics}")
    frozen = freeze_anchors(evaluation, *measured[0])
    _write(path, frozen.dump())
    return f"Wrote {path}. To ask the judge again: rageval-spec drift {path} spec.yaml"


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def check_place(path: Path, key: str = "judges") -> None:
    """Check that a calibration can be written there: in a folder that exists, over nothing but a calibration.

    Args:
        path: the file.
        key: what such a file holds: `judges`, or `anchors`.

    Raises:
        UsageError: it cannot.
    """
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write {path.name} to")
    if not path.exists():
        return
    if not _holds(path, key):
        what = "a calibration" if key == "judges" else "a set of anchors"
        raise UsageError(f"{path} exists and is not {what}; choose another name")


def _holds(path: Path, key: str) -> bool:
    """Whether a file looks like one of ours, of whatever version."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"format_version", key} <= content.keys()


def write_calibrations(path: Path, evaluation: Evaluation, entries: Sequence[JudgeCalibration]) -> str:
    """Write the file, and return a sentence on how to use it."""
    file = CalibrationFile(FORMAT_VERSION, package_version(), evaluation.name, evaluation.spec_digest, tuple(entries))
    _write(path, file.dump())
    names = list(dict.fromkeys(entry.judge for entry in entries))
    if len(names) == 1 and names[0] in registry.words("judges"):
        return (
            f"Wrote {path}. To use it, declare a judge, and name it in the metric: "
            f"judges: {{calibrated: {{use: {names[0]}, calibration: {path.name}}}}}"
        )
    quoted = list_names([f"'{name}'" for name in names])
    return f"Wrote {path}. To use it, add 'calibration: {path.name}' to the judge {quoted} in the spec."
