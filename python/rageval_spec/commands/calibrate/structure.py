"""What `calibrate` found, and its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rageval_spec.calibration.bias import Bias, Biases
from rageval_spec.calibration.measuring import Calibration, Promise
from rageval_spec.calibration.slices import SliceCalibration
from rageval_spec.diagnostics import dump_visible

VERSION = 1
"""The version of the JSON's structure."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a judge on one metric."""

    calibration: Calibration
    biases: Biases
    promise: Promise | None
    slices: tuple[SliceCalibration, ...] = ()


def dump(found: Sequence[Found]) -> bytes:
    """Everything as JSON: a `version`, and `calibrations` with one object a metric."""
    return dump_visible({"version": VERSION, "calibrations": [_describe(one) for one in found]}).encode()


def _describe(one: Found) -> dict[str, Any]:
    content = asdict(one.calibration)
    chosen = one.calibration.map.chosen
    content["map"]["chosen"] = None if chosen is None else chosen.to_json()
    content["biases"] = [_describe_bias(bias) for bias in one.biases.found]
    content["properties_left_out"] = [asdict(left) for left in one.biases.left_out]
    content["why_no_biases"] = one.biases.reason
    content["slices"] = [asdict(part) for part in one.slices]
    return content | {"promise": None if one.promise is None else asdict(one.promise)}


def _describe_bias(bias: Bias) -> dict[str, Any]:
    return asdict(bias) | {"is_significant": bias.is_significant, "said": str(bias)}
