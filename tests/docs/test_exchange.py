"""Every tool of exchange has a page, and the overview lists it with what it can do."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.exchange.shared.contracts import load, words

FOLDER = Path(__file__).parents[2] / "docs" / "exchange"
TABLE: dict[str, Any] = runpy.run_path(str(FOLDER.parent / "exchange_table.py"))
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


def test_the_table_of_tools_is_made_of_the_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = TABLE["main"]
    assert main(["--check"]) == 0, "python docs/exchange_table.py --write"
    (tmp_path / "README.md").write_text("All:\n\n<!-- generated: tools -->\n<!-- /generated -->\n\nThat is all.\n")
    (tmp_path / "ours.md").write_text(
        "# Ours\n\n| tool | in | out |\n|---|---|---|\n| Ours (`ours`) | spans | - |\n\nMore.\n"
    )
    assert main(["--check"], tmp_path) == 1
    assert "run: python docs/exchange_table.py --write" in capsys.readouterr().err
    assert main(["--write"], tmp_path) == 0
    assert "| [Ours](ours.md) (`ours`) | spans | - |\n<!-- /generated -->" in (tmp_path / "README.md").read_text()
    assert main(["--check"], tmp_path) == 0
    (tmp_path / "other.md").write_text("# Other\n")
    with pytest.raises(ValueError, match=r"other\.md does not begin with the table"):
        main(["--write"], tmp_path)
    assert main(["--fix"]) == 2
