"""Mixes of production: what their rows mean, and what is wrong with them, with line and caret."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.reading.production_mix import ProductionMix, read_mix


def read(folder: Path, text: str, name: str = "mix.csv") -> ProductionMix:
    path = folder / name
    path.write_text(text)
    return read_mix(path)


def fault(folder: Path, text: str, name: str = "mix.csv") -> str:
    with pytest.raises(SpecError) as caught:
        read(folder, text, name)
    return str(caught.value).removeprefix(f"{folder}/")


def test_rows_have_values_and_shares(tmp_path: Path) -> None:
    mix = read(tmp_path, "difficulty,language,share\neasy,de,0.7\nhard,,30%\n")
    assert mix.columns == ("difficulty", "language")
    assert [(row.name, row.share, row.line) for row in mix.rows] == [
        ("difficulty=easy, language=de", 0.7, 2),
        ("difficulty=hard, no language", 0.3, 3),
    ]
    assert mix.total is None


def test_slices_are_called_by_their_names(tmp_path: Path) -> None:
    mix = read(tmp_path, "slice\tshare\nlong questions\t1\n", "mix.tsv")
    assert [row.name for row in mix.rows] == ["long questions"]


@pytest.mark.parametrize(
    ("numbers", "total"), [("0.5,0.5", None), ("60,40", None), ("0.333,0.667", None), ("0.5,0.4", 0.9), ("7,3", 10.0)]
)
def test_shares_that_do_not_add_up_are_known(tmp_path: Path, numbers: str, total: float | None) -> None:
    first, second = numbers.split(",")
    assert read(tmp_path, f"kind,share\na,{first}\nb,{second}\n").total == (total and pytest.approx(total))


def test_counts_need_not_add_up(tmp_path: Path) -> None:
    assert read(tmp_path, "kind,count\na,812\nb,34\n").total is None


def test_each_dataset_has_its_rows(tmp_path: Path) -> None:
    mix = read(tmp_path, "dataset,kind,share\ngolden,a,1\nwiki,a,0.5\nwiki,b,0.5\n")
    assert [row.name for row in mix.select("wiki")] == ["kind=a", "kind=b"]
    assert [row.name for row in mix.select("golden")] == ["kind=a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "kind,share\na,0.7\nb,many\n",
            "mix.csv:3:3: 'many' is not a share; write a number that is not negative, such as 0.25 or 25%"
            " [wrong-weights]\n"
            "  b,many\n    ^^^^",
        ),
        ("kind,share\na,-1\n", "mix.csv:2:3: '-1' is not a share"),
        ("kind,share\na,nan\n", "mix.csv:2:3: 'nan' is not a share"),
        ("kind,share\na,1e308\nb,1e308\n", "mix.csv:2:3: '1e308' is not a share"),
        ("kind,share\na,\n", "mix.csv:2:3: the row has no share"),
        ('kind,share\n"a, b",x\n', "mix.csv:2:8: 'x' is not a share"),
        (
            "kind,share\na,1\nb,1\na,1\n",
            "mix.csv:4:1: kind=a is already on line 2; keep one of the two [wrong-weights]",
        ),
        ("kind,share\na,0\n", "mix.csv:2:3: every share is 0; write the mix of production [wrong-weights]"),
        (
            "kind,weight\na,1\n",
            "mix.csv:1:6: no column has the shares in production; rename 'weight' to 'share' [wrong-weights]",
        ),
        ("kind,n\na,1\n", "mix.csv:1:1: no column has the shares in production; write a header such as"),
        (
            "kind,count,share\na,9,0.1\n",
            "mix.csv:1:6: the file has both 'share' and 'count', and they can contradict each other",
        ),
        ("share\n1\n", "mix.csv:1:1: there is no column besides 'share' that distinguishes questions"),
        ("kind,share\n", "mix.csv:1:1: a header and no rows [wrong-weights]"),
        ("kind,share\na,1,2\n", "mix.csv:2:1: 3 fields, but the header has 2 [wrong-weights]"),
        (
            "kind;share\na;1\n",
            "mix.csv:1:1: the columns 'kind', 'share' are separated by a semicolon, not by a comma; save",
        ),
        ("", "mix.csv:1:1: the file is empty [wrong-weights]"),
        ("kind,kind,share\na,b,1\n", "mix.csv:1:1: 'kind' is listed twice [wrong-weights]"),
    ],
)
def test_what_is_wrong_is_shown_at_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert fault(tmp_path, text).startswith(message)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    assert fault(tmp_path, "kind,share\na,x\nb,y\n").count("is not a share") == 2


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "mix.csv").write_bytes(b"kind,share\n\xff\xfe\x00,1\n")
    with pytest.raises(SpecError, match=r"mix\.csv:"):
        read_mix(tmp_path / "mix.csv")


def test_accents_are_composed(tmp_path: Path) -> None:
    assert read(tmp_path, "kind,share\ncafe\u0301,1\n").rows[0].values == {"kind": "caf\u00e9"}
    assert "already on line 2" in fault(tmp_path, "kind,share\ncafe\u0301,1\ncaf\u00e9,1\n")
