"""Designs of datasets: lookups by question, and their form in files.

Fingerprints change when the data that a query was evaluated with change, and only then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.datasets import (
    DatasetOrigin,
    Design,
    DesignSummary,
    EvaluatedQueries,
    Fingerprint,
    Fingerprints,
    dump_designs,
    parse_designs,
    take_fingerprints,
)
from rageval_spec.data.tables import Collection


def test_an_origin_is_told_in_one_line() -> None:
    documents = {"a.md": "v1", "b.md": "v2", "c.md": "v1", "d.md": "v9"}
    origin = DatasetOrigin("2.1", "2026-05-01", "by hand", "true", 180, 1200, documents, "0")
    assert origin.describe() == (
        "version 2.1; created 2026-05-01; made: by hand; audited; 180 of 1,200 questions reviewed by people; "
        "source documents a.md v1, b.md v2, c.md v1 and others"
    )
    assert (
        DatasetOrigin(audited="2026-05-02", reviewed=3).describe()
        == "audited 2026-05-02; 3 questions reviewed by people"
    )
    assert DatasetOrigin().describe() == ""


SUMMARY = DesignSummary(3, cluster="source", clusters=2, weights="production.csv")
DESIGN = Design({"a": 0, "b": 0}, {"a": 0.25, "b": 0.75}, {"b": 1}, SUMMARY)


def test_a_question_without_a_cluster_has_its_own() -> None:
    assert DESIGN.list_clusters(["a", "b", "c"]) == [0, 0, "c"]
    assert Design().list_clusters(["a"]) is None


def test_a_question_without_a_weight_does_not_count() -> None:
    assert DESIGN.list_weights(["b", "c"]) == [0.75, 0.0]
    assert Design().list_weights(["b"]) is None


@pytest.mark.parametrize(
    ("summary", "source"),
    [(SUMMARY, "production.csv"), (DesignSummary(1, weight="traffic"), "traffic"), (DesignSummary(1, cluster="x"), "")],
)
def test_a_summary_says_where_weights_come_from(summary: DesignSummary, source: str) -> None:
    assert (summary.is_weighted, summary.source) == (bool(source), source)


def test_designs_are_read_as_they_were_written() -> None:
    designs = {"golden": DESIGN, "wiki": Design({"x": 4}, summary=DesignSummary(1, cluster="page"))}
    text = dump_designs(designs)
    assert parse_designs(text, {name: one.summary for name, one in designs.items()}) == designs


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{", '{"golden": 3}', '{"golden": [{}, null]}', '{"other": [{}, null, {}]}']
)
def test_other_texts_give_no_designs(text: str | None) -> None:
    assert parse_designs(text, {"golden": SUMMARY}) == {}


Judgement = tuple[str, str, int]
JUDGEMENTS: list[Judgement] = [("q1", "d1", 2), ("q1", "d2", 1), ("q2", "d1", 1)]


def collection(judgements: Sequence[Judgement] = JUDGEMENTS, text: str = "red?", gold: str = "apple") -> Collection:
    qrels = pl.DataFrame(
        judgements, schema={"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row"
    )
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "text": [text, "green?"]})
    references = pl.DataFrame({"query_id": ["q1"], "references": [[gold]], "answerable": [True]})
    return Collection(
        "golden", load_qrels=lambda: qrels, load_queries=lambda: queries, load_references=lambda: references
    )


def take(found: Collection, **changes: Any) -> dict[str, Fingerprint]:
    return dict(take_fingerprints(EvaluatedQueries(found, pl.Series(["q2", "q1"]), **changes)))


def test_a_fingerprint_worked_by_hand() -> None:
    found = take(collection())
    assert list(found) == ["q1", "q2"]
    assert found["q1"].question == hashlib.blake2b(b"red?", digest_size=6).hexdigest()
    assert found["q1"].judgements == hashlib.blake2b(b"d1\t2\nd2\t1", digest_size=6).hexdigest()
    assert found["q2"].reference is None


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"text": "red!"}, "question"),
        ({"gold": "pear"}, "reference"),
        ({"judgements": [("q1", "d1", 1), *JUDGEMENTS[1:]]}, "judgements"),
        ({"judgements": [("q1", "d3", 2), *JUDGEMENTS[1:]]}, "judgements"),
        ({"judgements": JUDGEMENTS[1:]}, "judgements"),
    ],
)
def test_an_edit_changes_one_part_of_one_query(changes: dict[str, Any], part: str) -> None:
    before, after = take(collection()), take(collection(**changes))
    assert before["q2"] == after["q2"]
    differing = [name for name in Fingerprint._fields if getattr(before["q1"], name) != getattr(after["q1"], name)]
    assert differing == [part]


@given(st.permutations(JUDGEMENTS))
def test_the_order_of_judgements_does_not_matter(judgements: list[Judgement]) -> None:
    assert take(collection(judgements)) == take(collection())


def test_unused_parts_are_not_read() -> None:
    def fail() -> pl.DataFrame:
        raise AssertionError("read")

    qrels = collection().qrels
    found = Collection("golden", load_qrels=lambda: qrels, load_queries=fail, load_references=fail)
    assert take(found, reads_questions=False, reads_references=False)["q1"].question is None


@given(
    st.dictionaries(
        st.text(max_size=4),
        st.dictionaries(st.text(max_size=4), st.builds(Fingerprint, *[st.none() | st.text("0af", max_size=3)] * 3)),
    )
)
def test_parse_reads_what_dump_writes(datasets: dict[str, dict[str, Fingerprint]]) -> None:
    assert Fingerprints.parse(Fingerprints(datasets).dump()) == Fingerprints(datasets)


@pytest.mark.parametrize("text", [None, "", "{", "[1]", '{"golden": 3}', '{"golden": {"q": [1, 2, 3, 4]}}'])
def test_other_texts_give_no_fingerprints(text: str | None) -> None:
    assert Fingerprints.parse(text) == Fingerprints()
