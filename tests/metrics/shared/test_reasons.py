from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.metrics.shared.reasons import is_blank


@pytest.mark.parametrize(
    ("texts", "blank"),
    [(None, True), ("", True), (" \n", True), ("a", False), ((), True), (("", " "), True), (("", "a"), False)],
)
def test_blank(texts: Any, blank: bool) -> None:
    assert is_blank(texts) is blank
