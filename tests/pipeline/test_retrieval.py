"""A system's run is checked before it is used."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

from rageval_spec.data.note import Note
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.pipeline.retrieval import retrieve
from rageval_spec.plugin import Context, Retrieval, System, SystemNode

RUN = pl.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "score": [1.0], "rank": [1]})


class Giving(System[SystemNode]):
    """Returns the run that a test sets."""

    needs = frozenset({"queries"})
    given: pl.DataFrame | Retrieval

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame | Retrieval:
        """Return the run that the test has set."""
        return self.given


def give(given: pl.DataFrame | Retrieval, *, has_queries: bool = True) -> Retrieval:
    system = Giving(SystemNode(use="giving"), Context("giving"))
    system.given = given
    load = (lambda: pl.DataFrame({"query_id": ["q1"], "text": ["Why?"]})) if has_queries else None
    return retrieve(system, Collection("golden", load_queries=load), {})


def test_a_run_has_its_columns_and_no_others() -> None:
    assert give(RUN).run.columns == ["query_id", "doc_id", "score"]


def test_notes_and_reused_counts_are_passed_on() -> None:
    found = give(Retrieval(RUN, (Note("cut", "cut"),), 7))
    assert (found.notes, found.reused) == ((Note("cut", "cut"),), 7)


def test_missing_columns_are_named() -> None:
    with pytest.raises(DataError, match="the run has no column 'score'; it has query_id, doc_id, rank"):
        give(RUN.drop("score"))


def test_a_missing_part_of_the_dataset_is_named() -> None:
    with pytest.raises(DataError, match="giving needs queries, but the dataset 'golden' has none"):
        give(RUN, has_queries=False)


def test_sys_exit_in_a_system_is_its_error() -> None:
    class Leaving(Giving):
        def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame | Retrieval:
            raise SystemExit(0)

    system = Leaving(SystemNode(use="giving"), Context("giving"))
    queries = pl.DataFrame({"query_id": ["q1"], "text": ["Why?"]})
    with pytest.raises(RagevalError, match=r"called sys\.exit"):
        retrieve(system, Collection("golden", load_queries=lambda: queries), {})
