"""Sends numbers to Datadog's agent as gauges, by DogStatsD over UDP.

Nobody says whether a datagram arrived: only a host that is not known or not there is an error.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from pydantic import Field

from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.otel.target import list_metrics
from rageval_spec.exchange.shared.contracts import Parcel, Target, TargetNode
from rageval_spec.exchange.shared.spans.protobuf import Gauge
from rageval_spec.libraries import compile_later

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_MOST_BYTES = 1432
"""The most bytes of a datagram that Ethernet carries whole."""
_LONGEST_TAG = 200
_REFUSED = compile_later(r"[,|\s#]+")


class DogstatsdTargetNode(TargetNode):
    address: str = Field(
        default="127.0.0.1:8125", pattern=r"^\S+:\d{1,5}$", description="The host and the port of Datadog's agent."
    )


class DogstatsdTarget(Target[DogstatsdTargetNode]):
    """Gauges such as `rageval.window_value:0.81|g|#metric:faithfulness,window:hour`, as many in a datagram as fit."""

    node_type = DogstatsdTargetNode
    known_as = ("datadog", "statsd")
    summary = "Send the means, intervals and gates to Datadog's agent as gauges, by DogStatsD."
    examples = ("export dogstatsd", "export dogstatsd rageval-results --address 127.0.0.1:8125 --dry-run")
    batch = 500
    takes = ("numbers",)

    @property
    def destination(self) -> str:
        return self.node.address

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        yield from list_metrics(evaluation)

    def send(self, parcels: Sequence[Parcel]) -> None:
        self.send_numbers([Gauge(**one.body, time=0) for one in parcels])

    def send_numbers(self, numbers: Sequence[Gauge]) -> None:
        host, _, port = self.node.address.rpartition(":")
        try:
            found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
            family, kind, protocol, _, place = found[0]
            with closing(socket.socket(family, kind, protocol)) as agent:
                for datagram in _join(map(_write, numbers)):
                    agent.sendto(datagram, place)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise RagevalError(f"{self.context.name}: {self.node.address}: cannot be sent to: {why}") from error


def _write(number: Gauge) -> bytes:
    tags = ",".join(f"{name}:{_clean(str(text))}" for name, text in number.attributes.items() if text != "")
    line = f"{number.name}:{number.value:.15g}|g"
    return (f"{line}|#{tags}" if tags else line).encode("utf-8", "replace")


def _clean(text: str) -> str:
    """A tag's value without what ends a tag, a message or a datagram."""
    return _REFUSED.sub("_", make_visible(text))[:_LONGEST_TAG]


def _join(messages: Iterator[bytes]) -> Iterator[bytes]:
    datagram = b""
    for one in messages:
        if datagram and len(datagram) + len(one) + 1 > _MOST_BYTES:
            yield datagram
            datagram = b""
        datagram = datagram + b"\n" + one if datagram else one
    if datagram:
        yield datagram
