from __future__ import annotations

import pytest

from rageval_spec.data.reply_counts import AskedModel, ReplyCounts


def test_a_question_counts_by_its_last_reply() -> None:
    assert ReplyCounts.of(1, is_read=True) == ReplyCounts(first=1)
    assert ReplyCounts.of(3, is_read=True) == ReplyCounts(later=1, repeats=2)
    assert ReplyCounts.of(3, is_read=False) == ReplyCounts(never=1, repeats=2)
    total = ReplyCounts.of(1, is_read=True) + ReplyCounts.of(2, is_read=True) + ReplyCounts.of(3, is_read=False)
    assert (total.questions, total) == (3, ReplyCounts(1, 1, 1, 3))


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        (ReplyCounts(first=1), "readable replies to 100% of 1 question at first"),
        (ReplyCounts(39, 1, 0, 1), "readable replies to 97.5% of 40 questions at first, 2.5% after asking again"),
        (ReplyCounts(99_999, 0, 1, 2), "readable replies to 99.9% of 100,000 questions at first, 0.1% never"),
        (ReplyCounts(0, 1, 1, 3), "readable replies to 0% of 2 questions at first, 50% after asking again, 50% never"),
    ],
)
def test_shares_are_never_rounded_to_all_or_nothing(counts: ReplyCounts, text: str) -> None:
    assert str(counts) == text


def test_a_model_is_described_with_its_seconds_a_call() -> None:
    asked = AskedModel("fast", "http://a", 40, 33.6, ReplyCounts(39, 1, 0, 1))
    assert (
        str(asked) == "readable replies to 97.5% of 40 questions at first, 2.5% after asking again; 0.84 seconds a call"
    )
    assert str(AskedModel("new", "", 0, 0.0, ReplyCounts())).endswith("0 seconds a call")
