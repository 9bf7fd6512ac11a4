"""The files that `generate` writes, and its summary of what came out.

The files are the questions, the corpus, what was rejected, and the sets of a split. The summary shows the mix beside
the wanted one, what was rejected and why, and how to go on. With `--no-model`, the questions are made here too, from
the documents' own sentences.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.terminal import render_text, tabulate
from rageval_spec.errors import BROKEN, PASSED, UsageError
from rageval_spec.generation.documents import describe_unread, read_documents
from rageval_spec.generation.question_production import REASONS
from rageval_spec.generation.question_sets import SIDES, GeneratedTestSet, KindShare, SplitUnit
from rageval_spec.libraries import Text
from rageval_spec.progress import ProgressDisplay
from rageval_spec.runner import write_report
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.datasets.generated import Generated
    from rageval_spec.generation.offline_questions import OfflineSet
    from rageval_spec.plugin.budget import Budget
    from rageval_spec.reading.column_names import CorpusColumns


SUFFIX = ".jsonl"


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


def write_sides(rows: Sequence[Mapping[str, Any]], output: Path) -> Iterator[Path]:
    """Write the rows of each set of a split into a file of its own; remove what an earlier split left behind."""
    for side in SIDES:
        found = [row for row in rows if row.get("split") == side]
        if found:
            yield write_rows(place_beside(output, side), found)
        else:
            place_beside(output, side).unlink(missing_ok=True)


def write_block(output: Path) -> str:
    import yaml

    corpus = str(place_beside(output, "corpus"))
    block = {"datasets": {"golden": {"use": "jsonl", "path": str(output), "corpus": corpus}}}
    text = yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=1_000_000)
    return "".join(f"  {line}\n" for line in text.splitlines()).rstrip("\n")


_COLUMNS = {"type": "type", "difficulty": "difficulty, measured", "kind": "kind", "style": "style"}


@dataclass(frozen=True)
class Summary:
    """What came out.

    Attributes:
        chunks: how many chunks the questions are about, of `all_chunks`; `documents` likewise.
        shares: the made and the wanted number of each sort.
        shortages: why there are fewer than were ordered.
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
    shortages: Sequence[str]
    stopped: str | None
    cost: float | None

    @property
    def complaint(self) -> str | None:
        if self.stopped is not None:
            done = f"{self.questions:,} of {count_noun(self.wanted, 'question')} are made"
            return f"{done}: {self.stopped}; run the same command again to continue"
        return None if self.questions else "no question could be made; the rejected ones have the reasons"

    @property
    def off(self) -> list[KindShare]:
        return [share for share in self.shares if share.is_far(self.questions)]

    def render(self, form: str, output: Path, written: Sequence[Path]) -> bytes | str:
        if form == "json":
            content = asdict(self) | {"files": [str(path) for path in written]}
            return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        return render_text(lambda _: self._draw(output))

    def _draw(self, output: Path) -> Iterator[RenderableType]:
        yield Text(make_visible(self._head()), "bold")
        if self.questions:
            yield ""
            yield tabulate(("", "", "made", "wanted"), [*self._list_shares()], {2, 3})
        if self.rejected:
            yield ""
            yield Text(f"{count_noun(sum(self.rejected.values()), 'question')} rejected:")
            meanings: Mapping[str, str] = dict(REASONS.items())
            reasons = [(f"{count:,}", reason, meanings.get(reason, "")) for reason, count in self.rejected.items()]
            yield tabulate(("", "reason", ""), reasons, {0})
        yield from self._remark()
        if self.questions and self.stopped is None:
            yield ""
            yield Text("to evaluate with them, write in a spec:")
            yield Text(make_visible(write_block(output), keep="\n"), no_wrap=True, overflow="ignore")
        yield ""

    def _head(self) -> str:
        wanted = "" if self.questions == self.wanted else f" of {self.wanted:,}"
        questions = f"{self.questions:,}{wanted} {'question' if self.wanted == 1 else 'questions'}"
        return (
            f"{questions} about {self.chunks:,} of {count_noun(self.all_chunks, 'chunk')}, from {self.documents:,} of "
            f"{count_noun(self.all_documents, 'document')}"
        )

    def _list_shares(self) -> Iterator[tuple[str, str, str, str]]:
        before = ""
        for share in self.shares:
            label = "" if share.column == before else _COLUMNS[share.column]
            before = share.column
            yield label, share.name, f"{share.made:,}", f"{share.wanted:,.0f}"

    def _remark(self) -> Iterator[RenderableType]:
        for shortage in self.shortages:
            yield Text(make_visible(f"! missing {shortage}"), "yellow")
        for share in self.off:
            yield Text(make_visible(f"! {share.describe()}"), "yellow")
        if any(share.column == "difficulty" for share in self.off):
            yield Text("  (difficulty is how high retrievers rank the source, not what was asked for)")


