"""Reads Langfuse's API: rows of observations, scores and dataset items, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rageval_spec.endpoints.service import Service, ServiceError, quote_part
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.pages import list_row_pages

FIELDS = "core,basic,io,metadata,model,usage,metrics,trace_context"
"""The groups of an observation's fields that are read."""
_ABSENT = frozenset({404, 405, 501})
"""Statuses of a path that an older Langfuse does not have."""
_PAGE, _SMALL_PAGE = 1000, 100
Page = tuple[list[Any], str | None]


class Api:
    """The reading side of one project; falls back to older paths where the newer ones are absent."""

    def __init__(self, service: Service, where: str) -> None:
        """Ask nothing yet. `where` begins messages about replies that make no sense."""
        self._service = service
        self._where = where
        self.is_old = False

    def observations(self, window: Mapping[str, str], filters: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of observations that began in the window; of an older Langfuse, pages of its traces as well.

        Args:
            window: `from` and `to`, ISO 8601 times; both may be absent.
            filters: the API's own, such as `environment`.

        Raises:
            ServiceError: Langfuse does not answer, or its answer has no rows.
        """
        asked = {"fields": FIELDS, **filters, **_name_window(window, "StartTime")}
        try:
            yield from self._by_cursor("/v2/observations", asked, _PAGE)
        except ServiceError as error:
            if self.is_old or error.status not in _ABSENT:
                raise
            self.is_old = True
            yield from self._by_number("/traces", {**filters, **_name_window(window, "Timestamp")})
            yield from self._by_number("/observations", {**filters, **_name_window(window, "StartTime")})

    def scores(self, window: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of scores from the beginning of the window on: people often judge later.

        Raises:
            ServiceError: Langfuse does not answer, or its answer has no rows.
        """
        asked = {"fromTimestamp": window["from"]} if "from" in window else {}
        try:
            yield from self._by_cursor("/v3/scores", {"fields": "details,subject,annotation", **asked}, _SMALL_PAGE)
        except ServiceError as error:
            if error.status not in _ABSENT:
                raise
            yield from self._by_number("/v2/scores", asked)

    def dataset_items(self, dataset: str) -> Iterator[list[Any]]:
        """Pages of a dataset's items.

        Raises:
            DataError: there is no such dataset.
            ServiceError: Langfuse does not answer, or its answer has no rows.
        """
        self.check_dataset(dataset)
        yield from self._by_number("/dataset-items", {"datasetName": dataset})

    def check_dataset(self, dataset: str) -> Mapping[str, Any]:
        """The dataset of a name.

        Raises:
            DataError: there is no such dataset.
            ServiceError: Langfuse does not answer.
        """
        try:
            found = self._service.get(f"/v2/datasets/{quote_part(dataset)}")
        except ServiceError as error:
            if error.status == 404:
                raise DataError(f"{self._where}: there is no dataset '{dataset}' in this project") from None
            raise
        if not isinstance(found, Mapping):
            raise ServiceError(f"{self._where}: /v2/datasets: the reply is not a dataset")
        return found

    def _by_cursor(self, path: str, asked: Mapping[str, str], size: int) -> Iterator[list[Any]]:
        def fetch(cursor: str | None) -> Page:
            more = {} if cursor is None else {"cursor": cursor}
            content = self._service.get(path, [*asked.items(), ("limit", str(size)), *more.items()])
            rows, meta = self._read(content, path)
            following = meta.get("cursor", meta.get("nextCursor"))
            return rows, following if isinstance(following, str) else None

        yield from list_row_pages(fetch, f"{self._where}: {path}")

    def _by_number(self, path: str, asked: Mapping[str, str]) -> Iterator[list[Any]]:
        page = 1
        while True:
            numbers = [("page", str(page)), ("limit", str(_SMALL_PAGE))]
            rows, meta = self._read(self._service.get(path, [*asked.items(), *numbers]), path)
            yield rows
            total = meta.get("totalPages")
            # The number of the page guards against a server that gives the same page for ever.
            if not rows or not isinstance(total, int) or page >= total or meta.get("page", page) != page:
                return
            page += 1

    def _read(self, content: Any, path: str) -> tuple[list[Any], Mapping[str, Any]]:
        rows = content.get("data") if isinstance(content, Mapping) else None
        meta = content.get("meta") if isinstance(content, Mapping) else None
        if not isinstance(rows, list) or not isinstance(meta, Mapping):
            raise ServiceError(f"{self._where}: {path}: the reply has no 'data' and 'meta', as Langfuse's replies do")
        return rows, meta


def _name_window(window: Mapping[str, str], what: str) -> dict[str, str]:
    return {f"{end}{what}": window[end] for end in ("from", "to") if end in window}
