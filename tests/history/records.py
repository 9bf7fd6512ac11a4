"""Records made by hand, for tests of the history, and a PostgreSQL server for those that have one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rageval_spec.data.datasets import Fingerprint, Fingerprints
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.history.database import History, StoredRecord, open_history
from rageval_spec.history.evaluation_records import build_record
from rageval_spec.plugin.budget import Cost
from rageval_spec.store.checkout import Checkout
from tests.sample_evaluation import make_evaluation

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MARKS = Fingerprints({"golden": {"q1": Fingerprint("a", "b", None), "=q2": Fingerprint("c", "d", None)}})


def make_id(number: int) -> str:
    """An id whose first characters differ from those of other numbers."""
    return f"{number:04x}{'0' * 28}"


QUARTER = Cost(0.25, "known")


def make_record(
    number: int = 1,
    evaluation: Evaluation | None = None,
    *labels: str,
    branch: str = "main",
    cost: Cost | None = QUARTER,
) -> StoredRecord:
    """A record whose time is `number` hours after noon."""
    return build_record(
        evaluation or make_marked_evaluation(),
        make_id(number),
        NOON + timedelta(hours=number),
        checkout=Checkout("c" * 40, branch, is_dirty=False),
        ci={"system": "gitlab", "run": str(number)},
        cost=cost,
        seconds=12.5,
        labels=labels,
    )


def make_marked_evaluation() -> Evaluation:
    """The sample evaluation, with fingerprints."""
    return replace(make_evaluation(), load_fingerprints=lambda: MARKS)


@contextmanager
def opened(folder: Path, *records: StoredRecord) -> Iterator[History]:
    """A history in a file, with these records."""
    with open_history(folder / "history.db") as history:
        history.add(records)
        yield history
