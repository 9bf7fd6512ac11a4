from __future__ import annotations

import pytest

from rageval_spec.commands.comment.parts import Part, join_parts, list_lines

ROWS = [[f"q{number}", "x" * 50] for number in range(100)]
TABLE = Part("Broken questions", ROWS, ["query", "text"])


def test_what_fits_is_whole() -> None:
    text = join_parts("head", [TABLE], 60_000)
    assert text.count("| q") == 101
    assert "too long" not in text
    assert text.startswith("head\n\n<details><summary>Broken questions</summary>\n\n| query | text |\n")
    assert text.endswith("\n\n</details>\n")


@pytest.mark.parametrize("longest", [400, 1_000, 2_000, 5_000])
def test_rows_are_cut_from_the_end_and_counted(longest: int) -> None:
    text = join_parts("head", [TABLE, Part("Provenance", before="sha")], longest)
    assert len(text) <= longest
    shown = text.count("| q") - 1
    assert 0 < shown < 100
    assert f"{100 - shown} more rows: too long for a comment; see the results." in text
    assert "Provenance" in text


def test_a_part_without_room_is_named() -> None:
    text = join_parts("head", [Part("Settings", before="y" * 500), Part("Cost", before="$1", is_folded=False)], 400)
    assert text == "head\n\nSettings: too long for a comment; see the results.\n\n**Cost**\n\n$1\n"


def test_lines_need_no_header() -> None:
    assert Part("", list_lines(["a", "b"]), is_folded=False).render() == "- a\n- b"
    assert Part("", list_lines(["a", "b"]), is_folded=False).render(1) == (
        "- a\n\n1 more row: too long for a comment; see the results."
    )


def test_more_parts_than_have_a_line_are_counted() -> None:
    parts = [Part(f"Slices of {'d' * 500} {number}", before="y" * 500) for number in range(3000)]
    text = join_parts("head", parts, 60_000)
    assert len(text) <= 60_000
    assert text.count("<details>") == text.count("</details>") > 50
    named = text.count("...: too long for a comment; see the results.")
    assert named >= 20 and text.endswith(
        f"{3000 - named - text.count('<details>'):,} more parts: too long for a comment; see the results.\n"
    )
