"""What the options of `calibrate` mean."""

from __future__ import annotations

import pytest

from rageval_spec.calibration.thresholds import Criterion
from rageval_spec.commands.calibrate.settings import read_criterion
from rageval_spec.errors import UsageError


@pytest.mark.parametrize(
    ("text", "criterion"),
    [
        ("f1", Criterion("f1")),
        ("Youden", Criterion("youden")),
        ("precision>=0.95", Criterion("precision", 0.95)),
        (" precision >= 95 % ", Criterion("precision", 0.95)),
        ("precision ≥ .9", Criterion("precision", 0.9)),
        ("precision>=1", Criterion("precision", 1.0)),
    ],
)
def test_a_criterion_is_read(text: str, criterion: Criterion) -> None:
    assert read_criterion(text) == criterion


@pytest.mark.parametrize(
    "text", ["", "accuracy", "precision", "precision>=0", "precision>=95", "precision>=nan", "f1>=1"]
)
def test_a_criterion_that_cannot_be_read_is_explained(text: str) -> None:
    with pytest.raises(UsageError, match=r"write f1, youden or a precision, such as 'precision>=0\.95'"):
        read_criterion(text)
