"""The embedding model of blocks that name none: minilm, or multilingual for texts outside minilm's vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.outcomes import Note
from rageval_spec.diagnostics import SpecError
from rageval_spec.inference.embedded_models import EMBEDDED, EmbeddedModel
from rageval_spec.pipeline.planning.default_model import ChosenModel, choose_default_model, load_chosen
from rageval_spec.runner import Options, plan, run
from rageval_spec.spec import Spec, load
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


def choose(spec: Spec) -> tuple[Spec, str, Note | None]:
    chosen = choose_default_model(spec)
    (note,) = chosen.notes or (None,)
    return chosen.spec, chosen.reason, note


def node_of(spec: Any, section: str, name: str) -> dict[str, Any]:
    dumped: dict[str, Any] = getattr(spec, section)[name].model_dump()
    return dumped


def test_german_documents_get_multilingual_and_a_note_says_why(tmp_path: Path) -> None:
    spec, reason, note = choose(load(write(tmp_path, GERMAN)))
    assert note is not None
    assert note.message.startswith(reason)
    assert node_of(spec, "systems", "dense")["model"] == "multilingual"
    assert node_of(spec, "models", "multilingual")["model"] == "multilingual"
    assert note.code == "default_model"
    assert note.dataset == "golden"
    assert "the model multilingual is used where the spec names none: minilm's vocabulary has" in note.message
    assert "write 'model: multilingual'" in note.message


def test_english_documents_keep_minilm_without_a_note(tmp_path: Path) -> None:
    spec = load(write(tmp_path, ENGLISH))
    chosen, reason, note = choose(spec)
    assert (chosen, note) == (spec, None)
    assert reason.startswith("the model minilm is used where the spec names none: minilm's vocabulary has ")


def test_a_model_that_is_written_down_stays(tmp_path: Path) -> None:
    spec = load(write(tmp_path, GERMAN, "dense: {use: dense, model: minilm}"))
    assert choose_default_model(spec) == ChosenModel(spec)


def test_a_block_called_minilm_that_is_another_model_stays(tmp_path: Path) -> None:
    spec = load(write(tmp_path, GERMAN, more="models: {minilm: {use: onnx, model: minilm, precision: int8}}\n"))
    assert choose_default_model(spec) == ChosenModel(spec)


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
    spec, _, note = choose(load(path))
    assert note is not None
    assert node_of(spec, "judges", "embedding")["model"] == "multilingual"
    assert node_of(spec, "judges", "steps")["retrieval"]["model"] == "multilingual"
    assert spec.metrics[0].node.model_dump()["model"] == "multilingual"


def hide(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found = EmbeddedModel.list_folders
    monkeypatch.setattr(EmbeddedModel, "list_folders", lambda model: () if model.name == name else found(model))


def test_without_multilingual_a_warning_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "multilingual")
    before = load(write(tmp_path, GERMAN))
    spec, _, note = choose(before)
    assert spec == before
    assert note is not None
    assert note.level == "warning"
    assert "run `pip install 'rageval-spec[multilingual]'`" in note.message
    assert EMBEDDED["multilingual"].install in note.message


def test_with_multilingual_alone_it_is_the_default_for_every_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "minilm")
    spec, _, note = choose(load(write(tmp_path, ENGLISH)))
    assert node_of(spec, "systems", "dense")["model"] == "multilingual"
    assert note is not None
    assert "names none: minilm is not installed" in note.message
    with pytest.raises(SpecError, match="the embedded model minilm is not installed"):
        run(
            write(
                tmp_path, ENGLISH, "dense: {use: dense, model: other}", "models: {other: {use: onnx, model: minilm}}\n"
            )
        )


def test_damage_of_the_chosen_model_is_reported_at_the_block_that_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = EmbeddedModel.list_folders
    monkeypatch.setattr(EmbeddedModel, "list_folders", lambda one: (tmp_path,) if "q4" in one.weights else found(one))
    (tmp_path / EMBEDDED["multilingual"].weights).write_bytes(b"E5S1")
    with pytest.raises(SpecError, match=r"bin: the embedded model multilingual differs from the published") as caught:
        run(write(tmp_path, GERMAN), Options(output=tmp_path / "out", no_store=True, no_history=True))
    (line,) = str(caught.value).splitlines()[:1]
    assert "spec.yaml:3:" in line


def test_a_default_that_nothing_uses_is_no_reason(tmp_path: Path) -> None:
    answer = {"id": "1", "question": GERMAN, "answer": GERMAN, "contexts": [GERMAN]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer) + "\n", "utf-8")
    path = write(tmp_path, GERMAN, "bot: {use: file, path: answers.jsonl}")
    judges = "judges: {words: {use: embedding, model: minilm}}"
    text = path.read_text().replace("metrics: [rr]", "metrics: [{use: answer_relevancy, judge: words}]\n" + judges)
    path.write_text(text)
    spec = load(path)
    assert choose_default_model(spec) == ChosenModel(spec)


def test_a_block_of_ones_own_called_multilingual_is_the_other_model(tmp_path: Path) -> None:
    block = "models: {multilingual: {use: onnx, model: multilingual, precision: int8}}\n"
    path = write(tmp_path, GERMAN, more=block)
    assert "models: the model multilingual is used" in plan(path, Options(no_store=True)).render()
    evaluation = run(path, Options(output=tmp_path / "out", no_store=True, no_history=True)).evaluation
    assert evaluation.provenance.spec["models"]["multilingual"]["precision"] == "int8"


def test_a_damaged_vocabulary_is_left_to_whoever_reads_with_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = load(write(tmp_path, GERMAN))
    for content in ("{broken", "{}", "[]"):
        (tmp_path / content[1:4]).mkdir()
        (tmp_path / content[1:4] / "tokenizer.json").write_text(content)
        monkeypatch.setattr(EmbeddedModel, "find_folder", lambda _, folder=tmp_path / content[1:4]: folder)
        assert choose_default_model(spec) == ChosenModel(spec)


def test_commands_beside_an_evaluation_choose_alike(tmp_path: Path) -> None:
    assert node_of(load_chosen(write(tmp_path, GERMAN)), "systems", "dense")["model"] == "multilingual"


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
    spec, _, note = choose(load(path))
    assert spec.metrics[0].node.model_dump()["model"] == "multilingual"
    assert note is not None


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
    assert choose_default_model(spec) == ChosenModel(spec)
