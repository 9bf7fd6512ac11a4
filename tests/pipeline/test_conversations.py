"""Conversations and what agents did, through the whole pipeline: kept in the results and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec import runner
from rageval_spec.commands.show import show
from rageval_spec.drawing.cards import build_card
from rageval_spec.drawing.question_order import Filter
from rageval_spec.runner import Options, RunOutcome
from tests.browser import open_page, start_browser
from tests.tiny import write_spec

TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
ROW = {
    "id": "q1",
    "messages": [
        {"role": "user", "content": "Where is Rome?"},
        {"role": "assistant", "content": "In Italy."},
        {"role": "user", "content": "And Paris?"},
        {"role": "assistant", "content": "SPOILER"},
    ],
    "reference": "In France.",
}
ANSWER = {
    "id": "q1",
    "answer": "In France.",
    "steps": [{"name": "search", "input": "Paris", "output": [{"id": "d1", "text": "Paris is in France."}]}],
}


def evaluate(folder: Path, **sections: Any) -> RunOutcome:
    (folder / "golden.jsonl").write_text(json.dumps(ROW) + "\n")
    (folder / "answers.jsonl").write_text(json.dumps(ANSWER) + "\n")
    base: dict[str, Any] = {
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {"agent": {"use": "file", "path": "answers.jsonl"}},
        "metrics": ["exact_match", {"use": "faithfulness", "judge": "overlap"}],
        "reports": ["json", "html"],
    }
    return runner.run(write_spec(folder, **{**base, **sections}), Options(output=folder / "out"))


def test_samples_keep_the_question_the_conversation_and_the_steps(tmp_path: Path) -> None:
    outcome = evaluate(tmp_path)
    (sample,) = outcome.evaluation.samples.iter_rows(named=True)
    assert sample["question"] == "And Paris?"
    assert json.loads(sample["columns"])["messages"] == ROW["messages"]
    assert json.loads(sample["steps"])[0]["documents"] == [{"id": "d1", "text": "Paris is in France."}]
    assert sample["contexts"] == ["Paris is in France."] and sample["context_ids"] == ["d1"]
    assert {one.metric: one.scored for one in outcome.evaluation.aggregates} == {"exact_match": 1, "faithfulness": 1}


def test_cards_show_them_and_not_what_came_after_the_question(tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path).evaluation
    card = build_card(evaluation, "golden", "agent", "q1")
    assert [turn["content"] for turn in card.history] == ["Where is Rome?", "In Italy."]
    assert [step.name for step in card.steps] == ["search"]
    assert "messages" not in card.columns
    for form, told in (
        ("text", ("user: Where is Rome?", "assistant: In Italy.", "1 retrieval search(Paris) → 1 document: d1")),
        ("markdown", ("**History:** user: Where is Rome?", "**Steps:** 1 retrieval search(Paris) → 1 document: d1")),
    ):
        text = show(["q1"], Filter(), form, results=str(tmp_path / "out")).decode()  # type: ignore[arg-type]
        assert all(line in text for line in told), text
        assert "SPOILER" not in text


def test_the_page_shows_earlier_turns_and_steps(tmp_path: Path) -> None:
    evaluate(tmp_path)
    with start_browser() as browser, open_page(browser, tmp_path / "out" / "report.html", "#q=q1") as opened:
        card = opened.page.locator(".card")
        card.wait_for()
        told = card.inner_text()
        assert "Earlier turns" in told and "Where is Rome?" in told and "In Italy." in told
        assert "Steps (1)" in told and "search(Paris)" in told
        assert "SPOILER" not in told
        assert opened.page.get_by_text("Other columns").count() == 0


def test_the_page_says_which_calls_were_expected_and_which_are_missing(tmp_path: Path) -> None:
    evaluate(tmp_path, metrics=["tool_correctness"])
    (tmp_path / "golden.jsonl").write_text(json.dumps(ROW | {"expected_tools": ["book", "search"]}) + "\n")
    runner.run(tmp_path / "spec.yaml", Options(output=tmp_path / "out"))
    with start_browser() as browser, open_page(browser, tmp_path / "out" / "report.html", "#q=q1") as opened:
        card = opened.page.locator(".card")
        card.wait_for()
        told = card.locator(".agent").inner_text()
        assert "✓ expected search(Paris)" in told
        assert "missing book" in told
        assert card.get_by_text("What the judges said").count() == 0


@pytest.mark.parametrize("column", ["question", "answer", "contexts"])
def test_redacted_columns_are_not_in_the_steps_either(tmp_path: Path, column: str) -> None:
    evaluate(tmp_path, redact=[column], reports=["json"])
    (sample,) = pl.read_parquet(tmp_path / "out" / "samples.parquet").iter_rows(named=True)
    assert sample["steps"] is None
    assert ("messages" in json.loads(sample["columns"])) == (column != "question")


def test_old_files_of_samples_have_no_steps(tmp_path: Path) -> None:
    evaluate(tmp_path)
    path = tmp_path / "out" / "samples.parquet"
    metadata = pl.read_parquet_metadata(path)
    old = {key: value for key, value in metadata.items() if not key.startswith("ARROW")}
    pl.read_parquet(path).drop("steps", "trace").write_parquet(path, metadata=old)
    text = show(["q1"], Filter(), "text", results=str(tmp_path / "out")).decode()
    assert "And Paris?" in text and "search(Paris)" not in text


@pytest.mark.parametrize(
    ("name", "query_id", "columns"),
    [
        ("react_hotpotqa.jsonl", "react-0000", {}),
        # Its simulated user has the last word.
        ("tau_bench_airline_gpt4o.jsonl.gz", "airline-0-0", {"answer": "$.messages[-2].content"}),
    ],
)
def test_a_file_of_real_traces_is_a_dataset_and_a_system(
    tmp_path: Path, name: str, query_id: str, columns: dict[str, str]
) -> None:
    path = str(TRACES / name)
    if not (TRACES / name).exists():
        pytest.skip(f"{path} is absent: these traces are not part of the repository")
    metrics = [{"use": "context_relevance", "judge": "overlap"}] if name.startswith("react") else ["error_rate"]
    outcome = evaluate(
        tmp_path,
        datasets={"traces": {"use": "jsonl", "path": path}},
        systems={"agent": {"use": "file", "path": path, "columns": columns}},
        metrics=metrics,
        reports=["json"],
    )
    card = build_card(outcome.evaluation, "traces", "agent", query_id)
    assert card.answer and card.steps
    assert bool(card.history) == name.startswith("tau")


def test_a_conversation_is_answered_by_what_follows_its_question(tmp_path: Path) -> None:
    told = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    rows = [
        {"id": "q1", "messages": [*told, {"role": "user", "content": "Rome?"}]},
        {"id": "q2", "messages": [*told, {"role": "user", "content": "Oslo?"}, {"role": "assistant", "content": "No"}]},
    ]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = evaluate(
        tmp_path,
        datasets={"golden": {"use": "jsonl", "path": "chats.jsonl"}},
        systems={"agent": {"use": "file", "path": "chats.jsonl"}},
        metrics=["error_rate"],
    )
    first, second = outcome.evaluation.samples.iter_rows(named=True)
    assert first["error"] == "the conversation ends without an answer to the user's last turn"
    assert second["answer"] == "No"


def test_a_step_of_the_same_answers_is_another_system_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "q1", "question": "Where?", "relevant": ["b"]}\n')
    (tmp_path / "agent.py").write_text(
        "from pathlib import Path\n"
        "def answer(question):\n"
        "    with (Path(__file__).parent / 'asked.txt').open('a') as file: file.write('.')\n"
        "    steps = [{'name': 'search', 'documents': [{'id': one, 'text': one}]} for one in 'ab']\n"
        "    return {'answer': 'x', 'steps': steps}\n"
    )
    steps = {"whole": {}, "first": {"retrieval_step": 1}, "second": {"retrieval_step": 2}}
    outcome = runner.run(
        write_spec(
            tmp_path,
            datasets={"golden": {"use": "jsonl", "path": "golden.jsonl"}},
            systems={name: {"use": "python", "function": "agent:answer", **step} for name, step in steps.items()},
            metrics=["recall@5", {"use": "context_precision", "by": "ids"}],
            reports=["json"],
        ),
        Options(output=tmp_path / "out"),
    )
    found = {(one.metric, one.system): one.mean for one in outcome.evaluation.aggregates}
    assert [found["recall@5", name] for name in steps] == [1.0, 0.0, 1.0]
    assert [found["context_precision(by=ids)", name] for name in steps] == [0.5, 0.0, 1.0]
    assert (tmp_path / "asked.txt").read_text() == "."


def test_turns_have_values_and_conversations_are_slices_and_clusters(tmp_path: Path) -> None:
    turns = [("a.1", "a", "blue door"), ("a.2", "a", "red roof"), ("b.1", "b", "blue door")]
    rows = [{"id": name, "question": f"{name}?", "reference": "blue door", "conversation": of} for name, of, _ in turns]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = [{"id": name, "answer": answer} for name, _, answer in turns]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    outcome = runner.run(
        write_spec(
            tmp_path,
            datasets={"golden": {"use": "jsonl", "path": "golden.jsonl"}},
            systems={"bot": {"use": "file", "path": "answers.jsonl"}},
            metrics=[{"use": "completeness", "judge": "overlap"}],
            cluster="conversation",
            slices=[{"by": "conversation", "min_queries": 1}],
            reports=["json"],
        ),
        Options(output=tmp_path / "out"),
    )
    evaluation = outcome.evaluation
    values = dict(evaluation.values.select("query_id", "value").iter_rows())
    means = {one.name: one.aggregates[0].mean for one in evaluation.slices}
    assert means == {
        "conversation=a": pytest.approx((values["a.1"] + values["a.2"]) / 2),
        "conversation=b": pytest.approx(values["b.1"]),
    }
    assert evaluation.aggregates[0].design is not None
    assert evaluation.aggregates[0].design.clusters == 2
