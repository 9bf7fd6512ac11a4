"""Values go to the traces of their answers, or with the answers into an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rageval_spec.exchange.shared.experiments import ExperimentNode, ExperimentTarget
from rageval_spec.exchange.shared.target import Parcel
from rageval_spec.history.folder import load_record
from rageval_spec.plugin import Context
from tests.exchange.evaluating import evaluate


class Recorder:
    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.is_closed = False

    def send(self, bodies: Sequence[Any]) -> None:
        self.bodies.extend(bodies)

    def close(self) -> None:
        self.is_closed = True


class Toy(ExperimentTarget[ExperimentNode]):
    tool = "toy"

    @property
    def url(self) -> str:
        return "http://toy"

    def open_sender(self) -> Recorder:
        return Recorder()

    def make_answer(self, score: Any, run: str) -> Parcel:
        return Parcel(f"answer/{score.query_id}", [run, score.query_id], "answer", "answer")

    def make_value(self, score: Any, judgements: Any, names: Any, run: str | None) -> Parcel:
        return Parcel(score.key, [run, score.metric], "value")


def test_values_go_to_traces_and_with_a_dataset_after_their_answers(toy: ModuleType, tmp_path: Path) -> None:
    evaluation = load_record(evaluate(tmp_path)).evaluation
    traced = Toy(ExperimentNode(), Context("toy"))
    assert traced.destination == "http://toy"
    assert [one.body for one in traced.list_parcels(evaluation)][:2] == [[None, "is_json"], [None, "latency@p50"]]
    experiment = Toy(ExperimentNode(dataset="golden", run="v2"), Context("toy"))
    assert experiment.destination == "http://toy, dataset golden"
    parcels = list(experiment.list_parcels(evaluation))
    assert [one.body for one in parcels[:3]] == [["v2", "t0:s0"], ["v2", "is_json"], ["v2", "latency@p50"]]
    assert len(parcels) == 15
    experiment.send(parcels[:2])
    sender = experiment.sender
    experiment.send(parcels[2:])
    assert experiment.sender is sender and len(sender.bodies) == 15
    experiment.close()
    assert sender.is_closed
