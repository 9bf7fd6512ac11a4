"""A day of production at 100 times its speed: a million traces, each judged, with a kill every simulated hour.

A writer appends traces to a file as they would come (1,157 a second). A monitor follows it, judges each with `overlap`,
and is killed (SIGKILL) and started again every simulated hour. At the end the ledger must add up: every trace that was
written was seen once and judged once. Shown are the lag (how long after it was due a trace is judged, in real seconds),
its trend, and the most memory that a monitor had. Nothing else should run beside it: it needs one core and a half.

    python benches/monitoring.py --write               # 15 minutes; writes benches/monitoring.md
    python benches/monitoring.py --traces 100000 --speed 100 --kill-every 1h
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import name_processor

SPEC = """
version: 1
name: day
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [{use: faithfulness, judge: overlap}]
monitor: {every: 5m, settle: 60s, alerts: [{metric: faithfulness, warning: 0.2, window: hour}, coverage]}
"""
RESULTS = Path(__file__).with_suffix(".md")
DAY = 86_400
EPOCH = 1_764_000_000.0
FACTS = (
    ("Ada Lovelace", "wrote the first program", "1843"),
    ("Grace Hopper", "wrote the first compiler", "1952"),
    ("Alan Turing", "described the universal machine", "1936"),
    ("Barbara Liskov", "designed the language CLU", "1974"),
)


def write_trace(number: int, moment: float, chance: random.Random) -> str:
    who, did, year = chance.choice(FACTS)
    said = who if chance.random() < 0.9 else "Somebody else"
    row = {
        "id": f"trace-{number:07d}",
        "question": f"Who {did}, asked for the {number}th time?",
        "answer": f"{said} {did} in {year}.",
        "contexts": [f"{who} {did} in {year}.", f"The {number % 97}th page has nothing about it."],
        "seconds": round(chance.lognormvariate(0, 0.4), 3),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)),
    }
    return json.dumps(row) + "\n"


def write_day(path: Path, begin: float, speed: float, total: int) -> None:
    """Append traces at the pace of a day, every tenth of a second; run as a process of its own."""
    chance = random.Random(7)
    written = 0
    with path.open("a", buffering=1 << 20) as file:
        while written < total:
            due = max(0, min(total, int((time.time() - begin) * speed / DAY * total)))
            moment = EPOCH + (time.time() - begin) * speed
            for number in range(written, due):
                file.write(write_trace(number, moment, chance))
            written = due
            file.flush()
            time.sleep(0.1)


def watch(folder: Path, begin: float, speed: float) -> None:
    """Run a monitor whose clock is `speed` times as fast; its lag and memory go to a file every second."""
    from threading import Event, Thread

    from rageval_spec.monitoring.assembly import open_monitor
    from rageval_spec.spec import load

    def clock() -> float:
        return EPOCH + (time.time() - begin) * speed

    with open_monitor(load(folder / "spec.yaml"), clock=clock) as loop:

        def measure() -> None:
            connection = sqlite3.connect(folder / ".rageval" / "history.db", timeout=30)
            while True:
                found = connection.execute(
                    "SELECT MIN(due) FROM rageval_traces WHERE state = 'waiting' AND due < ?", (clock(),)
                ).fetchone()[0]
                lag = 0.0 if found is None else (clock() - found) / speed
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                with (folder / "lags.txt").open("a") as file:
                    file.write(f"{time.time() - begin:.1f} {lag:.3f} {memory}\n")
                time.sleep(1)

        Thread(target=measure, daemon=True).start()
        stop = Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        loop.run(stop)


def start(role: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "--role", role, *map(str, arguments)])


def simulate(folder: Path, total: int, speed: float, kill_every: float, *, write: bool) -> bool:
    """The whole simulation; whether the ledger adds up."""
    (folder / "spec.yaml").write_text(SPEC)
    begin = time.time() + 2
    writer = start("write", folder, begin, speed, total)
    monitor, kills, began = start("watch", folder, begin, speed), 0, time.time()
    while writer.poll() is None:
        time.sleep(min(kill_every / speed, 1.0))
        if time.time() - began >= kill_every / speed:
            os.kill(monitor.pid, signal.SIGKILL)
            monitor.wait()
            kills += 1
            monitor, began = start("watch", folder, begin, speed), time.time()
    ended = time.time()
    counts = wait_until_settled(folder, total, ended + 120)
    drained = time.time() - ended
    monitor.send_signal(signal.SIGTERM)
    monitor.wait()
    table = describe(folder, counts, total, kills, drained)
    print(table)
    if write:
        command = f"python benches/monitoring.py --traces {total} --speed {speed:g} --kill-every {kill_every:g}"
        about = f"Made by `{command}` on {name_processor()} with {os.cpu_count()} cores. Lags are in real seconds."
        RESULTS.write_text(f"# A simulated day of production\n\n{about}\n\n{table}\n")
    return counts == (total, total, total)


def wait_until_settled(folder: Path, total: int, until: float) -> tuple[int, int, int]:
    """How many traces the ledger has, how many judgements, and how many the panes count, once nothing waits."""
    connection = sqlite3.connect(folder / ".rageval" / "history.db", timeout=30, isolation_level=None)
    while True:
        connection.execute("BEGIN")  # one state of the ledger for all four numbers
        traces, waiting = connection.execute("SELECT COUNT(*), SUM(state = 'waiting') FROM rageval_traces").fetchone()
        judged = connection.execute("SELECT COUNT(*) FROM rageval_judgements WHERE state = 'judged'").fetchone()[0]
        counted = connection.execute("SELECT SUM(judged) FROM rageval_panes").fetchone()[0]
        connection.execute("COMMIT")
        if (traces >= total and not waiting) or time.time() > until:
            return traces, judged, counted
        time.sleep(1)


def describe(folder: Path, counts: tuple[int, int, int], total: int, kills: int, drained: float) -> str:
    rows = [tuple(map(float, line.split())) for line in (folder / "lags.txt").read_text().splitlines()]
    quarters = [rows[len(rows) * part // 4 : len(rows) * (part + 1) // 4] for part in range(4)]
    medians = [sorted(row[1] for row in quarter)[len(quarter) // 2] for quarter in quarters]
    size = (folder / ".rageval" / "history.db").stat().st_size
    lines = {
        "traces written": f"{total:,}",
        "traces in the ledger": f"{counts[0]:,}",
        "judgements": f"{counts[1]:,}",
        "judged, by the ledger's sums": f"{counts[2]:,}",
        "kills": f"{kills}",
        "median lag in each quarter of the day": ", ".join(f"{one:.2f} s" for one in medians),
        "largest lag": f"{max(row[1] for row in rows):.1f} s",
        "all judged after the last trace": f"{drained:.1f} s",
        "most memory": f"{max(row[2] for row in rows):.0f} MB",
        "database": f"{size / 1e6:,.0f} MB, {size / total:,.0f} bytes a trace",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in lines.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--speed", type=float, default=100.0)
    parser.add_argument("--kill-every", type=float, default=3600.0, help="simulated seconds")
    parser.add_argument("--write", action="store_true", help="write benches/monitoring.md")
    parser.add_argument("--role", choices=["write", "watch"])
    parser.add_argument("rest", nargs="*")
    asked = parser.parse_args()
    if asked.role == "write":
        folder, begin, speed, total = asked.rest
        write_day(Path(folder) / "traces.jsonl", float(begin), float(speed), int(total))
    elif asked.role == "watch":
        folder, begin, speed = asked.rest
        watch(Path(folder), float(begin), float(speed))
    else:
        with tempfile.TemporaryDirectory() as folder:
            sys.exit(not simulate(Path(folder), asked.traces, asked.speed, asked.kill_every, write=asked.write))


if __name__ == "__main__":
    main()
