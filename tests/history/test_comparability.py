"""What two evaluations have in common is found, and what makes numbers not comparable is said."""

from __future__ import annotations

import polars as pl
import pytest

from rageval_spec.data.comparability import Change, Overlap
from rageval_spec.data.evaluation import Comparison, Evaluation
from rageval_spec.data.fingerprints import Fingerprint, Fingerprints
from rageval_spec.history.comparability import (
    Comparability,
    describe_overlap,
    describe_unknown,
    find_comparability,
    list_notes,
)
from tests.history.recorded import METRICS, PRINTS, PROMPTS, evaluate


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
    references = (Change("references", "the references of 2 queries changed"),)
    assert changes == {
        "ndcg@10": (Change("qrels", "the relevance judgements of 1 query changed"),),
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
        Change("references", "the reference of 1 query changed"),
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
        digests={"golden": {"corpus": "c2"}},
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
