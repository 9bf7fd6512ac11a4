"""Datasets of Hugging Face on the disk. The folders have the shape that datasets 5.2.0 writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import invoke
from tests.exchange.evaluating import evaluate_file
from tests.exchange.peers import run_peer

ROWS = [
    {"id": "1", "question": "Where?", "answer": "Shed.", "contexts": ["a", "b|c"], "ground_truth": "Shed."},
    {"id": "2", "question": "When?", "answer": "Now.", "contexts": [], "ground_truth": "Then."},
]


def save(folder: Path, rows: Sequence[Mapping[str, object]], shards: int = 1) -> None:
    """As `save_to_disk` does: Arrow streams, and a state that names them."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{shards:05}.arrow" for number in range(shards)]
    for name, part in zip(names, ([row] for row in rows) if shards > 1 else [rows], strict=True):
        pl.DataFrame(part, schema_overrides={"contexts": pl.List(pl.String)}).write_ipc_stream(folder / name)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))


def read(folder: Path, *options: str) -> list[str]:
    done = invoke("import", "huggingface", folder, *options, "-o", folder.parent / "out.jsonl", "--force")
    assert done.exit_code == 0, done.output
    return [json.loads(line)["id"] for line in (folder.parent / "out.jsonl").read_text().splitlines()]


def test_what_save_to_disk_wrote_is_read_shard_by_shard(tmp_path: Path) -> None:
    save(tmp_path / "set", ROWS, shards=2)
    assert read(tmp_path / "set") == ["1", "2"]
    row = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert (row["contexts"], row["reference"]) == ([{"text": "a"}, {"text": "b|c"}], "Shed.")


def test_columns_of_any_type_are_kept_as_json(tmp_path: Path) -> None:
    when, raw = datetime(2026, 3, 1, 12, 30), [{"of": b"\xff", "at": Decimal("1.5")}]
    pl.DataFrame({"id": ["1"], "question": ["Where?"], "when": [when], "raw": [raw]}).write_parquet(
        tmp_path / "a.parquet"
    )
    assert read(tmp_path / "a.parquet") == ["1"]
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert row["metadata"] == {"when": "2026-03-01 12:30:00", "raw": [{"of": "ff", "at": "1.5"}]}


def test_a_split_is_chosen_by_name(tmp_path: Path) -> None:
    save(tmp_path / "set" / "train", ROWS)
    save(tmp_path / "set" / "test", ROWS[1:])
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert read(tmp_path / "set") == ["2"]
    assert read(tmp_path / "set", "--split", "train") == ["1", "2"]
    done = invoke("import", "huggingface", tmp_path / "set", "--split", "dev")
    assert (done.exit_code, "there is no split 'dev'; name one with --split: train, test" in done.stderr) == (2, True)


def test_a_folder_of_the_hub_is_read(tmp_path: Path) -> None:
    (tmp_path / "hub" / "data").mkdir(parents=True)
    frame = pl.DataFrame(ROWS, schema_overrides={"contexts": pl.List(pl.String)})
    frame.write_parquet(tmp_path / "hub" / "data" / "test-00000-of-00001.parquet")
    frame.head(1).write_parquet(tmp_path / "hub" / "data" / "train-00000-of-00001.parquet")
    assert read(tmp_path / "hub") == ["1", "2"]
    assert read(tmp_path / "hub", "--split", "train") == ["1"]


def test_half_a_file_and_a_missing_one_are_errors(tmp_path: Path) -> None:
    save(tmp_path / "set", ROWS)
    (file,) = (tmp_path / "set").glob("*.arrow")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    done = invoke("import", "huggingface", tmp_path / "set", "-o", tmp_path / "out.jsonl")
    assert (done.exit_code, "is not a complete Arrow stream" in done.stderr) == (3, True)
    file.unlink()
    done = invoke("import", "huggingface", tmp_path / "set", "-o", tmp_path / "out.jsonl")
    assert (done.exit_code, "save the dataset again with save_to_disk" in done.stderr) == (3, True)


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_data_is_named(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "empty").mkdir()
    done = invoke("import", "huggingface", tmp_path / "empty")
    told = "the folder has no Parquet, JSON or CSV files" if there else "no such file or folder"
    assert (done.exit_code != 0, told in done.stderr) == (True, True)


def test_answers_become_a_folder_with_a_card(tmp_path: Path) -> None:
    save(tmp_path / "set", ROWS)
    read(tmp_path / "set")
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    done = invoke("export", "huggingface", results, "-o", tmp_path / "answers.parquet")
    assert done.exit_code == 0, done.output
    frame = pl.read_parquet(tmp_path / "answers" / "data" / "test-00000-of-00001.parquet")
    assert frame["exact_match"].to_list() == [1.0, 0.0]
    assert frame["contexts"].to_list() == [["a", "b|c"], []]
    assert "path: data/test-*.parquet" in (tmp_path / "answers" / "README.md").read_text()


def test_a_folder_that_is_there_is_overwritten_only_if_asked(tmp_path: Path) -> None:
    save(tmp_path / "set", ROWS)
    read(tmp_path / "set")
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    for output in (tmp_path / "answers-1.2", tmp_path / "answers.parquet"):
        assert invoke("export", "huggingface", results, "-o", output).exit_code == 0
        card = tmp_path / output.name.removesuffix(".parquet") / "README.md"
        card.write_text("mine")
        done = invoke("export", "huggingface", results, "-o", output)
        assert (done.exit_code, "README.md already exists" in done.stderr, card.read_text()) == (2, True, "mine")
        assert invoke("export", "huggingface", results, "-o", output, "--force").exit_code == 0
        assert card.read_text() != "mine"


PEER = """
import json, sys
from datasets import load_dataset
folder = json.loads(sys.argv[1])
found = load_dataset(f"{folder}/answers", split="test", cache_dir=f"{folder}/cache")
found.save_to_disk(f"{folder}/saved")
print(json.dumps(found.to_list()))
"""


def test_datasets_reads_what_is_exported_and_writes_what_is_imported(tmp_path: Path) -> None:
    save(tmp_path / "set", ROWS)
    read(tmp_path / "set")
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    invoke("export", "huggingface", results, "-o", tmp_path / "answers.parquet")
    first, second = run_peer("ragas", "datasets==5.2.0", PEER, str(tmp_path))
    assert (first["contexts"], second["contexts"], first["exact_match"]) == (["a", "b|c"], [], 1.0)
    assert read(tmp_path / "saved") == ["1", "2"]
