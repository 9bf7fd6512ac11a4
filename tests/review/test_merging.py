"""Labels are added to a file, and nothing that it has is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError
from rageval_spec.reading.labels import read_labels
from rageval_spec.review.merging import merge_labels

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
