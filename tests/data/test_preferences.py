"""A choice between two answers: who won, and which choices are about the same pair."""

from __future__ import annotations

from rageval_spec.data.preferences import Preference


def test_the_winner_is_the_text_that_was_chosen() -> None:
    assert Preference("q", "x", "y", "first").winner == "x"
    assert Preference("q", "x", "y", "second").winner == "y"
    assert Preference("q", "x", "y", "tie").winner is None


def test_a_pair_is_the_same_in_both_orders_but_not_for_another_person() -> None:
    one = Preference("q", "x", "y", "first", "ann")
    assert one.pair == Preference("q", "y", "x", "tie", "ann").pair
    assert one.pair != Preference("q", "x", "y", "first", "bob").pair
    assert one.pair != Preference("q", "x", "y", "first", "ann", "length").pair
