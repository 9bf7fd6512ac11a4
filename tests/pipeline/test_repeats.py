"""`repeat:`: each question is asked several times, paid once each, kept apart in the store, and counted as one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import Collection
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.pipeline.planning.question_selection import repeat_questions
from rageval_spec.plugin.budget import Shard
from rageval_spec.runner import Options, run_shard
from rageval_spec.runner import plan as plan_spec
from rageval_spec.runner import run as run_spec

QUESTIONS = [{"query_id": name, "question": f"what is {name}?", "reference": "yes"} for name in ("q1", "q2")]
MODULE = """
from pathlib import Path
FILE = Path(__file__).parent / "asked.txt"

def answer(question, query_id):
    asked = FILE.read_text().splitlines() if FILE.exists() else []
    FILE.write_text("\\n".join([*asked, query_id]))
    return ["yes", "no"][asked.count(query_id) % 2]
"""


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_spec(folder: Path, **keys: Any) -> Path:
    """A spec with a system that answers yes and no in turn; `keys` are added or replaced."""
    write_rows(folder / "questions.jsonl", QUESTIONS)
    (folder / "run.trec").write_text("q1 Q0 d1 1 1.0 run\n")
    (folder / "turns.py").write_text(MODULE)
    spec = {
        "version": 1,
        "name": "repeats",
        "datasets": {"d": {"use": "golden", "path": "questions.jsonl"}},
        "systems": {"s": {"use": "python", "function": "turns:answer", "concurrency": 1}},
        "metrics": ["exact_match"],
        "repeat": 3,
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec | keys))
    return folder / "spec.yaml"


def run(path: Path, **options: Any) -> Evaluation:
    return run_spec(path, Options(store=path.parent / "store", no_history=True, **options)).evaluation


def asked(folder: Path) -> list[str]:
    return sorted((folder / "asked.txt").read_text().splitlines())


def answers(folder: Path, rows: Iterable[tuple[str, str]]) -> dict[str, Any]:
    write_rows(folder / "answers.jsonl", [{"query_id": name, "answer": text} for name, text in rows])
    return {"systems": {"s": {"use": "file", "path": "answers.jsonl"}}}


def test_each_question_is_asked_again_and_no_repeat_is_answered_from_the_store(tmp_path: Path) -> None:
    found = run(write_spec(tmp_path))
    assert asked(tmp_path) == ["q1"] * 3 + ["q2"] * 3
    assert found.values.sort("query_id").select("query_id", "value").rows() == [
        *(("q1#1", 1.0), ("q1#2", 0.0), ("q1#3", 1.0)),
        *(("q2#1", 1.0), ("q2#2", 0.0), ("q2#3", 1.0)),
    ]


def test_the_interval_counts_a_question_once(tmp_path: Path) -> None:
    (cell,) = run(write_spec(tmp_path)).aggregates
    assert (cell.scored, cell.total) == (6, 6)
    assert cell.design is not None
    assert cell.design.clusters == 2


def test_a_limit_is_of_questions(tmp_path: Path) -> None:
    run(write_spec(tmp_path), limit=1)
    assert asked(tmp_path) == ["q1"] * 3


def test_an_evaluation_that_stopped_asks_only_the_repeats_that_it_lacks(tmp_path: Path) -> None:
    path = write_spec(tmp_path, limits={"max_calls": 4})
    run(path)
    assert len(asked(tmp_path)) == 4
    plan = plan_spec(path, Options(store=tmp_path / "store"))
    assert plan.expectation.questions == {"s": 2}
    run(write_spec(tmp_path))
    assert asked(tmp_path) == ["q1"] * 3 + ["q2"] * 3


def test_the_plan_counts_repeats(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    assert plan_spec(path, Options(store=tmp_path / "store")).expectation.questions == {"s": 6}


def test_stability_shows_what_differs_and_the_gates_that_a_repeat_would_turn(tmp_path: Path) -> None:
    rows = [("q1", "yes"), ("q1", "no"), ("q1", "no"), ("q2", "yes"), ("q2", "yes"), ("q2", "yes")]
    gates = [{"metric": "exact_match", "min": 0.6}, {"metric": "exact_match", "min": 0.1}]
    found = run(write_spec(tmp_path, gates=gates, **answers(tmp_path, rows)))
    (one,) = found.stability
    # within: (4/9 + 1/9 + 1/9 + 0) / (6 - 2); between: (2 * 3 * (1/3)**2 - within) / 3
    assert (one.questions, one.changing) == (2, 1)
    assert one.within == pytest.approx(1 / 6)
    assert one.between == pytest.approx(1 / 6)
    assert [gate.outcome for gate in found.gates] == ["pass", "pass"]
    assert [gate.flips for gate in found.gates] == [2, 0]


def test_without_repeats_there_is_no_stability(tmp_path: Path) -> None:
    found = run(write_spec(tmp_path, repeat=1, gates=[{"metric": "exact_match", "min": 0.1}]))
    assert found.stability == ()
    assert [gate.flips for gate in found.gates] == [None]
    assert set(found.values["query_id"]) == {"q1", "q2"}


def test_a_recorded_answer_that_is_missing_is_an_error(tmp_path: Path) -> None:
    found = run(write_spec(tmp_path, **answers(tmp_path, [("q1", "yes"), ("q2", "yes"), ("q2", "no")])))
    lost = found.values.filter(status="error").sort("query_id")
    assert lost["query_id"].to_list() == ["q1#2", "q1#3", "q2#3"]
    assert set(lost["reason"]) == {"the system gave no answer to this query"}
    assert [(one.questions, one.changing) for one in found.stability] == [(1, 1)]


def test_recorded_answers_that_are_too_many_or_without_ids_are_refused(tmp_path: Path) -> None:
    outcome = run(write_spec(tmp_path, **answers(tmp_path, [("q1", "yes")] * 4)))
    assert outcome.failures[0].endswith("answers.jsonl:4: the question 'q1' has more answers than 'repeat: 3' allows")
    write_rows(tmp_path / "answers.jsonl", [{"question": "what is q1?", "answer": "yes"}])
    outcome = run(tmp_path / "spec.yaml")
    assert "answers.jsonl:1: 'repeat' needs the id of each answer's question" in outcome.failures[0]


def test_labels_name_the_repeat(tmp_path: Path) -> None:
    questions = [{"query_id": f"q{n}", "question": f"what is {n}?", "reference": "yes"} for n in range(12)]
    rows = [(one["query_id"], text) for one in questions for text in ("yes", "no")]
    people = {"people": {"use": "csv", "path": "labels.csv"}}
    metrics = [{"use": "token_f1", "labels": "people"}]
    path = write_spec(tmp_path, repeat=2, labels=people, metrics=metrics, **answers(tmp_path, rows))
    write_rows(tmp_path / "questions.jsonl", questions)
    for suffix, matching in (("", 0), ("#2", 12)):
        labels = "".join(f"q{n}{suffix},token_f1,ann,{n % 2}\n" for n in range(12))
        (tmp_path / "labels.csv").write_text(f"query_id,metric,annotator,value\n{labels}")
        (counted,) = plan_spec(path, Options(store=tmp_path / "store")).labels
        assert (counted.matching, counted.absent) == (matching, 12 - matching)
        (cell,) = run(path).aggregates
        assert cell.correction is not None
        assert cell.correction.labels == matching
        told = "12 are of a question that was asked several times (write q1#2 for the second answer to q1)"
        assert (told in (cell.correction.reason or "")) == (matching == 0)


def test_a_repeat_alone_is_corrected_by_people_as_the_whole_is(tmp_path: Path) -> None:
    questions = [{"query_id": f"q{n}", "question": f"what is {n}?", "reference": "yes"} for n in range(20)]
    keys: dict[str, Any] = {
        "labels": {"people": {"use": "csv", "path": "labels.csv"}},
        "metrics": [{"use": "token_f1", "labels": "people"}],
        "gates": [{"metric": "token_f1", "min": 0.8}],
    }
    rows = [(one["query_id"], "yes") for one in questions for _ in "ab"]  # right, says the metric
    path = write_spec(tmp_path, repeat=2, **keys, **answers(tmp_path, rows))
    write_rows(tmp_path / "questions.jsonl", questions)
    labels = "".join(f"q{n}#{k},token_f1,ann,{n % 2}\n" for n in range(20) for k in (1, 2))
    (tmp_path / "labels.csv").write_text(f"query_id,metric,annotator,value\n{labels}")
    (gate,) = run(path).gates
    assert (gate.outcome, gate.flips) == ("fail", 0)


def test_clusters_join_the_repeats_of_their_questions(tmp_path: Path) -> None:
    path = write_spec(tmp_path, cluster="source")
    first, second = QUESTIONS
    rows = [first | {"source": "a"}, second, first | {"query_id": "q3", "source": "a"}]
    write_rows(tmp_path / "questions.jsonl", rows)
    (cell,) = run(path).aggregates
    assert cell.design is not None
    assert cell.design.clusters == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"systems": {"b": {"use": "file", "path": "run.trec"}}, "metrics": ["ndcg@10"]},
         "'b' gives the same result each time"),
        ({"stopping": {"when": "decided"}, "gates": [{"metric": "exact_match", "min": 0.5}]},
         "'stopping' cannot be combined with 'repeat'"),
        ({"repeat": 0}, "repeat"),
        ({"repeat": 101}, "repeat"),
    ],
)  # fmt: skip
def test_what_cannot_be_repeated_is_refused(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        run(write_spec(tmp_path, **keys))


def test_shards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RagevalError, match="'repeat' cannot be combined with --shard"):
        run_shard(write_spec(tmp_path), Shard(1, 2), Options(output=tmp_path))


def test_every_table_has_each_question_again() -> None:
    collection = Collection(
        "d",
        load_queries=lambda: pl.DataFrame({"query_id": ["b", "a"], "text": ["B", "A"]}),
        load_qrels=lambda: pl.DataFrame({"query_id": ["a", "a"], "doc_id": ["x", "y"], "relevance": [1, 0]}),
        load_references=lambda: pl.DataFrame({"query_id": ["a"], "references": [["r", "s"]]}),
        load_columns=lambda: None,
    )
    assert repeat_questions(collection, 1) is collection
    found = repeat_questions(collection, 2)
    assert found.queries is not None
    assert found.queries.rows() == [("b#1", "B"), ("b#2", "B"), ("a#1", "A"), ("a#2", "A")]
    assert found.qrels is not None
    assert found.qrels.rows() == [("a#1", "x", 1), ("a#1", "y", 0), ("a#2", "x", 1), ("a#2", "y", 0)]
    assert found.references is not None
    assert found.references.rows() == [("a#1", ["r", "s"]), ("a#2", ["r", "s"])]
    assert found.columns is None


def test_passages_are_refused() -> None:
    collection = Collection("d", load_passages=lambda: object())  # type: ignore[arg-type, return-value]
    with pytest.raises(DataError, match="names passages as relevant, which 'repeat' cannot count"):
        repeat_questions(collection, 2)
