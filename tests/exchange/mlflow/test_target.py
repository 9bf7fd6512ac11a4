from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rageval_spec.data.trace import TraceLink
from rageval_spec.exchange.mlflow.target import MlflowTarget, MlflowTargetNode
from rageval_spec.plugin import Context
from tests.exchange.mlflow.sending import AGGREGATES, judge, make_traces, send
from tests.exchange.mlflow.server import MlflowServer
from tests.exchange.traced_evaluation import evaluate


def test_runs_come_first_and_then_the_feedback(mlflow: MlflowServer) -> None:
    assert dict(send(judge()).sent) == {"run": 1, "file": 1, "assessment": 10}


def test_answers_from_elsewhere_have_only_runs(mlflow: MlflowServer) -> None:
    others = [replace(trace, link=TraceLink("phoenix", "x")) for trace in make_traces(2)]
    receipt = send(evaluate(others, aggregates=AGGREGATES))
    assert (dict(receipt.sent), receipt.remarks) == ({"run": 1, "file": 1}, ())
    assert not mlflow.assessments


def test_a_dry_run_shows_everything_and_sends_nothing(mlflow: MlflowServer) -> None:
    assert send(judge(1), dry_run=True).remarks == (
        "faithfulness 0.5, ndcg_at_10 0.25 -> run support-bot",
        "rageval_values.json (1 row) -> run support-bot",
        f"faithfulness unscorable -> trace tr-{1:032x}",
        f"ndcg@10 0.25 -> trace tr-{1:032x}",
    )
    assert not mlflow.asked


def test_the_destination_names_the_server_and_the_experiment() -> None:
    target = MlflowTarget(MlflowTargetNode(url="http://localhost:5000", experiment="x"), Context("mlflow", Path()))
    assert target.destination == "http://localhost:5000, experiment x"
    target.close()
