"""Compare ranking measures: rageval-spec, its peers and hand-written baselines (floors), on the same work in one run.

    python benches/ranking.py --peers PEERS/bin/python [--rounds 5] [--workload marco] [MODE...]

MODE is any of dict, file, frame, cold, scale, import (all by default). `--bench` names the folder with the workload
generator and the floors (`bench_gen.py`, `floor/`). It is copied to `benches/work/`, where missing workloads are
generated. `--peers` is a Python interpreter with pytrec-eval-terrier, ranx, ir_measures and polars. Contenders take
turns in fresh processes, so that load from other programs affects all of them. The output shows medians, the ratio to
rageval-spec, and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE / "work" / "ir"
MEASURES = ["ndcg@10", "map", "rr", "recall@100", "p@5"]
TREC = ["ndcg_cut.10", "map", "recip_rank", "recall.100", "P.5"]
RANX = ["ndcg@10", "map", "mrr", "recall@100", "precision@5"]

WORKER = f"""
import gc, json, resource, sys, time
sys.path[:0] = [{str(WORK)!r}, {str(WORK / "floor")!r}]
contender, mode, qrels_path, run_path = sys.argv[1:]
started = time.perf_counter()
MEASURES, TREC, RANX = {MEASURES!r}, {TREC!r}, {RANX!r}

def ours(qrels, run):
    import rageval_spec
    return rageval_spec.evaluate(qrels, run, MEASURES).means

def drop_in(qrels, run):
    from rageval_spec.compat.pytrec_eval import RelevanceEvaluator
    return RelevanceEvaluator(qrels, set(TREC)).evaluate(run)

def pytrec_eval(qrels, run):
    import pytrec_eval
    if isinstance(qrels, str):
        with open(qrels) as q, open(run) as r:
            qrels, run = pytrec_eval.parse_qrel(q), pytrec_eval.parse_run(r)
    return pytrec_eval.RelevanceEvaluator(qrels, set(TREC)).evaluate(run)

def ranx(qrels, run):
    from ranx import Qrels, Run, evaluate
    if isinstance(qrels, str):
        return evaluate(Qrels.from_file(qrels, kind="trec"), Run.from_file(run, kind="trec"), RANX)
    return evaluate(Qrels(qrels), Run(run), RANX)

def ir_measures(qrels, run):
    import ir_measures as irm
    if isinstance(qrels, str):
        qrels, run = irm.read_trec_qrels(qrels), irm.read_trec_run(run)
    return irm.calc([irm.nDCG @ 10, irm.AP, irm.RR, irm.R @ 100, irm.P @ 5], qrels, run).aggregated

def floor(qrels, run):
    import floorext
    return floorext.evaluate(qrels, run, True, True)[0]

work = globals()[contender]
if mode != "cold":
    modules = {{"ours": "rageval_spec.api.rankings", "drop_in": "rageval_spec.compat.pytrec_eval", "floor": "floorext"}}
    __import__(modules.get(contender, contender))
arguments = (qrels_path, run_path)
if mode == "dict":
    from bench_worker_load import load
    arguments = load(*arguments)
elif mode == "frame":
    from rageval_spec import kernels
    arguments = (kernels.read_qrels(qrels_path), kernels.read_run(run_path))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
if mode != "cold":
    gc.collect(); gc.freeze()
    before = peak()
    if contender == "ranx" and mode == "dict":  # it compiles its code on first use
        work(*[dict(list(table.items())[:20]) for table in arguments])
    started = time.perf_counter()
else:
    before = 0
