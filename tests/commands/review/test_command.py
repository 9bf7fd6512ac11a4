"""The options of `review select` and `review import`.

The commands of `review`, as a user runs them.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from rageval_spec.cli import cli
from rageval_spec.commands.review import forms
from tests.command_line import invoke
from tests.commands.label_files import write_labels


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the commands passed on."""
    requests: list[Any] = []

    def take(**options: Any) -> bytes:
        requests.append(SimpleNamespace(**options))
        return b""

    monkeypatch.setattr(forms, "select", take)
    monkeypatch.setattr(forms, "import_forms", take)
    return requests


def call(*arguments: str) -> int:
    return CliRunner().invoke(cli, ["review", *arguments]).exit_code


@pytest.mark.parametrize(
    ("arguments", "random", "suspicions"),
    [
        ((), None, None),
        (("--random", "3%"), 0.03, ()),
        (("--random", "50"), 50, ()),
        (("--random", "100%"), math.inf, ()),
        (("--low", "--person"), 0, ("low", "person")),
        (("--low", "--random", "5 %"), 0.05, ("low",)),
        (("--by-slice",), None, ()),
        (("--by-slice", "--unsure"), None, ("unsure",)),
    ],
)
def test_what_is_named_is_chosen_and_without_names_a_mix(
    asked: list[Any], arguments: tuple[str, ...], random: float | None, suspicions: object
) -> None:
    assert call("select", "-o", "a.csv", *arguments) == 0
    assert (asked[0].wanted.random, asked[0].wanted.suspicions) == (random, suspicions)


def test_a_limit_of_0_is_none_and_an_overlap_is_a_share(asked: list[Any]) -> None:
    call("select", "-o", "a.csv", "--most", "0", "--overlap", "100%")
    call("select", "-o", "a.csv", "--overlap", "20%")
    assert [(one.wanted.most, one.overlap) for one in asked] == [(None, 1.0), (20, 0.2)]


@pytest.mark.parametrize("size", ["-1", "3x", "101%", "1e3", "", "99999999999", "%"])
def test_other_sizes_are_refused(asked: list[Any], size: str) -> None:
    assert call("select", "-o", "a.csv", "--random", size) == 2
    assert not asked


def test_forms_are_imported_in_their_order(asked: list[Any]) -> None:
    assert call("import", "a.csv", "b.xlsx", "--into", "labels.csv", "--replace") == 0
    assert (asked[0].forms, asked[0].into, asked[0].replace) == (
        (Path("a.csv"), Path("b.xlsx")),
        Path("labels.csv"),
        True,
    )
    assert call("import", "-o", "labels.csv") == 2


def test_files_and_options_are_passed_on(tmp_path: Path) -> None:
    columns = ("--column", "query_id=nr", "--column", "annotator=who")
    result = invoke("review", "agreement", write_labels(tmp_path), "--metric", "faithfulness", *columns)
    assert result.exit_code == 0
    assert "Agreement on faithfulness: 4 items, 4 with two or more labels, 2 annotators" in result.output


def test_mistakes_are_explained(tmp_path: Path) -> None:
    result = invoke("review", "agreement", write_labels(tmp_path))
    assert result.exit_code == 3
    assert "Name it: --column query_id=nr" in result.output
    assert invoke("review", "agreement").exit_code == 2
    assert "no such file" in invoke("review", "agreement", str(tmp_path / "absent.csv")).output.lower()
