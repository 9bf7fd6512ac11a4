"""Edits since an earlier evaluation are found, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.fingerprints import Fingerprint, Fingerprints
from rageval_spec.history.edits import Edits, find_edits
from tests.sample_evaluation import make_evaluation


def evaluate(query_ids: Sequence[str], known: Mapping[str, Fingerprint] | None, dataset: str = "golden") -> Evaluation:
    values = pl.DataFrame({"dataset": dataset, "query_id": query_ids})
    fingerprints = Fingerprints({} if known is None else {dataset: known})
    return replace(make_evaluation(), values=values, load_fingerprints=lambda: fingerprints)


def compare(now: Mapping[str, Fingerprint], before: Mapping[str, Fingerprint]) -> Edits:
    return find_edits(evaluate([*now], now), evaluate([*before], before))["golden"]


def test_edits_worked_by_hand() -> None:
    before = {
        "a": Fingerprint("1", "2", "3"),
        "b": Fingerprint("1", "2", "3"),
        "c": Fingerprint("1", "2", "3"),
        "d": Fingerprint("1", "2", "3"),
        "gone": Fingerprint("1", "2", "3"),
    }
    now = {
        "a": Fingerprint("1", "2", "3"),
        "b": Fingerprint("1", "9", "9"),
        "c": Fingerprint("1", "9", "3"),
        "d": Fingerprint("9", "9", "9"),
        "new": Fingerprint("7", "7", "7"),
    }
    assert compare(now, before) == Edits(
        same=frozenset("abc"),
        changed=frozenset("d"),
        added=frozenset({"new"}),
        removed=frozenset({"gone"}),
        references=frozenset("bc"),
        judgements=frozenset("b"),
    )


def test_nothing_was_edited() -> None:
    same = {"a": Fingerprint("1", None, "3")}
    assert compare(same, same) == Edits(frozenset("a"))


def test_a_reference_that_was_removed_or_added_was_edited() -> None:
    before = {"a": Fingerprint(reference="1"), "b": Fingerprint(reference="2"), "c": Fingerprint()}
    now = {"a": Fingerprint(reference="1"), "b": Fingerprint(), "c": Fingerprint(reference="3")}
    assert compare(now, before).references == {"b", "c"}


def test_a_part_that_one_evaluation_did_not_use_is_not_compared() -> None:
    unused = {"a": Fingerprint(None, None, "3")}
    assert compare({"a": Fingerprint("1", "2", "3")}, unused) == Edits(frozenset("a"))
    assert compare(unused, {"a": Fingerprint("1", "2", "3")}) == Edits(frozenset("a"))


def test_another_dataset_is_not_compared() -> None:
    assert find_edits(evaluate(["a"], None, "other"), evaluate(["a"], {})) == {}


def test_without_fingerprints_queries_are_compared_by_id_and_edits_are_not_known() -> None:
    found = find_edits(evaluate(["a", "b"], {"a": Fingerprint("1")}), evaluate(["a"], None))
    assert found["golden"] == Edits(frozenset("a"), added=frozenset("b"), is_known=False)


def test_queries_that_were_not_asked_are_neither_new_nor_removed() -> None:
    known = {name: Fingerprint("1", "2", "3") for name in "abc"}
    part, whole = evaluate(["a"], known), evaluate(["a", "b", "c"], known)
    for edits in (find_edits(part, whole)["golden"], find_edits(whole, part)["golden"]):
        assert edits == Edits(frozenset("a"))
    fewer = evaluate(["a"], {"a": known["a"]})
    assert find_edits(fewer, whole)["golden"].removed == {"b", "c"}
