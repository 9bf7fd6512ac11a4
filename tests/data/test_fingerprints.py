"""Fingerprints change when the data that a query was evaluated with change, and only then."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.fingerprints import Evaluated, Fingerprint, Fingerprints, take_fingerprints
from rageval_spec.data.tables import Collection

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
    return take_fingerprints(Evaluated(found, pl.Series(["q2", "q1"]), **changes))


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
