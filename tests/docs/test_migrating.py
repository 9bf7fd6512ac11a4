"""The pages on migrating run: both sides of a page compute the same numbers, where the other tool can be installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.command_line import invoke
from tests.exchange.peers import run_peer

PAGES = Path(__file__).parents[2] / "docs" / "migrating"
BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
PEERS = {
    "ragas": (
        "ragas",
        "ragas==0.4.3",
        {"id_based_context_precision": "set_precision", "id_based_context_recall": "set_recall"},
    ),
    "deepeval": ("deepeval", "deepeval==4.3.1", {}),
    "ranx": ("ranx", "ranx==0.3.21", {}),
}
"""By page: the environment, what is in it, and what the other tool's names are called here."""
TREC_EVAL = {"ndcg_cut_10": "ndcg@10", "P_5": "precision@5", "recip_rank": "rr"}


def write_files(page: str, folder: Path) -> list[str]:
    """Write the titled blocks of a page into a folder; their names."""
    found = BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
    for name, content in found:
        (folder / name).write_text(content, encoding="utf-8")
    return [name for name, _ in found]


def run_spec(folder: Path) -> list[dict[str, float]]:
    """The values of each question that a page's spec computes, by metric, in the order of the ids."""
    done = invoke("run", folder / "spec.yaml", "-o", folder / "results")
    assert done.exit_code == 0, done.output
    values = pl.read_parquet(folder / "results" / "values.parquet")
    return [
        {row["metric"]: row["value"] for row in rows.iter_rows(named=True)}
        for _, rows in values.sort("query_id").group_by("query_id", maintain_order=True)
    ]


def run_peer_side(page: str, folder: Path) -> list[dict[str, float]]:
    """What the page's `before.py` prints in the other tool's environment, with the names of this one."""
    environment, requirement, names = PEERS[page]
    script = f"import os; os.chdir({str(folder)!r}); exec(open('before.py').read())"
    found: list[dict[str, Any]] = run_peer(environment, requirement, script)
    return [{names.get(name, name): value for name, value in row.items()} for row in found]


def assert_same(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> None:
    assert len(ours) == len(theirs) > 1
    for own, other in zip(ours, theirs, strict=True):
        assert own == pytest.approx(other, abs=1e-12)
        assert set(own) == set(other)


@pytest.mark.parametrize("page", ["ragas", "deepeval"])
def test_a_spec_gives_the_numbers_of_the_other_tool(page: str, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    ours = run_spec(tmp_path)
    assert_same(ours, run_peer_side(page, tmp_path))


def test_trec_eval_and_pytrec_eval(tmp_path: Path) -> None:
    write_files("trec_eval", tmp_path)
    done = subprocess.run([sys.executable, "before.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    theirs = [{TREC_EVAL.get(name, name): value for name, value in row.items()} for row in json.loads(done.stdout)]
    assert_same(run_spec(tmp_path), theirs)


def test_ranx(tmp_path: Path) -> None:
    write_files("ranx", tmp_path)
    done = subprocess.run([sys.executable, "after.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert_same(json.loads(done.stdout), run_peer_side("ranx", tmp_path))


@pytest.mark.parametrize("page", sorted(path.stem for path in PAGES.glob("*.md")))
def test_every_page_has_a_spec_and_names_the_way_back_or_the_drop_in(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    assert "## The same evaluation" in text and "## What becomes what" in text
    links = re.findall(r"\]\((?!http)([^)#]+)", text)
    assert [link for link in links if not (PAGES / link).exists()] == []
