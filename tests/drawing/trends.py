"""Trends made by hand, for tests of how they are drawn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rageval_spec.data.results import Break, LevelChange, Series, Trend, TrendPoint

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def make_trend(count: int = 30, name: str = "support-bot", place: str = "golden") -> Trend:
    """A metric that breaks before the tenth point and rises with the twentieth, and a cost."""
    points = tuple(
        TrendPoint(
            f"{index:032x}", BEGIN + timedelta(days=index), value := 0.5 + 0.3 * (index >= 20) + 0.01 * (index % 3),
            value - 0.05, value + 0.05, "abcdef0123", "pass",
        )
        for index in range(count)
    )  # fmt: skip
    costs = tuple(TrendPoint(point.record_id, point.time, 0.25) for point in points)
    series = Series(
        "faithfulness", place, "v1", None, points, (Break(9, "the questions changed"),), (LevelChange(20, 0.51, 0.81),),
        {"min": 0.55, "target": 5.0},
    )  # fmt: skip
    return Trend(name, (series, Series("cost in dollars", "", "", None, costs)), 0.01)
