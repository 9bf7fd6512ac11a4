from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.labels.csv import CsvLabels, CsvLabelsNode
from rageval_spec.plugin import Context


@pytest.mark.parametrize(
    ("name", "separator", "used"), [("l.csv", None, ","), ("l.tsv", None, "\t"), ("l.csv", ";", ";")]
)
def test_fields_are_separated_as_the_name_or_the_spec_says(
    tmp_path: Path, name: str, separator: str | None, used: str
) -> None:
    (tmp_path / name).write_text(f"id{used}value\nq1{used}yes\n")
    plugin = CsvLabels(CsvLabelsNode(use="csv", path=name, separator=separator), Context("people", tmp_path))
    assert [(label.query_id, label.value) for label in plugin.read()] == [("q1", 1.0)]
