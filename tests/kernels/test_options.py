from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from rageval_spec import kernels
from rageval_spec.errors import UsageError
from rageval_spec.kernels import RankingOptions

QRELS = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": [1]})
RUN = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [16_777_217.0, 16_777_216.0]})


@pytest.mark.parametrize(
    ("ties", "value"), [("trec_eval", 0.5), ("trec_eval_2023", 1.0), ("float64", 1.0), ("input", 1.0), ("ranx", 1.0)]
)
def test_each_rule_reads_scores_in_its_precision(ties: Any, value: float) -> None:
    """16777217 has no exact float32; as float32 it ties with 16777216, and the higher doc_id comes first."""
    assert kernels.evaluate_ranking(QRELS, RUN, ["rr"], RankingOptions(ties=ties)).values.tolist() == [[value]]


def test_the_tie_range_uses_the_same_precision() -> None:
    options = RankingOptions(ties="trec_eval_2023", tie_range=True)
    ranked = kernels.evaluate_ranking(QRELS, RUN, ["rr"], options)
    assert ranked.low is not None and ranked.high is not None
    assert (ranked.low[0, 0], ranked.high[0, 0]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("setting", "value", "error", "message"),
    [
        ("ties", "fair", UsageError, "ties 'fair' is not known; write one of trec_eval, trec_eval_2023, float64, "),
        ("missing", 0, UsageError, "missing 0 is not known; write one of zero, skip"),
        ("duplicates", "last", UsageError, "duplicates 'last' is not known; write one of error, first"),
        ("depth", 2.5, UsageError, "depth 2.5 is not a whole number"),
        ("depth", 0, ValueError, "depth must be .*, not 0"),
        ("relevance_level", "1", UsageError, "relevance_level '1' is not a whole number"),
        ("relevance_level", 2**31, ValueError, "relevance_level must be between 1 and 2147483647, not 2147483648"),
    ],
)
def test_a_wrong_setting_is_refused(setting: str, value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RankingOptions(**{setting: value})  # type: ignore[arg-type]


def test_whole_numbers_of_numpy_are_accepted_as_settings() -> None:
    options = RankingOptions(depth=np.int64(1), relevance_level=np.uint8(1))  # type: ignore[arg-type]
    assert kernels.evaluate_ranking(QRELS, RUN, ["rr"], options).values.tolist() == [[0.0]]
