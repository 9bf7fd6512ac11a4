"""Stream a corpus that need not fit memory: CPU time and peak memory of a process of its own, for each format.

    python benches/corpora.py [DOCUMENTS] [FOLDER]     1,000,000 passages of 60 words in /tmp by default

Passages are words of a Zipf distribution, seeded; 10,000,000 take 4.5 GB as JSON Lines. The files are deleted at the
end. `read` is what reading the bytes alone takes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from machine import name_processor

from rageval_spec.data.tables import Collection
from rageval_spec.plugin import Context
from rageval_spec.registry import load

WORDS, LENGTH, AT_ONCE = 200_000, 60, 20_000
FORMS = {"jsonl": "trec", "jsonl.gz": "trec", "jsonl.zst": "trec", "csv": "csv", "parquet": "parquet"}


def main() -> None:
    """Write the corpus in each format, then stream it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{count:,} passages of {LENGTH} words, {name_processor()}")
    with TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        folder = Path(name)
        write_corpus(folder / "corpus.jsonl", count)
        (folder / "qrels.csv").write_text("query_id,doc_id,relevance\nq,d1,1\n")
        (folder / "qrels.txt").write_text("q 0 d1 1\n")
        pl.DataFrame({"query_id": ["q"], "doc_id": ["d1"], "relevance": [1]}).write_parquet(folder / "qrels.parquet")
        for form in ("read", *FORMS):
            print(subprocess.check_output([sys.executable, __file__, "--one", form, name], text=True), end="")


def write_corpus(path: Path, count: int) -> None:
    """Passages as JSON Lines, the same for the same count."""
    rng = np.random.default_rng(7)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(rng.choice(letters, size=size)) for size in rng.integers(3, 9, size=WORDS)], dtype=object)
    share = np.cumsum(1 / np.arange(1, WORDS + 1))
    with path.open("w") as stream:
        for start in range(0, count, AT_ONCE):
            chosen = np.searchsorted(share / share[-1], rng.random((min(AT_ONCE, count - start), LENGTH)))
            for number, row in enumerate(words[chosen], start):
                stream.write(f'{{"_id": "d{number}", "title": "", "text": "{" ".join(row)}"}}\n')


def stream(form: str, folder: Path) -> None:
    """Stream one format and print what it took."""
    path = folder / f"corpus.{form}"
    if form != "read" and not path.exists():
        write_other(folder / "corpus.jsonl", path, form)
        print(subprocess.check_output([sys.executable, __file__, "--one", form, str(folder)], text=True), end="")
        path.unlink()
        return
    started, count, size = time.perf_counter(), 0, None
    if form == "read":
        with (folder / "corpus.jsonl").open("rb") as file:
            while file.read(2**23):
                pass
    else:
        collection = open_corpus(form, folder)
        size, measured = collection.corpus_size, time.perf_counter() - started
        count = sum(batch.height for batch in collection.stream_corpus())
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = "" if size is None else f" size in {measured:5.2f} s ({size.documents / count:.1%} of the documents)"
    print(
        f"  {form:10} {time.perf_counter() - started:7.2f} s wall {used.ru_utime + used.ru_stime:7.2f} s CPU"
        f" {used.ru_maxrss / 1024:7.0f} MB peak{told}"
    )


def write_other(source: Path, path: Path, form: str) -> None:
    """The corpus in another format."""
    if form == "csv":
        pl.scan_ndjson(source).rename({"_id": "doc_id"}).sink_csv(path)
    elif form == "parquet":
        pl.scan_ndjson(source).rename({"_id": "doc_id"}).sink_parquet(path)
    else:
        command = ["gzip", "-1"] if form.endswith("gz") else ["zstd", "-q"]
        with path.open("wb") as file:
            subprocess.run([*command, "-c", str(source)], stdout=file, check=True)


def open_corpus(form: str, folder: Path) -> Collection:
    """The dataset whose corpus has a format."""
    word = FORMS[form]
    keys = {"qrels": "qrels.txt"} if word == "trec" else {"path": f"qrels.{form}"}
    plugin = load("datasets", word)
    node = plugin.node_type(use=word, corpus=f"corpus.{form}", **keys)
    opened: Collection = plugin(node, Context("golden", folder)).open()
    return opened


if __name__ == "__main__":
    stream(sys.argv[2], Path(sys.argv[3])) if sys.argv[1:2] == ["--one"] else main()
