"""Says from when the answers are that a system keeps from earlier evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING

from rageval_spec.data.note import Note
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.systems.shared.asked import AnsweringNode

_MOST_DAYS = 3
_UNKNOWN = "an unknown day"


def describe_days(days: Mapping[date | None, int]) -> str:
    """`asked on 2026-03-01`, `3 asked on 2026-03-01, 1 on 2026-03-02`, or the first and the last of many days."""
    known = sorted(day for day in days if day is not None)
    if len(days) == 1:
        return f"asked on {known[0] if known else _UNKNOWN}"
    if len(days) > _MOST_DAYS:
        rest = f", {days[None]} on {_UNKNOWN}" if None in days else ""
        return f"{sum(days[day] for day in known)} asked from {known[0]} to {known[-1]}{rest}"
    parts = [f"{days[day]} {'asked ' if index == 0 else ''}on {day}" for index, day in enumerate(known)]
    return ", ".join([*parts, *([f"{days[None]} on {_UNKNOWN}"] if None in days else [])])


def remark_on_age(days: Mapping[date | None, int], asked: int, node: AnsweringNode) -> Iterator[Note]:
    """A note if answers are kept from finished evaluations.

    Args:
        days: how many answers were asked on each day, in UTC; None stands for an unknown day.
        asked: how many different questions the system has on the dataset.
        node: the system's block.
    """
    kept = sum(days.values())
    if not kept:
        return
    are = "is" if kept == 1 else "are"
    message = (
        f"{kept} of {count_noun(asked, 'answer')} {are} kept from earlier evaluations, {describe_days(days)} "
        f"(reuse: always, version: {node.version})"
    )
    yield Note("kept_answers", message, count=kept)
