from __future__ import annotations

import os
from collections.abc import Callable
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


LONG = f"{'x' * 5_000}.jsonl"
DEEP = "folder/" * 1_000
CHAT = {"m": {"use": "chat", "model": "m", "base_url": "http://localhost:1"}}
KEYS: dict[str, Callable[[str], dict[str, Any]]] = {
    "datasets.d.path": lambda path: {"datasets": {"d": {"use": "beir", "path": path}}},
    "datasets.g.path": lambda path: {"datasets": {"g": {"use": "golden", "path": path}}},
    "datasets.p.path": lambda path: {"datasets": {"p": {"use": "parquet", "path": path}}},
    "datasets.t.qrels": lambda path: {"datasets": {"t": {"use": "trec", "qrels": path}}},
    "systems.made.path": run,
    "models.m.model": lambda path: {"models": {"m": {"use": "onnx", "model": f"./{path}"}}},
    "judges.j.prompts.split": lambda path: {
        "models": CHAT, "judges": {"j": {"use": "claims", "model": "m", "prompts": {"split": path}}},
    },
    "labels.l.path": lambda path: {"labels": {"l": {"use": "csv", "path": path}}},
    "history.path": lambda path: {"history": {"use": "sqlite", "path": path}},
    "weights": lambda path: {"weights": path},
}  # fmt: skip
"""Specs with a path at a key."""


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (LONG, "File name too long"),
        (DEEP, "File name too long"),
        (f"{'é' * 200}.jsonl", "File name too long"),
        ("loop/x", "Too many levels of symbolic links"),
    ],
    ids=["name", "whole", "bytes", "loop"],
)
def test_a_path_that_cannot_be_followed_is_an_error_at_its_key(
    tmp_path: Path, key: str, path: str, reason: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    write_spec(tmp_path, **KEYS[key](path))
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "spec.yaml")
    told = [one for one in caught.value.diagnostics if reason in one.message]
    assert len(told) == 1
    assert key.rpartition(".")[2] + ":" in told[0].source_line
    assert len(told[0].message) < 300


def test_a_path_that_leads_through_a_file_names_the_file(tmp_path: Path) -> None:
    (found,) = faults(tmp_path, **run("data/good.run/x"))
    assert found == "there is no 'data/good.run/x', because 'data/good.run' is a file, not a folder"


def test_the_home_of_an_unknown_user_is_an_error(tmp_path: Path) -> None:
    (found,) = faults(tmp_path, **run("~nobody-has-this-name/x"))
    assert found == "'~nobody-has-this-name/x' cannot be used as a path: there is no such user"


def test_the_name_of_a_report_can_be_too_long(tmp_path: Path) -> None:
    (found,) = faults(tmp_path, reports=[{"use": "csv", "path": LONG}])
    assert found.endswith("cannot be used as a path: File name too long")


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
