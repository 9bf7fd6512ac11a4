"""OTLP files: the values of an evaluation as spans, in the layout of a collector's file exporter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from rageval_spec.exchange.otel.target import KINDS, OtelTarget, OtelTargetNode, Signal, encode_bodies, find_time
from rageval_spec.exchange.shared.contracts import FileTarget, Moment, TargetNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_BATCH = 200
_LENGTH = 4


class OtlpNode(TargetNode):
    signals: tuple[Signal, ...] = Field(
        default=("traces",),
        min_length=1,
        description=(
            "What to write: `traces` into the file itself, `logs` and `metrics` into files of these names in a folder "
            "beside it."
        ),
    )
    time: Moment = Field(
        default=None,
        description="When the values were made, for metrics and for answers without a trace. Default: now.",
    )


class OtlpTarget(FileTarget[OtlpNode]):
    node_type = OtlpNode
    filename = "values.otlp"
    summary = (
        "Write what 'export otel' would send to a file: OTLP as protobuf, as the file exporter of collectors does."
    )
    examples: ClassVar[Sequence[str]] = ("export otlp rageval-results -o values.otlp",)

    def __init__(self, node: OtlpNode, context: Any) -> None:
        super().__init__(node, context)
        settings = OtelTargetNode(signals=node.signals, time=node.time)
        self._sender = OtelTarget(settings, context)

    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002 - one file
        now = find_time(self.node.time)
        parcels = list(self._sender.list_parcels(evaluation))
        for kind, signal in KINDS.items():
            if signal in self.node.signals:
                bodies = [parcel.body for parcel in parcels if parcel.kind == kind]
                batches = (bodies[first : first + _BATCH] for first in range(0, len(bodies), _BATCH))
                frames = (encode_bodies(kind, batch, now) for batch in batches)
                yield (
                    "" if signal == "traces" else f"{signal}.otlp",
                    b"".join(len(frame).to_bytes(_LENGTH, "big") + frame for frame in frames),
                )

    def remarks(self) -> Sequence[str]:
        return self._sender.remarks()


TARGET = OtlpTarget
