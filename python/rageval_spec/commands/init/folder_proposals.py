"""Proposes what a first spec could evaluate in a folder, by the names of its files and their first bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from rageval_spec.reading.formats.text_files import format_of

Kind: TypeAlias = Literal["answers", "golden", "beir", "trec", "promptfoo", "otel"]
"""What there is, the likeliest first: the answers of a system, questions, judged documents, runs, a test set of
promptfoo, or spans."""
PROMPTFOO = ("promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json")
TABLES = ("csv", "tsv", "xlsx", "parquet", "json", "jsonl", "ndjson")
_NAMES: Sequence[tuple[Kind, str]] = (
    ("otel", "trace|span|otel|otlp"),
    ("trec", "qrels"),
    ("answers", "answer|response|prediction|output"),
    ("golden", "gold|question|test_?-?set|eval_?-?set|ground_?-?truth|faq|fragen"),
)
"""What the names of files say of their content."""
_SPAN = rb'"(?:resourceSpans|resource_spans|traceId|trace_id|span_id|spanId)"'
_MOST_SHOWN, _MOST_READ = 8, 4096
_MAGIC = {".xlsx": b"PK", ".parquet": b"PAR1"}
RUN = "run"


class Proposal(NamedTuple):
    """Something that a spec could evaluate.

    Attributes:
        path: the file, or the folder of a BEIR dataset.
        told: what it is, in words.
        arguments: those of `init` that write the spec; a golden set can have a URL or answers, too.
    """

    kind: Kind
    path: Path
    told: str
    arguments: tuple[str, ...]


def propose(folder: Path) -> list[Proposal]:
    """What there is in a folder, the likeliest first; no more than people read. Nothing if it cannot be read."""
    try:
        entries = sorted(Path(folder, entry.name) for entry in os.scandir(folder) if not entry.name.startswith("."))
    except OSError:
        return []
    found = [*_find(entries)]
    golden = next((one.path for one in found if one.kind == "golden"), None)
    if golden is not None:  # the answers may need its questions
        found = [one._replace(arguments=(*one.arguments, "--golden", str(golden))) if one.kind == "answers" else one
                 for one in found]  # fmt: skip
    return sorted(found, key=lambda one: get_args(Kind).index(one.kind))[:_MOST_SHOWN]


def _find(entries: Sequence[Path]) -> Iterator[Proposal]:
    runs = [path for path in entries if format_of(path) == RUN]
    for path in entries:
        if path.is_dir():
            if is_beir(path):
                yield Proposal("beir", path, f"the BEIR dataset {path}", ("--from", "beir", str(path)))
            continue
        if path.name in PROMPTFOO:
            yield Proposal("promptfoo", path, f"the tests in {path}", ("--from", "promptfoo", str(path)))
            continue
        beginning = _read_beginning(path) if path.is_file() else b""  # a pipe would wait for a writer
        if not beginning.strip() or not beginning.startswith(_MAGIC.get(path.suffix.lower(), b"")):
            continue  # empty, not readable, or not what its name says
        kind = guess(path)
        if kind == "trec" and runs:
            told = f"the judgements in {path} and the rankings in {', '.join(run.name for run in runs)}"
            yield Proposal(kind, path, told, ("--from", "trec", str(path)))
        elif kind == "otel":
            yield Proposal(kind, path, f"the traces in {path}", ("--from", "otel", str(path)))
        elif kind == "answers":
            yield Proposal(kind, path, f"the answers in {path}", ("--answers", str(path)))
        elif kind == "golden":
            yield Proposal(kind, path, f"the questions in {path}", (str(path),))


def is_beir(folder: Path) -> bool:
    """Whether a folder has documents, queries and judgements in BEIR's layout."""
    names = ("corpus.jsonl", "queries.jsonl")
    return (folder / "qrels").is_dir() and all(any(folder.glob(f"{name}*")) for name in names)


def guess(path: Path) -> Kind | None:
    """What a file holds; None if neither its name nor its beginning says so."""
    suffix = format_of(path)
    kind = next((kind for kind, pattern in _NAMES if re.search(pattern, path.stem.lower())), None)
    if kind == "trec" or suffix == "qrels":
        return "trec" if suffix in ("tsv", "txt", "qrels", "") else None
    if suffix not in TABLES:
        return None
    if kind == "otel":  # what `import` wrote of traces has questions and answers
        return "otel" if re.search(_SPAN, _read_beginning(path)) else "answers"
    return kind


def _read_beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_READ)
    except OSError:
        return b""
