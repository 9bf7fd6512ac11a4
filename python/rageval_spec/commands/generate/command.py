"""What `rageval-spec generate` does: shows the cost, makes the questions, writes them and says what came out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec import signals
from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.generate.request import DATASET, Request, build_spec
from rageval_spec.errors import BROKEN, PASSED, UsageError
from rageval_spec.generation.split import divide_rows, read_shares
from rageval_spec.progress import ProgressDisplay
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.commands.generate.files import Places
    from rageval_spec.datasets.generated import Generated
    from rageval_spec.generation.question_sets import QuestionSet
    from rageval_spec.pipeline.estimate import Expectation
    from rageval_spec.pipeline.parts import Parts
    from rageval_spec.plugin.budget import Budget


def generate_test_set(
    request: Request,
    output: Path,
    form: str,
    *,
    force: bool,
    dry_run: bool,
    store: Path | None,
    no_store: bool,
    split: str | None = None,
) -> int:
    """Make the questions and print what came out.

    Args:
        request: what to make.
        output: the file of the questions.
        form: `text` or `json`, for what is printed.
        force: whether to replace the file if it exists.
        dry_run: whether to show only what it would cost.
        store: the store's folder; by default beside the spec, or here.
        no_store: whether to store nothing.
        split: the shares of validation and test, such as `30:70`; None for no split.

    Returns:
        The exit code: 0, or 3 if a limit or the endpoint ended it, or nothing could be made.
    """
    from rageval_spec.commands.generate.files import Places, check_output
    from rageval_spec.commands.generate.summary import summarize
    from rageval_spec.runner import STORE

    if not request.corpus.expanduser().exists():
        raise UsageError(f"{request.corpus}: there is no such file or folder")
    check_output(output, force=force, dry_run=dry_run)
    if split is not None:
        read_shares(split)
    spec = build_spec(request)
    places = Places(output, None if no_store else store or spec.folder / STORE)
    budget = spec.limits.budget()
    with ProgressDisplay() as display, _open(spec, places, display, budget) as parts:
        dataset: Generated = parts.datasets[DATASET]  # type: ignore[assignment]
        planned = _plan(dataset, parts, display)
        if dry_run:
            console.write(planned.render_plan(form))
            return PASSED
        for line in planned.list_lines():
            display.tell(line)
        display.announce("make the questions")
        made = dataset.produce()
        summary = summarize(dataset, made, budget)
        rows, unmet = (made.rows, ()) if split is None else divide_rows(made.rows, split)
        written = list(_write(made, rows, dataset, places))
    console.write(summary.render(form, places.output, written))
    for remark in unmet:
        console.tell(f"note: {remark}")
    for path in written:
        console.tell(f"wrote {path}")
    if budget.calls:
        console.tell(budget.describe())
    if summary.complaint is not None:
        console.tell(f"{PROGRAM}: {summary.complaint}")
        return BROKEN
    return PASSED


@contextmanager
def _open(spec: Any, places: Places, display: ProgressDisplay, budget: Budget) -> Iterator[Parts]:
    """The plugins, with models that are ready to be asked."""
    from rageval_spec.pipeline.parts import build_parts, stop_calls
    from rageval_spec.pipeline.preparation import explain_interrupt, prepare_models
    from rageval_spec.store.folder import open_store

    display.describe_spending = lambda: f"${budget.cost:,.2f} so far" if budget.cost else ""
    with closing(open_store(places.store)) as store:
        parts = build_parts(spec, display.counting, store.answers, store.fingerprint, budget, display.tell)
        _check(parts)
        explain = partial(explain_interrupt, parts, budget, keeps_replies=places.store is not None)
        with stop_calls(parts), signals.explained(explain):
            prepare_models(parts, display)
            yield parts


def _check(parts: Parts) -> None:
    """Let the dataset and its models check themselves.

    Raises:
        UsageError: one of them found a fault.
    """
    for plugin in (*parts.datasets.values(), *parts.asked_models.values(), *parts.judges.values()):
        if (fault := plugin.check()) is not None:
            raise UsageError(fault.replace("limits.max_cost", "--max-cost").replace(
                "write it in US dollars per million tokens: price: {input: 0.15, output: 0.60}",
                "give it in US dollars per million tokens in and out: --price 0.15/0.60",
            ).replace("(both 0 for", "(0/0 for"))  # fmt: skip


@dataclass(frozen=True)
class Planned:
    """What making the questions would take."""

    documents: int
    chunks: int
    expectation: Expectation
    max_cost: float | None

    def list_lines(self) -> list[str]:
        """The plan as lines of text."""
        lines = [f"{count_noun(self.documents, 'document')}, {count_noun(self.chunks, 'chunk')}"]
        lines += self.expectation.render().splitlines()
        if any(model.calls for model in self.expectation.models):
            lines.append("each question that fails a check is replaced, which costs about as much again")
        if self.max_cost is not None and (self.expectation.cost or 0) > self.max_cost:
            lines.append(f"this is more than {self.max_cost:g} USD: it will stop there, and another run continues")
        return lines

    def render_plan(self, form: str) -> str:
        """The plan as text or JSON."""
        if form == "text":
            return "\n".join(self.list_lines()) + "\n"
        content = {"documents": self.documents, "chunks": self.chunks, "to_ask": self.expectation.to_json()}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _plan(dataset: Generated, parts: Parts, display: ProgressDisplay) -> Planned:
    """Read the documents and find out what will be asked."""
    from rageval_spec.data.assessment import Estimate
    from rageval_spec.generation.documents import describe_unread
    from rageval_spec.pipeline.estimate import Expectation, add_up

    display.announce("read the documents")
    documents = dataset.source.documents
    for line in describe_unread(documents.unread):
        display.tell(line)
    estimate = Estimate() if dataset.find() is not None else dataset.foresee_calls()
    expected = Expectation(tuple(add_up(parts, estimate)))
    most = dataset.context.budget.max_cost
    return Planned(len(documents.documents), len(dataset.source.chunks), expected, most)


def _write(made: QuestionSet, rows: Sequence[Mapping[str, Any]], dataset: Generated, places: Places) -> Iterator[Path]:
    """Write the files; of an unfinished set, only what was rejected and, under another name, what is done."""
    from rageval_spec.commands.generate.files import write_rows, write_sides

    partial_set = places.beside("partial")
    if made.rows:
        yield write_rows(partial_set if made.stopped else places.output, rows)
        if not made.stopped:
            yield from write_sides(rows, places)
            partial_set.unlink(missing_ok=True)
            yield write_rows(places.beside("corpus"), dataset.source.list_rows())
    if made.rejected:
        yield write_rows(places.beside("rejected"), made.rejected)
    else:
        places.beside("rejected").unlink(missing_ok=True)
