"""What `calibrate` found, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rageval_spec.calibration.bias import Bias, Biases
from rageval_spec.calibration.comparing import JudgeComparison
from rageval_spec.calibration.joining import Joined
from rageval_spec.calibration.measuring import Calibration, Promise
from rageval_spec.calibration.slices import SliceCalibration
from rageval_spec.diagnostics import dump_visible

VERSION = 1
"""The version of the JSON's structure."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a judge on one metric."""

    joined: Joined
    calibration: Calibration
    biases: Biases
    promise: Promise | None
    slices: tuple[SliceCalibration, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """What labels of one criterion show: metrics in full, and judges side by side."""

    found: Sequence[Found]
    comparison: JudgeComparison | None = None


def dump(groups: Sequence[Group], others: Mapping[str, int]) -> bytes:
    """Everything as JSON.

    A `version`, `calibrations` with one object a metric, `comparisons` of judges, and `criteria_without_metric` with
    the number of labels of each.
    """
    content = {
        "version": VERSION,
        "calibrations": [_describe(one) for group in groups for one in group.found],
        "comparisons": [asdict(group.comparison) for group in groups if group.comparison is not None],
        "criteria_without_metric": dict(others),
    }
    return dump_visible(content).encode()


def _describe(one: Found) -> dict[str, Any]:
    content = asdict(one.calibration)
    chosen = one.calibration.map.chosen
    content["map"]["chosen"] = None if chosen is None else chosen.to_json()
    content["biases"] = [_describe_bias(bias) for bias in one.biases.found]
    content["properties_left_out"] = [asdict(left) for left in one.biases.left_out]
    content["why_no_biases"] = one.biases.reason
    content["bounds"] = one.joined.bounds
    content["slices"] = [asdict(part) for part in one.slices]
    if one.joined.together:
        content["clusters"] = len({*one.joined.clusters})
    return content | {"promise": None if one.promise is None else asdict(one.promise)}


def _describe_bias(bias: Bias) -> dict[str, Any]:
    return asdict(bias) | {"is_significant": bias.is_significant, "said": str(bias), "explained": bias.explain()}
