"""Equal evaluations that run at the same time on one store ask each question once, and give the same bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.models.chat_endpoint import ChatServer
from tests.pipeline.test_interrupted_judging import Judging, command, read, server, write_spec

__all__ = ["server"]


def test_equal_evaluations_at_once_ask_each_question_once(tmp_path: Path, server: ChatServer) -> None:
    specs = [write_spec(tmp_path / name, server.url) for name in ("first", "second", "third")]
    running = [subprocess.Popen(command(spec, "--store", str(tmp_path / "store"))) for spec in specs]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert isinstance(server.chat, Judging)
    assert max(server.chat.seen.values()) == 1
    assert read(specs[0]) == read(specs[1]) == read(specs[2])
