"""What Ray costs beside the local engine, and a model of more workers.

    python benches/scaling.py                 # overhead on this machine's cores, cost of messages, the model
    python benches/scaling.py --questions 20000 --calls 500    # a small one
    python benches/scaling.py --proof         # 200,000 questions on two nodes, as 8 shards and locally: equal bytes

Questions, answers and contexts are words drawn with a fixed seed. The endpoint of the calls answers after a fixed time,
so that only the engine differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from machine import name_processor

METRICS = ["token_f1", "rouge_l", {"use": "faithfulness", "judge": "overlap"}]
SETTINGS = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
MODELLED = (4, 8, 16, 32, 64, 128, 256)
LATENCY = 0.05
"""Seconds that the endpoint takes for a reply."""
JUDGE = 0.02
"""Seconds of one CPU for a question that a model judges there, in the model of more workers."""


class Cost(NamedTuple):
    """The wall seconds of a command, and the processor seconds of its own process, without Ray's."""

    wall: float
    processor: float


COMMAND = """
import resource, sys
from rageval_spec.cli import main
try:
    main()
finally:
    use = resource.getrusage(resource.RUSAGE_SELF)
    print(use.ru_utime + use.ru_stime, file=sys.stderr)
"""
"""Runs the command line, and writes its processor seconds as the last line."""


