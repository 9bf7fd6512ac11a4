from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec import kernels
from rageval_spec.errors import DataError


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("q1 0 d1 1\nq2 0 d1 1\nq1 0 d1 0\n", "qrels:3: document 'd1' is judged twice for query 'q1'"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t1\n", "qrels:3: document 'd1' is judged twice"),
        ("q1 0 d1 99999999999\n", "qrels:1: the relevance '99999999999' does not fit in 32 bits"),
        ("q1 0 d1 0.5\n", "qrels:1: the relevance '0.5' is not a whole number"),
    ],
)
def test_a_bad_judgement_is_named_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        kernels.read_qrels(path)
