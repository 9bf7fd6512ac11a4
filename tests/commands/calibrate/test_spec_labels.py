"""The labels that a spec names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.calibrate.spec_labels import read_spec_labels
from rageval_spec.data.labels import Label
from rageval_spec.errors import UsageError
from rageval_spec.spec import load_dict


def read(folder: Path, metrics: list[dict[str, Any]], labels: dict[str, str]) -> list[Label]:
    (folder / "rows.jsonl").write_text('{"id": "q1", "question": "?", "answer": "a", "contexts": ["a"]}\n')
    for name, content in labels.items():
        (folder / f"{name}.csv").write_text(content)
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "labels": {name: {"use": "csv", "path": f"{name}.csv", "scale": [1, 5]} for name in labels},
        "metrics": metrics,
    }
    return read_spec_labels(load_dict(spec, folder=folder))


FAITHFULNESS = {"use": "faithfulness", "judge": "overlap"}
UNNAMED = "query_id,annotator,value\nq1,ann,4\n"
NAMED = "query_id,metric,annotator,value\nq1,faithfulness,bob,2\n"


def test_the_labels_of_a_metric_get_its_name_and_the_scale_from_0_to_1(tmp_path: Path) -> None:
    (label,) = read(tmp_path, [{**FAITHFULNESS, "labels": "people"}], {"people": UNNAMED, "other": NAMED})
    assert (label.metric, label.value, label.annotator) == ("faithfulness", 0.75, "ann")


def test_without_a_metric_that_names_them_all_labels_count(tmp_path: Path) -> None:
    labels = read(tmp_path, [FAITHFULNESS], {"people": UNNAMED, "other": NAMED})
    assert [(label.metric, label.value) for label in labels] == [("", 0.75), ("faithfulness", 0.25)]


def test_labels_of_two_metrics_keep_their_names(tmp_path: Path) -> None:
    metrics = [{**FAITHFULNESS, "labels": "people"}, {**FAITHFULNESS, "as": "other", "labels": "people"}]
    (label,) = read(tmp_path, metrics, {"people": UNNAMED})
    assert label.metric == ""


def test_a_spec_without_labels(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the spec has no 'labels:'; add them, or name a file: --labels"):
        read(tmp_path, [FAITHFULNESS], {})


def test_yes_is_the_best_of_the_scale(tmp_path: Path) -> None:
    labels = read(tmp_path, [FAITHFULNESS], {"people": "query_id,value\nq1,yes\nq2,no\nq3,1\n"})
    assert [label.value for label in labels] == [1.0, 0.0, 0.0]
