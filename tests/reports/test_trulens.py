from __future__ import annotations

from pathlib import Path

from rageval_spec.plugin import Context
from rageval_spec.reports.trulens import TrulensReport, TrulensReportNode
from tests.exchange.traced_evaluation import evaluate
from tests.exchange.trulens.database import make_database
from tests.exchange.trulens.reading import read


def test_the_report_says_what_it_wrote_and_where_the_copy_is(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    evaluation = evaluate(read(path))
    report = TrulensReport(
        TrulensReportNode(use="trulens", database="t.sqlite"), Context("trulens", tmp_path, output=tmp_path)
    )
    assert report.render(evaluation).decode() == (
        f"trulens: sent 2 feedback rows to {path}\n{path}.before-rageval is the database as it was before\n"
    )
