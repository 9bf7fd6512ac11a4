import pytest

from rageval_spec.generation.asking import Steps
from tests.generation.writing import Workshop


@pytest.mark.parametrize("keys", ["count: 10", "count: 10, closed_book: true", "count: 8, unanswerable: 25"])
def test_what_is_foreseen_is_what_is_asked(workshop: Workshop, keys: str) -> None:
    with workshop.open(keys) as dataset:
        foreseen = len(dataset.foresee_calls().calls["gpt"])
        assert not workshop.writer.bodies
        dataset.produce()
        closed = workshop.writer.count("closed_book")
        assert len(workshop.writer.bodies) == foreseen - closed, "nobody knew an answer that had to be compared"
        assert dataset.estimate().calls == {}


def test_after_a_limit_only_the_rest_is_foreseen(workshop: Workshop) -> None:
    workshop.make("count: 10", "max_calls: 17, concurrency: 1")
    with workshop.open("count: 10") as dataset:
        assert len(dataset.estimate().calls["gpt"]) == 13


def test_what_was_rejected_is_foreseen_to_be_replaced(workshop: Workshop) -> None:
    write = workshop.writer.draft
    workshop.writer.draft = lambda asked: (  # type: ignore[method-assign]
        {**write(asked), "suitable": False} if "Ember" in asked else write(asked)
    )
    workshop.make("count: 20", "max_calls: 40, concurrency: 1")
    with workshop.open("count: 20") as dataset:
        assert len(dataset.estimate().calls["gpt"]) == 20 * 3 + 1 - 40


def test_steps_never_go_back_and_end_at_their_total() -> None:
    shown: list[tuple[int, int]] = []
    steps = Steps(lambda done, total, unit=None: shown.append((done, total)))
    steps.expect(4)
    steps.end()
    steps.end(2)
    steps.expect(2)
    steps.end(5)
    assert shown == [(0, 4), (1, 4), (3, 4), (4, 6), (6, 6)]
