"""docs/datasets.md names every word, tool and known column, and its first example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rageval_spec import registry
from rageval_spec.reading.column_names import QUESTION_IDS, QUESTIONS, RELEVANT
from rageval_spec.recorded.tool_layouts import LAYOUTS
from tests.command_line import invoke
from tests.datasets.question_rows import write_rows
from tests.plugins import build_dataset

TEXT = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml[^\n]*\n(.*?)```", TEXT, re.DOTALL)


def section(heading: str) -> str:
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)


def test_the_table_of_tools_is_complete() -> None:
    assert set(first_cells(section("Exports of other tools"))) == {layout.word for layout in LAYOUTS}


def test_every_known_column_is_named() -> None:
    table = section("What became what")
    assert [name for name in (*QUESTION_IDS, *QUESTIONS, *RELEVANT) if f"`{name}`" not in table] == []


@pytest.mark.parametrize("word", ["golden", "xlsx", "yaml", "json", "jsonl", "csv", "parquet", "beir", "trec"])
def test_every_word_that_reads_files_is_named(word: str) -> None:
    assert f"`{word}`" in TEXT.partition("## What became what")[0]
    assert word in registry.builtin_words("datasets")


def test_the_first_example_has_four_lines_and_runs(tmp_path: Path) -> None:
    assert len(EXAMPLES[0].splitlines()) == 4
    write_rows(tmp_path, "xlsx")
    (tmp_path / "answers.jsonl").write_text('{"id": "t1", "answer": "because"}\n{"id": "t2", "answer": "no"}\n')
    (tmp_path / "spec.yaml").write_text(EXAMPLES[0])
    result = invoke("run", tmp_path / "spec.yaml", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "exact_match  0.500" in result.stdout


def test_the_example_of_columns_is_read(tmp_path: Path) -> None:
    (tmp_path / "export.jsonl").write_text('{"inputs": {"question": "why?"}, "outputs": {"answers": ["so", "thus"]}}\n')
    keys = yaml.safe_load(EXAMPLES[1])["datasets"]["golden"]
    collection = build_dataset(keys.pop("use"), tmp_path, **keys).open()
    assert collection.references is not None
    assert collection.references["references"].to_list() == [["so", "thus"]]
