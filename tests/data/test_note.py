from __future__ import annotations

import pickle

from rageval_spec.data.note import Note


def test_a_note_concerns_everything_and_warns_of_nothing_unless_it_says_so() -> None:
    note = Note("missing_queries", "2 of 40 queries are not in the run and score 0")
    assert (note.dataset, note.system, note.count, note.level) == (None, None, None, "note")


def test_equal_notes_are_one() -> None:
    """Several metrics make the same note about a system; a set of notes keeps one of them, also from workers."""
    note = Note("ties", "ties decide 3 queries", "golden", "bm25", 3, "warning")
    assert {note, pickle.loads(pickle.dumps(note))} == {note}
