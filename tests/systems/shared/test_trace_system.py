"""Systems and datasets whose questions and answers are traces of a tool, and the report that sends values back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import Feedback, Step, Trace, TraceLink
from rageval_spec.datasets.shared.trace_dataset import TraceDataset
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.contracts import WindowNode
from rageval_spec.plugin import Context, DatasetNode, GeneratingNode
from rageval_spec.recorded.answers_and_steps import load_steps
from rageval_spec.systems.shared.trace_system import TraceSystem
from tests.command_line import invoke
from tests.exchange.tool import TRACES, ToySource


class ToySystemNode(GeneratingNode, WindowNode):
    """Traces of a toy."""


class ToyDatasetNode(DatasetNode, WindowNode):
    """Questions of a toy."""


class ToySystem(TraceSystem[ToySystemNode]):
    node_type = ToySystemNode
    source_type = ToySource


class ToyDataset(TraceDataset[ToyDatasetNode]):
    node_type = ToyDatasetNode
    source_type = ToySource


def build(folder: Path) -> tuple[ToyDataset, ToySystem]:
    context = Context("prod", folder)
    return ToyDataset(ToyDatasetNode(use="toy"), context), ToySystem(ToySystemNode(use="toy"), context)


def test_the_same_traces_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToySource, "reads", 0)
    dataset, system = build(tmp_path)
    collection = dataset.open()
    answers = system.answer(collection).answers
    assert answers["query_id"].to_list() == [f"t{number}:s{number}" for number in range(5)]
    assert answers.row(0, named=True)["answer"] == "It is 0."
    assert answers.row(0, named=True)["scores"] == [0.5]
    assert TraceLink.load(answers["trace"][2]) == TRACES[2].link
    assert ToySource.reads == 1


def test_of_several_traces_of_a_question_the_newest_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(number: int, started: str) -> Trace:
        return Trace(TraceLink("toy", f"t{number}"), "What is 1?", answer=f"answer {number}", started=started)

    monkeypatch.setattr(ToySource, "traces", [ask(1, "2026-01-02T00:00:00Z"), ask(2, "2026-01-01T00:00:00Z")])
    _, system = build(tmp_path)
    answering = system.answer(_collection("q1", "What is 1?"))
    assert answering.answers.select("query_id", "answer").rows() == [("q1", "answer 1")]
    assert [note.message for note in answering.written_notes] == ["1 older trace of the same questions left out"]


def test_the_newest_is_told_by_fractions_of_a_second_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Trace(TraceLink("toy", "t1"), "What is 1?", answer="old", started="2026-01-01T00:00:00Z")
    second = Trace(TraceLink("toy", "t2"), "What is 1?", answer="new", started="2026-01-01T00:00:00.250000Z")
    monkeypatch.setattr(ToySource, "traces", [second, first])
    _, system = build(tmp_path)
    assert system.answer(_collection("q1", "What is 1?")).answers["answer"].to_list() == ["new"]


def test_each_trace_is_matched_by_its_id_or_else_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(number: str, question: str) -> Trace:
        return Trace(TraceLink("toy", number), question, answer=f"from {number}", started="2026-01-01T00:00:00Z")

    monkeypatch.setattr(ToySource, "traces", [ask("q1", "What is 1?"), ask("t9", "What is 2?"), ask("t8", "Who?")])
    _, system = build(tmp_path)
    answering = system.answer(_collection("q1", "What is 1?", "q2", " What is 2?"))
    assert answering.answers.select("query_id", "answer").rows() == [("q1", "from q1"), ("q2", "from t9")]
    assert [note.message for note in answering.written_notes] == ["1 trace with other questions left out"]


def test_traces_with_other_questions_are_an_error_that_shows_both(tmp_path: Path) -> None:
    _, system = build(tmp_path)
    with pytest.raises(DataError, match="no trace has the id or the text of a question") as error:
        system.answer(_collection("q1", "Where is the spade?"))
    assert "the traces ask 'What is 0?', " in str(error.value)
    assert "the dataset asks 'Where is the spade?'" in str(error.value)


def test_what_an_agent_did_is_kept_with_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    did = (Step("tool", "search", '{"q": 1}', "found"), Step("model", "chat", documents=None))
    monkeypatch.setattr(ToySource, "traces", [Trace(TraceLink("toy", "q1"), "What is 1?", answer="1", steps=did)])
    _, system = build(tmp_path)
    answers = system.answer(_collection("q1", "What is 1?")).answers
    assert load_steps(answers["steps"][0]) == did


def test_a_plan_counts_the_calls_that_judges_will_need(tmp_path: Path) -> None:
    (tmp_path / "spans.json").write_text(json.dumps(SPANS))
    (tmp_path / "spec.yaml").write_text(
        "version: 1\ndatasets: {prod: {use: otel, path: spans.json}}\nsystems: {bot: {use: otel, path: spans.json}}\n"
        "models: {j: {use: chat, base_url: 'http://127.0.0.1:9/v1', model: x, price: {input: 1, output: 2}}}\n"
        "judges: {s: {use: grade, model: j}}\nmetrics:\n"
        "- {use: rubric, judge: s, criteria: Is it polite?, scale: [1, 5]}\n"
    )
    done = invoke("plan", tmp_path / "spec.yaml")
    assert done.exit_code == 0, done.output
    assert "1 call" in done.stdout


SPANS = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "0af7651916cd43dd8448eb211c80319c",
                            "spanId": "b7ad6b7169203331",
                            "name": "ask",
                            "startTimeUnixNano": "1772366400000000000",
                            "endTimeUnixNano": "1772366401000000000",
                            "attributes": [
                                {"key": "input.value", "value": {"stringValue": "Where is the spade?"}},
                                {"key": "output.value", "value": {"stringValue": "In the shed."}},
                                {"key": "openinference.span.kind", "value": {"stringValue": "CHAIN"}},
                            ],
                        }
                    ]
                }
            ]
        }
    ]
}


def _collection(*asked: str) -> Any:
    """A dataset of questions: ids and texts by turns."""
    import polars as pl

    from rageval_spec.data.tables import Collection

    questions = pl.DataFrame({"query_id": asked[::2], "text": asked[1::2]})
    return Collection("golden", load_queries=lambda: questions)


def test_scores_of_traces_are_columns_of_the_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rated = Trace(
        TraceLink("toy", "t1"), "Why?", answer="So.", metadata={"lang": "en"},
        feedback=(Feedback("stars", 4.0), Feedback("stars", 5.0), Feedback("kind", label="praise")),
    )  # fmt: skip
    monkeypatch.setattr(ToySource, "traces", [rated])
    dataset, system = build(tmp_path)
    found = system.answer(dataset.open()).answers["answer_columns"][0]
    assert json.loads(found) == {"lang": "en", "feedback.stars": 4.5, "feedback.kind": "praise"}


def test_a_trace_began_when_its_answer_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = ("2026-03-01T13:42:10.5+01:00", "2026-03-01 12:42:10", "yesterday", None)
    traces = [Trace(TraceLink("toy", f"q{n}"), f"What is {n}?", answer="1", started=at) for n, at in enumerate(times)]
    monkeypatch.setattr(ToySource, "traces", traces)
    dataset, system = build(tmp_path)
    asked = system.answer(dataset.open()).answers["asked"].to_list()
    assert asked == ["2026-03-01T12:42:10+00:00", "2026-03-01T12:42:10+00:00", None, None]


def _ask_versions(folder: Path, *versions: str | None) -> tuple[str, dict[str, Any]]:
    """What an evaluation of recorded answers of these versions says, and its results."""
    told = []
    for number, version in enumerate(versions):
        group = json.loads(json.dumps(SPANS["resourceSpans"][0]).replace("spade?", f"spade {number}?"))
        group["scopeSpans"][0]["spans"][0]["traceId"] = f"{number + 1:032x}"
        attributes = [] if version is None else [{"key": "service.version", "value": {"stringValue": version}}]
        told.append({**group, "resource": {"attributes": attributes}})
    (folder / "spans.json").write_text(json.dumps({"resourceSpans": told}))
    return _evaluate(folder, "{use: otel, path: spans.json}")


def _evaluate(folder: Path, system: str) -> tuple[str, dict[str, Any]]:
    (folder / "spec.yaml").write_text(
        "version: 1\ndatasets: {prod: {use: otel, path: spans.json}}\n"
        f"systems: {{bot: {system}}}\nmetrics: [{{use: max_words, value: 9}}]\nhistory: none\n"
    )
    done = invoke("run", folder / "spec.yaml", "-o", folder / "out")
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split()), json.loads((folder / "out" / "results.json").read_text())


def test_a_number_of_traces_of_two_versions_says_so_in_its_line(tmp_path: Path) -> None:
    told, results = _ask_versions(tmp_path, "1.4.0", "1.5.0", "1.5.0")
    assert "1.000 (2 versions)" in told
    assert "3 of 3 answers are recorded in otel, asked 2026-03-01 12:00 UTC; the answers are of 2 versions" in told
    assert results["taken_over"][0]["commits"] == {"1.4.0": 1, "1.5.0": 2}
    assert results["aggregates"][0]["versions"] == ["1.4.0", "1.5.0"]
    invoke("import", "otel", tmp_path / "spans.json", "-o", tmp_path / "answers.jsonl")
    told, again = _evaluate(tmp_path, "{use: file, path: answers.jsonl}")
    assert "1.000 (2 versions)" in told and "recorded in answers.jsonl, asked 2026-03-01 12:00 UTC;" in told
    assert again["taken_over"][0]["commits"] == results["taken_over"][0]["commits"]


def test_traces_without_a_version_are_told_apart_from_those_with_one(tmp_path: Path) -> None:
    assert "1.000 (2 versions)" in _ask_versions(tmp_path, "1.4.0", None)[0]


@pytest.mark.parametrize("version", ["1.4.0", None])
def test_traces_of_one_version_are_not_marked(tmp_path: Path, version: str | None) -> None:
    told, results = _ask_versions(tmp_path, version, version)
    assert "versions" not in told and ("asked 2026-03-01 12:00 UTC of version 1.4.0." in told) == (version is not None)
    assert "versions" not in results["aggregates"][0]
