from __future__ import annotations

import io

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.plugin import Context
from rageval_spec.reports.parquet import ParquetReport, ParquetReportNode
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation


@pytest.mark.parametrize("evaluation", [make_evaluation(), make_hostile_evaluation()])
def test_values_survive_and_equal_values_give_equal_bytes(evaluation: Evaluation) -> None:
    report = ParquetReport(ParquetReportNode(use="parquet"), Context("parquet"))
    content = report.render(evaluation)
    assert_frame_equal(pl.read_parquet(io.BytesIO(content)), evaluation.values, check_exact=True)
    assert report.render(evaluation) == content
