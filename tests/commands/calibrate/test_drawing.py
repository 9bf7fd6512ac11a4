"""The text of `calibrate`: what is shown of one metric, of several, and with --details."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rageval_spec.calibration.bias import Biases
from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.calibration.measuring import measure_judge, promise
from rageval_spec.calibration.thresholds import Criterion
from rageval_spec.commands.calibrate.drawing import draw_group
from rageval_spec.commands.calibrate.settings import Settings
from rageval_spec.commands.calibrate.structure import Found, Group
from rageval_spec.reports.shared.console import render_text


def measure(metric: str = "faithfulness", power: float = 1.0, limit: float | None = None) -> Found:
    """A judge whose values mean what they say for a power of 1, and are too generous for more."""
    random = np.random.default_rng(1)
    values = random.random(120)
    labels = (random.random(120) < values**power).astype(np.float64)
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(120)]
    joined = Joined(metric, tuple(items), tuple(values.tolist()), tuple(labels.tolist()), (), {})
    promised = None if limit is None else promise(joined, limit, 0.95)
    return Found(joined, measure_judge(joined, resamples=100), Biases(), promised)


def show(*found: Found, details: bool = False, limit: float | None = None) -> str:
    settings = Settings(None, Criterion(), 0.1, limit, 0.95, details=details)
    return render_text(lambda _: draw_group(Group(found), settings)).decode()


DIAGRAM = "Do the values mean what they say?"


def test_a_metric_fits_on_one_screen_and_details_add_the_diagram() -> None:
    found = measure(power=4.0)
    text = show(found)
    assert len(text.splitlines()) <= 40
    assert DIAGRAM not in text
    assert "Its values do not mean what they say" in text
    assert "--details adds the reliability diagram" in text
    whole = show(found, details=True)
    assert DIAGRAM in whole
    assert "balanced accuracy" in whole
    assert "--details" not in whole


def test_weighted_means_say_so() -> None:
    found = measure()
    weighted = replace(found, joined=replace(found.joined, shares=dict.fromkeys(found.joined.items, 1.0)))
    told = "questions count as the spec's weights say"
    assert told in show(weighted)
    assert told not in show(found)


def test_details_have_the_maps_and_the_curve() -> None:
    short, whole = (show(measure(power=4.0), details=details) for details in (False, True))
    for only in ("Pearson's correlation", "Brier score", "Use platt.", "labels  corrected mean"):
        assert only not in short
        assert only in whole
    assert "Labels to buy" in short


def test_several_metrics_have_their_conclusions_only() -> None:
    text = show(measure("first"), measure("second"))
    assert "first: 120 labelled items" in text
    assert "second: 120 labelled items" in text
    assert "AUROC" not in text
    assert "AUROC" in show(measure("first"), measure("second"), details=True)


def test_a_promise_is_shown_of_each_metric() -> None:
    found = [measure(name, limit=0.5) for name in ("first", "second")]
    text = show(*found, limit=0.5)
    assert text.count("sent from") == 2
    assert "sent from" not in show(*found)


def test_a_promise_says_why_it_counts_fewer_answers() -> None:
    found = measure(limit=0.5)
    told = "60 of 120 labelled items count: one of each question, or of each cluster."
    assert told not in show(found, limit=0.5)
    pairs = tuple(("golden", "v1", f"q{row // 2}", None) for row in range(120))
    joined = replace(found.joined, items=pairs)
    assert told in show(replace(found, joined=joined, promise=promise(joined, 0.5, 0.95)), limit=0.5)
