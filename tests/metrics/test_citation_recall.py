from __future__ import annotations

from tests.metrics.citing import answer, reading
from tests.metrics.judges import calls, measure, metric, value_of


def test_hand_worked() -> None:
    # together the first two have "red green"; the third cites a context that is not there; the fourth cites nothing
    one = answer("Red green [1][2]. Blue [1]. Red [1][9]. Grey.", "red blue", "green")
    (found,) = measure(metric("citation_recall", reading()), one)
    assert found.value == 2 / 4
    assert found.details is not None
    assert [claim.get("reason") for claim in found.details["claims"]] == [
        None, None, "it names no context of the answer", "it cites nothing"
    ]  # fmt: skip


def test_only_the_first_citations_count() -> None:
    one = answer("Red green [1, 1, 1, 2].", "red", "green")
    assert value_of(metric("citation_recall", reading()), one) == 0.0
    assert value_of(metric("citation_recall", reading(), most=4), one) == 1.0


def test_edges() -> None:
    built = metric("citation_recall", reading())
    found = measure(built, answer("", "a"), answer("Red. Blue.", "red"), answer("Red [1]."))
    assert [(one.value, one.reason) for one in found] == [
        (None, "the answer is empty"),
        (0.0, "the answer cites nothing"),
        (0.0, None),
    ]
    assert len(calls(built.estimate([answer("Red green [1][2]. Blue [9].", "a", "b")]))) == 1
