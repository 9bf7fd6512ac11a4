"""The table of systems and slices."""

from __future__ import annotations

from rageval_spec.calibration.measures import Measure
from rageval_spec.calibration.slices import SliceCalibration
from rageval_spec.commands.calibrate.slice_table import draw_slices
from rageval_spec.data.interval import Interval
from rageval_spec.reports.shared.console import render_text


def few(name: str) -> SliceCalibration:
    return SliceCalibration("slice", name, 3, 0.5, 0.4, None, None)


def show(*parts: SliceCalibration) -> str:
    return render_text(lambda _: draw_slices(parts)).decode()


def test_a_row_for_each_part() -> None:
    bias = Measure("bias", 0.1, Interval(0.02, 0.18, 0.95, "bootstrap-bca"))
    text = show(SliceCalibration("system", "v2", 40, 0.6, 0.5, bias, Measure("auroc", None, None, "why")))
    assert "system v2     40  0.600   0.500  +0.100  [0.020, 0.180]" in text
    assert "fewer" not in text


def test_parts_with_few_labels_are_named() -> None:
    assert show(few("a")) == "1 part has fewer than 10 labelled items: slice a (3).\n\n"
    text = show(*map(few, "abcdefg"))
    assert text.startswith("7 parts have fewer than 10 labelled items: slice a (3), slice b (3)")
    assert "slice e (3) and 2 more." in text.replace("\n", " ")


def test_nothing_without_parts() -> None:
    assert show() == ""