work(*arguments)
print(json.dumps({{"seconds": time.perf_counter() - started, "extra": peak() - before, "peak": peak()}}))
"""


def prepare(bench: Path, workloads: list[str]) -> None:
    """Copy the generator and the floors, build the floors, and generate missing workloads."""
    if not WORK.is_dir():
        if not bench.is_dir():
            sys.exit(f"{bench} not found: pass the folder with bench_gen.py and floor/ as --bench")
        shutil.copytree(bench, WORK, copy_function=shutil.copyfile)
    reference = WORK.parent / "trec_eval_reference"
    if not reference.exists() and (bench.parent / reference.name).is_dir():
        reference.symlink_to((bench.parent / reference.name).resolve())
    (WORK / "work").mkdir(exist_ok=True)
    floor = WORK / "floor"
    if not (floor / "fastfile").exists():
        subprocess.run(["rustc", "--edition", "2021", "-O", "fastfile.rs"], cwd=floor, check=True, capture_output=True)
    if not (floor / "floorext.so").exists():
        include = f"-I{sysconfig.get_paths()['include']}"
        command = ["cc", "-O3", "-shared", "-fPIC", include, "floorext.c", "-o", "floorext.so"]
        subprocess.run(command, cwd=floor, check=True)
    for workload in workloads:
        if not (WORK / "work" / f"{workload}.run").exists():
            print(f"making {workload} ...", flush=True)
            subprocess.run([sys.executable, "bench_gen.py", workload], cwd=WORK, check=True, stdout=subprocess.DEVNULL)


def measure(command: list[str], environment: dict[str, str] | None = None) -> tuple[float, float, str]:
    """Wall seconds and peak MB of a process, and its output."""
    import time

    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None and process.stderr is not None
        out, err = process.stdout.read().decode(), process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command[:2])} failed:\n{err[-2000:]}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024, out


def run_worker(python: str, contender: str, mode: str, workload: str) -> tuple[float, float, float]:
    """(seconds of the evaluation, or of the whole process if cold; MB beyond the data; peak MB)."""
    paths = [str(WORK / "work" / f"{workload}.{kind}") for kind in ("qrels", "run")]
    wall, peak, out = measure([python, "-c", WORKER, contender, mode, *paths])
    row = json.loads(out.splitlines()[-1])
    return (wall if mode == "cold" else row["seconds"]), row["extra"], peak


def run_floor_file(workload: str) -> tuple[float, float, float]:
    """The same for the file floor, which is a separate program."""
    paths = [str(WORK / "work" / f"{workload}.{kind}") for kind in ("qrels", "run")]
    wall, peak, _ = measure([str(WORK / "floor" / "fastfile"), *paths, "2", "eval"])
    return wall, peak, peak


def race(mode: str, workload: str, contenders: list[str], rounds: int, peers: str) -> None:
    """Print one table: medians over interleaved rounds."""
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name in contenders:
            python = sys.executable if name in ("ours", "drop_in", "floor") else peers
            floor_file = name == "floor" and mode in ("file", "cold")
            result = run_floor_file(workload) if floor_file else run_worker(python, name, mode, workload)
            rows[name].append(result)
    medians = {name: [statistics.median(column) for column in zip(*row, strict=True)] for name, row in rows.items()}
    print(f"\n{mode}, {workload}: median of {rounds}")
    print(f"  {'':14} {'seconds':>9} {'x ours':>8} {'extra MB':>9} {'peak MB':>8}")
    for name, (seconds, extra, peak) in medians.items():
        print(f"  {name:14} {seconds:9.4f} {seconds / medians['ours'][0]:8.2f} {extra:9.0f} {peak:8.0f}", flush=True)


def time_import(rounds: int) -> None:
    """Time `import rageval_spec` less a bare interpreter, and the whole of `rageval-spec validate`."""
    bare = statistics.median(measure([sys.executable, "-c", "pass"])[0] for _ in range(rounds))
    with_us = statistics.median(measure([sys.executable, "-c", "import rageval_spec"])[0] for _ in range(rounds))
    command = [sys.executable, "-m", "rageval_spec", "validate", str(HERE.parent / "specs" / "quickstart.yaml")]
    validate = statistics.median(measure(command)[0] for _ in range(rounds))
    print(
        f"\nimport rageval_spec {1000 * (with_us - bare):.0f} ms beyond the interpreter's {1000 * bare:.0f} ms; ",
        end="",
    )
    print(f"rageval-spec validate {1000 * validate:.0f} ms in total (median of {rounds})")


def main() -> None:
    """Read the command line and run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modes", nargs="*", default=["dict", "file", "frame", "cold", "scale", "import"])
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--bench", type=Path, default=HERE.parents[1] / "shared" / "bench" / "ir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workload", default="marco")
    options = parser.parse_args()
    scales = ["scale1000", "scale10000", "scale70000"] if "scale" in options.modes else []
    prepare(options.bench, [options.workload, "robust", *scales])
    workload, rounds, peers = options.workload, options.rounds, options.peers
    if "dict" in options.modes:
        race("dict", workload, ["ours", "drop_in", "floor", "pytrec_eval", "ranx", "ir_measures"], rounds, peers)
    if "file" in options.modes:
        race("file", workload, ["ours", "floor", "pytrec_eval", "ranx", "ir_measures"], rounds, peers)
    if "frame" in options.modes:
        race("frame", workload, ["ours"], rounds, peers)
    if "cold" in options.modes:
        race("cold", "robust", ["ours", "floor", "pytrec_eval", "ranx", "ir_measures"], rounds, peers)
    for scale in scales:
        race("file", scale, ["ours", "floor"], rounds, peers)
    if "import" in options.modes:
        time_import(rounds)


if __name__ == "__main__":
    main()
