"""Edits since an earlier evaluation are found and reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.fingerprints import Fingerprint, Fingerprints
from rageval_spec.history.edits import Edits, find_edits, list_edit_notes
from tests.sample_evaluation import make_evaluation


def values(*query_ids: str, dataset: str = "golden") -> pl.DataFrame:
    return pl.DataFrame({"dataset": dataset, "query_id": query_ids})


def earlier(query_ids: Sequence[str], known: Mapping[str, Fingerprint] | None) -> Evaluation:
    fingerprints = Fingerprints({} if known is None else {"golden": known})
    return replace(make_evaluation(), values=values(*query_ids), load_fingerprints=lambda: fingerprints)


def compare(now: Mapping[str, Fingerprint], before: Mapping[str, Fingerprint]) -> Edits:
    return find_edits(values(*now), Fingerprints({"golden": now}), earlier([*before], before))["golden"]


def test_edits_worked_by_hand() -> None:
    before = {
        "a": Fingerprint("1", "2", "3"),
        "b": Fingerprint("1", "2", "3"),
        "c": Fingerprint("1", "2", "3"),
        "gone": Fingerprint("1", "2", "3"),
    }
    now = {
        "a": Fingerprint("1", "2", "3"),
        "b": Fingerprint("1", "9", "9"),
        "c": Fingerprint("1", "9", "3"),
        "new": Fingerprint("7", "7", "7"),
        "newer": Fingerprint("7", "7", "7"),
    }
    found = compare(now, before)
    assert found == Edits(shared=3, edited={"reference": 2, "judgements": 1}, added=2, removed=1)
    assert str(found) == "2 references edited, 1 query's relevance judgements edited, 2 queries added, 1 query removed"
    assert found


def test_nothing_was_edited() -> None:
    same = {"a": Fingerprint("1", None, "3")}
    found = compare(same, same)
    assert not found
    assert [*list_edit_notes("main", {"golden": found})] == []


def test_a_reference_that_was_removed_or_added_was_edited() -> None:
    before = {"a": Fingerprint(reference="1"), "b": Fingerprint(reference="2"), "c": Fingerprint()}
    now = {"a": Fingerprint(reference="1"), "b": Fingerprint(), "c": Fingerprint(reference="3")}
    assert compare(now, before).edited == {"reference": 2}


def test_a_part_that_one_evaluation_did_not_use_is_not_compared() -> None:
    assert not compare({"a": Fingerprint("1", "2", "3")}, {"a": Fingerprint(None, None, "3")})
    assert not compare({"a": Fingerprint(None, None, "3")}, {"a": Fingerprint("1", "2", "3")})


def test_another_dataset_is_not_compared() -> None:
    assert find_edits(values("a", dataset="other"), Fingerprints(), earlier(["a"], {})) == {}


def test_without_fingerprints_added_queries_are_reported_and_edits_are_said_to_be_unknown() -> None:
    found = find_edits(values("a", "b"), Fingerprints({"golden": {"a": Fingerprint("1")}}), earlier(["a"], None))
    assert str(found["golden"]) == "1 query added"
    warning, note = list_edit_notes("main", found)
    assert (warning.level, warning.code, warning.dataset) == ("warning", "edited_data", "golden")
    assert (note.level, note.code) == ("note", "unknown_edits")
    assert "save the baseline again" in note.message
