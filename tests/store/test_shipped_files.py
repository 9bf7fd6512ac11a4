from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.store.disk import InputFile, digest_content
from rageval_spec.store.shipped_files import Shipment, pack


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The command's folder is the current one; files from elsewhere go into a folder of the test."""
    folder = tmp_path / "command"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield folder
    os.chdir(tmp_path)


def write(path: Path, text: str = "text") -> InputFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return InputFile(path, ())


def move_away(folder: Path) -> Path:
    """As if a process elsewhere had no such folder; its files can still be fetched."""
    return folder.rename(folder.with_name("gone"))


def test_files_that_are_where_the_command_has_them_stay_there(here: Path) -> None:
    shipment = pack(Path("specs"), [write(Path("specs/rows.jsonl"))], digest_content)
    os.chdir(here.parent)
    assert shipment.unpack(lambda path: pytest.fail(f"{path} was fetched")) == (Path("specs"), {})
    assert Path.cwd() == here


@pytest.mark.parametrize("is_absolute", [False, True])
def test_files_travel_with_their_places(here: Path, is_absolute: bool) -> None:
    folder = here / "specs" if is_absolute else Path("specs")
    outside = here.parent / "shared"
    inputs = [
        write(folder / "data" / "rows.jsonl", "rows"),
        write(outside / "corpus" / "a.txt", "a"),
        write(outside / "b"),
    ]
    inputs.append(InputFile(outside / "corpus", (), "folder"))
    shipment = pack(folder, inputs, digest_content)
    contents = {file.path: file.path.read_bytes() for file in shipment.files}
    move_away(here)
    os.chdir(here.parent)
    where, moved = shipment.unpack(contents.__getitem__)
    assert (where / "data" / "rows.jsonl").read_text() == "rows"
    assert where.is_absolute() == is_absolute
    assert (moved[outside / "corpus"] / "a.txt").read_text() == "a"
    assert moved[outside / "b"].read_text() == "text"
    assert shipment.unpack(lambda path: pytest.fail(f"{path} was fetched twice")) == (where, moved)


def test_a_changed_file_is_an_error(here: Path) -> None:
    shipment = pack(Path(), [write(Path("rows.jsonl"))], digest_content)
    move_away(here)
    with pytest.raises(DataError, match=r"rows\.jsonl: has changed since the evaluation began"):
        shipment.unpack(lambda path: b"other")
    assert [*here.parent.rglob("rows.jsonl")] == [here.parent / "gone" / "rows.jsonl"]


def test_missing_files_are_left_out() -> None:
    assert pack(Path(), [InputFile(Path("absent"), ())], digest_content) == Shipment(Path.cwd(), Path(), ())
