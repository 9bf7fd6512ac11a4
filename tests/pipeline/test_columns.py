"""Samples give their question's other columns, which are read only if somebody looks at them."""

from __future__ import annotations

import polars as pl
import pytest

from rageval_spec.data.tables import Collection, answers_table
from rageval_spec.pipeline.answers import build_samples

QUERIES = pl.DataFrame({"query_id": ["q2", "q1"], "text": ["two", "one"]})
COLUMNS = pl.DataFrame({"query_id": ["q1", "q2"], "columns": ['{"level":"hard","tags":["a"]}', "{}"]})


def test_a_sample_has_the_columns_of_its_question() -> None:
    asked = Collection("golden", load_queries=lambda: QUERIES, load_columns=lambda: COLUMNS)
    two, one = build_samples(asked, answers_table([]))
    assert one.columns is not None and two.columns is not None
    assert dict(one.columns) == {"level": "hard", "tags": ["a"]}
    assert one.columns.get("missing") is None
    assert len(two.columns) == 0


def test_nothing_is_read_until_a_column_is_looked_up() -> None:
    reads = []

    def read() -> pl.DataFrame:
        reads.append(1)
        return COLUMNS

    samples = build_samples(Collection("golden", load_queries=lambda: QUERIES, load_columns=read), answers_table([]))
    assert reads == []
    for sample in samples:
        assert sample.columns is not None
        sample.columns.get("level")
    assert reads == [1]


@pytest.mark.parametrize("is_absent_in_the_file", [False, True])
def test_a_dataset_without_other_columns_has_nothing_to_look_up(is_absent_in_the_file: bool) -> None:
    asked = Collection(
        "golden", load_queries=lambda: QUERIES, load_columns=(lambda: None) if is_absent_in_the_file else None
    )
    for sample in build_samples(asked, answers_table([])):
        assert not sample.columns
