from __future__ import annotations

from dataclasses import replace

from rageval_spec.data.diagnosis import Advice, Cause, CauseCount, Diagnosis
from rageval_spec.data.evaluation import Evaluation, Interval, SliceGap, SliceResult
from rageval_spec.data.note import Note
from rageval_spec.reports.shared.sections import list_sections
from tests.sample_evaluation import make_evaluation


def count(cause: Cause, number: int, slice_name: str | None = None) -> CauseCount:
    return CauseCount("golden", "bm25", cause, number, 40, number / 40, Interval(0.01, 0.2), slice_name)


def diagnosed(*counts: CauseCount, advice: str | None = None) -> Evaluation:
    told = (Advice("golden", "bm25", advice),) if advice else ()
    return replace(make_evaluation(), diagnosis=Diagnosis("recall", "token_f1", None, 0.5, 0.7, counts, told))


def test_an_evaluation_without_extras_has_no_sections() -> None:
    assert list(list_sections(make_evaluation())) == []


def test_causes_are_counted_for_all_queries_with_what_to_try() -> None:
    evaluation = diagnosed(count("retrieval", 4), count("fine", 36), count("fine", 3, "hard"), advice="look there")
    section, _ = list_sections(evaluation)
    assert [row[:3] for row in section.rows] == [("retrieval", "4", "10% [1%, 20%]"), ("fine", "36", "90% [1%, 20%]")]
    assert section.remarks == ("Try first: look there.",)


def test_causes_that_stand_out_in_slices_are_listed() -> None:
    hard = CauseCount("golden", "bm25", "retrieval", 8, 10, 0.8, Interval(0.49, 0.94), "hard")
    _, section = list_sections(diagnosed(count("retrieval", 10), count("fine", 30), hard))
    assert section.title == "Causes that stand out in slices"
    assert section.rows == (("hard", "retrieval", "bm25", "8 of 10", "80% [49%, 94%]", "7%", "< 0.0001"),)
    others = [replace(hard, slice=f"hard {at}") for at in range(9)]
    _, section = list_sections(diagnosed(count("retrieval", 10), *others))
    assert section.remarks == ("1 more cause stands out; results.json has the counts of every slice.",)


def test_it_is_said_if_no_cause_stands_out() -> None:
    _, section = list_sections(diagnosed(count("retrieval", 10), count("retrieval", 3, "easy")))
    assert section.remarks == ("In no slice is a cause significantly more frequent than among the other questions.",)


def sliced(*gaps: SliceGap) -> Evaluation:
    one = SliceResult("golden", "difficulty=hard", "difficulty", "difficulty is hard", 12, (), ())
    return replace(make_evaluation(), slices=(one,), weakest=gaps)


def test_slices_that_do_not_differ_are_not_listed() -> None:
    (section,) = list_sections(sliced())
    assert (section.rows, section.remarks) == ((), ("No slice is significantly worse than the other queries.",))


def test_weak_slices_have_their_numbers() -> None:
    gap = SliceGap("golden", "bm25", "map", "difficulty=hard", 0.2, 0.5, -0.3, Interval(-0.4, -0.2), 0.001, 0.012, 12)
    (section,) = list_sections(sliced(gap))
    assert section.rows == (
        ("difficulty=hard", "map", "bm25", "12", "0.200", "0.500", "-0.300 [-0.400, -0.200]", "0.0120"),
    )


def test_the_rest_of_many_weak_slices_is_counted() -> None:
    gap = SliceGap("golden", "bm25", "map", "a", 0.2, 0.5, -0.3, None, 0.001, 0.00001, 12)
    (section,) = list_sections(sliced(*[replace(gap, slice=f"s{n}") for n in range(10)]))
    assert len(section.rows) == 8
    assert section.rows[0][-1] == "< 0.0001"
    assert section.remarks == ("2 more slices differ; results.json lists all of them.",)


def test_the_table_of_a_note_is_shown_with_its_metric_and_system() -> None:
    table = (("stage", "reached"), ("retrieval", "80"))
    note = Note("waterfall", "map: 80 samples", "golden", "bm25", table=table)
    (section,) = list_sections(replace(make_evaluation(), notes=(note,)))
    assert (section.title, section.header, section.rows) == ("Stages of map of bm25", table[0], table[1:])
    assert section.numbers == {1}


def test_the_table_of_a_note_is_called_by_its_first_column_and_its_texts_stand_on_the_left() -> None:
    note = Note("steps", "map: graded by 1 step", "golden", "bm25", table=(("step", "what"), ("1", "Look for it.")))
    (section,) = list_sections(replace(make_evaluation(), notes=(note,)))
    assert (section.title, section.numbers) == ("Steps of map of bm25", frozenset())
