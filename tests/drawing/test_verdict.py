"""Notes in reports: warnings come first, and a message about several subjects appears once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import GateOutcome, Note, Verdict, empty_base_values
from rageval_spec.drawing.verdict import describe_headline, describe_verdict, share_notes, worst_first, worst_outcome
from tests.sample_evaluation import make_evaluation


def test_a_failed_gate_is_named_with_its_reason() -> None:
    assert str(describe_headline(make_evaluation())) == (
        "Not ready: 1 of 3 gates failed, 1 warned. ndcg@10 of bm25 is 0.412, below the minimum 0.450."
    )


def test_a_drop_from_another_system_is_told_with_both_means() -> None:
    reason = "map of dense is below bm25"
    drop = GateOutcome(0, "golden", "dense", "map", "fail", "drop from bm25 ≤ 0.02", -0.1, reason, baseline="bm25")
    evaluation = replace(
        make_evaluation(metrics={"map": (0.358, 0.307)}), gates=(drop, replace(drop, gate=1, outcome="pass"))
    )
    assert str(describe_headline(evaluation)) == (
        "Not ready: 1 of 2 gates failed. map fell from 0.358 (bm25) to 0.307 (dense)."
    )
    graded = describe_headline(replace(evaluation, gates=(replace(drop, severity="medium"),)))
    assert graded.reason == "map fell from 0.358 (bm25) to 0.307 (dense), a regression of medium severity."
    unknown = describe_headline(replace(evaluation, gates=(replace(drop, baseline="main"),)))
    assert unknown.reason == "map of dense is below bm25."


def test_a_drop_from_an_earlier_evaluation_is_told_with_both_means() -> None:
    drop = GateOutcome(0, "golden", "dense", "map", "fail", "drop from main ≤ 0.02", -0.25, "below", baseline="main")
    rows = [("main", "golden", "dense", "map", query_id, number) for query_id, number in (("q1", 0.5), ("q2", 1.0))]
    earlier = pl.DataFrame(rows, schema=empty_base_values().schema, orient="row")
    evaluation = replace(make_evaluation(), gates=(drop,), load_base_values=lambda: earlier)
    assert describe_headline(evaluation).reason == "map of dense fell from 0.750 (main) to 0.500."
    sliced = replace(evaluation, gates=(replace(drop, slice="long"),))
    assert describe_headline(sliced).reason == "below."


def test_means_that_differ_read_differently() -> None:
    drop = GateOutcome(0, "golden", "dense", "map", "fail", "no drop from bm25", -0.1, "below", baseline="bm25")
    evaluation = replace(make_evaluation(metrics={"map": (0.35801, 0.35799)}), gates=(drop,))
    assert describe_headline(evaluation).reason == "map fell from 0.35801 (bm25) to 0.35799 (dense)."


def test_passing_warning_and_no_gates() -> None:
    evaluation = make_evaluation()
    passed, warned, _ = evaluation.gates
    told = {
        (passed,): "Ready: the only gate passed.",
        (passed, passed): "Ready: all 2 gates passed.",
        (): "Complete: the spec has no gates.",
    }
    for gates, sentence in told.items():
        assert str(describe_headline(replace(evaluation, gates=gates))) == sentence
    assert str(describe_headline(replace(evaluation, gates=(passed, warned)))).startswith(
        "Ready, with warnings: 1 of 2 gates warned, none failed. ndcg@10 of dense is 0.488"
    )


def test_an_inconclusive_gate_leaves_the_evaluation_undecided() -> None:
    evaluation = make_evaluation()
    passed = evaluation.gates[0]
    undecided = replace(passed, outcome="inconclusive", reason="map of bm25 is 0.4, with the minimum 0.5 inside")
    assert str(describe_headline(replace(evaluation, gates=(passed, undecided)))) == (
        "Undecided: 1 of 2 gates is inconclusive, none failed. map of bm25 is 0.4, with the minimum 0.5 inside."
    )
    strict = replace(undecided, counts_as="fail")
    assert describe_headline(replace(evaluation, gates=(passed, strict))).title == "Not ready"
    accepted = replace(undecided, counts_as="pass")
    assert describe_headline(replace(evaluation, gates=(passed, accepted))).title == "Ready"


def test_a_broken_evaluation_is_incomplete() -> None:
    evaluation = replace(make_evaluation(), failures=("dense on golden: the model is gone", "x: y"))
    assert str(describe_headline(evaluation)) == (
        "Incomplete: 2 parts of the evaluation failed. dense on golden: the model is gone."
    )
    nothing = replace(evaluation, failures=(), aggregates=(), gates=())
    assert str(describe_headline(nothing)) == "Incomplete: nothing could be scored."


def gates(*outcomes: Verdict) -> tuple[GateOutcome, ...]:
    return tuple(GateOutcome(n, "golden", "bm25", "map", one, ">= 0.4", 0.3, "") for n, one in enumerate(outcomes))


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        ((), "no gates to check"),
        (("pass",), "1 gate passed"),
        (("pass", "warn"), "1 of 2 gates warned, none failed"),
        (("fail", "warn", "pass"), "1 of 3 gates failed, 1 warned"),
        (("fail", "fail"), "2 of 2 gates failed"),
        (("pass", "inconclusive"), "1 of 2 gates is inconclusive, none failed"),
        (("inconclusive", "warn", "inconclusive"), "2 of 3 gates are inconclusive, 1 warned, none failed"),
        (("inconclusive", "fail"), "1 of 2 gates failed, 1 is inconclusive"),
    ],
)
def test_the_verdict_counts_gates_by_outcome(outcomes: tuple[Verdict, ...], text: str) -> None:
    assert describe_verdict(replace(make_evaluation(), gates=gates(*outcomes), failures=())) == text


def test_an_inconclusive_gate_that_counts_as_failed_says_so() -> None:
    undecided = tuple(replace(gate, counts_as="fail") for gate in gates("inconclusive", "inconclusive"))
    evaluation = replace(make_evaluation(), gates=undecided, failures=())
    assert describe_verdict(evaluation) == "2 of 2 gates are inconclusive, which counts as failed"


def test_what_an_inconclusive_gate_counts_as_decides_its_place() -> None:
    warned, undecided, failed = gates("warn", "inconclusive", "fail")
    accepted = replace(undecided, gate=3, counts_as="pass")
    assert worst_first([accepted, warned, undecided, failed]) == [failed, undecided, warned, accepted]


def test_gates_are_shown_worst_first_then_in_the_order_of_the_spec() -> None:
    shown = worst_first(gates("pass", "warn", "fail", "pass", "fail"))
    assert [(gate.outcome, gate.gate) for gate in shown] == [
        ("fail", 2), ("fail", 4), ("warn", 1), ("pass", 0), ("pass", 3),
    ]  # fmt: skip
    assert worst_outcome(gates("pass", "warn")) == "warn"
    assert worst_outcome(()) is None


def shown(notes: Iterable[Note]) -> list[str]:
    return [str(note) for note in share_notes(replace(make_evaluation(), notes=tuple(notes)))]


def test_a_note_says_what_it_is_about() -> None:
    assert shown([Note("a", "the first"), Note("b", "map: the second", "golden", "bm25")]) == [
        "the first",
        "golden, bm25, map: the second",
    ]


def test_a_message_of_several_systems_is_shown_once() -> None:
    assert shown(Note("m", "2 of 40 are absent", "golden", system) for system in ("bm25", "dense", "hybrid")) == [
        "golden, bm25, dense and hybrid: 2 of 40 are absent"
    ]


def test_a_message_of_all_metrics_systems_and_datasets_is_shown_once() -> None:
    notes = [
        Note("f", f"{metric}: the judge failed", dataset, system)
        for dataset in ("golden", "other")
        for system in ("bm25", "dense")
        for metric in ("map", "ndcg@10")
    ]
    assert shown(notes) == ["golden and other, bm25 and dense, map and ndcg@10: the judge failed"]


def test_a_note_on_one_system_and_dataset_stays_separate() -> None:
    notes = [Note("m", "absent", "golden", "bm25"), Note("m", "absent", "other", "dense")]
    assert shown(notes) == ["golden, bm25: absent", "other, dense: absent"]


def test_many_names_are_cut_short() -> None:
    notes = [Note("m", "absent", None, f"s{number}") for number in range(10)]
    assert shown(notes) == ["s0, s1, s2, s3, s4 and 5 others: absent"]
    assert shown(notes[:6]) == ["s0, s1, s2, s3, s4 and s5: absent"]


def test_of_many_notes_that_differ_only_in_numbers_the_worst_is_shown() -> None:
    notes = [Note("m", f"{count} of 40 absent ({count / 40:.2f})", None, f"s{count}", count) for count in (3, 9, 1, 4)]
    assert shown(notes) == ["s9: 9 of 40 absent (0.23) (and 3 similar notes with other numbers)"]
    assert len(shown(notes[:3])) == 3


def test_warnings_come_first() -> None:
    notes = [Note("a", "a note"), Note("b", "a warning", level="warning"), Note("c", "another note")]
    assert shown(notes) == ["a warning", "a note", "another note"]


@given(
    st.lists(
        st.builds(
            Note,
            st.sampled_from("ab"),
            st.sampled_from(["x", "map: x", "rr: 3 y"]),
            st.sampled_from([None, "golden", "other"]),
            st.sampled_from([None, "bm25", "dense"]),
        )
    )
)
def test_no_note_is_lost_or_repeated(notes: list[Note]) -> None:
    texts = shown(notes)
    assert len(texts) == len(set(zip(texts, [n.code for n in share_notes(_with(notes))], strict=True)))
    for note in notes:
        words = [word for word in (note.dataset, note.system, note.message.rpartition(": ")[2]) if word]
        assert any(all(word in text for word in words) for text in texts) or any("similar notes" in t for t in texts)


def _with(notes: list[Note]) -> Evaluation:
    return replace(make_evaluation(), notes=tuple(notes))
