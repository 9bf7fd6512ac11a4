"""The bands of a cascade are chosen from what its steps said of the same answers."""

from __future__ import annotations

import pytest

from rageval_spec.calibration.cascading import Asked, count_decisions, find_bands
from rageval_spec.data.judge_calibration import Figure, StepBounds
from rageval_spec.errors import UsageError


def make(count: int = 100) -> Asked:
    """The first step is sure of the first and the last quarter; it has no score of the second answer."""
    quarter = count // 4
    first: list[float | None] = [*[0.0] * quarter, *[0.5] * (count - 2 * quarter), *[1.0] * quarter]
    first[1] = None
    last: list[float | None] = [0.2 if place < count // 2 else 0.7 for place in range(count)]
    return Asked([("golden", "v1", f"q{place}") for place in range(count)], [first, last])


def test_the_bounds_the_figures_and_what_the_last_step_is_spared() -> None:
    asked = make()
    found = find_bands(asked, [score or 0.0 for score in asked.scores[-1]], 0.95)
    assert found.list_bounds() == (StepBounds(0, 0.25, 0.75),)
    assert found.spared == (0, *range(2, 25), *range(75, 100))
    share, agreement = found.list_figures(["cheap", "dear"])
    assert share == Figure("decided by cheap", 0.49)
    assert (agreement.name, agreement.value, agreement.high) == ("agreement of cheap", 1.0, 1.0)
    assert agreement.low == pytest.approx(0.927, abs=1e-3)


def test_answers_that_the_last_step_has_no_score_for_are_left_out() -> None:
    asked = make(8)
    scores = [asked.scores[0], [None, *asked.scores[1][1:]]]
    places, decisions = Asked(asked.items, scores).find_last()
    assert places == [1, 2, 3, 4, 5, 6, 7]
    assert decisions == [0.2, 0.2, 0.2, 0.7, 0.7, 0.7, 0.7]
    assert asked.take([1, 7]) == Asked([asked.items[1], asked.items[7]], [[None, 1.0], [0.2, 0.7]])


def test_decisions_of_the_last_step_are_counted_as_labels() -> None:
    found = count_decisions(make(8), [0.2] * 4 + [0.7] * 4)
    assert (found.by, found.items, found.yes, found.no, found.questions) == ("last step", 8, 4, 4, 8)


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(UsageError, match="4 answers are too few to hold questions out; label at least 5 questions"):
        find_bands(make(4), [0.0] * 4, 0.95)


def test_clusters_of_questions_are_held_out_as_a_whole() -> None:
    asked = make()
    together = {(dataset, name): (dataset, place // 50) for place, (dataset, _, name) in enumerate(asked.items)}
    clustered = Asked(asked.items, asked.scores, together)
    assert clustered.take([1, 99]).clusters == [("golden", 0), ("golden", 1)]
    with pytest.raises(UsageError, match="too few"):
        find_bands(clustered, [0.0] * 100, 0.95)
