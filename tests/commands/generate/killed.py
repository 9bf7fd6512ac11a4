"""Commands that are killed in the middle of their calls."""

from __future__ import annotations

import signal
import threading
from typing import Any

from tests.command_line import start
from tests.models.chat_endpoint import ChatServer
from tests.models.endpoint import Answer


def kill_after(calls: int, server: ChatServer, *arguments: str) -> int:
    """Start a command, and kill it (kill -9) when the endpoint gets one more call than `calls`. Returns its calls."""
    script, reached, made = server.chat, threading.Event(), [0]
    process = start(*arguments)

    def count(number: int, body: dict[str, Any]) -> Answer:
        made[0] += 1
        if made[0] > calls:
            process.kill()
            reached.set()
        return script(number, body)

    server.chat = count
    try:
        process.communicate(timeout=60)
    finally:
        server.chat = script
    assert reached.is_set() and process.returncode == -signal.SIGKILL
    return made[0]
