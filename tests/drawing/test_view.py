"""Views as text, Markdown and HTML."""

from __future__ import annotations

import pytest

from rageval_spec.drawing.view import (
    Block,
    Column,
    Details,
    Diff,
    Entry,
    Grid,
    Heading,
    Items,
    Line,
    Span,
    name,
    tabulate,
    write_html,
    write_markdown,
    write_text,
)

TABLE = Details("Broken questions", [tabulate(["query", "text"], [[f"q{number}", "x" * 50] for number in range(100)])])


def draw(*blocks: Block, width: int = 80) -> list[str]:
    return write_text(blocks, width).decode().splitlines()


def test_what_fits_is_whole() -> None:
    text = write_markdown([Line("head"), TABLE], 60_000)
    assert text.count("| `q") == 100
    assert "too long" not in text
    assert text.startswith("head\n\n<details><summary>Broken questions</summary>\n\n| query | text |\n")
    assert text.endswith("\n\n</details>\n")


@pytest.mark.parametrize("longest", [800, 1_000, 2_000, 5_000])
def test_rows_are_cut_from_the_end_and_counted(longest: int) -> None:
    text = write_markdown([Line("head"), TABLE, Line("end")], longest)
    assert len(text) <= longest
    shown = text.count("| `q")
    assert 0 < shown < 100
    assert f"{100 - shown} more rows: too long for a comment; see the results." in text
    assert text.endswith("end\n")


def test_a_part_without_room_is_named() -> None:
    text = write_markdown([Line("head"), Details("Settings", [Line("y" * 500)]), Line("$1")], 400)
    assert text == "head\n\nSettings: too long for a comment; see the results.\n\n$1\n"


def test_more_parts_than_have_a_line_are_counted() -> None:
    parts = [Details(f"Slices of {'d' * 500} {number}", [Line("y" * 500)]) for number in range(3000)]
    text = write_markdown(parts, 60_000)
    assert len(text) <= 60_000
    assert text.count("<details>") == text.count("</details>") > 20
    named = text.count(": too long for a comment; see the results.") - 1
    left_out = 3000 - named - text.count("<details>")
    assert text.endswith(f"{left_out:,} more parts: too long for a comment; see the results.\n")


@pytest.mark.parametrize("text", ["/close", "::error::x", "- a", "+ a", "=", "# a", "> a", "* a", "@everyone", "<b>"])
def test_no_text_acts_as_markdown_or_as_a_command(text: str) -> None:
    for block in (Line(text), Heading(text), Entry(text, [Line(text)]), Items([("", text, "")])):
        told = write_markdown([block])
        assert not told.startswith(("/", "::", "+", "=", "> ", "* ", "<"))
        assert "@e" not in told and "<b>" not in told and "\n#" not in told


def test_intervals_go_below_their_numbers_before_columns_go_to_another_table() -> None:
    cells = [[Span("0.500"), Span("[0.400, 0.600]", is_below=True)]]
    systems = [Column(f"system {number}", cells, "number", is_fixed=False) for number in range(3)]
    grid = Grid([Column("metric", ["rr"], "name"), *systems])
    assert draw(grid)[2].count("0.500 [0.400, 0.600]") == 3
    assert [line.split() for line in draw(grid, width=60)[2:]] == [["rr", *["0.500"] * 3], ["[0.400,", "0.600]"] * 3]
    assert sum(line.startswith("metric") for line in draw(grid, width=45)) == 2


def test_a_column_that_can_be_spared_is_left_out_only_where_it_does_not_fit() -> None:
    grid = tabulate(["metric", "before", "questions"], [["x" * 28, "0.5", "40"]], (1, 2), spare=("questions",))
    assert "questions" in draw(grid)[0]
    assert "questions" not in draw(grid, width=40)[0]
    assert "questions" in write_markdown([grid])


def test_a_number_is_never_broken() -> None:
    grid = tabulate(
        ["metric", "value", "reason"], [["a-long-name-of-a-metric", "0.123456789 [0.1, 0.2]", "why " * 20]], (1,)
    )
    for width in (40, 50, 60):
        assert any("0.123456789" in line for line in draw(grid, width=width))
        assert any("[0.1, 0.2]" in line for line in draw(grid, width=width))


def test_columns_without_content_are_left_out() -> None:
    assert [one.title for one in tabulate(["a", "b", "c"], [["1", "", "2"], ["3", "", ""]]).columns] == ["a", "c"]


def test_names_are_code_in_markdown_and_isolated_on_a_page() -> None:
    line = Line([name("a|b`"), " is ", Span("good", "bold green")])
    assert draw(line) == ["a|b` is good"]
    assert write_markdown([line]) == "`` a|b` `` is **good**\n"
    assert write_html([line]) == (
        '<p dir="auto"><bdi>a|b`</bdi><span> is </span><span class="strong good">good</span></p>'
    )
    assert "a\\|b" in write_markdown([tabulate(["x"], [["a|b"]])])


def test_a_changed_text_stands_side_by_side_on_a_page_and_in_one_text_elsewhere() -> None:
    edits = [Span("It is", kind="prose"), Span(" red", kind="removed"), Span(" blue", kind="added")]
    diff = Diff(edits, edits)
    assert draw(diff) == ["It is [-red-] {+blue+}"]
    assert write_markdown([diff]) == "It is ~~red~~ **blue**\n"
    before, after = write_html([diff]).split("After")
    assert "<del> red</del>" in before and "blue" not in before
    assert "<ins> blue</ins>" in after and "red" not in after


def test_a_terminal_leaves_out_what_is_for_reading_up() -> None:
    details = Details("Settings", [Line("seed 7")], is_on_terminal=False)
    assert draw(Line("head"), details) == ["head"]
    assert "<details><summary>Settings</summary>" in write_markdown([details])