def call(*arguments: str) -> Cost:
    begun = time.perf_counter()
    command = [sys.executable, "-c", COMMAND, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return Cost(time.perf_counter() - begun, float(done.stderr.split()[-1]))


def write_rows(folder: Path, questions: int) -> None:
    """A file of questions with answers: about 30 words an answer, two contexts of 60."""
    draw = random.Random(27)
    words = [f"w{number}" for number in range(5000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]

    def say(count: int) -> str:
        return " ".join(draw.choices(words, weights, k=count)).capitalize() + "."

    with (folder / "rows.jsonl").open("w") as file:
        for number in range(questions):
            contexts = [" ".join(say(20) for _ in range(3)) for _ in range(2)]
            row = {
                "id": f"q{number}", "question": say(8), "answer": f"{contexts[0][:90]}. {say(15)}",
                "contexts": contexts, "reference": say(15),
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")


def write_spec(folder: Path, **sections: Any) -> Path:
    spec = {
        "version": 1, "name": "scaling", "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}}, "metrics": METRICS, "reports": ["json"],
        "history": "none", **sections,
    }  # fmt: skip
    path = folder / f"{len([*folder.glob('*.yaml')])}.yaml"
    path.write_text(json.dumps(spec))
    return path


def evaluate(spec: Path, out: str, engine: Any, *more: str) -> Cost:
    folders = ["-o", str(spec.parent / out), "--store", str(spec.parent / f"store-{out}")]
    return call("run", str(spec), "-q", *folders, "--set", f"engine={json.dumps(engine)}", *more)


def digest(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def compare_engines(folder: Path, questions: int, cores: int) -> tuple[float, float, float]:
    """Print what the same evaluation costs with both engines.

    Returns the processor seconds of a question, those of them that the command spends even with Ray, and the seconds in
    which Ray starts and stops.
    """
    write_rows(folder, questions)
    spec, tiny = write_spec(folder), folder / "tiny"
    tiny.mkdir()
    write_rows(tiny, 40)
    few = write_spec(tiny)
    engines = {"local": "local", "ray": {"use": "ray", "cpus": cores}}
    local, ray = (evaluate(spec, name, engine) for name, engine in engines.items())
    least, least_ray = (evaluate(few, name, engine) for name, engine in engines.items())
    starting = Cost(least_ray.wall - least.wall, least_ray.processor - least.processor)
    print(f"{questions:,} questions x {len(METRICS)} metrics, {cores} cores")
    print("| engine | wall | processor of the command |\n|---|---|---|")
    print(f"| local | {local.wall:.1f} s | {local.processor:.1f} s |")
    print(f"| ray | {ray.wall:.1f} s | {ray.processor:.1f} s |")
    print(f"| of that, start and stop of Ray | {starting.wall:.1f} s | {starting.processor:.1f} s |")
    print(f"overhead without start and stop: {(ray.wall - starting.wall) / local.wall - 1:+.1%} of wall")
    print(f"equal bytes: {digest(folder / 'local') == digest(folder / 'ray')}\n")
    work, alone = local.processor - least.processor, ray.processor - least_ray.processor
    return work / questions, alone / questions, starting.wall


class Endpoint:
    """A chat endpoint that says yes after `LATENCY` seconds."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(LATENCY)
                message = {"role": "assistant", "content": '{"verdict": "yes"}'}
                body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"


def compare_calls(folder: Path, calls: int, cores: int) -> None:
    """Print how long calls to an endpoint take with both engines, 16 at a time."""
    write_rows(folder, calls)
    spec = write_spec(
        folder,
        models={"chat": {"use": "chat", "base_url": Endpoint().url, "model": "tiny"}},
        judges={"judge": {"use": "binary", "model": "chat"}},
        metrics=[{"use": "faithfulness", "judge": "judge"}],
        limits={"concurrency": 16},
    )
    engines = (("local", "local"), ("ray", {"use": "ray", "cpus": cores}))
    costs = [evaluate(spec, f"calls-{name}", engine) for name, engine in engines]
    print(f"{calls:,} calls that take {LATENCY * 1000:g} ms, 16 at once (at least {calls * LATENCY / 16:.1f} s)")
    print(f"local {costs[0].wall:.1f} s, ray {costs[1].wall:.1f} s with its start and stop\n")


def time_messages(count: int) -> tuple[float, float]:
    """Seconds for one question to the owner, alone and among 32 threads, over a real mailbox."""
    import ray

    from rageval_spec.engines import ray as engine_module
    from rageval_spec.plugin import Shared
    from rageval_spec.store.store import MemoryAnswers

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    post = engine_module._Post(Shared(MemoryAnswers()))

    def ask(mailbox: Any, threads: int, each: int) -> float:
        from rageval_spec.engines.ray import _open_line

        line = _open_line(mailbox, "bench")
        line.ask("flush")

        def work() -> None:
            for number in range(each):
                line.ask("find", "model", [number.to_bytes(8, "big")])

        workers = [threading.Thread(target=work) for _ in range(threads)]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return (time.perf_counter() - begun) / (threads * each)

    remote: Callable[..., Any] = ray.remote(ask).remote
    alone, together = (ray.get(remote(post.mailbox, threads, count // threads)) for threads in (1, 32))
    post.close()
    ray.shutdown()
    return alone, together


def time_tasks(count: int) -> float:
    """Seconds of the command for a task of a part that does nothing."""
    import ray

    from rageval_spec.engines.ray import RayEngine, RayNode
    from rageval_spec.plugin import Context, Shared

    engine = RayEngine(RayNode(cpus=1), Context("ray"))
    engine.open(Shared())
    [*engine.map(str, range(8))]
    begun = time.process_time()
    [*engine.map(str, range(count))]
    spent = time.process_time() - begun
    engine.close()
    ray.shutdown()
    return spent / count


def print_model(work: float, alone: float, task: float, message: float, start: float) -> None:
    """Print the wall time of many questions on more workers, and what it assumes."""
    questions = 1_000_000
    print(f"""Model, not measured: {questions:,} questions. Assumed, from the figures above:
- the command itself takes {alone * 1e6:.0f} us a question (reading, splitting, joining, statistics, results), which no
  worker shares, and each worker a quarter of that for reading the dataset, at the same time as all others;
- the rest of the work is shared: {(work - alone) * 1e6:.0f} us of one CPU for these metrics, {JUDGE * 1e3:g} ms for a
  model that judges on the CPU;
- each CPU gets 4 parts, of which each costs the command {task * 1e3:.1f} ms; Ray starts and stops in {start:.1f} s.
""")
    print("| workers | these metrics | of one CPU's speed | a judge | of one CPU's speed |\n|---|---|---|---|---|")
    for workers in MODELLED:
        fixed = start + questions * alone * 1.25 + 4 * workers * task
        totals = [fixed + questions * shared / workers for shared in (work - alone, JUDGE)]
        gains = [
            questions * (alone + shared) / total for shared, total in zip((work - alone, JUDGE), totals, strict=True)
        ]
        columns = (f"{total:,.0f} s | {gain:.1f}x" for total, gain in zip(totals, gains, strict=True))
        print(f"| {workers} | {' | '.join(columns)} |")
    calls = 1 / message / 4
    print(f"\nA call to an endpoint takes 4 questions to the owner, so there are at most {calls:,.0f} calls a second, "
          "on any number of workers.\n")  # fmt: skip


def prove(folder: Path, questions: int) -> bool:
    """Whether two nodes of Ray, 8 shards and the local engine give the same bytes."""
    from ray.cluster_utils import Cluster

    write_rows(folder, questions)
    spec = write_spec(folder)
    costs = [evaluate(spec, "local", "local")]
    Path(os.environ["RAY_TMPDIR"], "ray").mkdir(exist_ok=True)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    costs.append(evaluate(spec, "ray", {"use": "ray", "address": cluster.address}))
    cluster.shutdown()
    parts = [evaluate(spec, "shards", "local", "--shard", f"{number}/8") for number in range(1, 9)]
    shards = [str(path) for path in sorted((folder / "shards").iterdir())]
    merged = ["-o", str(folder / "merged"), "--store", str(folder / "merging")]
    parts.append(call("merge", str(spec), *shards, "-q", *merged))
    costs.append(Cost(sum(one.wall for one in parts), sum(one.processor for one in parts)))
    found = {name: digest(folder / name) for name in ("local", "ray", "merged")}
    print(f"{questions:,} questions x {len(METRICS)} metrics")
    for (name, files), cost in zip(found.items(), costs, strict=True):
        whole = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
        print(f"{name}: {len(files)} files, {cost.wall:.0f} s, sha256 of all {whole}")
    for name in sorted({*found["local"], *found["ray"], *found["merged"]}):
        digests = [files.get(name, "missing")[:16] for files in found.values()]
        print(f"  {name}: {digests[0] if len({*digests}) == 1 else digests}")
    return found["local"] == found["ray"] == found["merged"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, help="default: 60,000, or 200,000 with --proof")
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--proof", action="store_true")
    options = parser.parse_args()
    questions = options.questions or (200_000 if options.proof else 60_000)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory(prefix="rs", dir="/tmp") as place:
        os.environ.update(SETTINGS, RAY_TMPDIR=place)
        print(f"{name_processor()}, {os.cpu_count()} cores\n")
        folders = [Path(place, name) for name in ("rows", "calls")]
        for folder in folders:
            folder.mkdir()
        if options.proof:
            is_equal = prove(folders[0], questions)
            print(f"equal bytes: {is_equal}")
            return 0 if is_equal else 1
        cores = os.cpu_count() or 1
        work, alone, start = compare_engines(folders[0], questions, cores)
        compare_calls(folders[1], options.calls, cores)
        task, (single, together) = time_tasks(200), time_messages(2000)
        print(f"a part costs the command {task * 1e3:.2f} ms of processor time")
        print(f"a question to the owner: {single * 1e3:.2f} ms alone, {together * 1e3:.2f} ms among 32 threads\n")
        print_model(work, alone, task, together, start)
    return 0


if __name__ == "__main__":
    sys.exit(main())
