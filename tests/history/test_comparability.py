"""What two evaluations have in common is found, and what makes numbers not comparable is said.

Edits since an earlier evaluation are found, query by query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl
import pytest

from rageval_spec.data.datasets import Fingerprint, Fingerprints
from rageval_spec.data.evaluation import Comparison, Evaluation
from rageval_spec.data.outcomes import BaselineChange, Overlap
from rageval_spec.history.comparability import (
    Comparability,
    Edits,
    describe_overlap,
    describe_unknown,
    find_comparability,
    find_edits,
    list_notes,
)
from tests.history.recorded import METRICS, PRINTS, PROMPTS, evaluate
from tests.sample_evaluation import make_evaluation


def find(now: Evaluation, earlier: Evaluation | None = None) -> Comparability:
    return find_comparability(now, earlier or evaluate(), "main")


def edit(**prints: Fingerprint) -> Comparability:
    """One that compares with other fingerprints of the named queries; a new query has none before."""
    now = {**PRINTS, **prints}
    return find(evaluate(prints=now, query_ids=[*now]))


def test_equal_evaluations_are_comparable() -> None:
    found = find(evaluate())
    assert found.overlaps == (Overlap("golden", "main", 4),)
    assert [*list_notes(found, dict.fromkeys(METRICS, ()))] == []
    assert describe_unknown(found, "main") == ""


def test_only_metrics_that_read_what_changed_are_not_comparable() -> None:
    found = edit(q0=Fingerprint("1", "9", "3"), q1=Fingerprint("1", "9", "9"))
    changes = {metric: found.list_changes(metric, "golden") for metric in METRICS}
    references = (BaselineChange("references", "the references of 2 queries changed"),)
    assert changes == {
        "ndcg@10": (BaselineChange("qrels", "the relevance judgements of 1 query changed"),),
        "token_f1": references,
        "context_recall": references,
        "faithfulness": (),
        "latency": (),
    }
    assert found.list_changes("token_f1", "other") == ()


def test_a_slice_is_not_touched_by_changes_outside_of_it() -> None:
    found = edit(q0=Fingerprint("1", "9", "3"))
    assert found.list_changes("token_f1", "golden", ["q1", "q2"]) == ()
    assert found.list_changes("token_f1", "golden", ["q0", "q2"]) == (
        BaselineChange("references", "the reference of 1 query changed"),
    )


def test_a_question_that_changed_is_left_out_and_its_references_do_not_matter() -> None:
    found = edit(q0=Fingerprint("9", "9", "9"))
    assert found.list_changes("token_f1", "golden") == ()
    values = pl.DataFrame({"dataset": ["golden", "golden", "other"], "query_id": ["q0", "q1", "q0"]})
    assert found.keep_same(values).rows() == [("golden", "q1"), ("other", "q0")]


def test_changes_are_put_on_comparisons() -> None:
    found = edit(q0=Fingerprint("1", "9", "3"))
    one = Comparison("golden", "token_f1", "v1", "main", 0.1, None, 0.5, 0.5, 4, 1, 0)
    [marked] = found.mark([one])
    assert not marked.is_comparable
    [accepted] = found.accept(["references"]).mark([one])
    assert accepted.is_comparable


@pytest.mark.parametrize(
    ("overlap", "told"),
    [
        (Overlap("d", "main", 40), ""),
        (Overlap("d", "main", 37, 2, 1), "compared with main on 37 of 40 queries: 2 changed, 1 is new"),
        (Overlap("d", "main", 40, removed=3), "compared with main on 40 of 40 queries: 3 were removed"),
        (Overlap("d", "main", 1, 1, 2, 1), "compared with main on 1 of 4 queries: 1 changed, 2 are new, 1 was removed"),
    ],
)
def test_the_queries_that_are_compared_are_counted(overlap: Overlap, told: str) -> None:
    assert describe_overlap(overlap) == told


def test_notes_say_what_changed_and_what_was_accepted() -> None:
    now = evaluate(
        prints={**PRINTS, "q0": Fingerprint("1", "9", "3"), "q1": Fingerprint("9", "2", "3")},
        prompts={**PROMPTS, "strict.verify": "zz"},
        digests={"golden": {"corpus": "c2", "nuggets": "n2"}},
    )
    accepted = {"token_f1": ["references"], "faithfulness": [], "context_recall": ["references"]}
    notes = [(note.level, note.code, note.message) for note in list_notes(find(now), accepted)]
    prompt = "the judge's prompt changed: strict.verify"
    assert notes == [
        ("warning", "other_queries", "compared with main on 3 of 4 queries: 1 changed"),
        ("note", "accepted_changes", "token_f1: compared with main although the reference of 1 query changed"),
        ("warning", "not_comparable", f"faithfulness: not comparable with main: {prompt}"),
        (
            "warning",
            "not_comparable",
            f"context_recall: not comparable with main: the reference of 1 query changed; {prompt}",
        ),
        (
            "warning",
            "other_corpus",
            "the corpus is not the one of main; differences can come from it as well as from the systems",
        ),
        (
            "warning",
            "other_nuggets",
            "the nuggets are not those of main; differences can come from them as well as from the systems",
        ),
    ]


def test_what_an_old_record_does_not_say_is_not_a_change_and_said_once() -> None:
    old = evaluate(spec={}, load_fingerprints=Fingerprints, digests={})
    found = find(evaluate(prompts={}), old)
    assert [found.list_changes(metric, "golden") for metric in METRICS] == [()] * len(METRICS)
    [note] = list_notes(found, dict.fromkeys(METRICS, ()))
    assert (note.level, note.code) == ("note", "unknown_changes")
    assert note.message == (
        "the baseline main did not record its questions, references and relevance judgements, or its metrics, judges, "
        "prompts and models, so it is not known whether they changed; to have them checked, record it again with this "
        "version"
    )
    assert "questions" not in describe_unknown(find(evaluate(), evaluate(spec={})), "it")


def evaluate_edited(
    query_ids: Sequence[str], known: Mapping[str, Fingerprint] | None, dataset: str = "golden"
) -> Evaluation:
    values = pl.DataFrame({"dataset": dataset, "query_id": query_ids})
    fingerprints = Fingerprints({} if known is None else {dataset: known})
    return replace(make_evaluation(), values=values, load_fingerprints=lambda: fingerprints)


def compare(now: Mapping[str, Fingerprint], before: Mapping[str, Fingerprint]) -> Edits:
    return find_edits(evaluate_edited([*now], now), evaluate_edited([*before], before))["golden"]


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
    assert find_edits(evaluate_edited(["a"], None, "other"), evaluate_edited(["a"], {})) == {}


def test_without_fingerprints_queries_are_compared_by_id_and_edits_are_not_known() -> None:
    found = find_edits(evaluate_edited(["a", "b"], {"a": Fingerprint("1")}), evaluate_edited(["a"], None))
    assert found["golden"] == Edits(frozenset("a"), added=frozenset("b"), is_known=False)


def test_queries_that_were_not_asked_are_neither_new_nor_removed() -> None:
    known = {name: Fingerprint("1", "2", "3") for name in "abc"}
    part, whole = evaluate_edited(["a"], known), evaluate_edited(["a", "b", "c"], known)
    for edits in (find_edits(part, whole)["golden"], find_edits(whole, part)["golden"]):
        assert edits == Edits(frozenset("a"))
    fewer = evaluate_edited(["a"], {"a": known["a"]})
    assert find_edits(fewer, whole)["golden"].removed == {"b", "c"}
