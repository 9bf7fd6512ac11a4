"""Receivers that fail in the ways that real ones do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Notifier
from tests.endpoints.api_server import ApiServer, Asked
from tests.models.endpoint import Answer, Hangup
from tests.notifiers.alert_messages import make_message

OK = Answer(b"ok")


@contextmanager
def serving(*replies: Answer) -> Iterator[ApiServer]:
    """A server that gives some replies, one after the other, and then takes everything."""
    left = list(replies)
    server = ApiServer(lambda _: left.pop(0) if left else OK)
    try:
        yield server
    finally:
        server.close()


def refuse_then_take(build: Callable[[str], Notifier[Any]], message: AlertMessage | None = None) -> list[Asked]:
    """Send a message to a server that answers 500, then one that dies before it answers, then one that takes it.

    Returns the three requests.
    """
    message = message or make_message()
    with serving(Answer({"error": "out of order"}, 500), Hangup()) as server:
        notifier = build(server.url)
        for told in ("500", ""):
            with pytest.raises(RagevalError, match=f"notify.{notifier.name}.*{told}"):
                notifier.send([message])
        notifier.send([message])
        notifier.close()
    assert len(server.asked) == 3, "a try is one request: the monitor tries again, not the notifier"
    return server.asked
