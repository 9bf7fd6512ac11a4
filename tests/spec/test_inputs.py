from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import check_inputs, load, loads
from tests.tiny import write_collection, write_spec


def faults(folder: Path, **sections: Any) -> list[str]:
    path = write_spec(folder, **sections)
    with pytest.raises(SpecError) as caught:
        load(path)
    return [f"{d.message}; {d.hint}" if d.hint else d.message for d in caught.value.diagnostics]


def run(path: str) -> dict[str, object]:
    return {"systems": {"made": {"use": "file", "path": path}}}


def test_files_that_are_not_there_are_named_with_what_is_near(tmp_path: Path) -> None:
    assert faults(tmp_path, **run("data/god.run")) == ["there is no file 'data/god.run'; did you mean 'good.run'?"]
    (found,) = faults(tmp_path, **run("dat/good.run"))
    assert found == "there is no 'dat/good.run': no folder 'dat'; did you mean 'data'?"
    assert faults(tmp_path, **run("data")) == ["'data' is a folder, a file is wanted"]
    (found,) = faults(tmp_path, datasets={"fruit": {"use": "beir", "path": "data/good.run"}})
    assert found == "'data/good.run' is a file, a folder is wanted"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_pipes_and_devices_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    wanted = "a file is wanted; write its content to a file"
    assert faults(tmp_path, **run("pipe")) == [f"'pipe' is a named pipe, {wanted}"]
    assert faults(tmp_path, **run("/dev/zero")) == [f"'/dev/zero' is a device, {wanted}"]
    with pytest.raises(SpecError, match="the file cannot be read: it is a named pipe"):
        load(tmp_path / "pipe")


def test_a_link_to_nothing_is_said_to_be_one(tmp_path: Path) -> None:
    write_collection(tmp_path)
    (tmp_path / "link.run").symlink_to("nowhere")
    assert faults(tmp_path, **run("link.run")) == ["'link.run' is a link to what is not there"]


def test_what_a_system_reads_and_the_dataset_lacks(tmp_path: Path) -> None:
    dataset = {"use": "trec", "qrels": "data/qrels/test.tsv", "queries": "data/queries.jsonl"}
    (found,) = faults(tmp_path, datasets={"d": dataset}, systems={"bm25": {"use": "bm25"}})
    assert found == "bm25 reads the corpus, and the dataset 'd' has none; give it 'corpus:'"


def test_reports_do_not_overwrite_each_other(tmp_path: Path) -> None:
    reports = ["csv", {"use": "parquet", "path": "./values.csv"}]
    (found,) = faults(tmp_path, reports=reports)
    assert found.startswith("this report writes './values.csv', as does the one on line")


def test_a_spec_that_was_read_without_looking_can_be_looked_at_later(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    spec = loads(path.read_text(), folder=tmp_path, check_files=False)
    assert check_inputs(spec) == []
    (tmp_path / "data" / "tied.run").unlink()
    (found,) = check_inputs(spec)
    assert found.message == "there is no file 'data/tied.run'"
