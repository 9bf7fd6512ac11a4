"""How much longer `POST /check` takes than the judge alone: the bar is 5 ms at the 95th percentile.

The program `rageval-spec serve` runs as its users start it, in a process of its own, with a token. Clients keep their
connections and ask again at once. The judge's own time is measured in this process on the same answers, with the same
number of threads, between the rounds of requests, so that load from other programs affects both. Each request is
compared with the judge's time on the same answer in the same round. Eight at a time without a pause keep the server's
process busy all the time, so that each waits for seven others; with `--pause` each client waits between its requests.

    python benches/serving.py                          # overlap, embedding (MiniLM, embedded) and waterfall
    python benches/serving.py --judge overlap --rounds 30 --pause 0.02
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rageval_spec.data.samples import Sample
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.spec import load

DATA = Path(__file__).parents[1] / "specs" / "data" / "support" / "live.jsonl"
JUDGES = ("overlap", "embedding", "waterfall")
SPEC = """
version: 1
name: serving
systems: {{live: {{use: file, path: {data}, follow: true}}}}
models: {{minilm: {{use: onnx, model: minilm}}}}
metrics: [{{use: faithfulness, judge: {judge}}}]
gates: [{{metric: faithfulness, min: 0.5}}]
monitor: {{}}
"""
BAR = 0.005
TOKEN = "t0ken"
Work = Callable[[int], float]


class Client:
    """One connection; asks with as little of its own as HTTP allows."""

    def __init__(self, port: int, bodies: Sequence[bytes]) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"POST /check HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: "
        self._requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]

    def ask(self, place: int) -> float:
        begun = time.perf_counter()
        self._socket.sendall(self._requests[place])
        reply = self._socket.recv(65536)
        while b"\r\n\r\n" not in reply or len(reply) < find_end(reply):
            reply += self._socket.recv(65536)
        took = time.perf_counter() - begun
        assert reply.startswith(b"HTTP/1.1 200"), reply
        return took


def find_end(reply: bytes) -> int:
    head, _, _ = reply.partition(b"\r\n\r\n")
    return len(head) + 4 + int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


def time_round(works: Sequence[Work], count: int, pause: float) -> np.ndarray[Any, Any]:
    """The seconds of each answer; the works share the answers, and each waits before the next, `pause` on average."""
    waits = np.random.default_rng(7).exponential(pause, count)
    times = np.zeros(count)

    def do(number: int) -> None:
        for place in range(number, count, len(works)):
            time.sleep(waits[place])
            times[place] = works[number](place)

    with ThreadPoolExecutor(len(works)) as pool:
        list(pool.map(do, range(len(works))))
    return times


class Found(NamedTuple):
    """Seconds of the judge and of the requests, in the same order."""

    judge: np.ndarray[Any, Any]
    request: np.ndarray[Any, Any]


def measure(
    spec: Path, rows: Sequence[dict[str, Any]], port: int, concurrency: int, rounds: int, pause: float
) -> Found:
    loaded = load(spec)
    metric = next(iter(build_parts(loaded).answer_metrics.values()))
    metric.prepare()
    judge, criterion = next(iter(metric.judges())), next(iter(metric.criteria()))
    samples = [Sample("check", row["question"], row["answer"], tuple(row["contexts"])) for row in rows]

    def assess(place: int) -> float:
        begun = time.perf_counter()
        judge.assess(criterion, [samples[place]])
        return time.perf_counter() - begun

    pairs = []
    for number in range(rounds + 2):
        alone = time_round([assess] * concurrency, len(rows), pause)
        clients = [Client(port, [json.dumps(row).encode() for row in rows]) for _ in range(concurrency)]
        pair = alone, time_round([one.ask for one in clients], len(rows), pause)
        pairs += [pair] if number >= 2 else []  # the first warm up
    return Found(*map(np.concatenate, zip(*pairs, strict=True)))


def start(spec: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "rageval_spec", "serve", str(spec), "--listen", "0", "--token-env", "TOKEN"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TOKEN": TOKEN})
    assert server.stderr is not None
    said = ""
    while "Ctrl-C ends this" not in said:
        said += (line := server.stderr.readline())
        assert line, said
    return server, int(said.rpartition("/check")[0].rpartition(":")[2])


def name_processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))


def show(judge: str, concurrency: int, found: Found) -> None:
    def list_percentiles(times: np.ndarray[Any, Any]) -> str:
        return " | ".join(f"{1000 * one:.2f}" for one in np.percentile(times, [50, 95, 99]))

    more = np.percentile(found.request, 95) - np.percentile(found.judge, 95)
    both = f"{list_percentiles(found.judge)} | {list_percentiles(found.request)}"
    passed = "yes" if more <= BAR else "no"
    paired = list_percentiles(found.request - found.judge)
    print(f"| `{judge}` | {concurrency} | {both} | {paired} | {1000 * more:.2f} | {passed} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", choices=JUDGES, action="append")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--answers", type=int, default=40)
    parser.add_argument("--pause", type=float, default=0.0, help="mean seconds between a reply and the next request")
    asked = parser.parse_args()
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    rows = [
        {"question": row["question"], "contexts": [one["text"] for one in row["contexts"]], "answer": row["answer"]}
        for row in rows
        if row.get("answer")
    ]
    rows = rows[: asked.answers]
    size = f"{len(rows)} answers, {asked.rounds} rounds, a pause of {asked.pause:g} s"
    print(f"{name_processor()}, {os.cpu_count()} cores; {size}; load {os.getloadavg()[0]:.1f}\n")
    three = ("p50", "p95", "p99")
    names = [f"{what} {one}" for what in ("judge", "request", "more") for one in three]
    print(f"| judge | at a time | {' | '.join(names)} | p95 less the judge's | at most 5 ms |")
    print("|---|" + "---:|" * 11 + "---|")
    for judge in asked.judge or JUDGES:
        with tempfile.TemporaryDirectory() as folder:
            spec = Path(folder) / "spec.yaml"
            spec.write_text(SPEC.format(data=DATA, judge=judge))
            server, port = start(spec)
            try:
                for concurrency in (1, 8):
                    show(judge, concurrency, measure(spec, rows, port, concurrency, asked.rounds, asked.pause))
            finally:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
