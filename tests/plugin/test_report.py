""""""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import pytest

from rageval_spec import registry
from rageval_spec.plugin import Answer, Context, Engine, EngineNode, Partition, Report, ReportNode


def test_reports_write_to_different_files_or_to_the_terminal() -> None:
    files = Counter(registry.load("reports", word).filename for word in registry.words("reports"))
    assert all(count == 1 for name, count in files.items() if name is not None)
    assert registry.load("reports", "terminal").filename is None


def test_a_report_must_implement_render() -> None:
    with pytest.raises(TypeError, match="render"):
        Report(ReportNode(use="none"), Context("report"))  # type: ignore[abstract]


class Reversed(Engine[EngineNode]):
    """Computes the last partition first."""

    node_type = EngineNode

    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        yield from reversed([function(partition) for partition in reversed([*partitions])])


def test_an_engine_computes_in_any_order_and_returns_results_in_the_order_of_the_partitions() -> None:
    engine = Reversed(EngineNode(use="reversed"), Context("engine"))
    seen: list[int] = []

    def double(number: int) -> int:
        seen.append(number)
        return 2 * number

    assert list(engine.map(double, range(3))) == [0, 2, 4]
    assert seen == [2, 1, 0]


def test_an_engine_must_implement_map() -> None:
    with pytest.raises(TypeError, match="map"):
        Engine(EngineNode(use="none"), Context("engine"))  # type: ignore[abstract]
