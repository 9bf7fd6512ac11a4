from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import polars as pl
from polars.testing import assert_frame_equal

from rageval_spec.data.tables import SAMPLES, empty_samples
from rageval_spec.plugin import Context
from rageval_spec.reports.samples import SamplesNode, SamplesReport
from tests.sample_evaluation import make_evaluation


def report() -> SamplesReport:
    return SamplesReport(SamplesNode(use="samples"), Context("samples"))


def test_samples_survive_writing_and_reading() -> None:
    row = {"dataset": "golden", "system": "bot", "query_id": "q1", "question": "Why?", "contexts": ["a", "b"]}
    samples = pl.concat([empty_samples(), pl.DataFrame([row])], how="diagonal_relaxed")
    content = report().render(replace(make_evaluation(), load_samples=lambda: samples))
    assert_frame_equal(pl.read_parquet(BytesIO(content)), samples)


def test_without_answers_the_columns_are_still_there() -> None:
    table = pl.read_parquet(BytesIO(report().render(make_evaluation())))
    assert (table.height, table.columns) == (0, list(SAMPLES))
