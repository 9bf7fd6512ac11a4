from __future__ import annotations

from rageval_spec.data.evidence.citations import Citation
from tests.metrics.judges import measure, metric, sample, value_of


def test_hand_worked() -> None:
    (found,) = measure(metric("citation_validity"), sample(answer="Red [1, 7]. Blue [2].", contexts=("a", "b")))
    assert found.value == 2 / 3
    assert found.reason == "no context is named '7'"
    assert found.details == {"citations": 3, "unknown": ["7"]}


def test_ids_are_enough() -> None:
    one = sample(answer="Red [a.md]. Blue [b.md].", contexts=None, context_ids=("a.md",))
    assert value_of(metric("citation_validity"), one) == 0.5


def test_what_was_read_counts() -> None:
    one = sample(answer="Red [1].", contexts=("a",), citations=(Citation(0, 4, "x"), Citation(0, 4, "a", None, 0)))
    assert value_of(metric("citation_validity"), one) == 0.5


def test_edges() -> None:
    found = measure(
        metric("citation_validity"),
        sample(answer=" ", contexts=("a",)),
        sample(answer="Red.", contexts=("a",)),
        sample(answer="Red [1].", contexts=None),
        sample(answer="Red [1].", contexts=()),
    )
    assert [(one.value, one.reason) for one in found] == [
        (None, "the answer is empty"),
        (None, "the answer cites nothing"),
        (None, "it is not known which contexts the answer had"),
        (0.0, "no context is named '1'"),
    ]
