"""Sentences about the age of kept answers."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from rageval_spec.systems.shared.ages import describe_days, remark_on_age
from rageval_spec.systems.shared.asked import AnsweringNode

FIRST = date(2026, 3, 1)


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ({FIRST: 4}, "asked on 2026-03-01"),
        ({None: 4}, "asked on an unknown day"),
        ({FIRST + timedelta(1): 1, FIRST: 3}, "3 asked on 2026-03-01, 1 on 2026-03-02"),
        ({None: 1, FIRST: 3}, "3 asked on 2026-03-01, 1 on an unknown day"),
        ({FIRST + timedelta(day): 2 for day in range(9)}, "18 asked from 2026-03-01 to 2026-03-09"),
    ],
)
def test_days_are_described(days: dict[date | None, int], told: str) -> None:
    assert describe_days(days) == told


def test_the_note_has_the_version_and_the_days() -> None:
    node = AnsweringNode(use="scripted", reuse="always", version=7)
    [note] = remark_on_age({None: 1, FIRST: 3}, 5, node)
    assert note.message == (
        "4 of 5 answers are kept from earlier evaluations, 3 asked on 2026-03-01, 1 on an unknown day "
        "(reuse: always, version: 7)"
    )
    assert (note.code, note.level, note.count) == ("kept_answers", "note", 4)
    assert not list(remark_on_age({}, 5, node))
