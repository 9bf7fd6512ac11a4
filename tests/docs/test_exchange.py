"""Every tool of exchange has a page, and the overview lists it with what it can do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rageval_spec.exchange.shared.contracts import load, words

FOLDER = Path(__file__).parents[2] / "docs" / "exchange"
OVERVIEW = (FOLDER / "README.md").read_text(encoding="utf-8")


def find_page(word: str) -> Path:
    """The page that the tool's row in the overview links to; some tools share one."""
    (row,) = [line for line in OVERVIEW.splitlines() if line.startswith("| [") and f"`{word}`" in line]
    return FOLDER / row.partition("](")[2].partition(")")[0]


@pytest.mark.parametrize("word", words())
def test_the_overview_lists_the_tool_with_its_page(word: str) -> None:
    own = FOLDER / f"{word}.md"
    assert find_page(word) == own or not own.exists()


@pytest.mark.parametrize("word", words())
def test_a_page_has_a_table_and_commands_of_what_the_tool_can_do(word: str) -> None:
    page = find_page(word).read_text(encoding="utf-8")
    tool = load(word)
    assert len(re.findall(r"^\|---", page, re.MULTILINE)) > 1, "also one of what maps to what"
    assert (f"import {word}" in page) == (tool.source is not None)
    assert (f"export {word}" in page) == (tool.target is not None)
    assert re.search(r"[Tt]ested|by hand", page), "it says what it was tested against"
