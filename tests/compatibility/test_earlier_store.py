"""A store and a history that an earlier version wrote (commit b9c25d4) are still used.

`store/` and `history/` are what these commands left in `.rageval`, beside `evaluation/spec.yaml`, without the
fingerprints of files, which name paths; the endpoint gave replies that fit the schemas it was sent.

    rageval-spec run spec.yaml --save-as main --set 'gates=[]'
    rageval-spec run spec.yaml
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import Evaluation, JudgingCost
from rageval_spec.history.evaluation_lookup import SearchPlaces, find_record
from rageval_spec.metrics.shared.judged_metrics import RefusalAwareMetric
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.runner import Options, RunOutcome, run
from rageval_spec.spec import load

HERE = Path(__file__).parent
Kept = dict[str, set[bytes]]
OF_EMBEDDINGS = {"answer_relevancy", "semantic_similarity"}
"""The metrics whose values a model computes. Their last digits differ between processors."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The spec, and beside it what the earlier version left."""
    folder = tmp_path / "evaluation"
    shutil.copytree(HERE / "evaluation", folder)
    for name in ("store", "history"):
        shutil.copytree(HERE / name, folder / ".rageval" / name)
    monkeypatch.syspath_prepend(folder)
    return folder


def evaluate(folder: Path) -> RunOutcome:
    return run(folder / "spec.yaml", Options(output=folder / "out"))


def read_questions(folder: Path) -> Kept:
    """The digests of the questions that the store has replies to, by the key of who replied."""
    kept: Kept = defaultdict(set)
    with closing(sqlite3.connect(folder / ".rageval" / "store" / "answers" / "answers.sqlite")) as connection:
        rows = connection.execute("SELECT key, question FROM models JOIN answers ON model = id")
        for key, question in rows:
            kept[key].add(question)
    return dict(kept)


def list_values(evaluation: Evaluation) -> list[tuple[Any, ...]]:
    return evaluation.values.select("dataset", "system", "metric", "query_id", "value", "status").rows()


def list_tables(folder: Path) -> set[str]:
    return {path.name for path in (folder / ".rageval" / "store" / "tables").iterdir()}


def test_nothing_that_is_kept_is_retrieved_or_embedded_again_and_no_judge_is_asked(folder: Path) -> None:
    tables, questions = list_tables(folder), read_questions(folder)
    outcome = evaluate(folder)
    assert [str(failure) for failure in outcome.failures] == []
    assert {timing.system: timing.stored for timing in outcome.timings} == {"bm25": True, "dense": True}
    assert list_tables(folder) == tables
    # Answers of evaluations whose end nobody knows are asked for again; the same answers need no judge.
    assert outcome.spent.calls == outcome.spent.asked_of_systems
    models = build_parts(load(folder / "spec.yaml")).asked_models
    assert set(models) == {"minilm", "chat"}
    after = read_questions(folder)
    for model in models.values():
        assert len(questions[model.key]) > 10
        assert after[model.key] == questions[model.key]


def test_retry_failed_goes_on_with_the_answers_that_are_kept(folder: Path) -> None:
    assert run(folder / "spec.yaml", Options(output=folder / "out", retry_failed=True)).spent.calls == 0


def test_the_values_are_those_that_the_earlier_version_computed(folder: Path) -> None:
    earlier = find_record("main", SearchPlaces(folder / ".rageval" / "history", None)).evaluation
    assert list_values(evaluate(folder).evaluation) == [
        (*cell, pytest.approx(value, abs=1e-6) if cell[2] in OF_EMBEDDINGS else value, status)
        for *cell, value, status in list_values(earlier)
    ]


def test_the_record_has_no_samples_time_or_commit(folder: Path) -> None:
    record = find_record("main", SearchPlaces(folder / ".rageval" / "history", None))
    assert (record.evaluation.samples.height, record.time, record.commit) == (0, None, None)


def test_the_label_is_a_baseline(folder: Path) -> None:
    gates = evaluate(folder).evaluation.gates
    assert [(gate.metric, gate.system, gate.observed, gate.outcome) for gate in gates] == [
        ("ndcg@10", "bm25", 0.0, "pass"),
        ("ndcg@10", "dense", 0.0, "pass"),
        ("ndcg@10", "bot", 0.0, "pass"),
        ("faithfulness", "bot", 0.0, "pass"),
    ]


def test_replies_of_the_earlier_version_have_their_tokens(folder: Path) -> None:
    outcome = evaluate(folder)
    assert outcome.spent.calls == outcome.spent.asked_of_systems
    assert outcome.evaluation.provenance.judging == {"chat": JudgingCost(16, 16 * 7, 16 * 3, None)}


def test_values_from_before_more_refusals_were_found_are_not_compared_and_no_judge_is_asked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "spec.yaml"
    with monkeypatch.context() as earlier:
        earlier.setattr(RefusalAwareMetric, "version", "1")
        run(path, Options(output=folder / "out", save_as="before"))
    path.write_text(path.read_text().replace("baseline: main", "baseline: before"))
    outcome = evaluate(folder)
    gates = {gate.metric: gate for gate in outcome.evaluation.gates}
    assert (gates["ndcg@10"].outcome, gates["faithfulness"].outcome) == ("pass", "inconclusive")
    assert "the metric's code or files changed" in gates["faithfulness"].reason
    assert outcome.spent.calls == outcome.spent.asked_of_systems
    accepting = path.read_text().replace("{metric: faithfulness, ", "{metric: faithfulness, accept_changes: [metric], ")
    path.write_text(accepting)
    assert evaluate(folder).evaluation.gates[-1].outcome == "pass"
