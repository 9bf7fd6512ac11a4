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


def test_missing_files_are_named_with_similar_names(tmp_path: Path) -> None:
    assert faults(tmp_path, **run("data/god.run")) == ["there is no file 'data/god.run'; did you mean 'good.run'?"]
    (found,) = faults(tmp_path, **run("dat/good.run"))
    assert found == "there is no 'dat/good.run', because there is no folder 'dat'; did you mean 'data'?"
    assert faults(tmp_path, **run("data")) == ["'data' is a folder, but a file is needed"]
    (found,) = faults(tmp_path, datasets={"fruit": {"use": "beir", "path": "data/good.run"}})
    assert found == "'data/good.run' is a file, but a folder is needed"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_pipes_and_devices_are_not_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    wanted = "but a file is needed; write its content to a regular file"
    assert faults(tmp_path, **run("pipe")) == [f"'pipe' is a named pipe, {wanted}"]
    assert faults(tmp_path, **run("/dev/zero")) == [f"'/dev/zero' is a device, {wanted}"]
    with pytest.raises(SpecError, match="the file cannot be read: it is a named pipe"):
        load(tmp_path / "pipe")


def test_a_broken_link_is_reported_as_one(tmp_path: Path) -> None:
    write_collection(tmp_path)
    (tmp_path / "link.run").symlink_to("nowhere")
    assert faults(tmp_path, **run("link.run")) == ["'link.run' is a broken link"]


def test_a_part_that_a_system_needs_and_the_dataset_lacks_is_reported(tmp_path: Path) -> None:
    dataset = {"use": "trec", "qrels": "data/qrels/test.tsv", "queries": "data/queries.jsonl"}
    (found,) = faults(tmp_path, datasets={"d": dataset}, systems={"bm25": {"use": "bm25"}})
    assert found == "bm25 needs a dataset's corpus, but the dataset 'd' has none; add 'corpus:' to the dataset"


def test_reports_do_not_overwrite_each_other(tmp_path: Path) -> None:
    reports = ["csv", {"use": "parquet", "path": "./values.csv"}]
    (found,) = faults(tmp_path, reports=reports)
    assert found.startswith(
        "this report and the one on line 21 both write './values.csv'; give this one another 'path:'"
    )


@pytest.mark.parametrize(
    "report", [{"use": "samples", "path": "samples.parquet"}, {"use": "markdown", "path": "./results.json"}]
)
def test_reports_do_not_overwrite_the_results(tmp_path: Path, report: dict[str, str]) -> None:
    (found,) = faults(tmp_path, reports=[report])
    assert found == (
        f"'{report['path']}' is a file that every evaluation writes to the folder of its results; "
        "give this report another 'path:'"
    )


def test_reports_that_are_part_of_the_results_may_name_their_file(tmp_path: Path) -> None:
    load(write_spec(tmp_path, reports=[{"use": "json", "path": "./results.json"}, "parquet"]))


def test_files_can_be_checked_after_a_spec_is_loaded(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    spec = loads(path.read_text(), folder=tmp_path, check_files=False)
    assert check_inputs(spec) == []
    (tmp_path / "data" / "tied.run").unlink()
    (found,) = check_inputs(spec)
    assert found.message == "there is no file 'data/tied.run'"
