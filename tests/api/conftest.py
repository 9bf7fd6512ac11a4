from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.forms import ONE_WORD, qrels_text, run_text
from tests.rankings import Collection


@pytest.fixture
def files(tmp_path: Path) -> Collection:
    """The paths of the small collection's files."""
    (tmp_path / "qrels.txt").write_text(qrels_text(ONE_WORD.qrels), "utf-8")
    (tmp_path / "run.txt").write_text(run_text(ONE_WORD.run), "utf-8")
    return Collection(tmp_path / "qrels.txt", tmp_path / "run.txt")  # type: ignore[arg-type]
