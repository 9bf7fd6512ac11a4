"""What `rageval-spec generate --no-model` does: makes questions from the documents themselves, and writes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.generate.output import check_output, place_beside, write_block, write_rows, write_sides
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import BROKEN, PASSED
from rageval_spec.generation.question_sets import SIDES, SplitUnit
from rageval_spec.progress import ProgressDisplay
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.generation.offline_questions import OfflineSet
    from rageval_spec.reading.column_names import CorpusColumns


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
    from rageval_spec.generation.documents import describe_unread, read_documents
    from rageval_spec.generation.offline_questions import make_offline_set

    with ProgressDisplay() as display:
        display.announce("read the documents")
        documents = read_documents(corpus, columns)
        for line in describe_unread(documents.unread):
            display.tell(make_visible(line))
        display.announce("make the questions")
        made = make_offline_set(documents, count, seed=seed, split=split, split_by=split_by, size=chunk_words)
    written = _write(made, output)
    console.write(_render(made, output, form, len(documents.documents), written))
    for path in written:
        console.tell(f"wrote {path}")
    if not made.rows:
        needed = "a question needs a text of three sentences, a title or a heading"
        why = "the rejected ones have the reasons" if made.rejected else needed
        console.tell(f"{PROGRAM}: no question could be made; {why}")
        return BROKEN
    return PASSED


def _write(made: OfflineSet, output: Path) -> list[Path]:
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
    from rageval_spec.drawing.terminal import render_text

    about = f"{count_noun(len(made.rows), 'question')} about {asked:,} of {count_noun(documents, 'document')}"
    return render_text(lambda _: _draw(made, output, about, counts))


def _draw(made: OfflineSet, output: Path, about: str, counts: dict[str, dict[str, int]]) -> Iterator[RenderableType]:
    from rich.text import Text

    from rageval_spec.drawing.terminal import tabulate
    from rageval_spec.generation.offline_questions import REASONS

    yield Text(about, "bold")
    if made.rows:
        yield ""
        yield tabulate(("", "", "made"), [*_list_counts(counts)], {2})
    if made.rejected:
        yield ""
        yield Text(f"{count_noun(len(made.rejected), 'question')} dropped:")
        reasons = Counter(row["reason"] for row in made.rejected)
        yield tabulate(("", "reason"), [(f"{count:,}", REASONS[name]) for name, count in reasons.most_common()], {0})
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
