from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.pipeline.self_retrieval import drops_self, self_retrieval_notes
from rageval_spec.spec.nodes import RankingNode

RUN = pl.DataFrame({"query_id": ["1", "1", "2"], "doc_id": ["1", "7", "2"], "score": [2.0, 1.0, 1.0]})
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
    assert drops_self(ranking("auto"), collection(corpus), RUN) is expected


@pytest.mark.parametrize(
    ("setting", "corpus", "drops", "expected"),
    [("drop", OTHER, False, True), ("keep", SAME, True, False), ("auto", SAME, False, False)],
)
def test_explicit_settings_and_other_layouts_ignore_the_texts(
    setting: str, corpus: Any, drops: bool, expected: bool
) -> None:
    assert drops_self(ranking(setting), collection(corpus, drops), RUN) is expected


def test_the_corpus_is_read_only_where_an_id_is_the_querys() -> None:
    def fail() -> pl.DataFrame:
        raise AssertionError("the corpus was read")

    unread = Collection("tiny", load_queries=fail, load_corpus=fail, drops_self_retrieval=True)
    assert not drops_self(ranking("auto"), unread, RUN.filter(pl.col("doc_id") == "7"))


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
