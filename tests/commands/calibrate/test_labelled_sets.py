"""`calibrate` on sets that people labelled; skipped where they are not there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke

COUNT = 150


def list_begin(data: Path) -> Iterator[dict[str, Any]]:
    content = gzip.decompress((data / "faithfulness" / "begin.jsonl.gz").read_bytes())
    for row in map(json.loads, content.splitlines()):
        if row["label"] is not None and row["contexts"]:
            yield {"answer": row["response"], "contexts": row["contexts"], "label": row["label"]}


def list_summaries(data: Path) -> Iterator[dict[str, Any]]:
    content = gzip.decompress((data / "human" / "summeval_op.jsonl.gz").read_bytes())
    for row in map(json.loads, content.splitlines()):
        rated = [*row["ratings"]["faithfulness"].values()]
        yield {"answer": row["response"], "contexts": row["contexts"], "label": sum(rated) / len(rated)}


def write(folder: Path, rows: list[dict[str, Any]], scale: list[int]) -> str:
    asked = [{"id": f"q{number}", "question": "?", **row} for number, row in enumerate(rows)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    labels = [f"q{number},ann,{row['label']}" for number, row in enumerate(rows[:100])]
    (folder / "labels.csv").write_text("\n".join(["query_id,annotator,value", *labels]))
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "labels": {"people": {"use": "csv", "path": "labels.csv", "scale": scale}},
        "metrics": [{"use": "faithfulness", "judge": "overlap", "labels": "people"}],
    }
    (folder / "spec.yaml").write_text(json.dumps(spec))
    return str(folder / "spec.yaml")


def calibrate(spec: str, *options: str) -> dict[str, Any]:
    result = invoke("calibrate", spec, *options, "--format", "json")
    assert result.exit_code == 0, result.output
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def test_overlap_on_begin_is_generous_and_a_map_mends_it(tmp_path: Path, shared_data: Path) -> None:
    rows = [*list_begin(shared_data)]
    spec = write(tmp_path, rows[:: len(rows) // COUNT][:COUNT], [0, 1])
    (found,) = calibrate(spec)["calibrations"]
    measures = {one["name"]: one for one in (*found["association"], *found["discrimination"])}
    assert measures["auroc"]["interval"]["low"] > 0.8
    assert measures["bias"]["interval"]["low"] > 0.05
    trials = {trial["kind"]: trial for trial in found["map"]["trials"]}
    assert found["map"]["chosen"]["kind"] in ("platt", "isotonic")
    assert trials["platt"]["error"]["value"] < 0.5 * trials["none"]["error"]["value"]
    needs = {need["quantity"]: need["labels"] for need in found["learning"]["needs"]}
    assert needs["corrected_mean"] is None or needs["corrected_mean"] < needs["labels_alone"]


def test_overlap_comes_closer_to_people_on_begin_than_embeddings(tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip("onnxruntime")
    rows = [*list_begin(shared_data)]
    spec = write(tmp_path, rows[:: len(rows) // COUNT][:COUNT], [0, 1])
    (comparison,) = calibrate(spec, "--judge", "overlap", "--judge", "embedding")["comparisons"]
    error = next(one for one in comparison["differences"] if one["measure"] == "mae")
    assert (error["first"], error["second"]) == ("faithfulness", "faithfulness (embedding)")
    assert error["difference"] < 0
    assert error["p_adjusted"] < 0.05


def test_ratings_from_1_to_5_that_nearly_all_are_good(tmp_path: Path, shared_data: Path) -> None:
    rows = [*list_summaries(shared_data)][:COUNT]
    (found,) = calibrate(write(tmp_path, rows, [1, 5]), "--threshold", "precision>=0.95")["calibrations"]
    assert 0.5 < found["mean"]["labelled"] < 1
    assert found["mean"]["interval"]["low"] < found["mean"]["value"] < found["mean"]["interval"]["high"]
    assert found["yes"] > found["no"]
