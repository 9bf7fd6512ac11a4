from __future__ import annotations

from collections.abc import Iterator

import pytest

from rageval_spec.commands.comment.code_hosts import CodeHost, Destination, GitHub, GitLab, Host
from rageval_spec.endpoints.pacing import Clock
from rageval_spec.plugin.secrets import Secret
from tests.commands.comment.server import TOKEN, CodeHostServer, serve


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[CodeHostServer]:
    with serve() as state:
        yield state


class Sleepless(Clock):
    """A clock that only writes down how long it should have slept."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def clock() -> Sleepless:
    return Sleepless()


def go_to(server: CodeHostServer, host: Host) -> Destination:
    repository = "owner/app" if host == "github" else "42"
    return Destination(host, server.url, repository, 7, Secret(TOKEN, "${secret:TOKEN}"))


def reach(server: CodeHostServer, host: Host) -> CodeHost:
    return (GitHub if host == "github" else GitLab)(go_to(server, host))
