"""Compare judging: calls, wall time, CPU, memory and lost rows, with an endpoint that counts calls and injects faults.

    python benches/judging.py HARNESS --stub-python PYTHON [--peer NAME=PYTHON ...] [--faults none transient sticky]
                              [--rounds 3] [--kills 20] [--work FOLDER]

HARNESS is a folder with stub_llm.py (an OpenAI-compatible endpoint on loopback), data200.jsonl (200 questions with
answers, three contexts each and references) and bench_ragas.py, bench_deepeval.py or bench_trulens.py. `--stub-python`
is a Python interpreter with aiohttp; a peer's Python has the peer installed. All contenders compute faithfulness,
answer_relevancy, context_precision and context_recall over the same rows, one after the other in fresh processes, with
16 calls at a time and a latency of 50 ms. `ideal` is the least time that the contender's own calls can take: calls x
latency / 16. Faults: 10 % malformed replies of all kinds, 5 % status 429 and 5 % status 500; `transient` draws again
for each try, `sticky` malforms the same request each time. With `--kills`, rageval-spec is killed (SIGKILL) at this
many moments and run again: the results must have the same bytes, and no reply that arrived may be requested again.

    python benches/judging.py --overhead [--rows 2000] [--in-flight 64] [--latency 0.05] [--rounds 3] [--against TREE]

measures what rageval-spec itself costs: how long it takes for synthetic rows (seeded) with many calls in flight, next
to what the endpoint needs, rows x calls x latency / calls in flight. The endpoint is a bare one in a process of its
own; a bare client measures first how many calls a second it can answer. `--against` names the folder `python` of
another checkout, which is measured in turn with this one. Wall and CPU seconds are those between the first call and the
last reply, except under "whole run".
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine import name_processor

LATENCY, CONCURRENCY, ROWS = 0.050, 16, 200
METRICS = ("faithfulness", "answer_relevancy", "context_precision", "context_recall")
FAULTS = {
    "none": [],
    "transient": ["--p-malformed", "0.10", "--malformed-kind", "mixed", "--p429", "0.05", "--p500", "0.05"],
}
FAULTS["sticky"] = [*FAULTS["transient"], "--sticky-malformed"]
FAULTS["sticky-all"] = [*FAULTS["transient"], "--sticky"]
OURS = ("claims", "scores")
PEER_SCRIPTS = {
    "ragas": ["bench_ragas.py", "--mode", "legacy"],
    "ragas-collections": ["bench_ragas.py", "--mode", "collections"],
    "deepeval": ["bench_deepeval.py"],
    "trulens": ["bench_trulens.py", "--rpm", "100000"],
}


@dataclass(frozen=True)
class Measured:
    """One process: wall and CPU seconds, peak MB, the endpoint's counts, and rows that lack a value."""

    wall: float
    cpu: float
    memory: float
    stats: dict[str, Any]
    code: int
    lost: int | None = None
    means: dict[str, float | None] | None = None

    @property
    def calls(self) -> int:
        """All requests that reached the endpoint."""
        return int(self.stats["total"])

    @property
    def ideal(self) -> float:
        """The least number of seconds that its calls can take."""
        return self.calls * LATENCY / CONCURRENCY

    @property
    def span(self) -> float:
        """Seconds from the first call to the last reply."""
        return float(self.stats["span_s"])


def write_spec(folder: Path, judge: str, port: int, data: Path) -> Path:
    """Our spec: answers from the file, one chat judge, and embeddings from the same endpoint, like the peers."""
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = f"http://127.0.0.1:{port}/v1"
    spec = {
        "version": 1,
        "name": f"judging-{judge}",
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "models": {
            "chat": {"use": "chat", "base_url": base, "model": "gpt-4o-mini", "api_key": "sk-x"},
            "embedder": {"use": "http", "base_url": base, "model": "text-embedding-3-small", "api_key": "sk-x"},
        },
        "judges": {"judge": {"use": judge, "model": "chat"}},
        "metrics": [
            {"use": "faithfulness", "judge": "judge"},
            {"use": "answer_relevancy", "judge": "judge", **({"model": "embedder"} if judge == "claims" else {})},
            {"use": "context_precision", "judge": "judge"},
            {"use": "context_recall", "judge": "judge"},
        ],
        "limits": {"concurrency": CONCURRENCY},
        "reports": ["json", "parquet"],
    }
    if judge != "claims":
        del spec["models"]["embedder"]  # type: ignore[attr-defined]
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec, indent=1))
    return path


def our_command(folder: Path, out: Path) -> list[str]:
    """The command line as a user would type it."""
    return [sys.executable, "-m", "rageval_spec", "run", str(folder / "spec.yaml"), "-q", "-o", str(out)]


