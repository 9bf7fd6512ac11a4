from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec import registry
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.planning.spec_selection import select
from rageval_spec.spec import Spec, loads
from tests.spec import plugins

REAL = {name: getattr(registry, name) for name in ("words", "builtin_words", "load")}
SPEC = """\
version: 1
datasets: {support: {use: folder, path: data}, other: {use: folder, path: data}}
models:
  cross: {use: onnx, model: cross}
  e5: {use: onnx, model: e5}
  asked: {use: http, url: "http://localhost", model: llama}
judges:
  panel: {use: cascade, steps: [strict]}
  strict: {use: binary, model: asked}
systems:
  reranked: {use: rerank, system: fused, model: cross}
  sparse: {use: sparse}
  fused: {use: hybrid, systems: [sparse, dense]}
  dense: {use: dense}
  e5: {use: dense, model: e5}
metrics:
  - ndcg@10
  - {use: faithful, judge: panel}
gates:
  - {metric: ndcg@10, system: dense, min: 0.1}
  - {metric: ndcg@10, system: reranked, min: 0.1}
  - {metric: ndcg@10, system: reranked, baseline: sparse, max_drop: 0}
"""


@pytest.fixture(autouse=True)
def installation() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("words", "builtin_words", "load"):
            patch.setattr(registry, name, getattr(plugins, name))
        yield


def read(text: str = SPEC, *only: str) -> Spec:
    return select(loads(text, environment={}, check_files=False), only)[0]


def names(spec: Spec) -> dict[str, list[str]]:
    return {key: list(getattr(spec, key)) for key in ("systems", "sources", "models", "judges")}


def test_without_a_pattern_everything_is_kept() -> None:
    assert names(read()) == {
        "systems": ["reranked", "sparse", "fused", "dense", "e5"],
        "sources": [],
        "models": ["cross", "e5", "asked", "minilm"],
        "judges": ["panel", "strict"],
    }


def test_a_system_that_a_selected_one_reads_becomes_a_source() -> None:
    assert names(read(SPEC, "reranked", "ndcg@10")) == {
        "systems": ["reranked"],
        "sources": ["sparse", "fused", "dense"],
        "models": ["cross", "minilm"],
        "judges": [],
    }


def test_a_selected_system_is_no_source_of_another() -> None:
    assert names(read(SPEC, "fused", "dense", "ndcg@10")) == {
        "systems": ["fused", "dense"],
        "sources": ["sparse"],
        "models": ["minilm"],
        "judges": [],
    }


def test_models_and_judges_of_selected_metrics_are_kept() -> None:
    assert names(read(SPEC, "sparse", "faithful")) == {
        "systems": ["sparse"],
        "sources": [],
        "models": ["asked"],
        "judges": ["panel", "strict"],
    }


def test_a_model_that_nothing_names_is_removed() -> None:
    spec = loads(SPEC + "name: named\n", overrides=["systems.e5={use: sparse}"], environment={}, check_files=False)
    assert [warning.code for warning in spec.warnings] == ["unused-block"]
    assert "e5" in spec.models
    assert "e5" not in select(spec, ())[0].models


def test_a_second_selection_finds_the_sources_again() -> None:
    twice = select(read(SPEC, "fused", "dense", "ndcg@10"), ("fused",))[0]
    assert names(twice)["sources"] == ["sparse", "dense"]


def test_a_pattern_that_names_a_model_gets_a_hint_to_its_systems() -> None:
    with pytest.raises(UsageError, match=r"--only minilm: no dataset, .* this name; it is a model that dense uses"):
        read(SPEC, "minilm")


def test_gates_on_sources_are_not_checked() -> None:
    spec, notes = select(loads(SPEC, environment={}, check_files=False), ("reranked",))
    assert [(gate.system, gate.baseline) for gate in spec.gates] == [("reranked", None)]
    assert [note.count for note in notes] == [2]


ANSWERS = """\
version: 1
datasets: {{support: {{use: beir, path: data}}}}
systems: {{bm25: {{use: bm25}}, mine: {{use: python, function: "app:answer"}}}}
metrics: {metrics}
"""


def select_answers(metrics: str, *only: str) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("words", "builtin_words", "load"):
            patch.setattr(registry, name, REAL[name])
        spec = read(ANSWERS.format(metrics=metrics), *only)
    return [metric.name for metric in spec.metrics]


def test_metrics_of_answers_are_left_out_with_the_last_system_that_answers() -> None:
    assert select_answers("[ndcg@10, token_f1]", "bm25") == ["ndcg@10"]
    assert select_answers("[ndcg@10, token_f1]", "mine") == ["ndcg@10", "token_f1"]
    assert select_answers("[ndcg@10, token_f1]", "bm25", "token_f1") == ["token_f1"]
    assert select_answers("[token_f1]", "bm25") == ["token_f1"]


RANKING = """\
version: 1
datasets: {{support: {{use: jsonl, path: golden.jsonl}}}}
systems: {{ranking: {{use: file, path: {file}}}, mine: {{use: file, path: answers.jsonl}}}}
metrics: [ndcg@10, token_f1]
gates: [{{metric: token_f1, min: 0.5}}]
"""


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("a.run", "q1 Q0 d1 1 0.5 t\n"),
        ("a.json", '{"q1": {"d1": 0.5}}'),
        ("a.csv", "query_id,doc_id,score\nq1,d1,0.5\n"),
        ("a.jsonl", '{"query_id": "q1", "doc_id": "d1", "score": 0.5}\n'),
    ],
)
def test_a_file_that_only_ranks_has_no_metrics_of_answers(tmp_path: Path, file: str, content: str) -> None:
    (tmp_path / file).write_text(content)
    (tmp_path / "golden.jsonl").write_text('{"query_id": "q1", "question": "Who?", "reference": "Me."}\n')
    (tmp_path / "answers.jsonl").write_text('{"query_id": "q1", "answer": "Me."}\n')
    with pytest.MonkeyPatch.context() as patch:
        for name in ("words", "builtin_words", "load"):
            patch.setattr(registry, name, REAL[name])
        spec = loads(RANKING.format(file=file), folder=tmp_path)
        ranked, notes = select(spec, ["ranking"])
        assert [metric.name for metric in ranked.metrics] == ["ndcg@10"]
        assert [note.message for note in notes] == [
            "1 of 1 gate is not checked: its metric, system or dataset was left out"
        ]
        assert [metric.name for metric in select(spec, ["mine"])[0].metrics] == ["ndcg@10", "token_f1"]
        assert [metric.name for metric in select(spec, ["ranking", "token_f1"])[0].metrics] == ["token_f1"]
