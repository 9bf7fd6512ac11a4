from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.endpoints.replies import UnreadableReplyError, put_in_order


def items(*pairs: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"context": number, "verdict": verdict} for number, verdict in pairs]


def verdicts(*pairs: tuple[int, str]) -> list[str]:
    return [item["verdict"] for item in put_in_order(items(*pairs), "context", "verdict")]


def test_items_are_put_in_the_order_of_their_numbers() -> None:
    assert verdicts((2, "no"), (3, "no"), (1, "yes")) == ["yes", "no", "no"]
    assert verdicts((1, "no")) == ["no"]


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, "yes"), (1, "no")],
        [(2, "no"), (2, "yes")],
        [(1, "yes"), (1, "no"), (3, "yes")],
        [(1, "yes"), (1, "yes"), (2, "yes")],
    ],
)
def test_a_repeated_number_is_unreadable(pairs: list[tuple[int, str]]) -> None:
    with pytest.raises(UnreadableReplyError, match=r'there is no verdict with "context": [123], and two with another'):
        verdicts(*pairs)


def test_unnumbered_items_count_by_position() -> None:
    assert verdicts((1, "yes"), (1, "no"), (1, "yes")) == ["yes", "no", "yes"]
    assert verdicts((2, "no"), (2, "no")) == ["no", "no"]
