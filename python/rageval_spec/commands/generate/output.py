"""The files that `generate` writes, and its summary of what came out.

The files are the questions, the corpus, what was rejected, and the sets of a split. The summary shows the mix beside
the wanted one, what was rejected and why, and how to go on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.dataclass import asdict, dataclass
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.terminal import Block, render_text, tabulate
from rageval_spec.errors import BROKEN, PASSED, UsageError
from rageval_spec.generation import offline_questions, question_production
from rageval_spec.generation.documents import DocumentSet, describe_unread
from rageval_spec.generation.offline_questions import MADE_BY
from rageval_spec.generation.question_sets import SIDES, GeneratedTestSet, KindShare, list_chunks
from rageval_spec.libraries import Text
from rageval_spec.progress import ProgressDisplay
from rageval_spec.runner import write_report
from rageval_spec.wording import count_noun

SUFFIX = ".jsonl"
_MEANINGS = {
    str(reason): why for one in (offline_questions, question_production) for reason, why in one.REASONS.items()
}


def place_beside(output: Path, what: str) -> Path:
    """The file beside the questions: `golden.rejected.jsonl`."""
    return output.with_name(f"{output.stem}.{what}{SUFFIX}")


def check_output(output: Path, *, force: bool, dry_run: bool = False) -> None:
    """Raise `UsageError` if the file is not named `.jsonl`, or if it exists and is not to be replaced."""
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


def write_set(
    output: Path,
    rows: Sequence[Mapping[str, Any]],
    corpus: Sequence[Mapping[str, Any]],
    rejected: Sequence[Mapping[str, Any]],
    *,
    is_finished: bool = True,
) -> Iterator[Path]:
    """Write the files; of an unfinished set, only what was rejected and, under another name, what is done."""
    parts: dict[str, Sequence[Mapping[str, Any]]] = {"rejected": rejected}
    if rows and is_finished:
        yield write_rows(output, rows)
        sides = {side: [row for row in rows if row.get("split") == side] for side in SIDES}
        parts = {**sides, "partial": (), "corpus": corpus, **parts}
    elif rows:
        parts["partial"] = rows
    for what, found in parts.items():
        if found:
            yield write_rows(place_beside(output, what), found)
        else:  # what an earlier run left behind
            place_beside(output, what).unlink(missing_ok=True)


def write_block(output: Path) -> str:
    import yaml

    corpus = str(place_beside(output, "corpus"))
    block = {"datasets": {"golden": {"use": "jsonl", "path": str(output), "corpus": corpus}}}
    text = yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=1_000_000)
    return "".join(f"  {line}\n" for line in text.splitlines()).rstrip("\n")


_COLUMNS = {"difficulty": "difficulty, measured"}


@dataclass(frozen=True)
class Summary:
    """What came out.

    Attributes:
        chunks: how many chunks the questions are about, of `all_chunks`; `documents` likewise.
        shares: the made and the wanted number of each sort; without a model, all that is made is wanted.
        shortages: why there are fewer than were ordered.
        remarks: what else could not be as wanted.
        cost: US dollars that were spent now; None if the cost of a call is unknown.
    """

    questions: int
    wanted: int
    chunks: int
    all_chunks: int
    documents: int
    all_documents: int
    shares: Sequence[KindShare]
    rejected: dict[str, int]
    shortages: Sequence[str] = ()
    remarks: Sequence[str] = ()
    stopped: str | None = None
    cost: float | None = None
    made_by: str = "model"

    @property
    def complaint(self) -> str | None:
        if self.stopped is not None:
            done = f"{self.questions:,} of {count_noun(self.wanted, 'question')} are made"
            return f"{done}: {self.stopped}; run the same command again to continue"
        if self.questions:
            return None
        needed = "a question needs a text of three sentences, a title or a heading"
        return f"no question could be made; {'the rejected ones have the reasons' if self.rejected else needed}"

    @property
    def off(self) -> list[KindShare]:
        return [share for share in self.shares if share.is_far(self.questions)]

    def report(self, form: str, output: Path, written: Sequence[Path]) -> int:
        """Print it, say what was written, and return the exit code."""
        if form == "json":
            content = asdict(self) | {"files": [str(path) for path in written]}
            console.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        else:
            console.write(render_text(lambda _: self.draw(output)))
        for path in written:
            console.tell(f"wrote {path}")
        if self.complaint is not None:
            console.tell(f"{PROGRAM}: {self.complaint}")
        return PASSED if self.complaint is None else BROKEN

    def draw(self, output: Path) -> Iterator[Block]:
        wanted = "" if self.questions == self.wanted else f" of {self.wanted:,}"
        yield (
            f"{self.questions:,}{wanted} {'question' if self.wanted == 1 else 'questions'} about {self.chunks:,} of "
            f"{count_noun(self.all_chunks, 'chunk')}, from {self.documents:,} of "
            f"{count_noun(self.all_documents, 'document')}",
            "bold",
        )
        if self.questions:
            yield ""
            yield tabulate(("", "", "made", "wanted"), [*self._list_shares()], {2, 3})
        if self.rejected:
            yield ""
            yield f"{count_noun(sum(self.rejected.values()), 'question')} rejected:"
            reasons = [(f"{count:,}", reason, _MEANINGS.get(reason, "")) for reason, count in self.rejected.items()]
            yield tabulate(("", "reason", ""), reasons, {0})
        yield from ((f"! missing {shortage}", "yellow") for shortage in self.shortages)
        yield from ((f"! {share.describe()}", "yellow") for share in self.off)
        if any(share.column == "difficulty" for share in self.off):
            yield "  (difficulty is how high retrievers rank the source, not what was asked for)"
        yield from (f"note: {remark}" for remark in self.remarks)
        if self.questions and self.stopped is None:
            yield ""
            if self.made_by == MADE_BY:
                yield "These questions compare retrievers. They have no answers, so answers cannot be judged with them."
                yield "What each was made from is left out of the corpus beside them; search that one."
            yield "to evaluate with them, write in a spec:"
            yield Text(make_visible(write_block(output), keep="\n"), no_wrap=True, overflow="ignore")
            if self.made_by == MADE_BY:
                yield "  systems: {bm25: {use: bm25}}"
                yield "  metrics: [ndcg@10, recall@10]"
        yield ""

    def _list_shares(self) -> Iterator[tuple[str, str, str, str]]:
        before = ""
        for share in self.shares:
            label = "" if share.column == before else _COLUMNS.get(share.column, share.column)
            before = share.column
            yield label, share.name, f"{share.made:,}", f"{share.wanted:,.0f}"


def summarize(
    made: GeneratedTestSet, documents: DocumentSet, chunks: int, wanted: int, remarks: Sequence[str], **more: Any
) -> Summary:
    """What came out of so many documents and chunks, and `more` parts of the summary."""
    sources = {source["document"] for row in made.rows for source in row["sources"]}
    asked: set[Any] = {chunk for row in made.rows for chunk in list_chunks(row)}
    counts = len(asked), chunks, len(sources), len(documents.documents)
    return Summary(len(made.rows), wanted, *counts, rejected=dict(made.reasons), remarks=remarks, **more)


def count_sorts(rows: Sequence[Mapping[str, Any]]) -> list[KindShare]:
    """The number of questions of each type, difficulty, language and set of a split, as they were made."""
    found = []
    for column in ("type", "difficulty", "language", "split"):
        counts = Counter(str(row[column]) for row in rows if row.get(column))
        names = sorted(counts, key=lambda name: (_ORDER.index(name) if name in _ORDER else -1, name))
        found += [KindShare(column, name, counts[name], float(counts[name])) for name in names]
    return found


_ORDER = ("easy", "medium", "hard", *SIDES)
"""Names in this order; others before them, by their letters."""


def tell_unread(documents: DocumentSet, display: ProgressDisplay) -> None:
    for line in describe_unread(documents.unread):
        display.tell(make_visible(line))
