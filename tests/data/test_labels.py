"""A choice between two answers: who won, and which choices are about the same pair.

Frozen anchors are read back as they were written, or refused with the reason.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from rageval_spec.data.labels import (
    Anchor,
    AnchorSet,
    Label,
    LabelScale,
    average_labels,
    digest_answer,
    find_ends,
)
from rageval_spec.errors import DataError


def test_a_label_belongs_to_the_text_that_it_was_given_to() -> None:
    assert digest_answer("Paris.") == digest_answer("Paris.")
    assert digest_answer("Paris.") != digest_answer("Paris")
    assert len(digest_answer("\ud800")) == 16


def test_labels_of_one_claim_by_two_people_judge_the_same_item() -> None:
    ann, bob = (Label("q1", "faithfulness", 1.0, name, system="bot", claim=2) for name in ("ann", "bob"))
    assert ann.item == bob.item == ("", "q1", "bot", "", 2, "")
    assert Label("q1", "faithfulness", 1.0, "ann", system="bot", claim=3).item != ann.item


def label(value: float | str, annotator: str = "ann", *, adjudicated: bool = False) -> Label:
    return Label("q1", "faithfulness", value, annotator, adjudicated=adjudicated, place="l.csv:2")


def test_several_labels_are_averaged_on_their_scale() -> None:
    assert average_labels([label(1.0), label(0.0, "bob")]) == 0.5
    assert average_labels([label(4), label(2, "bob")], LabelScale(1, 5)) == 0.5
    assert average_labels([label(5), label(4, "bob")], LabelScale(5, 1)) == 0.125  # 5 is the worst
    assert average_labels([label("supported"), label("not_enough_info", "bob")]) == 0.5


def test_an_adjudicated_label_counts_instead_of_the_others() -> None:
    assert average_labels([label(1.0), label(1.0, "bob"), label(0.0, "eve", adjudicated=True)]) == 0.0


@pytest.mark.parametrize(
    ("value", "scale", "message"),
    [
        ("good", None, r"l\.csv:2: 'good' is not a number; labels that .* are numbers, yes, no, or one of supported"),
        (4, None, r"the label 4 lies outside the scale from 0 to 1; name the scale, worst first: scale: \[1, 5\]"),
        (0, LabelScale(1, 5), "the label 0 lies outside the scale from 1 to 5"),
    ],
)
def test_a_label_off_the_scale_is_refused(value: float | str, scale: LabelScale | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        average_labels([label(value)], scale, "scale: [1, 5]")


def said(word: str, annotator: str = "ann") -> Label:
    return Label("q1", "", float(word == "yes"), annotator, is_yes_no=True, place="l.csv:2")


def test_yes_and_no_are_the_best_and_the_worst_of_a_scale() -> None:
    assert average_labels([said("yes")], LabelScale(1, 5)) == 1.0
    assert average_labels([said("no")], LabelScale(1, 5)) == 0.0
    assert average_labels([said("yes"), label(3, "bob")], LabelScale(1, 5)) == 0.75
    assert average_labels([label(1)], LabelScale(1, 5)) == 0.0  # a number stays what it is
    assert average_labels([said("yes")]) == 1.0
    assert average_labels([said("yes")], LabelScale(1, 0)) == 0.0  # such as "does it make anything up?"


def test_yes_has_no_place_on_a_scale_whose_best_is_its_lowest_number() -> None:
    with pytest.raises(DataError, match=r"l\.csv:2: 'no' has no place on the scale from 5 to 1.*write the number"):
        average_labels([said("no")], LabelScale(5, 1))


def test_labels_reach_from_nothing_in_common_to_the_best_value() -> None:
    assert find_ends(0.0, 1.0) == (0.0, 1.0)
    assert find_ends(1.0, 5.0) == (1.0, 5.0)
    assert find_ends(-1.0, 1.0) == (0.0, 1.0)
    assert find_ends(0.0, None) == (0.0, 1.0)


ANCHOR = Anchor("golden", "v1", "q1", "Who?", "Ada.\u202e", 1.0, 0.75, ("A.",), None, ("Ada",), None, {"topic": "x"})
SET = AnchorSet(1, "fast", "faithfulness", "c1", {"use": "overlap"}, "d1", 0.5, (ANCHOR,))


def test_anchors_survive_writing_and_reading() -> None:
    assert AnchorSet.parse(SET.dump(), "anchors.json") == SET
    assert SET.dump().decode().replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SET.dump()[:-30], "anchors.json is not a set of anchors: .*; it is incomplete"),
        (b"[]", "anchors.json is not a set of anchors of format_version 1: .*; make one with: rageval-spec calibrate"),
        (b'{"format_version": 1, "judges": []}', "is not a set of anchors"),
        (
            b'{"format_version": 2, "anchors": []}',
            "a set of anchors of format_version 1: its format_version is 2",
        ),
        (SET.dump().replace(b"0.75", b'"x"'), r"anchors\.0\.value: "),
        (AnchorSet(1, "a", "b", "c", {}, "d", 0.5, ()).dump(), "anchors.json has no anchors"),
    ],
)
def test_what_is_no_set_of_anchors_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        AnchorSet.parse(content, "anchors.json")


@pytest.mark.parametrize("given", [(6, 4, 2), (7, 7, 6, 1, 2), (1, 2, 3, 4, 5, 6, 7), (3, 3, 5)])
def test_the_order_of_labels_does_not_matter(given: tuple[int, ...]) -> None:
    orders = [[label(number, f"rater{place}") for place, number in enumerate(order)] for order in permutations(given)]
    assert len({average_labels(order, LabelScale(1, 7)) for order in orders}) == 1
