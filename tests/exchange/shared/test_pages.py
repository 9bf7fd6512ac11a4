from __future__ import annotations

from itertools import count

import pytest

from rageval_spec.endpoints.service import ServiceError
from rageval_spec.exchange.shared.pages import list_row_pages

PAGES = {None: (["a"], "1"), "1": (["b"], "2"), "2": ([], "3")}


def test_an_empty_page_is_the_last() -> None:
    assert list(list_row_pages(lambda cursor: PAGES[cursor], "tool")) == [["a"], ["b"]]


def test_a_cursor_that_comes_again_is_an_error() -> None:
    numbers = count()
    with pytest.raises(ServiceError, match="tool: gave the page 'x' twice"):
        list(list_row_pages(lambda cursor: ([next(numbers)], "x"), "tool"))


def test_rows_that_come_again_are_an_error() -> None:
    with pytest.raises(ServiceError, match="tool: gave the same rows twice in a row"):
        list(list_row_pages(lambda cursor: (["a"], f"{cursor}x"), "tool"))
