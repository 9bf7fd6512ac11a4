from __future__ import annotations

from collections import Counter

import pytest

from rageval_spec import registry
from rageval_spec.plugin import Context, Report, ReportNode


def test_reports_write_to_different_files_or_to_the_terminal() -> None:
    files = Counter(registry.load("reports", word).filename for word in registry.words("reports"))
    assert all(count == 1 for name, count in files.items() if name is not None)
    assert registry.load("reports", "terminal").filename is None


def test_a_report_must_implement_render() -> None:
    with pytest.raises(TypeError, match="render"):
        Report(ReportNode(use="none"), Context("report"))  # type: ignore[abstract]
