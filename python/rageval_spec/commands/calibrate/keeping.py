"""`calibrate -o`: writes what was found about judges to `calibration.json`, where a spec's judges take it from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.data.judge_calibration import FORMAT_VERSION, CalibrationFile, JudgeCalibration
from rageval_spec.errors import DataError, UsageError
from rageval_spec.pipeline.plan import package_version
from rageval_spec.store.disk import write_atomically
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


def check_place(path: Path) -> None:
    """Check that a calibration can be written there: in a folder that exists, over nothing but a calibration.

    Raises:
        UsageError: it cannot.
    """
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write {path.name} to")
    if not path.exists():
        return
    if not _is_calibration(path):
        raise UsageError(f"{path} exists and is not a calibration; choose another name")


def _is_calibration(path: Path) -> bool:
    """Whether a file looks like a calibration, of whatever version."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"format_version", "judges"} <= content.keys()


def write_calibrations(path: Path, evaluation: Evaluation, entries: Sequence[JudgeCalibration]) -> str:
    """Write the file, and return a sentence on how to use it."""
    file = CalibrationFile(FORMAT_VERSION, package_version(), evaluation.name, evaluation.spec_digest, tuple(entries))
    try:
        write_atomically(path, file.dump())
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
    names = list(dict.fromkeys(entry.judge for entry in entries))
    quoted = list_names([f"'{name}'" for name in names])
    return f"Wrote {path}. To use it, add 'calibration: {path.name}' to the judge {quoted} in the spec."
