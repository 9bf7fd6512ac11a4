"""Notes in reports: warnings come first, and a message about several subjects appears once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.note import Note
from rageval_spec.reports.shared.notes import share_notes
from tests.sample_evaluation import make_evaluation


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
