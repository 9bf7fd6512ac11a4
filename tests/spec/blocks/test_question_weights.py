"""The keys `cluster:`, `weight:` and `weights:`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import load, loads
from rageval_spec.spec.blocks.spec_node import QuestionWeightsNode, Spec

SPEC = """\
version: 1
datasets:
  golden: {use: jsonl, path: golden.jsonl}
  wiki: {use: jsonl, path: wiki.jsonl}
systems:
  bot: {use: file, path: answers.jsonl}
metrics: [token_f1]
"""


def read(text: str, **options: Any) -> Spec:
    return loads(SPEC + text, path="spec.yaml", check_files=False, **options)


def fault(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        read(text)
    return str(caught.value)


def test_one_column_concerns_every_dataset() -> None:
    assert read("cluster: source").designs == {
        "golden": QuestionWeightsNode(cluster="source"),
        "wiki": QuestionWeightsNode(cluster="source"),
    }


def test_each_dataset_can_have_its_own() -> None:
    spec = read("cluster: {wiki: page}\nweight: {golden: traffic}\nweights: {wiki: mix.csv}")
    assert spec.designs == {
        "golden": QuestionWeightsNode(weight="traffic"),
        "wiki": QuestionWeightsNode(cluster="page", weights="mix.csv"),
    }


def test_a_spec_without_these_keys_has_no_design_and_keeps_its_digest() -> None:
    assert read("").designs == {}
    assert read("").digest != read("cluster: source").digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "cluster: {goldn: source}",
            "spec.yaml:8:11: the spec has no dataset 'goldn'; did you mean 'golden'? [wrong-weights]\n"
            "  cluster: {goldn: source}\n            ^^^^^",
        ),
        ("cluster: {}", "spec.yaml:8:1: 'cluster' names no dataset"),
        (
            "weight: traffic\nweights: {wiki: mix.csv}",
            "spec.yaml:9:11: the questions of 'wiki' have 'weight' and 'weights'; keep 'weight' for a column",
        ),
        ("weight: a\nweights: mix.csv", "spec.yaml:9:10: the questions of 'golden' have 'weight' and 'weights'"),
        (
            "cluster: source\nstopping: {first: 10}",
            "spec.yaml:9:1: 'stopping' cannot be combined with 'cluster'; "
            "it decides by questions that are drawn one by one and all count the same; remove one of the two"
            " [wrong-weights]",
        ),
        ("cluster: [source]", "spec.yaml:8:1: expected text or a mapping, found a list [wrong-type]"),
        ("cluster: 3", "spec.yaml:8:10: expected text or a mapping, found the number 3; quote it"),
        ('cluster: ""', "spec.yaml:8:1: 'cluster' must not be empty [out-of-bounds]"),
        ("clusters: source", "did you mean 'cluster'? [unknown-key]"),
    ],
)
def test_what_is_wrong_is_shown_at_its_place(text: str, message: str) -> None:
    found = fault(text)
    assert message in found, found


def test_a_missing_file_of_weights(tmp_path: Path) -> None:
    for name in ("golden.jsonl", "wiki.jsonl", "answers.jsonl"):
        (tmp_path / name).write_text('{"query_id": "q", "question": "x", "answer": "y"}\n')
    (tmp_path / "spec.yaml").write_text(SPEC + "weights: traffic\n")
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "spec.yaml")
    found = str(caught.value)
    assert "spec.yaml:8:10: there is no file 'traffic'; for a column of weights, write 'weight: traffic'" in found
