"""The files that `generate` writes: the questions, the corpus, what was rejected, and the sets of a split."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rageval_spec.errors import UsageError
from rageval_spec.generation.split import SIDES
from rageval_spec.runner import write_report

SUFFIX = ".jsonl"


@dataclass(frozen=True)
class Places:
    """Where the files go.

    Attributes:
        output: the questions.
        store: the store's folder; None for none.
    """

    output: Path
    store: Path | None

    def beside(self, what: str) -> Path:
        """The file beside the questions: `golden.rejected.jsonl`."""
        return self.output.with_name(f"{self.output.stem}.{what}{SUFFIX}")


def check_output(output: Path, *, force: bool, dry_run: bool = False) -> None:
    """Check that the questions can be written.

    Raises:
        UsageError: the file is not named `.jsonl`, or it exists and is not to be replaced.
    """
    if output.suffix != SUFFIX:
        raise UsageError(f"-o {output}: the questions are written as JSON Lines; name a file that ends in {SUFFIX}")
    if output.exists() and not force and not dry_run:
        raise UsageError(
            f"{output} exists, and people may have edited it; name another file, or replace it with --force"
        )


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as JSON Lines, all or nothing, and return the path."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return write_report(path, "".join(lines).encode("utf-8", "backslashreplace"))


def write_sides(rows: Sequence[Mapping[str, Any]], places: Places) -> Iterator[Path]:
    """Write the rows of each set of a split into a file of its own; remove what an earlier split left behind."""
    for side in SIDES:
        found = [row for row in rows if row.get("split") == side]
        if found:
            yield write_rows(places.beside(side), found)
        else:
            places.beside(side).unlink(missing_ok=True)


def write_block(output: Path) -> str:
    """The block of a spec that reads the files."""
    import yaml

    corpus = output.with_name(f"{output.stem}.corpus.jsonl")
    block = {"datasets": {"golden": {"use": "jsonl", "path": str(output), "corpus": str(corpus)}}}
    text = yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=1_000_000)
    return "".join(f"  {line}\n" for line in text.splitlines()).rstrip("\n")
