"""The bars of a reliability diagram."""

from __future__ import annotations

import pytest

from rageval_spec.commands.calibrate.diagram import draw_bar, draw_diagram
from rageval_spec.reports.shared.console import render_text
from rageval_spec.statistics.reliability import Bin


@pytest.mark.parametrize(
    ("value", "label", "bar"),
    [
        (0.5, 1.0, "█" * 15 + "│" + "█" * 14),
        (0.9, 0.1, "███" + "·" * 24 + "│··"),
        (1.0, 0.0, "·" * 29 + "│"),
        (0.0, 0.0, "│" + "·" * 29),
    ],
)
def test_a_bar_shows_people_and_the_judge(value: float, label: float, bar: str) -> None:
    assert draw_bar(Bin(0.0, 0.1, 1, value, label)) == bar


def test_a_row_says_what_the_judge_and_people_say() -> None:
    text = render_text(lambda _: [draw_diagram([Bin(0.8, 0.9, 12, 0.85, 0.5)])]).decode()
    assert "0.8 to 0.9         12  0.850   0.500  " in text
