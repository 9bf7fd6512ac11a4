"""`rageval-spec serve` as a program: what it says when it starts, what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command_line import invoke, start

SPEC = """\
version: 1
name: bot
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [%s]
gates: [%s]
monitor: {}
"""
METRIC, GATE = "{use: faithfulness, judge: overlap}", "{metric: faithfulness, min: 0.5}"


def write(folder: Path, metrics: str = METRIC, gates: str = GATE) -> Path:
    (folder / "traces.jsonl").write_text('{"id": "t", "question": "q", "answer": "a", "contexts": ["c"]}\n')
    path = folder / "spec.yaml"
    path.write_text(SPEC % (metrics, gates))
    return path


@contextmanager
def serving(*arguments: str | Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The program, its URL, and what it said before."""
    program = start("serve", *arguments, "--listen", "127.0.0.1:0", env={**os.environ, **environment})
    try:
        assert program.stderr is not None
        said = ""
        while "Ctrl-C ends this" not in said:
            line = program.stderr.readline()
            assert line, said
            said += line
        yield program, said.rpartition(" at ")[2].partition(";")[0], said
    finally:
        program.kill()
        program.communicate()


def test_a_spec_that_can_hold_nothing_back_is_refused(tmp_path: Path) -> None:
    for metrics, gates in ((METRIC, ""), ("latency@p95", "{metric: latency@p95, max: 5}")):
        done = invoke("serve", write(tmp_path, metrics, gates))
        assert done.exit_code == 2
        assert "no answer can be held back" in done.stderr
        assert "gates: [{metric: faithfulness, min: 0.5}]" in done.stderr


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_token_is_refused(tmp_path: Path, value: str) -> None:
    done = invoke("serve", write(tmp_path), "--token-env", "SERVE_TOKEN", env={"SERVE_TOKEN": value})
    assert done.exit_code == 2
    assert "--token-env SERVE_TOKEN: the variable is empty; set it to the token that clients send" in done.stderr


@pytest.mark.parametrize("address", ["localhost:http", "::1", "1.2.3.4:99999"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    done = invoke("serve", write(tmp_path), "--listen", address)
    assert done.exit_code == 2
    assert f"--listen '{address}' is not an address; write a host and a port: 127.0.0.1:8008" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_program_says_what_it_does_not_check_and_ends_when_it_is_told(tmp_path: Path, number: int) -> None:
    spec = write(tmp_path, f"{METRIC}, latency@p95", f"{GATE}, {{metric: latency@p95, max: 5}}")
    with serving(spec, "--token-env", "SERVE_TOKEN", SERVE_TOKEN="t0ken") as (program, url, said):
        assert "warning: latency@p95 is about the application, not about the answer, so it is not measured" in said
        assert "t0ken" not in said
        asked = {"question": "Who?", "contexts": ["Ada wrote it."], "answer": "Grace Hopper baked it in Paris."}
        request = urllib.request.Request(url, json.dumps(asked).encode(), {"Authorization": "Bearer t0ken"})
        with urllib.request.urlopen(request, timeout=20) as reply:
            assert json.loads(reply.read())["outcome"] == "reject"
        program.send_signal(number)
        out, err = program.communicate(timeout=20)
        assert (program.returncode, out, err) == (0, "", "")
