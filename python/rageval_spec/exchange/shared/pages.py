"""Pages of rows, with an end also where a server never gives one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rageval_spec.endpoints.service import ServiceError, list_pages


def list_row_pages(fetch: Callable[[str | None], tuple[list[Any], str | None]], where: str) -> Iterator[list[Any]]:
    """The pages that `fetch` gives for a cursor, None for the first, with the next cursor. An empty page is the last.

    Raises:
        ServiceError: a cursor came twice, or a page came twice under another cursor: the pages would never end.
    """
    earlier: list[Any] = []
    for page in list_pages(fetch, where):
        if not page:
            return
        if page == earlier:
            raise ServiceError(f"{where}: gave the same rows twice in a row, so its pages would never end")
        yield page
        earlier = page
