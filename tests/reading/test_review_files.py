"""What a review page saved, as rows of labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.labels import read_label_file, read_labels
from rageval_spec.reading.review_files import flatten_review

LABEL = {
    "dataset": "golden",
    "system": "assistant",
    "query_id": "q1",
    "answer_digest": "ab" * 8,
    "metric": "faithfulness",
    "claim": 2,
    "value": "contradicted",
    "comment": "the date",
    "time": "2026-03-01T10:00:00.000Z",
    "saw_judge": True,
    "reason": "low + unsure",
    "probability": 0.25,
}


def save(folder: Path, **changes: Any) -> Path:
    content = {"format": "rageval-labels", "version": 1, "sheet": "0" * 16, "annotator": "Ann", "labels": [LABEL]}
    path = folder / "ann.json"
    path.write_text(json.dumps({**content, **changes}, indent=1))
    return path


@pytest.mark.parametrize("form", [None, "json"])
def test_each_label_is_a_row_of_its_annotator(tmp_path: Path, form: Any) -> None:
    other = {**LABEL, "metric": "fluency", "claim": None, "value": 4}
    first, second = read_label_file(save(tmp_path, labels=[LABEL, other]), form=form)
    assert (first.query_id, first.claim, first.value, first.annotator) == ("q1", 2, "contradicted", "Ann")
    assert (first.dataset, first.system, first.answer) == ("golden", "assistant", "ab" * 8)
    assert (first.reason, first.probability, first.comment) == ("low + unsure", 0.25, "the date")
    assert first.saw_judge
    assert (second.metric, second.claim, second.value) == ("fluency", None, 4.0)
    assert second.place.endswith("ann.json:1: label 2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, r"ann\.json:1: the file has version 2, .* update rageval-spec"),
        ({"labels": {}}, r"ann\.json:1: the file has no list 'labels'"),
        ({"labels": []}, r"ann\.json:1: the file has no labels yet"),
        ({"labels": [LABEL, 7]}, r"ann\.json:1: label 2 is not an object"),
        ({"labels": [LABEL, LABEL]}, r"label 2: 'Ann' judged q1 on faithfulness already at .*label 1"),
    ],
)
def test_a_faulty_file_is_refused_with_its_place(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_labels([save(tmp_path, **changes)])


def test_other_objects_are_refused() -> None:
    with pytest.raises(DataError, match=r"x\.json:1: this is not a file that a review page saved"):
        [*flatten_review([("x.json:1", {"labels": []})])]