@contextmanager
def serve(python: str, harness: Path, faults: list[str]) -> Iterator[int]:
    """The stub on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["--port", str(port), "--latency-ms", str(LATENCY * 1000), *faults]
    process = subprocess.Popen([python, str(harness / "stub_llm.py"), *arguments], stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                ask(port, "/stats")
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def ask(port: int, path: str) -> dict[str, Any]:
    """The stub's answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
        content: dict[str, Any] = json.loads(reply.read())
    return content


def measure(command: list[str], port: int, folder: Path, log: Path) -> Measured:
    """Run a contender until it ends."""
    environment = {**os.environ, "NO_PROXY": "127.0.0.1,localhost", "OPENAI_API_KEY": "sk-x"}
    with log.open("w") as stream:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=stream, stderr=stream)
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Measured(wall, cpu, usage.ru_maxrss / 1024, ask(port, "/stats"), process.returncode)


def read_ours(out: Path) -> tuple[int, dict[str, float | None]]:
    """Rows that lack a value, and the means."""
    import polars as pl

    values = pl.read_parquet(out / "values.parquet")
    lost = values.filter(pl.col("status") != "scored")["query_id"].n_unique()
    results = json.loads((out / "results.json").read_bytes())
    return lost, {cell["metric"]: cell["mean"] for cell in results["aggregates"]}


def run_ours(judge: str, arguments: argparse.Namespace, faults: str, work: Path) -> Measured:
    """Run rageval-spec once, with an empty store."""
    folder = work / f"{judge}-{faults}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with serve(arguments.stub_python, arguments.harness, FAULTS[faults]) as port:
        write_spec(folder, judge, port, arguments.harness / "data200.jsonl")
        done = measure(our_command(folder, folder / "out"), port, folder, folder / "log.txt")
    lost, means = read_ours(folder / "out")
    return Measured(done.wall, done.cpu, done.memory, done.stats, done.code, lost, means)


def run_peer(name: str, python: str, arguments: argparse.Namespace, faults: str, work: Path) -> Measured:
    """Run a peer once, with its script from the harness."""
    folder = work / f"{name}-{faults}"
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "out.json"
    script, *options = PEER_SCRIPTS[name]
    with serve(arguments.stub_python, arguments.harness, FAULTS[faults]) as port:
        base, data = f"http://127.0.0.1:{port}/v1", arguments.harness / "data200.jsonl"
        command = [python, str(arguments.harness / script), "--base", base, "--out", str(out), "--data", str(data)]
        done = measure([*command, *options], port, folder, folder / "log.txt")
    found = json.loads(out.read_text()) if out.exists() else {}
    return Measured(
        done.wall, done.cpu, done.memory, done.stats, done.code, found.get("nan_rows", ROWS), found.get("mean")
    )


