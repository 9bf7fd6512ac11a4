from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rageval_spec.data.trace import Trace, TraceLink
from rageval_spec.errors import UsageError
from tests.endpoints.api_server import Asked
from tests.exchange.phoenix.sending import send
from tests.exchange.phoenix.server import PhoenixServer
from tests.exchange.traced_evaluation import evaluate
from tests.models.endpoint import Answer


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
