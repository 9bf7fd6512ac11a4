"""A trend on the terminal."""

from __future__ import annotations

from rageval_spec.reports.shared.trend_text import draw_trend
from tests.reports.shared.trends import make_trend


def test_a_chart_shows_points_breaks_changes_and_near_bounds() -> None:
    text = draw_trend(make_trend(), 100)
    lines = text.splitlines()
    assert lines[2] == "faithfulness (golden, v1): 0.820, 30 records"
    chart = lines[3:12]
    assert sum(line.count("•") for line in chart) == 30
    assert all(line[12 + 9] == "┊" for line in chart[:8] if len(line) > 21)
    assert sum("┄" in line for line in chart) == 1
    assert lines[11].index("▲") == 12 + 21  # a break takes a column
    assert "┊ 2026-03-10 00:00: the questions changed" in text
    assert "▲ 2026-03-21 00:00, record 00000000, commit abcdef01: 0.510 → 0.810" in text
    assert "cost in dollars: 0.250, 30 records" in text
    assert lines[-1].endswith("a probability of at most 1%")


def test_what_does_not_fit_is_left_out_at_the_old_end() -> None:
    text = draw_trend(make_trend(), 30)
    assert "30 records, the newest 20 shown" in text
    assert "┊" not in text and "2026-03-11 to 2026-03-30" in text
    assert max(len(line) for line in text.splitlines() if "•" in line) <= 32


def test_control_characters_of_names_are_visible() -> None:
    assert "\x1b" not in draw_trend(make_trend(name="a\x1b[31m", place="\x1b]0;x\x07"), 80)
