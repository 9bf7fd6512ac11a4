"""The words that were removed from a text and added to it."""

from __future__ import annotations

import pytest

from rageval_spec.reports.shared.word_diff import Edit, diff_words, shorten_edits


def marked(before: str, after: str) -> str:
    signs = {"equal": "", "removed": "-", "added": "+"}
    return "".join(
        f"[{signs[one.kind]}{one.text}]" if one.kind != "equal" else one.text for one in diff_words(before, after)
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("It is red.", "It is blue.", "It is[- red][+ blue]."),
        ("It is red.", "It is red. Or blue.", "It is red.[+ Or blue.]"),
        ("a b c d", "b c", "[-a b][+b] c[- d]"),
        ("", "new", "[+new]"),
        ("old", "", "[-old]"),
        ("", "", ""),
        ("same", "same", "same"),
        ("one, two", "three, four", "[-one, two][+three, four]"),
        ("橋は一九一一年", "橋は一九〇九年", "橋は一九[-一一][+〇九]年"),
        ("x\ny", "x\nz", "x[-\ny][+\nz]"),
    ],
)
def test_words_are_removed_and_added(before: str, after: str, expected: str) -> None:
    assert marked(before, after) == expected


@pytest.mark.parametrize("texts", [("a b  c\n", " a c d"), ("x " * 9000, "y x " * 5000), ("", " "), ("a.b", "a. b")])
def test_both_texts_can_be_read_from_the_edits(texts: tuple[str, str]) -> None:
    edits = diff_words(*texts)
    assert "".join(edit.text for edit in edits if edit.kind != "added") == texts[0]
    assert "".join(edit.text for edit in edits if edit.kind != "removed") == texts[1]


def test_long_texts_with_little_in_common_are_replaced_as_a_whole() -> None:
    before, after = " ".join(f"a{n} x" for n in range(5000)), " ".join(f"b{n} x" for n in range(5000))
    assert [edit.kind for edit in diff_words(f"same {before} same", f"same {after} same")] == [
        "equal",
        "removed",
        "added",
        "equal",
    ]


def test_what_is_far_from_a_change_is_left_out() -> None:
    edits = shorten_edits([Edit("equal", "a" * 500), Edit("added", "b" * 900), Edit("equal", "c" * 500)])
    assert [(edit.kind, len(edit.text)) for edit in edits] == [("equal", 63), ("added", 601), ("equal", 63)]
    assert edits[0].text.endswith("aaa")
    assert edits[2].text.startswith("ccc")
    assert shorten_edits([Edit("equal", "short")]) == [Edit("equal", "short")]
