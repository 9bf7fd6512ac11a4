""""""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError

from rageval_spec.data.tables import SampleTable
from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.phoenix.target import PhoenixTarget, PhoenixTargetNode
from rageval_spec.exchange.shared.contracts import load
from rageval_spec.plugin import Context
from tests.endpoints.api_server import Asked
from tests.exchange.phoenix.sending import make_traces, send
from tests.exchange.phoenix.server import PhoenixServer, make_trace
from tests.exchange.traced_evaluation import USEFUL, evaluate
from tests.models.endpoint import Answer


def test_an_experiment_needs_a_dataset() -> None:
    with pytest.raises(ValidationError, match="name `dataset` too"):
        PhoenixTargetNode(experiment="nightly")


def test_the_destination_names_the_server_and_the_dataset() -> None:
    node = PhoenixTargetNode(url="http://localhost:6006/", dataset="golden")
    target = PhoenixTarget(node, Context("phoenix", Path()))
    assert target.destination == "http://localhost:6006, dataset golden"
    target.close()


def test_the_tool_can_be_found() -> None:
    assert load("phoenix").target is PhoenixTarget


def test_values_reasons_and_labels_go_to_the_span_of_the_answer(phoenix: PhoenixServer) -> None:
    receipt = send(evaluate(make_traces()))
    assert dict(receipt.sent) == {"span annotation": 10, "document annotation": 5}
    one = phoenix.annotations["span", f"{2:014x}01", None, "faithfulness", "rageval-spec:support-bot/golden/v1"]
    reason = '1 supported, 1 contradicted\ncontradicted: "For an hour.": the text says a second'
    assert one["result"] == {"score": 0.1, "label": "poor", "explanation": reason}
    assert one["annotator_kind"] == "LLM"
    assert one["metadata"]["query_id"] == f"{2:032x}:{2:014x}01"
    lost = phoenix.annotations["span", f"{5:014x}01", None, "faithfulness", "rageval-spec:support-bot/golden/v1"]
    assert lost["result"] == {"score": None, "label": "unscorable", "explanation": "there is no answer"}
    code = phoenix.annotations["span", f"{1:014x}01", None, "ndcg@10", "rageval-spec:support-bot/golden/v1"]
    assert (code["annotator_kind"], code["result"]["score"]) == ("CODE", 0.25)


def test_the_dataset_s_judgements_go_to_the_documents(phoenix: PhoenixServer) -> None:
    send(evaluate(make_traces()))
    one = phoenix.annotations["document", f"{1:014x}02", 0, "relevance", None]
    assert (one["result"]["score"], one["result"]["label"]) == (1, "relevant")
    assert ("document", f"{1:014x}02", 1, "relevance", None) not in phoenix.annotations


def test_what_a_judge_says_of_each_context_goes_to_the_document(phoenix: PhoenixServer) -> None:
    send(evaluate(make_traces(2), details={"contexts": list(USEFUL)}))
    documents = [(key, one) for key, one in phoenix.annotations.items() if key[0] == "document"]
    found = {key[2]: one["result"] for key, one in documents if key[3] == "faithfulness"}
    assert found[0] == {"score": 1.0, "label": "relevant", "explanation": "it says how"}
    assert found[1]["score"] == 0.25


def test_answers_of_whole_traces_get_trace_annotations(phoenix: PhoenixServer) -> None:
    whole = [replace(trace, link=replace(trace.link, span_id=None, others={})) for trace in make_traces(2)]
    assert dict(send(evaluate(whole)).sent) == {"trace annotation": 4}
    assert ("trace", f"{1:032x}", None, "ndcg@10", "rageval-spec:support-bot/golden/v1") in phoenix.annotations


def test_sending_twice_leaves_the_same(phoenix: PhoenixServer) -> None:
    send(evaluate(make_traces()))
    before = phoenix.snapshot()
    send(evaluate(make_traces()))
    assert phoenix.snapshot() == before
    send(evaluate(make_traces(), 0.5))
    assert len(phoenix.annotations) == 15


def test_a_dry_run_shows_everything_and_sends_nothing(phoenix: PhoenixServer) -> None:
    receipt = send(evaluate(make_traces(1)), dry_run=True)
    assert receipt.remarks == (
        f"relevance 1 -> document 0 of span {1:014x}02",
        f"faithfulness unscorable -> span {1:014x}01",
        f"ndcg@10 0.25 -> span {1:014x}01",
    )
    assert not phoenix.asked


def test_an_export_that_was_killed_goes_on(phoenix: PhoenixServer, tmp_path: Path) -> None:
    phoenix.spans = [span for number in range(1, 51) for span in make_trace(number)]
    evaluation = evaluate(make_traces(50))
    real, calls = phoenix.answer, iter(range(100))

    def break_down(asked: Asked) -> Answer:
        return real(asked) if next(calls) < 2 else Answer(b"gone", 400)

    phoenix.reply = break_down
    with pytest.raises(RagevalError, match="answered 400"):
        send(evaluation, tmp_path)
    phoenix.reply = real
    receipt = send(evaluation, tmp_path)
    assert (receipt.known, receipt.sent.total()) == (50, 100)
    assert len(phoenix.annotations) == 150
    assert send(evaluation, tmp_path).sent.total() == 0


