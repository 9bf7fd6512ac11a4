"""The other columns of questions, read when somebody first looks at one: most evaluations never do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection


class ColumnsOf:
    """The other columns of a dataset's questions."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def of(self, query_id: str) -> Mapping[str, Any]:
        """The columns of one question, as a mapping that finds and parses them at each look-up."""
        return _Columns(self, query_id)

    def parse(self, query_id: str) -> dict[str, Any]:
        """The columns of one question; {} if it has none."""
        texts, places = self._texts
        place = places.get(query_id)
        found: dict[str, Any] = {} if place is None else json.loads(texts[place])
        return found

    @cached_property
    def _texts(self) -> tuple[pl.Series, Mapping[str, int]]:
        """All questions' columns as JSON, and the place of each question's."""
        import polars as pl

        table = self._collection.columns
        if table is None:
            return pl.Series([], dtype=pl.String), {}
        return table["columns"], {query_id: place for place, query_id in enumerate(table["query_id"])}


class _Columns(Mapping[str, Any]):
    __slots__ = ("_all", "_query_id")

    def __init__(self, every: ColumnsOf, query_id: str) -> None:
        self._all = every
        self._query_id = query_id

    def __getitem__(self, name: str) -> Any:
        return self._all.parse(self._query_id)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all.parse(self._query_id))

    def __len__(self) -> int:
        return len(self._all.parse(self._query_id))

    def __repr__(self) -> str:
        return repr(self._all.parse(self._query_id))
