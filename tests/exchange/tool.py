"""A tool for tests of the frame of exchange: its traces and what was sent to it are lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.traces import Document, Trace, TraceLink
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.contracts import Parcel, Target, TargetNode, TraceSource, WindowNode
from rageval_spec.exchange.shared.scores import EvaluationScores

TRACES = [
    Trace(
        TraceLink("toy", f"t{number}", f"s{number}", "support"),
        f"What is {number}?",
        answer=f"It is {number}.",
        documents=(Document(f"{number} is {number}.", f"d{number}", 0.5),),
        seconds=0.25,
        session="one",
    )
    for number in range(5)
]


class ToySource(TraceSource[WindowNode]):
    node_type = WindowNode
    summary = "Read the traces of a toy."
    traces: ClassVar[list[Trace]] = TRACES
    reads: ClassVar[int] = 0

    def read(self) -> Iterator[Trace]:
        type(self).reads += 1
        yield from self.traces


class ToyTarget(Target[TargetNode]):
    summary = "Send values to a toy."
    batch = 2
    stored: ClassVar[dict[str, float | None]] = {}
    fails_after: ClassVar[int] = 10**6

    @property
    def destination(self) -> str:
        return "the toy"

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        self._scores = EvaluationScores(evaluation, "toy")
        for score in self._scores:
            assert score.link is not None
            key = f"{score.link.trace_id}/{score.metric}"
            yield Parcel(key, {"value": score.value}, f"{score.metric} -> {score.link.trace_id}", "score")

    def send(self, parcels: Sequence[Parcel]) -> None:
        if len(self.stored) >= self.fails_after:
            raise RagevalError("the toy is broken")
        self.stored.update((parcel.key, parcel.body["value"]) for parcel in parcels)

    def remarks(self) -> Sequence[str]:
        return self._scores.remarks()


SOURCE = ToySource
TARGET = ToyTarget
