from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.record import Record
from tests.sample_evaluation import make_evaluation


def test_time_commit_and_label_belong_to_the_record_and_not_to_the_evaluation() -> None:
    record = Record("1", datetime(2026, 1, 1, tzinfo=UTC), "abc", "main", make_evaluation())
    with pytest.raises(FrozenInstanceError):
        record.label = "other"  # type: ignore[misc]
    assert {field.name for field in fields(Record)} - {"evaluation"} == {"id", "time", "commit", "label"}
    assert not {"id", "time", "commit", "label"} & {field.name for field in fields(Evaluation)}
