"""Reads `calibration.json`."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from rageval_spec.data.judge_calibration import MOST_BYTES, CalibrationFile, ScoreMap
from rageval_spec.errors import DataError
from rageval_spec.kernels.bounds import name_special
from rageval_spec.statistics.maps import ValueMap, read_map


class ReadCalibration(NamedTuple):
    """The content of a file, and the sha256 of its bytes."""

    content: CalibrationFile
    digest: str


def read_calibration(path: Path, shown: str) -> ReadCalibration:
    """Read a calibration; `shown` is its name in errors.

    Raises:
        DataError: the file cannot be read, or is not a calibration of this format.
    """
    try:
        if kind := name_special(path):
            raise DataError(f"{shown} is {kind}, not a calibration")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"{shown} cannot be read: {reason}") from error
    if len(content) > MOST_BYTES:
        raise DataError(f"{shown} is larger than {MOST_BYTES:,} bytes; is it a calibration?")
    read = CalibrationFile.parse(content, shown)
    for entry in read.judges:
        if entry.map is not None:
            try:
                build_map(entry.map)
            except ValueError as error:
                raise DataError(f"{shown}: the map of '{entry.judge}' for {entry.metric}: {error}") from error
    return ReadCalibration(read, hashlib.sha256(content).hexdigest())


def build_map(written: ScoreMap) -> ValueMap:
    """The map that a file has.

    Raises:
        ValueError: its numbers do not make a map.
    """
    return read_map({key: [*value] if isinstance(value, tuple) else value for key, value in asdict(written).items()})
