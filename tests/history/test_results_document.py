"""`docs/results.md` is true to the files: every column, and what other programs read with its snippets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from rageval_spec.history import results_folder
from tests.command_line import invoke
from tests.tiny import write_spec

DOCUMENT = Path(__file__).parents[2] / "docs" / "results.md"
TABLES = ("values", "samples", "findings", "documents")
OPTIONAL = {"asked", "label", "label_weight"}


def query(text: str) -> list[tuple[Any, ...]]:
    found = duckdb.sql(text)
    assert found is not None
    return found.fetchall()


def read_section(name: str) -> str:
    return re.split(r"^## ", DOCUMENT.read_text().split(f"\n## {name}\n")[1], flags=re.MULTILINE)[0]


def list_documented(name: str) -> dict[str, str]:
    """The documented columns of a table with their Parquet types."""
    rows = re.findall(r"^\| (`.*?`) \| `(.+?)` \|", read_section(f"{name}.parquet"), flags=re.MULTILINE)
    return {column: dtype for names, dtype in rows for column in re.findall(r"`(\w+)`", names)}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    path = write_spec(folder, systems={"bm25": {"use": "bm25"}})
    assert invoke("run", path, "-o", folder / "rageval-results").exit_code in (0, 1)
    return folder


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_documented_with_its_type(results: Path, name: str) -> None:
    documented = list_documented(name)
    found = query(f"describe from '{results}/rageval-results/{name}.parquet'")
    files = {column: dtype for column, dtype, *_ in found}
    assert {column: documented.get(column) for column in files} == files
    assert documented.keys() - files.keys() <= OPTIONAL


def list_snippets(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", read_section("In other programs"), flags=re.DOTALL)
    assert found
    return found


def test_the_snippets_of_duckdb_run(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(results)
    for snippet in list_snippets("sql"):
        rows = query(snippet)
        assert rows and rows[0][0] == "fruit"


def test_the_snippets_of_polars_run(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(results)
    names: dict[str, pl.DataFrame] = {}
    exec(next(one for one in list_snippets("python") if "polars" in one), names)
    assert names["means"].height and names["answers"].height


def test_rows_that_are_read_together_lie_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_folder, "VALUES_IN_GROUP", 4)
    systems = {"z": {"use": "bm25"}, "a": {"use": "bm25", "k1": 2.0}}
    path = write_spec(tmp_path, systems=systems, metrics=["recall@5", "ndcg@10"])
    assert invoke("run", path, "-o", tmp_path / "out").exit_code in (0, 1)
    cells = pl.read_parquet(tmp_path / "out" / "values.parquet").select("system", "metric").rows()
    assert [*dict.fromkeys(cells)] == [("z", "recall@5"), ("z", "ndcg@10"), ("a", "recall@5"), ("a", "ndcg@10")]
    assert cells == sorted(cells, key=[*dict.fromkeys(cells)].index)
    groups = query(
        f"SELECT DISTINCT row_group_id, row_group_num_rows FROM parquet_metadata('{tmp_path}/out/values.parquet')"
    )
    assert len(groups) == 4 and all(rows == 4 for _, rows in groups)
