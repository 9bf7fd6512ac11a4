"""Audits: how long a large set takes, and how well label errors are found.

    python benches/audit.py speed [--questions 100000]
    python benches/audit.py labels data/scifact [--share 0.1] [--draws 3] [--model minilm]

`speed` writes questions of which 1% are there twice, 1% nearly, and 30% follow one template, and audits them. It exits
with 1 if that takes more than 60 s of processor time or 1 GB for 100,000 questions.

`labels` replaces the relevant documents of a share of the questions of a BEIR folder by random ones, evaluates five
systems, and says how many of the questions that all of them fail and that the audit suspects were replaced.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from rageval_spec.audit.item_analysis import LIKELY

MOST_SECONDS, MOST_MEGABYTES, OF = 60.0, 1000, 100_000
WORDS = [f"word{number}" for number in range(5000)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    speed = commands.add_parser("speed")
    speed.add_argument("--questions", type=int, default=OF)
    speed.set_defaults(run=measure_speed)
    labels = commands.add_parser("labels")
    labels.add_argument("folder", type=Path)
    labels.add_argument("--share", type=float, default=0.1)
    labels.add_argument("--draws", type=int, default=3)
    labels.add_argument("--model", default="minilm")
    labels.set_defaults(run=measure_labels)
    options = parser.parse_args()
    options.run(options)


def measure_speed(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.jsonl"
        path.write_text("".join(make_rows(options.questions)))
        begun = time.perf_counter()
        content = audit(path)
        seconds = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    counts = {check["name"]: len(check["findings"]) for check in content["datasets"][0]["checks"] if check["findings"]}
    print(
        f"{options.questions:,} questions: {seconds:.1f} s ({processor:.1f} s of processor time), {megabytes:,.0f} MB"
    )
    print(counts)
    sys.exit(processor > MOST_SECONDS * max(1.0, options.questions / OF) or megabytes > MOST_MEGABYTES)


def make_rows(count: int) -> Iterator[str]:
    drawn = random.Random(1)
    asked: list[str] = []
    for number in range(count):
        kind = drawn.random()
        if asked and kind < 0.02:
            question = drawn.choice(asked)
            question = question if kind < 0.01 else f"the {question}"
        elif kind < 0.3:
            question = f"What is the balance of account {number} at the end of {drawn.choice(['May', 'June', 'July'])}?"
        else:
            question = " ".join(drawn.choices(WORDS, k=drawn.randint(6, 14))) + "?"
        asked.append(question)
        reference = " ".join(drawn.choices(WORDS, k=8))
        yield json.dumps({"id": str(number), "question": question, "reference": reference}) + "\n"


def measure_labels(options: argparse.Namespace) -> None:
    print("draw  failed  replaced  suspected  of these replaced  replaced ones suspected")
    with tempfile.TemporaryDirectory() as folder:
        for draw in range(options.draws):
            print(f"{draw:>4}  {describe(*try_labels(options, draw, Path(folder)))}")


def try_labels(options: argparse.Namespace, draw: int, folder: Path) -> tuple[list[dict[str, Any]], set[str]]:
    """The findings about questions that every system fails, and the ids of those with replaced labels."""
    data = folder / f"draw-{draw}"
    replaced = replace_labels(options.folder.absolute(), data, options.share, draw)
    systems = {
        "bm25": {"use": "bm25"},
        "flat": {"use": "bm25", "b": 0.0},
        "short": {"use": "bm25", "k1": 0.2},
        "dense": {"use": "dense", "model": "embedding"},
        "hybrid": {"use": "hybrid", "systems": ["bm25", "dense"]},
    }
    content = {
        "version": 1,
        "datasets": {"replaced": {"use": "beir", "path": data.name}},
        "models": {"embedding": {"use": "onnx", "model": options.model}},
        "systems": systems,
        "metrics": ["ndcg@10"],
    }
    spec, results = folder / f"draw-{draw}.yaml", folder / f"results-{draw}"
    spec.write_text(yaml.safe_dump(content))
    command = [sys.executable, "-m", "rageval_spec", "run", str(spec), "-q", "-o", str(results), "--no-history"]
    subprocess.run(command, check=True)
    checks = audit(spec, "--results", str(results))["datasets"][0]["checks"]
    return next(check["findings"] for check in checks if check["name"] == "every_system_fails"), replaced


def replace_labels(source: Path, target: Path, share: float, seed: int) -> set[str]:
    """A copy of a BEIR folder in which some questions have another document in place of their relevant ones."""
    (target / "qrels").mkdir(parents=True)
    for path in source.glob("*.jsonl*"):
        (target / path.name).symlink_to(path)
    header, *lines = (source / "qrels" / "test.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    drawn, documents = random.Random(seed), sorted({row[1] for row in rows})
    ids = sorted({row[0] for row in rows})
    chosen = set(drawn.sample(ids, int(share * len(ids))))
    own = {query_id: {row[1] for row in rows if row[0] == query_id} for query_id in chosen}
    kept = [row for row in rows if row[0] not in chosen]
    kept += [
        [query_id, drawn.choice([d for d in documents if d not in own[query_id]]), "1"] for query_id in sorted(chosen)
    ]
    (target / "qrels" / "test.tsv").write_text("".join(f"{line}\n" for line in [header, *map("\t".join, kept)]))
    return chosen


def describe(findings: list[dict[str, Any]], replaced: set[str]) -> str:
    wrong = [finding["rows"][0]["query_id"] in replaced for finding in findings]
    suspected = [
        is_wrong for is_wrong, one in zip(wrong, findings, strict=True) if one["details"]["suspicion"] >= LIKELY
    ]
    precision, recall = sum(suspected) / max(1, len(suspected)), sum(suspected) / max(1, sum(wrong))
    return f"{len(findings):>6}  {sum(wrong):>8}  {len(suspected):>9}  {precision:>18.0%}  {recall:>23.0%}"


def audit(path: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "rageval_spec", "audit", str(path), "--format", "json", *options]
    done = subprocess.run(command, capture_output=True, check=False)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


if __name__ == "__main__":
    main()