def show(name: str, faults: str, runs: list[Measured]) -> Measured:
    """Print a line of the table, with medians."""
    middle = sorted(runs, key=lambda run: run.wall)[len(runs) // 2]
    print(
        f"{name:<18} {faults:<10} {middle.calls / ROWS:6.2f} {middle.wall:8.2f} {middle.span:8.2f} {middle.ideal:7.2f}"
        f" {middle.span / middle.ideal if middle.calls else 0:6.2f} {statistics.median(run.cpu for run in runs):7.2f}"
        f" {max(run.memory for run in runs):7.0f} {middle.lost!s:>5}  {middle.code}  {round_means(middle.means)}",
        flush=True,
    )
    return middle


def round_means(means: dict[str, float | None] | None) -> dict[str, float | None]:
    """The means, rounded to four digits."""
    return {name: mean and round(mean, 4) for name, mean in (means or {}).items()}


def kill_often(judge: str, arguments: argparse.Namespace, work: Path, life: float) -> None:
    """Kill rageval-spec at random moments, run it again, and compare with the uninterrupted run."""
    unbroken = work / f"{judge}-none" / "out"
    moments, same, repeated = random.Random(7), 0, []
    for kill in range(arguments.kills):
        folder = work / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with serve(arguments.stub_python, arguments.harness, FAULTS["none"]) as port:
            write_spec(folder, judge, port, arguments.harness / "data200.jsonl")
            process = subprocess.Popen(our_command(folder, folder / "out"), cwd=folder)
            time.sleep(moments.uniform(0.3, life))
            process.send_signal(signal.SIGKILL)
            process.wait()
            time.sleep(0.2)
            before = ask(port, "/stats")
            done = measure(our_command(folder, folder / "out"), port, folder, folder / "log.txt")
        repeated.append(done.stats["repeated_bodies"])
        equal = [read_results(path) for path in (folder / "out", unbroken)]
        same += equal[0] == equal[1]
        print(
            f"  kill {kill + 1}: after {before['total']} calls; {done.calls} in total, asked twice:"
            f" {done.stats['repeated_bodies']}; same bytes: {equal[0] == equal[1]}",
            flush=True,
        )
    print(f"{judge}: {same} of {arguments.kills} with the same bytes; at most {max(repeated)} calls made twice")


def read_results(out: Path) -> bytes:
    """The results, which must not differ, without the endpoint's port, which does."""
    results = json.loads((out / "results.json").read_bytes())
    results.pop("models")
    results.pop("spec_digest")
    return json.dumps(results, sort_keys=True).encode() + (out / "values.parquet").read_bytes()


class Bare(asyncio.Protocol):
    """A client's connection to the bare endpoint, which answers any chat request with what its schema asks for."""

    latency = 0.0
    served = 0
    began = ended = 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport, self.unread = transport, b""

    def data_received(self, data: bytes) -> None:
        self.unread += data
        head, mark, rest = self.unread.partition(b"\r\n\r\n")
        length = int(
            next((line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        )
        if not mark or len(rest) < length:
            return
        self.unread = rest[length:]
        if head.startswith(b"GET"):
            self.reply({"served": Bare.served, "began": Bare.began, "ended": Bare.ended})
            return
        Bare.began = Bare.began if Bare.served else time.monotonic()
        Bare.served += 1
        schema = json.loads(rest[:length])["response_format"]["json_schema"]["schema"]
        message = {"role": "assistant", "content": json.dumps(fill(schema))}
        usage = {"prompt_tokens": length // 4, "completion_tokens": 40}
        reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
        asyncio.get_running_loop().call_later(Bare.latency, self.reply, reply)

    def reply(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        Bare.ended = time.monotonic()


def fill(schema: dict[str, Any], place: int = 0) -> Any:
    """What a schema asks for; numbers of claims and contexts count up with their place in a list."""
    kind = schema.get("type", "string")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {name: fill(one, place) for name, one in schema["properties"].items()}
    if kind == "array":
        return [fill(schema["items"], place) for place in range(schema.get("minItems", 2))]
    if "integer" in kind or "number" in kind:
        return min(schema.get("minimum", 1) + place, schema.get("maximum", 1))
    return "The town lies by the river." if "string" in kind else True


async def serve_bare(latency: float) -> None:
    """Serve until the end of standard input, after printing the port."""
    Bare.latency = latency
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@contextmanager
def run_bare(latency: float) -> Iterator[int]:
    """The bare endpoint in a process of its own; yields its port."""
    command = [sys.executable, __file__, "--serve", str(latency)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


async def ask_bare(port: int, calls: int, in_flight: int, body: bytes) -> float:
    """Seconds for so many calls by a bare client."""
    sent = iter(range(calls))
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)

    async def use_connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in sent:
            writer.write(head + body)
            length = int((await reader.readuntil(b"\r\n\r\n")).split(b":")[1])
            await reader.readexactly(length)
        writer.close()

    start = time.monotonic()
    await asyncio.gather(*(use_connection() for _ in range(in_flight)))
    return time.monotonic() - start


def write_rows(path: Path, rows: int) -> None:
    """Synthetic questions with answers, three contexts and references."""
    words = random.Random(7)
    names = [f"{first}{last}" for first in ("Am", "Bel", "Cor", "Dun", "El") for last in ("ford", "wick", "ham", "ley")]

    def tell(n: int, count: int) -> str:
        said = (f"The {words.choice(names)} bridge {n} was built in {words.randint(1700, 1990)} of stone, and stands "
                f"{words.randint(5, 90)} metres above the river." for _ in range(count))  # fmt: skip
        return " ".join(said)

    with path.open("w") as file:
        for n in range(rows):
            row = {"id": f"r{n}", "question": f"When was bridge {n} built?", "answer": tell(n, 2)}
            file.write(json.dumps({**row, "contexts": [tell(n, 3) for _ in range(3)], "reference": tell(n, 2)}) + "\n")


def measure_overhead(arguments: argparse.Namespace) -> None:
    """Measure this tree, and the one of `--against`, and print a line for each judge and tree."""
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    write_rows(work / "rows.jsonl", arguments.rows)
    schema = {"type": "object", "properties": {"score": {"type": "integer", "maximum": 1}}}
    asked = {"messages": "x" * 3000, "response_format": {"json_schema": {"schema": schema}}}
    with run_bare(0.0) as port:
        seconds = asyncio.run(ask_bare(port, 20_000, arguments.in_flight, json.dumps(asked).encode()))
    wanted = f"{arguments.in_flight / arguments.latency:,.0f} ({arguments.in_flight} / {arguments.latency} s)"
    print(f"{name_processor()}; a bare client gets {20_000 / seconds:,.0f} replies a second, and needs {wanted}")
    print(f"{'judge':<8}{'tree':<9}{'calls':>7}{'endpoint needs':>16}{'ours':>8}{'ratio':>7}{'CPU':>7}{'cores':>7}"
          f"{'ms a call':>11}{'whole run':>11}{'CPU':>7}")  # fmt: skip
    trees = {"this": Path(__file__).parents[1] / "python"} | ({"other": arguments.against} if arguments.against else {})
    runs: dict[tuple[str, str], list[tuple[float, ...]]] = {(judge, tree): [] for judge in OURS for tree in trees}
    for _ in range(arguments.rounds):
        for judge, tree in runs:
            runs[judge, tree].append(run_once(judge, trees[tree], arguments, work))
    for (judge, tree), found in runs.items():
        calls, needed, span, cpu, wall, whole = (statistics.median(one) for one in zip(*found, strict=True))
        print(f"{judge:<8}{tree:<9}{calls:>7.0f}{needed:>14.2f} s{span:>6.2f} s{span / needed:>7.2f}{cpu:>5.2f} s"
              f"{cpu / span:>7.2f}{1000 * cpu / calls:>11.2f}{wall:>9.2f} s{whole:>5.2f} s", flush=True)  # fmt: skip


def run_once(judge: str, tree: Path, arguments: argparse.Namespace, work: Path) -> tuple[float, ...]:
    """Calls, seconds that the endpoint needs, seconds and CPU of judging, seconds and CPU of the whole process."""
    folder = work / f"overhead-{judge}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with run_bare(arguments.latency) as port:
        spec = json.loads(write_spec(folder, judge, port, work / "rows.jsonl").read_text())
        spec["metrics"] = [one for one in spec["metrics"] if one["use"] != "answer_relevancy"]
        spec["models"].pop("embedder", None)
        spec["limits"]["concurrency"] = arguments.in_flight
        (folder / "spec.yaml").write_text(json.dumps(spec))
        seconds = time_run(folder, tree)
        stats = ask(port, "/stats")
    calls, span = stats["served"], stats["ended"] - stats["began"]
    cpu = [next(spent for at, spent in seconds if at >= moment) for moment in (stats["began"], stats["ended"])]
    needed = calls * arguments.latency / arguments.in_flight
    return calls, needed, span, cpu[1] - cpu[0], seconds[-1][0] - seconds[0][0], seconds[-1][1]


def time_run(folder: Path, tree: Path) -> list[tuple[float, float]]:
    """The CPU seconds that a run of the spec in a folder, with the code in another, has spent at many moments."""
    environment = {**os.environ, "NO_PROXY": "127.0.0.1,localhost", "PYTHONPATH": str(tree)}
    seconds = [(time.monotonic(), 0.0)]
    process = subprocess.Popen(our_command(folder, folder / "out"), env=environment, stdout=subprocess.DEVNULL)
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        seconds.append((time.monotonic(), sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")))
        time.sleep(0.01)
    assert ended[1] == 0, f"rageval-spec ended with status {ended[1]}"
    process.returncode = 0
    return [*seconds, (time.monotonic(), ended[2].ru_utime + ended[2].ru_stime)]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness", type=Path, nargs="?")
    parser.add_argument("--stub-python")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=LATENCY)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--faults", nargs="+", default=["none"], choices=sorted(FAULTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "work" / "judging")
    arguments = parser.parse_args()
    if arguments.serve is not None:
        asyncio.run(serve_bare(arguments.serve))
        return
    if arguments.overhead:
        measure_overhead(arguments)
        return
    if arguments.harness is None or arguments.stub_python is None:
        parser.error("name HARNESS and --stub-python, or add --overhead")
    arguments.harness = arguments.harness.resolve()
    work = arguments.work.resolve()
    if arguments.kills and "none" not in arguments.faults:
        parser.error("--kills needs the time of an unbroken run: add none to --faults")
    peers = dict(peer.split("=", 1) for peer in arguments.peer)
    print(
        "contender          faults      calls/row   wall   judging   ideal  ratio     CPU  memory  lost  exit  means\n"
        "                                           (s)       (s)     (s)           (s)    (MB)  rows"
    )
    lives = {}
    for faults in arguments.faults:
        runs: dict[str, list[Measured]] = {name: [] for name in (*OURS, *peers)}
        for _ in range(arguments.rounds):
            for judge in OURS:
                runs[judge].append(run_ours(judge, arguments, faults, work))
            for name, python in peers.items():
                runs[name].append(run_peer(name, python, arguments, faults, work))
        for name, found in runs.items():
            lives[name, faults] = show(name, faults, found).wall
    if arguments.kills:
        kill_often("claims", arguments, work, lives["claims", "none"])


if __name__ == "__main__":
    main()