def summarize(dataset: Generated, made: GeneratedTestSet, budget: Budget) -> Summary:
    documents = {source["document"] for row in made.rows for source in row["sources"]}
    chunks: set[Any] = {chunk for row in made.rows for chunk in row["relevant"]}
    return Summary(
        len(made.rows),
        dataset.node.count,
        len(chunks),
        len(dataset.source.chunks),
        len(documents),
        len(dataset.source.documents.documents),
        made.count_shares(dataset.node.mix) if made.rows else [],
        dict(made.reasons),
        list(made.shortages),
        made.stopped,
        None if budget.unpriced else budget.cost,
    )


_COUNTED = ("type", "difficulty", "language", "split")
_ORDER = ("easy", "medium", "hard", *SIDES)
"""Names in this order; others before them, by their letters."""


def generate_offline(
    corpus: Path,
    output: Path,
    form: str,
    *,
    force: bool,
    count: int,
    seed: int,
    chunk_words: int,
    split: str | None,
    split_by: SplitUnit,
    columns: CorpusColumns | None,
) -> int:
    """Make questions without a model, write them, and print what came out; 3 if no question could be made."""
    check_output(output, force=force)
    from rageval_spec.generation.offline_questions import make_offline_set

    with ProgressDisplay() as display:
        display.announce("read the documents")
        documents = read_documents(corpus, columns)
        for line in describe_unread(documents.unread):
            display.tell(make_visible(line))
        display.announce("make the questions")
        made = make_offline_set(documents, count, seed=seed, split=split, split_by=split_by, size=chunk_words)
    written = _write_offline(made, output)
    console.write(_render(made, output, form, len(documents.documents), written))
    for path in written:
        console.tell(f"wrote {path}")
    if not made.rows:
        needed = "a question needs a text of three sentences, a title or a heading"
        why = "the rejected ones have the reasons" if made.rejected else needed
        console.tell(f"{PROGRAM}: no question could be made; {why}")
        return BROKEN
    return PASSED


def _write_offline(made: OfflineSet, output: Path) -> list[Path]:
    rejected = place_beside(output, "rejected")
    rejected.unlink(missing_ok=True)
    corpus = made.corpus if made.rows else []
    files = {output: made.rows, place_beside(output, "corpus"): corpus, rejected: made.rejected}
    written = [write_rows(path, rows) for path, rows in files.items() if rows]
    return [*written, *write_sides(made.rows, output)]


def _render(made: OfflineSet, output: Path, form: str, documents: int, written: Sequence[Path]) -> bytes | str:
    counts = {key: dict(Counter(str(row[key]) for row in made.rows if row.get(key))) for key in _COUNTED}
    asked = len({name for row in made.rows for name in row["relevant_documents"]})
    if form == "json":
        content = {
            "questions": len(made.rows),
            "made_by": "no-model",
            "documents": documents,
            "asked_documents": asked,
            **counts,
            "rejected": dict(Counter(row["reason"] for row in made.rejected)),
            "remarks": list(made.remarks),
            "files": [str(path) for path in written],
        }
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    about = f"{count_noun(len(made.rows), 'question')} about {asked:,} of {count_noun(documents, 'document')}"
    return render_text(lambda _: _draw(made, output, about, counts))


def _draw(made: OfflineSet, output: Path, about: str, counts: dict[str, dict[str, int]]) -> Iterator[RenderableType]:
    from rageval_spec.generation.offline_questions import REASONS as DROPPED

    yield Text(about, "bold")
    if made.rows:
        yield ""
        yield tabulate(("", "", "made"), [*_list_counts(counts)], {2})
    if made.rejected:
        yield ""
        yield Text(f"{count_noun(len(made.rejected), 'question')} dropped:")
        reasons = Counter(row["reason"] for row in made.rejected)
        yield tabulate(("", "reason"), [(f"{count:,}", DROPPED[name]) for name, count in reasons.most_common()], {0})
    for remark in made.remarks:
        yield Text(f"note: {make_visible(remark)}")
    if made.rows:
        yield ""
        yield Text("These questions compare retrievers. They have no answers, so answers cannot be judged with them.")
        yield Text("What each was made from is left out of the corpus beside them; search that one:")
        yield Text(make_visible(write_block(output), keep="\n"), no_wrap=True, overflow="ignore")
        yield Text("  systems: {bm25: {use: bm25}}")
        yield Text("  metrics: [ndcg@10, recall@10]")


def _list_counts(counts: dict[str, dict[str, int]]) -> Iterator[tuple[str, str, str]]:
    for key in _COUNTED:
        names = sorted(counts[key], key=lambda name: (_ORDER.index(name) if name in _ORDER else -1, name))
        for place, name in enumerate(names):
            yield "" if place else key, name, f"{counts[key][name]:,}"
