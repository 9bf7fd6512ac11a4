"""Measure how much CPU the commands need before and beside their work: `demo`, `run`, `validate` and the import.

    python benches/start.py [--against TREE] [--rounds 11]

Each line is the median of fresh processes, which take turns: CPU seconds (user and system, by getrusage) and wall
seconds. `run` is that of the quickstart: cold, with an empty store, and warm, with the store of the run before. The
libraries that a warm run needs, and ONNX Runtime with a session of the smallest exported model, which only a cold
run opens, are measured by themselves. `--against` names the folder `python` of another checkout. Bytecode is compiled
before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import name_processor

ROOT = Path(__file__).parents[1]
SPEC = "specs/quickstart.yaml"
LIBRARIES = "import click, numpy, polars, yaml; from pydantic import BaseModel"
SESSION = "import onnxruntime, sys; onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"


def list_commands(work: Path) -> dict[str, list[str]]:
    """The command of each line, to be run in a copy of `specs/`."""
    python, product = [sys.executable], [sys.executable, "-m", "rageval_spec"]
    run = [*product, "run", SPEC, "-q", "-o", str(work / "out")]
    commands = {
        "python": [*python, "-c", "pass"],
        "import rageval_spec": [*python, "-c", "import rageval_spec"],
        "libraries of validate": [*python, "-c", "import click, yaml; from pydantic import BaseModel"],
        "validate": [*product, "validate", SPEC],
        "libraries of run": [*python, "-c", LIBRARIES],
        "run, warm": run,
        "run, cold": [*run, "--store", str(work / "empty")],
        "demo": [*product, "demo", "--no-open", str(work / "demo")],
        "ONNX Runtime": [*python, "-c", "import onnxruntime"],
    }
    model = find_model()
    return commands if model is None else {**commands, "ONNX Runtime, session": [*python, "-c", SESSION, str(model)]}


def find_model() -> Path | None:
    """A graph that runs have exported; None if there is none."""
    found = (Path.home() / ".cache" / "rageval-spec" / "models").rglob("*.onnx")
    return min(found, key=lambda path: path.stat().st_size, default=None)


def measure(command: list[str], tree: Path, work: Path) -> tuple[float, float]:
    """The CPU and the wall seconds of one process."""
    shutil.rmtree(work / "empty", ignore_errors=True)
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=work, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command} ended with {process.returncode}"
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start


def main() -> None:
    """Measure, and print a line for each command and tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    trees = {"this": ROOT / "python"} | ({"other": arguments.against.resolve()} if arguments.against else {})
    with tempfile.TemporaryDirectory() as folder:
        works = {name: Path(folder) / name for name in trees}
        for name, tree in trees.items():
            shutil.copytree(ROOT / "specs", works[name] / "specs")
            subprocess.run([sys.executable, "-m", "compileall", "-q", str(tree / "rageval_spec")], check=False)
            measure(list_commands(works[name])["run, warm"], tree, works[name])
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for _ in range(arguments.rounds):
            for name, tree in trees.items():
                for label, command in list_commands(works[name]).items():
                    found.setdefault((label, name), []).append(measure(command, tree, works[name]))
    print(f"{name_processor()}; medians of {arguments.rounds}, with the least in brackets; milliseconds")
    print(f"{'':<24}{'tree':<7}{'CPU':>15}{'wall':>15}")
    for (label, name), times in found.items():
        cells = (f"{1000 * statistics.median(one):.0f} ({1000 * min(one):.0f})" for one in zip(*times, strict=True))
        print(f"{label:<24}{name:<7}{''.join(f'{cell:>15}' for cell in cells)}")


if __name__ == "__main__":
    main()
