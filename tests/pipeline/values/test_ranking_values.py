"""A system's run is checked before it is used.

Tables of values: a query without a valid row gets an error, never a 0 or NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.pipeline.values import ranking_values as values
from rageval_spec.pipeline.values.ranking_values import drops_self, retrieve, self_retrieval_notes
from rageval_spec.plugin import Context, Retrieval, System, SystemNode
from rageval_spec.spec.blocks.spec_node import RankingNode

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


QUERIES = pl.DataFrame({"query_id": ["a", "b", "c", "d", "e"]})


def test_a_metrics_table_never_turns_into_nan_or_a_silent_0() -> None:
    table = pl.DataFrame(
        {
            "query_id": ["e", "d", "c", "b"],
            "value": [0.5, float("nan"), None, 7.0],
            "status": ["scored", "scored", "scored", "unscorable"],
            "reason": [None, None, None, "no reference"],
        }
    )
    expected = pl.DataFrame(
        {
            "query_id": ["a", "b", "c", "d", "e"],
            "value": [None, None, None, None, 0.5],
            "status": ["error", "unscorable", "error", "error", "scored"],
            "reason": [
                "the metric returned no value", "no reference", "the metric returned 'scored' without a value",
                "the value is not a finite number", None,
            ],
        }
    )  # fmt: skip
    assert_frame_equal(values.check_values(table, QUERIES), expected)


def test_an_unknown_status_is_an_error() -> None:
    table = pl.DataFrame({"query_id": ["a"], "value": [1], "status": ["fine"], "reason": [None]})
    row = values.check_values(table, QUERIES).row(0)
    reason = "the metric returned the unknown status 'fine'; the statuses are scored, unscorable and error"
    assert row == ("a", None, "error", reason)


def test_a_metrics_table_without_a_column_or_with_two_values_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'status', 'reason'"):
        values.check_values(pl.DataFrame({"query_id": ["a"], "value": [1.0]}), QUERIES)
    twice = pl.DataFrame({"query_id": ["a", "a"], "value": [1.0, 2.0], "status": "scored", "reason": "none"})
    with pytest.raises(DataError, match="several values"):
        values.check_values(twice, QUERIES)


def test_labelled_tables_have_all_columns_in_their_order() -> None:
    labelled = values.label(values.error_values(QUERIES, "gone"), "golden", "bot", "rr")
    assert labelled.columns == list(values.COLUMNS)
    assert labelled.row(0, named=True)["reason"] == "gone"
    assert set(labelled["dataset"]) == {"golden"}
    assert labelled["tie_low"].dtype == pl.Float64


def test_concatenating_no_tables_gives_a_table_without_rows() -> None:
    empty = values.concatenate([])
    assert (empty.height, empty.columns) == (0, list(values.COLUMNS))
    labelled = values.label(values.error_values(QUERIES, "gone"), "golden", "bot", "rr")
    assert_frame_equal(values.concatenate([labelled]), labelled)


SELF_RETRIEVING_RUN = pl.DataFrame({"query_id": ["1", "1", "2"], "doc_id": ["1", "7", "2"], "score": [2.0, 1.0, 1.0]})
ARGUMENTS = {"1": "Cats sleep  most of the day", "2": "dogs bark"}


def collection(corpus: Mapping[str, tuple[str, str]] | None, drops: bool = True) -> Collection:
    queries = pl.DataFrame({"query_id": list(ARGUMENTS), "text": list(ARGUMENTS.values())})
    rows = [(key, *parts) for key, parts in (corpus or {}).items()]
    documents = pl.DataFrame(rows, schema=dict.fromkeys(("doc_id", "title", "text"), pl.String), orient="row")
    return Collection(
        "tiny",
        load_queries=lambda: queries,
        load_corpus=None if corpus is None else lambda: documents,
        drops_self_retrieval=drops,
    )


def ranking(setting: str) -> RankingNode:
    return RankingNode.model_validate({"self_retrieval": setting})


SAME = {"1": ("Cats", "cats sleep most of the day and night"), "2": ("", "Dogs bark"), "7": ("", "x")}
OTHER = {"1": ("Wings", "a wing in a slipstream"), "2": ("Heat", "heat transfer"), "7": ("", "x")}


@pytest.mark.parametrize(
    ("corpus", "expected"),
    [
        pytest.param(SAME, True, id="queries that are documents, as in ArguAna"),
        pytest.param(OTHER, False, id="ids that are unrelated numbers, as in Cranfield"),
        pytest.param({**SAME, "1": OTHER["1"]}, True, id="half of the texts agree"),
        pytest.param({"1": ("", ""), "2": ("", "")}, False, id="empty documents"),
        pytest.param(None, True, id="no corpus: as BEIR"),
        pytest.param({"7": ("", "x")}, True, id="the documents are not in the corpus: as BEIR"),
    ],
)
def test_auto_compares_the_texts(corpus: Mapping[str, tuple[str, str]] | None, expected: bool) -> None:
    assert drops_self(ranking("auto"), collection(corpus), SELF_RETRIEVING_RUN) is expected


@pytest.mark.parametrize(
    ("setting", "corpus", "drops", "expected"),
    [("drop", OTHER, False, True), ("keep", SAME, True, False), ("auto", SAME, False, False)],
)
def test_explicit_settings_and_other_layouts_ignore_the_texts(
    setting: str, corpus: Any, drops: bool, expected: bool
) -> None:
    assert drops_self(ranking(setting), collection(corpus, drops), SELF_RETRIEVING_RUN) is expected


def test_the_corpus_is_read_only_where_an_id_is_the_querys() -> None:
    def fail() -> pl.DataFrame:
        raise AssertionError("the corpus was read")

    unread = Collection("tiny", load_queries=fail, load_corpus=fail, drops_self_retrieval=True)
    assert not drops_self(ranking("auto"), unread, SELF_RETRIEVING_RUN.filter(pl.col("doc_id") == "7"))


@pytest.mark.parametrize(
    ("corpus", "count", "message"),
    [
        (
            SAME,
            2,
            "2 retrieved documents with the id of the query were dropped, as BEIR does; "
            "set 'ranking.self_retrieval: keep' to keep them",
        ),
        (
            OTHER,
            1,
            "documents with the id of the query are kept, because their texts differ from the query's; "
            "set 'ranking.self_retrieval: drop' to drop them",
        ),
    ],
)
def test_a_note_says_what_happened_and_how_to_change_it(corpus: Any, count: int, message: str) -> None:
    (note,) = self_retrieval_notes(ranking("auto"), collection(corpus), "bm25", count)
    assert note.message == message


def test_nothing_found_gives_no_note() -> None:
    assert self_retrieval_notes(ranking("auto"), collection(SAME), "bm25", 0) == []


def test_documents_that_are_kept_are_told_of_once_for_all_systems() -> None:
    notes = [self_retrieval_notes(ranking("auto"), collection(OTHER), *of) for of in (("bm25", 3), ("dense", 1))]
    assert notes[0] == notes[1]
