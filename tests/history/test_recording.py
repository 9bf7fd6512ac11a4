"""A record holds the evaluation, and gives it back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.errors import DataError
from rageval_spec.history.recording import Circumstances, build_record, load_stored
from tests.history.records import make_id, make_marked_evaluation, make_record, opened
from tests.sample_evaluation import make_hostile_evaluation


@pytest.mark.parametrize("evaluation", [make_marked_evaluation(), make_hostile_evaluation()])
def test_a_record_becomes_the_evaluation_again(tmp_path: Path, evaluation: object) -> None:
    assert isinstance(evaluation, type(make_marked_evaluation()))
    with opened(tmp_path, make_record(1, evaluation, "main")) as history:
        found = load_stored(history, make_id(1))
    assert (found.id, found.label, found.commit) == (make_id(1), "main", "c" * 40)
    assert_frame_equal(found.evaluation.values, evaluation.values)
    assert found.evaluation.fingerprints == evaluation.fingerprints
    assert replace(found.evaluation, values=None) == replace(evaluation, values=None)  # type: ignore[arg-type]


def test_the_details_of_judges_stay_in_the_results_folder(tmp_path: Path) -> None:
    evaluation = make_marked_evaluation()
    detailed = replace(evaluation, values=evaluation.values.with_columns(details=pl.lit("long")))
    with opened(tmp_path, make_record(1, detailed)) as history:
        assert_frame_equal(load_stored(history, make_id(1)).evaluation.values, evaluation.values)


def test_what_ci_tells_counts_where_git_tells_nothing() -> None:
    ci = {"system": "github", "commit": "abc", "branch": "topic"}
    row = build_record(make_marked_evaluation(), Circumstances("1", datetime.now(UTC), ci=ci)).row
    assert (row["git_commit"], row["branch"], row["is_dirty"]) == ("abc", "topic", None)


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    record = make_record(1)
    broken = replace(record, contents={**record.contents, "values.parquet": b"PAR1"})
    with opened(tmp_path, broken) as history, pytest.raises(DataError, match="is damaged"):
        load_stored(history, make_id(1))
