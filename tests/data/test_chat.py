from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.data.chat import ChatRequest, Message

REQUEST = ChatRequest((Message("system", "Be brief."), Message("user", "Why?")), {"type": "object"}, 100)


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("user", "Why?"),)},
        {"schema": None},
        {"max_tokens": 99},
        {"logprobs": True},
        {"repeat": 1},
    ],
)
def test_every_difference_in_a_request_changes_its_digest(change: dict[str, Any]) -> None:
    assert replace(REQUEST).digest == REQUEST.digest
    assert replace(REQUEST, **change).digest != REQUEST.digest


def test_the_digest_is_the_same_in_every_version() -> None:
    """Replies are stored under the digest: if it changed, all of them would have to be paid for again."""
    assert REQUEST.digest.hex() == "0c51ba4180874376d3ce161f1fe3232c0531ba970e2f1c9ba3598fdec3469833"


def test_all_messages_count() -> None:
    assert REQUEST.characters == len("Be brief.") + len("Why?")
