"""Ages and dates choose records."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rageval_spec.commands.history.choosing import choose, find_id, read_moment
from rageval_spec.errors import UsageError
from tests.history.records import make_id, make_marked_evaluation, make_record, opened


def test_a_date_is_in_utc_and_an_age_counts_from_now() -> None:
    assert choose(since="2026-03-01", limit=3).since == datetime(2026, 3, 1, tzinfo=UTC)
    assert read_moment("2026-03-01T12:00:00+02:00", "--since").utcoffset() == timedelta(hours=2)
    before = datetime.now(UTC) - timedelta(days=90)
    assert before <= read_moment("90d", "--since") <= datetime.now(UTC) - timedelta(days=90)
    assert choose().since is None


@pytest.mark.parametrize("text", ["", "90", "yesterday", "9" * 40 + "d"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"--since .*is neither an age nor a date; write 90d"):
        read_moment(text, "--since")


@pytest.mark.parametrize("name", ["0002", "main", "previous", "branch:topic", "commit:cccccccc"])
def test_a_record_is_named_by_what_gates_take_too(tmp_path: Path, name: str) -> None:
    topic = make_record(2, replace(make_marked_evaluation(), gates=()), "main", branch="topic")
    with opened(tmp_path, make_record(1), topic) as history:
        assert find_id(history, name) == make_id(2)
        with pytest.raises(UsageError, match="no record 'branch:other'"):
            find_id(history, "branch:other")
