"""Files by URL: `file://`, and `s3://` on a server of moto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import DataError
from rageval_spec.runner import Options, run
from rageval_spec.spec import load
from rageval_spec.store import remote_files

moto = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[server]' boto3")

ROWS = [{"id": f"q{row}", "question": f"What is {row}?", "answer": f"{row}", "reference": f"{row}"} for row in range(4)]


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    running = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    yield running.get_host_and_port()[1]
    running.stop()


@pytest.fixture
def bucket(server: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    import boto3

    settings = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "DEFAULT_REGION": "us-east-1"}
    for name, value in {**settings, "ENDPOINT_URL": f"http://127.0.0.1:{server}"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    found = boto3.resource("s3").Bucket("evals")
    found.create()
    found.put_object(Key="data/rows.jsonl", Body="".join(json.dumps(row) + "\n" for row in ROWS).encode())
    return found


def write_spec(folder: Path, url: str) -> Path:
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": url}},
        "systems": {"bot": {"use": "file", "path": url}},
        "metrics": ["exact_match"],
        "history": "none",
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path


def test_a_spec_reads_files_by_url(tmp_path: Path, bucket: Any) -> None:
    spec = write_spec(tmp_path, "s3://evals/data/rows.jsonl")
    outcome = run(spec, Options(output=None))
    assert outcome.evaluation.aggregates[0].mean == 1.0
    (copy,) = (tmp_path / ".rageval" / "inputs").rglob("rows.jsonl")
    before = copy.stat().st_mtime_ns
    load(spec)
    assert copy.stat().st_mtime_ns == before  # it is as new as the object
    bucket.put_object(Key="data/rows.jsonl", Body=json.dumps({**ROWS[0], "answer": "other"}).encode())
    assert run(spec, Options(output=None)).evaluation.aggregates[0].mean == 0.0


def test_a_file_url_is_the_file(tmp_path: Path) -> None:
    rows = tmp_path / "a folder" / "rows.jsonl"
    rows.parent.mkdir()
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    outcome = run(write_spec(tmp_path, rows.as_uri()), Options(output=None))
    assert outcome.evaluation.aggregates[0].mean == 1.0


def test_a_missing_object_has_its_place_in_the_spec(tmp_path: Path, bucket: Any) -> None:
    with pytest.raises(SpecError, match=r"s3://evals/none\.jsonl: cannot be read: there is no such file") as raised:
        load(write_spec(tmp_path, "s3://evals/none.jsonl"))
    assert "spec.yaml:" in str(raised.value)


def test_a_url_that_is_none(tmp_path: Path, bucket: Any) -> None:
    path = remote_files.locate("s3://", tmp_path)
    assert path is not None
    with pytest.raises(DataError, match="s3://: cannot be read"):
        remote_files.fetch(path)
    assert remote_files.locate("data/s3/rows.jsonl", tmp_path) is None
    remote_files.fetch(tmp_path / "rows.jsonl")  # no URL: nothing to do
