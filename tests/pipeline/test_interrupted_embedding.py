"""A kill in the middle of an embedding loses only what was not stored yet, and changes no number."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from rageval_spec.runner import Options, run
from rageval_spec.store.vectors import count_vectors
from tests.embedded import is_installed

DOCUMENTS = 400
pytestmark = pytest.mark.skipif(not is_installed("minilm"), reason="the embedded model minilm is not installed")


def write_collection(folder: Path) -> Path:
    """Documents of random words, and for each a query with some of its words."""
    draw = random.Random(7)
    words = [
        f"{first}{second}" for first in ("sun", "rain", "tree", "fish") for second in ("day", "fall", "top", "net")
    ]
    texts = [" ".join(draw.choices(words, k=15)) for _ in range(DOCUMENTS)]
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(texts)]
    queries = [{"_id": f"q{number}", "text": " ".join(texts[number].split()[:6])} for number in range(10)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    judged = "".join(f"q{number}\td{number}\t1\n" for number in range(10))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    spec = {
        "version": 1,
        "datasets": {"words": {"use": "beir", "path": "."}},
        "systems": {"dense": {"use": "dense"}},
        "metrics": ["ndcg@10", "rr"],
        "reports": ["json"],
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path


def count_kept(store: Path) -> int:
    return sum(count_vectors(folder) for folder in (store / "vectors").glob("*"))


def texts_of(folder: Path) -> list[str]:
    return [json.loads(line)["text"] for line in (folder / "corpus.jsonl").read_text().splitlines()]


def test_stored_vectors_survive_and_the_results_equal_those_of_an_uninterrupted_run(tmp_path: Path) -> None:
    spec = write_collection(tmp_path / "words")
    store = tmp_path / "store"
    command = [
        sys.executable,
        "-m",
        "rageval_spec",
        "run",
        str(spec),
        "--store",
        str(store),
        "-o",
        str(tmp_path / "no"),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 120
        while (kept := count_kept(store)) == 0 and time.monotonic() < until:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert 0 < kept < DOCUMENTS
    (folder,) = (store / "vectors").glob("*")
    with (folder / "values").open("ab") as stream:
        stream.write(b"a row that was not finished")
    resumed = run(spec, Options(store=store, output=tmp_path / "resumed"))
    unbroken = run(spec, Options(no_store=True, output=tmp_path / "unbroken"))
    assert resumed.timings[0].reused >= kept
    assert unbroken.timings[0].reused == 0
    assert (tmp_path / "resumed/results.json").read_bytes() == (tmp_path / "unbroken/results.json").read_bytes()
    assert count_vectors(folder) == len(set(texts_of(tmp_path / "words")))
    again = run(spec, Options(store=store, output=tmp_path / "again"))
    assert again.timings[0].stored
