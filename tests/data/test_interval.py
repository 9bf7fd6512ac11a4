"""Tests of confidence intervals as data."""

from __future__ import annotations

import dataclasses

import pytest

from rageval_spec.data.evaluation import Interval as Reexported
from rageval_spec.data.interval import Interval


def test_an_interval_is_also_found_beside_the_aggregates_that_hold_it() -> None:
    assert Reexported is Interval


def test_an_interval_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Interval(0.1, 0.2).low = 0.0  # type: ignore[misc]
