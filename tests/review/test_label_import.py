"""What people entered becomes labels, or problems that say what to write.

Labels are added to a file, and nothing that it has is lost.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.labels import Label, digest_answer
from rageval_spec.errors import DataError
from rageval_spec.reading.label_files import read_labels
from rageval_spec.review.criteria import make_criterion
from rageval_spec.review.forms import FormToken
from rageval_spec.review.label_import import CheckedEntries, FormEntry, check_entries, merge_labels
from tests.answered_evaluation import ANSWER, bridges

TOKEN = FormToken("golden", "v1", "q1", "", None, digest_answer(ANSWER), "low", 0.25, "")
YES_NO, RATING, CLAIMS = (make_criterion("faithfulness", scale) for scale in ("yes_no", "1..5", "claims"))


def entry(value: object, **changes: Any) -> FormEntry:
    made = FormEntry(
        "a.csv:2", "faithfulness [yes/no]", TOKEN, False, "faithfulness", YES_NO, value, "ann", "well", "noon"
    )
    return replace(made, **changes)


def check(*entries: FormEntry, **more: Any) -> CheckedEntries:
    return check_entries(entries, **more)


def problem(one: FormEntry, **more: Any) -> str:
    found = check(one, **more)
    assert not found.labels
    return " | ".join(map(str, found.problems))


def test_an_entry_becomes_a_label_with_everything_that_is_known() -> None:
    found = check(entry("Yes "))
    assert found.labels == (
        Label(
            "q1", "faithfulness", 1.0, "ann", "golden", "v1", digest_answer(ANSWER), None, "noon", "well", "low", 0.25,
            "a.csv:2", is_yes_no=True,
        ),
    )  # fmt: skip
    assert found.written == ("yes",)


@pytest.mark.parametrize(
    ("value", "criterion", "written", "number"),
    [
        ("NO", YES_NO, "no", 0.0),
        (True, YES_NO, "yes", 1.0),
        (0.0, YES_NO, "no", 0.0),
        ("4", RATING, "4", 4.0),
        (4.0, RATING, "4", 4.0),
        ("4,0", RATING, "4", 4.0),
        (4, None, "4", 4.0),
        ("yes", None, "yes", 1.0),
    ],
)
def test_values_are_read_as_people_and_spreadsheets_write_them(
    value: object, criterion: Any, written: str, number: float
) -> None:
    found = check(entry(value, criterion=criterion))
    assert (found.written, found.labels[0].value) == ((written,), number)


def test_verdicts_of_claims_may_have_blanks() -> None:
    token = replace(TOKEN, metric="faithfulness", claim=1)
    found = check(entry("Not enough info", token=token, criterion=CLAIMS))
    assert (found.labels[0].value, found.labels[0].claim) == ("not_enough_info", 1)


@pytest.mark.parametrize("value", ["maybe", "nan", float("nan"), "2", "=1+1", "", 0.5, [1], "supported"])
def test_other_values_are_refused_with_what_to_write(value: object) -> None:
    told = problem(entry(value if value != "" else "  -"))
    assert told.startswith("a.csv:2, column 'faithfulness [yes/no]': '")
    assert "is not on the scale; write one of yes, no, or leave the cell empty" in told


@pytest.mark.parametrize("value", ["0", "6", "3.5", 4.5, "yes", "inf", "1e0", "٣"])
def test_grades_are_whole_numbers_on_their_scale(value: object) -> None:
    assert "write one of 1, 2, 3, 4, 5" in problem(entry(value, criterion=RATING))


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(problem(entry("x" * 5000))) < 200


def test_fields_that_nobody_filled_in_are_counted() -> None:
    found = check(entry(None), entry(None, token=None), entry("yes"))
    assert (found.empty, len(found.labels), found.problems) == (2, 1, ())


def test_who_judged_must_be_known() -> None:
    assert "write who judged, or name one for all rows: --annotator NAME" in problem(entry("yes", annotator=""))
    assert check(entry("yes", annotator=""), annotator="bob").labels[0].annotator == "bob"
    assert check(entry("yes"), annotator="bob").labels[0].annotator == "ann"


def test_what_people_wrote_is_made_visible_and_no_formula() -> None:
    (label,) = check(entry("yes", comment="a\x00\u202eb\nc", annotator="=ann")).labels
    assert (label.comment, label.annotator) == ("a\\x00\\u202eb\nc", "'=ann")


def test_rows_that_were_damaged_or_edited_are_refused() -> None:
    assert "its token is missing or damaged" in problem(entry("yes", token=None))
    assert "was changed, and a label belongs to the text that was judged" in problem(entry("yes", is_edited=True))


def test_all_problems_are_found_at_once() -> None:
    found = check(entry("x", annotator="", is_edited=True), entry("z"))
    assert [one.column for one in found.problems] == [
        "row", "faithfulness [yes/no]", "annotator", "faithfulness [yes/no]",
    ]  # fmt: skip


def test_a_row_that_does_not_ask_is_left_empty() -> None:
    claim = replace(TOKEN, metric="faithfulness", claim=0)
    assert "this row asks about a claim for faithfulness; leave the cell empty" in problem(entry("yes", token=claim))
    assert "this row asks about the whole answer" in problem(entry("supported", criterion=CLAIMS))


def test_a_label_that_comes_twice_counts_once_and_a_contradiction_names_both_places() -> None:
    found = check(entry("yes"), entry("yes", place="b.csv:9"))
    assert (len(found.labels), found.repeated, found.problems) == (1, 1, ())
    found = check(entry("yes"), entry("no", place="b.csv:9"))
    (told,) = map(str, found.problems)
    assert told.startswith(
        "b.csv:9, column 'faithfulness [yes/no]': 'ann' judged the same thing differently at a.csv:2"
    )
    assert check(entry("yes"), entry("no", annotator="bob")).problems == ()


def test_answers_and_claims_must_be_in_the_results_that_were_judged() -> None:
    results = bridges()
    assert check(entry("yes"), evaluation=results).problems == ()
    for changes, message in (
        ({"query_id": "q9"}, "the results have no answer of v1 to q9"),
        ({"answer_digest": "0"}, "the answer of v1 to q1 has changed since"),
        ({"metric": "faithfulness", "claim": 7}, "the results have no claim 7 of faithfulness for q1"),
    ):
        criterion, value = (CLAIMS, "supported") if "claim" in changes else (YES_NO, "yes")
        one = entry(value, token=replace(TOKEN, **changes), criterion=criterion)
        assert message in problem(one, evaluation=results)
    claim = replace(TOKEN, metric="faithfulness", claim=1)
    assert check(entry("supported", token=claim, criterion=CLAIMS), evaluation=results).problems == ()


YES = Label(
    "q1", "faithfulness", 1.0, "ann", "golden", "v1", "d1", None, "noon", "well", "low", 0.25, place="form.csv:2",
    is_yes_no=True,
)  # fmt: skip
OTHER = replace(YES, query_id="007", value=0.0, comment="", claim=3)


def write(folder: Path, text: str) -> Path:
    path = folder / "labels.csv"
    path.write_text(text)
    return path


def test_a_new_file_has_all_parts_and_is_read_back(tmp_path: Path) -> None:
    merged = merge_labels([YES, OTHER], ["yes", "no"])
    assert (merged.labels, merged.added, merged.problems) == (2, 2, ())
    path = tmp_path / "labels.csv"
    path.write_bytes(merged.content)
    assert [replace(label, place="form.csv:2") for label in read_labels([path])] == [
        YES, OTHER,
    ]  # fmt: skip


def test_what_the_file_has_stays(tmp_path: Path) -> None:
    path = write(tmp_path, "id,rating,rater,mood,metric\nq9,0.5,bob,sunny,faithfulness\nq8,,bob,grim,faithfulness\n")
    merged = merge_labels([replace(YES, annotator="bob")], ["yes"], path)
    lines = merged.content.decode().splitlines()
    assert lines[0].startswith("id,rating,rater,mood,metric,")
    assert lines[1].startswith("q9,0.5,bob,sunny,faithfulness")
    assert lines[2].startswith("q8,,bob,grim,faithfulness")
    assert lines[3].startswith("q1,yes,bob,,faithfulness,")
    assert (merged.labels, merged.added) == (2, 1)


def test_the_same_label_twice_is_one_and_its_comment_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(merge_labels([YES, OTHER], ["yes", "no"]).content)
    again = merge_labels([YES, replace(OTHER, comment="late")], ["yes", "no"], path)
    assert (again.labels, again.added) == (2, 0)
    path.write_bytes(again.content)
    assert [label.comment for label in read_labels([path])] == ["well", "late"]
    path.write_bytes(merge_labels([replace(YES, comment="more")], ["yes"], path).content)
    assert read_labels([path])[0].comment == "well\nmore"


def test_a_label_with_another_value_is_refused_unless_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(merge_labels([YES], ["yes"]).content)
    changed = replace(YES, value=0.0, place="form.csv:9", time="later")
    refused = merge_labels([changed], ["no"], path)
    assert [str(one) for one in refused.problems] == [
        f"form.csv:9, column 'faithfulness': 'ann' judged the same thing differently at {path}:2; keep one of the two, "
        "or write the new value over the old: --replace"
    ]
    merged = merge_labels([changed], ["no"], path, replace=True)
    assert (merged.replaced, merged.added, merged.problems) == (1, 0, ())
    path.write_bytes(merged.content)
    assert [(label.value, label.time) for label in read_labels([path])] == [(0.0, "later")]


def test_labels_of_an_answer_that_changed_are_others(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(merge_labels([YES], ["yes"]).content)
    assert merge_labels([replace(YES, answer="d2", value=0.0)], ["no"], path).added == 1


def test_an_adjudicated_label_is_there_beside_those_of_annotators(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    merged = merge_labels([YES, replace(YES, value=0.0, annotator="eve", adjudicated=True)], ["yes", "no"])
    path.write_bytes(merged.content)
    assert [label.adjudicated for label in read_labels([path])] == [False, True]


def test_a_label_of_a_person_who_saw_the_judge_says_so(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(merge_labels([YES, replace(OTHER, saw_judge=True)], ["yes", "no"]).content)
    assert [label.saw_judge for label in read_labels([path])] == [False, True]


def test_only_csv_is_added_to_and_only_labels(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"labels are added to a \.csv file"):
        merge_labels([YES], ["yes"], tmp_path / "labels.jsonl")
    with pytest.raises(DataError, match="no column has the query id"):
        merge_labels([YES], ["yes"], write(tmp_path, "a,b\n1,2\n"))


def test_a_second_selection_adds_its_reason_and_its_probability(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    first = replace(YES, reason="random", probability=0.1)
    path.write_bytes(merge_labels([first], ["yes"]).content)
    same = merge_labels([first], ["yes"], path)
    merged = merge_labels([replace(first, reason="low", probability=0.5)], ["yes"], path)
    assert (same.rechosen, merged.rechosen, merged.labels) == (0, 1, 1)
    path.write_bytes(merged.content)
    (found,) = read_labels([path])
    assert found.reasons == ("random", "low")
    assert found.probability == pytest.approx(0.55)
