"""Numbers as datagrams at a listener that stands for Datadog's agent."""

import socket
from collections.abc import Iterator

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.dogstatsd.target import DogstatsdTarget, DogstatsdTargetNode
from rageval_spec.exchange.shared.spans.protobuf import Gauge
from rageval_spec.plugin import Context
from tests.sample_evaluation import make_evaluation


@pytest.fixture
def agent() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(5)
        yield listener


def open_target(address: str) -> DogstatsdTarget:
    return DogstatsdTarget(DogstatsdTargetNode(address=address), Context("dogstatsd"))


def send(agent: socket.socket, *numbers: Gauge) -> None:
    open_target(f"127.0.0.1:{agent.getsockname()[1]}").send_numbers(numbers)


def test_a_number_is_a_gauge_with_tags(agent: socket.socket) -> None:
    number = Gauge("rageval.window_value", 0.8125, {"metric": "faithfulness", "window": "hour"}, 0)
    send(agent, number, Gauge("rageval.lag_seconds", 0.0, {"severity": ""}, 0))
    assert agent.recv(4096).decode() == (
        "rageval.window_value:0.8125|g|#metric:faithfulness,window:hour\nrageval.lag_seconds:0|g"
    )


def test_hostile_labels_stay_within_their_tag(agent: socket.socket) -> None:
    send(agent, Gauge("rageval.alert_firing", 1.0, {"alert": "a|c|#x:y,z\nrageval.lag_seconds:9|g\x1b[31m"}, 0))
    assert agent.recv(4096).decode() == "rageval.alert_firing:1|g|#alert:a_c_x:y_z\\nrageval.lag_seconds:9_g\\x1b[31m"


def test_many_numbers_come_in_datagrams_that_a_network_carries_whole(agent: socket.socket) -> None:
    send(agent, *(Gauge("rageval.traces", float(n), {"metric": "m" * 50}, 0) for n in range(40)))
    lines: list[str] = []
    while len(lines) < 40:
        datagram = agent.recv(65536)
        assert len(datagram) <= 1432
        lines += datagram.decode().split("\n")
    assert [line.partition("|")[0] for line in lines] == [f"rageval.traces:{n}" for n in range(40)]


def test_an_evaluation_sends_its_means(agent: socket.socket) -> None:
    target = open_target(f"127.0.0.1:{agent.getsockname()[1]}")
    parcels = list(target.list_parcels(make_evaluation()))
    assert parcels
    target.send(parcels)
    assert agent.recv(65536).decode().startswith("rageval.metric.value:")


def test_a_host_that_cannot_be_found_is_an_error_that_names_it() -> None:
    with pytest.raises(RagevalError, match=r"^dogstatsd: no-such-host\.invalid:8125: cannot be sent to: "):
        open_target("no-such-host.invalid:8125").send_numbers([Gauge("rageval.lag_seconds", 1.0, {}, 0)])


def test_an_address_without_a_port_is_refused() -> None:
    with pytest.raises(ValueError, match="address"):
        DogstatsdTargetNode(address="localhost")
