from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from rageval_spec import registry
from rageval_spec.engines.local import Local, LocalNode
from rageval_spec.plugin import Context


def engine(workers: int | None = None, threads: int | None = None) -> Local:
    return Local(LocalNode(workers=workers), Context("local", threads=threads))


def test_the_registry_finds_the_engine() -> None:
    assert registry.load("engines", "local") is Local


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_results_come_in_the_order_of_the_partitions(workers: int) -> None:
    def slow_first(number: int) -> int:
        time.sleep(0.02 if number == 0 else 0)
        return number * number

    assert list(engine(workers).map(slow_first, range(20))) == [number * number for number in range(20)]


def test_answers_are_measured_in_parts_of_bounded_size() -> None:
    counts = [engine().count_parts("evaluate", questions) for questions in (0, 1, 10_000, 10_001, 1_000_000)]
    assert counts == [1, 1, 1, 2, 100]
    assert engine().count_parts("answer", 1_000_000) == 1


def test_partitions_are_computed_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=10)

    def meet(number: int) -> int:
        meeting.wait()  # no thread continues until three are here at the same time
        return number

    assert list(engine(workers=3).map(meet, range(3))) == [0, 1, 2]


@pytest.mark.parametrize(("workers", "partitions"), [(1, 5), (4, 1)])
def test_one_worker_or_one_partition_stays_in_the_calling_thread(workers: int, partitions: int) -> None:
    threads = set(engine(workers).map(lambda _: threading.current_thread(), range(partitions)))
    assert threads == {threading.current_thread()}


def test_nothing_to_do() -> None:
    assert list(engine(4).map(lambda number: number, [])) == []


@pytest.mark.parametrize("workers", [1, 3])
def test_an_exception_is_raised_and_later_partitions_never_start(workers: int) -> None:
    started: set[int] = set()

    def fail_at_two(number: int) -> int:
        started.add(number)
        if number == 2:
            raise ValueError("partition 2")
        time.sleep(0.01)
        return number

    with pytest.raises(ValueError, match="partition 2"):
        list(engine(workers).map(fail_at_two, range(1000)))
    assert len(started) < 100


def test_the_threads_of_the_spec_limit_the_workers() -> None:
    assert engine(threads=3).workers == 3
    assert engine(workers=2, threads=3).workers == 2
    assert engine().workers >= 1


def test_partitions_can_be_an_iterator() -> None:
    def numbers() -> Iterator[int]:
        yield from (1, 2, 3)

    assert list(engine(2).map(str, numbers())) == ["1", "2", "3"]