def test_spans_that_are_gone_are_left_out_and_counted(phoenix: PhoenixServer) -> None:
    traces = make_traces()
    gone = [replace(one, link=replace(one.link, span_id=f"{'0' * 15}{number}", others={}), query_id=f"gone{number}")
            for number, one in enumerate(traces[:2], 1)]  # fmt: skip
    receipt = send(evaluate([*gone, *traces]))
    assert receipt.remarks == ("4 annotations left out: 2 spans not in Phoenix, such as 0000000000000001",)
    assert len(phoenix.annotations) == 15


def test_a_span_whose_documents_have_changed_gets_none_of_their_annotations(phoenix: PhoenixServer) -> None:
    shrunk = phoenix.spans[1]["attributes"]
    phoenix.spans[1]["attributes"] = {key: value for key, value in shrunk.items() if "documents" not in key}
    receipt = send(evaluate(make_traces()))
    assert receipt.remarks == (f"1 annotation left out: 1 span not in Phoenix, such as {1:014x}02",)


def test_another_refusal_is_an_error(phoenix: PhoenixServer) -> None:
    phoenix.reply = lambda asked: Answer({"detail": [{"msg": "Input should be 'LLM'"}]}, 422)
    with pytest.raises(RagevalError, match=r"/v1/document_annotations answered 422 .*Input should be"):
        send(evaluate(make_traces()))


def test_answers_without_a_trace_of_phoenix_are_refused(phoenix: PhoenixServer) -> None:
    others = [replace(trace, link=TraceLink("mlflow", "tr-1")) for trace in make_traces(2)]
    with pytest.raises(UsageError, match="no answer has a trace of phoenix; their traces are of mlflow"):
        send(evaluate(others))


def test_documents_of_a_trace_that_two_datasets_share_are_kept_apart(phoenix: PhoenixServer) -> None:
    evaluation = evaluate(make_traces(1))
    samples, values = evaluation.samples, evaluation.values
    hard = pl.lit("hard").alias("dataset")
    both = replace(
        evaluation,
        datasets=("golden", "hard"),
        values=pl.concat([values, values.with_columns(hard)]),
        sample_table=SampleTable(lambda: [pl.concat([samples, samples.with_columns(hard)])]),
    )
    assert send(both).remarks == ()
    names = sorted(key[3] for key in phoenix.annotations if key[0] == "document")
    assert names == ["relevance", "relevance (hard/v1)"]


@pytest.fixture
def examples(phoenix: PhoenixServer) -> Iterator[list[Trace]]:
    """Answers to the examples of a dataset; one of them failed, and one question is in no example."""
    phoenix.examples = [
        {"id": f"e{number}", "node_id": f"N{number}", "input": {"question": f"Question {number}?"}, "output": {},
         "metadata": {}}
        for number in (1, 2, 3)
    ]  # fmt: skip
    link = TraceLink("file", "x")
    known = Trace(link, "other words", query_id="e1", answer="one", seconds=2.0)
    by_text = Trace(link, " question 2? ", query_id="mine", answer="two")
    failed = Trace(link, "Question 3?", query_id="q3", error="HTTP 500")
    yield [known, by_text, failed, Trace(link, "Where?", query_id="q4", answer="four")]


def test_an_experiment_has_a_run_for_each_answer_with_its_values(phoenix: PhoenixServer, examples: list[Trace]) -> None:
    receipt = send(evaluate(examples), dataset="golden", experiment="nightly")
    assert dict(receipt.sent) == {"experiment run": 3}
    assert receipt.remarks == ("1 answer left out: the dataset golden has no such example",)
    assert [one["name"] for one in phoenix.experiments] == ["nightly"]
    runs = {run["dataset_example_id"]: run for run in phoenix.runs.values()}
    assert runs["N1"]["output"] == {"answer": "one"}
    assert (runs["N3"]["output"], runs["N3"]["error"]) == (None, "HTTP 500")
    values = {name: one["result"]["score"] for (run, name), one in phoenix.evaluations.items() if run.endswith("N2")}
    assert values == {"faithfulness": 0.1, "ndcg@10": 0.25}


def test_the_same_answers_keep_their_experiment_and_others_make_a_new_one(
    phoenix: PhoenixServer, examples: list[Trace]
) -> None:
    send(evaluate(examples), dataset="golden")
    before = phoenix.snapshot()
    send(evaluate(examples), dataset="golden")
    assert phoenix.snapshot() == before
    send(evaluate(examples, 0.5), dataset="golden")
    assert len(phoenix.experiments) == 1
    assert phoenix.evaluations["E0-N2", "faithfulness"]["result"]["score"] == 0.6
    send(evaluate([replace(examples[0], answer="another")]), dataset="golden")
    assert len(phoenix.experiments) == 2


def test_a_run_whose_reply_was_lost_is_found_again(phoenix: PhoenixServer, examples: list[Trace]) -> None:
    real, dropped = phoenix.answer, list[Asked]()

    def lose(asked: Asked) -> Answer:
        answer = real(asked)
        if asked.method == "POST" and asked.route.endswith("/runs") and not dropped:
            dropped.append(asked)
            return Answer(b"", 503)
        return answer

    phoenix.reply = lose
    send(evaluate(examples[:1]), dataset="golden")
    assert len(phoenix.runs) == 1
    assert phoenix.evaluations["E0-N1", "ndcg@10"]["result"]["score"] == 0.25


def test_a_dataset_without_the_questions_is_refused(phoenix: PhoenixServer, examples: list[Trace]) -> None:
    with pytest.raises(UsageError, match="no question of the evaluation is in the dataset 'golden'"):
        send(evaluate(examples[3:]), dataset="golden")
