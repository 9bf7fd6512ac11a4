"""A trend on the terminal.

A trend as a page: no script, no request, and nobody's markup.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from rageval_spec.data.results import Break
from rageval_spec.drawing.trend_charts import draw_trend, write_trend
from tests.browser import open_page, start_browser
from tests.drawing.trends import make_trend
from tests.sample_evaluation import HOSTILE


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


def draw_charts(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(chart) for chart in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_a_chart_has_lines_intervals_bounds_breaks_and_changes() -> None:
    page = write_trend(make_trend()).decode()
    chart, cost = draw_charts(page)
    lines = [line.attrib["points"].split() for line in chart.iter("polyline")]
    assert [len(line) for line in lines] == [9, 21]
    assert len(list(chart.iter("polygon"))) == 2 and not list(cost.iter("polygon"))
    texts = [element.text for element in chart.iter("text")]
    assert "min 0.550" in texts and "target 5.000" not in texts
    assert [element.attrib["class"] for element in chart.iter("line")] == ["floor", "limit", "break"]
    assert [element.attrib["class"] for element in chart.iter("circle")].count("dot up") == 1
    assert "from 2026-03-10 00:00: the questions changed" in page
    assert "▲ 0.510 → 0.810" in page and "at most 1%" in page


def test_higher_values_are_drawn_higher_and_later_ones_further_right() -> None:
    chart = draw_charts(write_trend(make_trend()).decode())[0]
    line = list(chart.iter("polyline"))[1].attrib["points"].split()
    places = [tuple(map(float, point.split(","))) for point in line]
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert places[-1][1] < places[0][1]


def test_long_series_have_few_dots_and_the_same_trend_gives_the_same_bytes() -> None:
    chart = draw_charts(write_trend(make_trend(300)).decode())[0]
    assert len(list(chart.iter("circle"))) == 3
    assert write_trend(make_trend()) == write_trend(make_trend())


def test_a_point_between_two_breaks_of_a_long_series_has_a_dot() -> None:
    trend = make_trend(300)
    series = replace(trend.series[0], breaks=(Break(9, "the questions changed"), Break(10, "the judge changed")))
    chart = draw_charts(write_trend(replace(trend, series=(series,))).decode())[0]
    assert len(list(chart.iter("circle"))) == 4


def test_names_are_text() -> None:
    page = write_trend(make_trend(name=HOSTILE, place=HOSTILE)).decode()
    assert "<script" not in page and "&lt;script&gt;" in page
    assert draw_charts(page)


def test_a_browser_shows_it_without_a_request_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "trend.html"
    path.write_bytes(write_trend(make_trend(name=HOSTILE, place="x" * 300)))
    with start_browser() as browser:
        for width in (390, 1280):
            with open_page(browser, path, viewport={"width": width, "height": 800}) as opened:
                assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert opened.page.locator("svg").count() == 2
                assert (opened.seen, len(opened.requests)) == ([], 1)
