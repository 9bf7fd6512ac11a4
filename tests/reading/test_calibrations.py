"""A `calibration.json` is read whole or refused."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.judge_calibration import MOST_BYTES, ScoreMap
from rageval_spec.errors import DataError
from rageval_spec.reading.calibrations import build_map, read_calibration
from tests.judge_calibrations import LINE, describe, write
from tests.judges.fakes import FAITHFULNESS, Scripted


def write_one(folder: Path, **changes: Any) -> Path:
    return write(folder / "calibration.json", describe(Scripted("fast", {}), FAITHFULNESS, **changes))


def test_the_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = write_one(tmp_path)
    found = read_calibration(path, "calibration.json")
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.content.judges[0].map == LINE


def test_maps_of_both_kinds_are_applied() -> None:
    assert build_map(LINE).apply([0.0, 0.4, 0.5, 1.0]) == pytest.approx([0.0, 0.4, 0.6, 0.8])
    assert build_map(ScoreMap("platt", slope=2.0, intercept=-1.0)).apply([0.5]) == [0.5]


@pytest.mark.parametrize(
    "broken",
    [
        ScoreMap("platt", slope=-1.0, intercept=0.0),
        ScoreMap("isotonic", values=(0.5, 0.2), results=(0.1, 0.2)),
        ScoreMap("isotonic", values=(0.5,), results=()),
    ],
)
def test_a_map_that_is_none_is_refused(tmp_path: Path, broken: ScoreMap) -> None:
    with pytest.raises(DataError, match=r"c\.json: the map of 'fast' for faithfulness: "):
        read_calibration(write_one(tmp_path, map=broken), "c.json")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^c\.json cannot be read: No such file or directory$"):
        read_calibration(tmp_path / "c.json", "c.json")
    with pytest.raises(DataError, match=r"^c\.json cannot be read: Is a directory$"):
        read_calibration(tmp_path, "c.json")
    large = tmp_path / "large.json"
    large.write_text(json.dumps({"x": "x" * MOST_BYTES}))
    with pytest.raises(DataError, match=r"large\.json is larger than 16,777,216 bytes; is it a calibration\?"):
        read_calibration(large, "large.json")


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a calibration"):
        read_calibration(tmp_path / "pipe", "pipe")
