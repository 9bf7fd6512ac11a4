"""The page of a trend is written whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.commands.history.trend import draw
from rageval_spec.errors import RagevalError
from rageval_spec.history.database import Chosen
from rageval_spec.history.trends import Wanted
from tests.history.records import make_record, opened


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with opened(tmp_path, make_record(1)) as history, pytest.raises(RagevalError, match="could not be written"):
        draw(history, Wanted("map"), Chosen(), tmp_path / "file" / "trend.html")
