"""What came out of `generate`: the mix beside the wanted one, what was rejected and why, and how to go on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.commands.generate.files import write_block
from rageval_spec.generation.candidates import REASONS
from rageval_spec.reports.shared.console import render_text, tabulate
from rageval_spec.wording import count_noun, make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.datasets.generated import Generated
    from rageval_spec.generation.question_sets import QuestionSet, Share
    from rageval_spec.plugin.budget import Budget

_COLUMNS = {"type": "type", "difficulty": "difficulty, measured", "kind": "kind", "style": "style"}


@dataclass(frozen=True)
class Summary:
    """What came out.

    Attributes:
        questions: how many questions there are; `wanted` were ordered.
        chunks: how many chunks they are about, of `all_chunks`; `documents` likewise.
        shares: the made and the wanted number of each sort.
        rejected: how many questions were rejected for each reason.
        shortages: why there are fewer than were ordered.
        stopped: why it is not finished.
        cost: US dollars that were spent now.
    """

    questions: int
    wanted: int
    chunks: int
    all_chunks: int
    documents: int
    all_documents: int
    shares: Sequence[Share]
    rejected: dict[str, int]
    shortages: Sequence[str]
    stopped: str | None
    cost: float

    @property
    def complaint(self) -> str | None:
        """A sentence that explains an exit code other than 0."""
        if self.stopped is not None:
            done = f"{self.questions:,} of {count_noun(self.wanted, 'question')} are made"
            return f"{done}: {self.stopped}; run the same command again to continue"
        return None if self.questions else "no question could be made; the rejected ones say why"

    @property
    def off(self) -> list[Share]:
        """The shares that are not as wanted."""
        return [share for share in self.shares if share.is_far(self.questions)]

    def render(self, form: str, output: Path, written: Sequence[Path]) -> bytes | str:
        """The summary as text or JSON."""
        if form == "json":
            content = asdict(self) | {"files": [str(path) for path in written]}
            return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        return render_text(lambda _: self._draw(output))

    def _draw(self, output: Path) -> Iterator[RenderableType]:
        from rich.text import Text

        yield Text(make_visible(self._head()), "bold")
        if self.questions:
            yield ""
            yield tabulate(("", "", "made", "wanted"), [*self._list_shares()], {2, 3})
        if self.rejected:
            yield ""
            yield Text(f"{count_noun(sum(self.rejected.values()), 'question')} rejected:")
            yield tabulate(("", "reason", ""), [*self._list_reasons()], {0})
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

    def _list_reasons(self) -> Iterator[tuple[str, str, str]]:
        for reason, count in self.rejected.items():
            yield f"{count:,}", reason, REASONS.get(reason, "")  # type: ignore[call-overload]

    def _remark(self) -> Iterator[RenderableType]:
        from rich.text import Text

        for shortage in self.shortages:
            yield Text(make_visible(f"! missing {shortage}"), "yellow")
        for share in self.off:
            yield Text(make_visible(f"! {share.describe()}"), "yellow")
        if any(share.column == "difficulty" for share in self.off):
            yield Text("  (difficulty is how high retrievers rank the source, not what was asked for)")


def summarize(dataset: Generated, made: QuestionSet, budget: Budget) -> Summary:
    """Sum up a set of questions."""
    sources = [source["document"] for row in made.rows for source in row["sources"]]
    chunks: set[Any] = {chunk for row in made.rows for chunk in row["relevant"]}
    return Summary(
        len(made.rows),
        dataset.node.count,
        len(chunks),
        len(dataset.source.chunks),
        len(set(sources)),
        len(dataset.source.documents.documents),
        made.count_shares(dataset.node.mix) if made.rows else [],
        dict(made.reasons),
        list(made.shortages),
        made.stopped,
        budget.cost,
    )
