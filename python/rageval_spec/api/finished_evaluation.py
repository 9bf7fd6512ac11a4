"""What `run`, `judge` and `load_results` return: an evaluation as polars frames, cards, reports and files.

Notebooks show its outcome, and a table of its aggregates for each dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec import registry
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, Overall
from rageval_spec.data.outcomes import GateOutcome, Note
from rageval_spec.diagnostics import Diagnostic, make_visible, suggest
from rageval_spec.drawing.html_shell import draw_table, show_text
from rageval_spec.drawing.verdict import MARKS, describe_verdict, list_taken_over, worst_outcome
from rageval_spec.errors import DataError, UsageError, no_exit
from rageval_spec.libraries import pl
from rageval_spec.plugin import Context
from rageval_spec.wording import (
    DIGITS,
    NumberFormat,
    count_noun,
    find_format,
    format_interval,
    format_mean,
    list_choices,
)

if TYPE_CHECKING:
    from rageval_spec.api.question_cards import QuestionCard, QuestionCards


_IDS_SHOWN = 5


class FinishedEvaluation:
    """The result of an evaluation.

    Tables are polars frames; `.to_pandas()` converts them. In a notebook, the object shows itself as a table.

    Attributes:
        data: everything about the evaluation as plain Python objects.
        warnings: the warnings about the spec.
        spent: a sentence that says how many calls to endpoints were made and what they cost; "" if there were none.
        written: the files that were written.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        *,
        warnings: Iterable[Diagnostic] = (),
        spent: str = "",
        written: Iterable[Path] = (),
        lost_reports: Iterable[str] = (),
    ) -> None:
        """Wrap an evaluation. `lost_reports` says which reports could not be made, and why."""
        self.data = evaluation
        self.warnings = tuple(warnings)
        self.spent = spent
        self.written = tuple(written)
        self._lost = tuple(lost_reports)

    @property
    def outcome(self) -> Overall:
        """ "pass", "warn" or "fail", the worst outcome of a gate; "error" if something failed or nothing was scored.

        An inconclusive gate counts as what its `on_inconclusive` says.
        """
        return "error" if self._lost else self.data.verdict

    @property
    def passed(self) -> bool:
        """Whether the outcome is "pass" or "warn", for which the command line returns 0."""
        return self.outcome in ("pass", "warn")

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each system or metric that gave no values, and for each report that could not be made."""
        return (*self.data.failures, *self._lost)

    @property
    def gates(self) -> tuple[GateOutcome, ...]:
        """The outcome of each gate on each dataset and system, with its reason."""
        return self.data.gates

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader of the numbers must know."""
        return self.data.notes

    @cached_property
    def aggregates(self) -> pl.DataFrame:
        """One row for each dataset, system and metric, then those of slices.

        Columns: `dataset, system, metric, slice` (null for all queries), `mean` (null if no query could be scored),
        `low, high, confidence` (its interval, null if there is none), `scored, excused, total` (numbers of queries)
        and `statistic` (what `mean` holds: "mean", "sum", "p95").
        """
        sliced = (aggregate for one in self.data.slices for aggregate in one.aggregates)
        texts, numbers = ("dataset", "system", "metric", "slice"), ("mean", "low", "high", "confidence")
        counts = ("scored", "excused", "total")
        return _tabulate((*self.data.aggregates, *sliced), texts, numbers, counts, ("statistic",))

    @cached_property
    def comparisons(self) -> pl.DataFrame:
        """The paired tests of each system against the first and against baselines of gates, then those of slices.

        Columns: `dataset, system, baseline, metric, slice, difference, low, high, p_value, p_adjusted, queries, wins,
        losses`.
        """
        sliced = (comparison for one in self.data.slices for comparison in one.comparisons)
        texts = ("dataset", "system", "baseline", "metric", "slice")
        numbers = ("difference", "low", "high", "p_value", "p_adjusted")
        return _tabulate((*self.data.every_comparison, *sliced), texts, numbers, ("queries", "wins", "losses"))

    @property
    def values(self) -> pl.DataFrame:
        """The value of each query: columns `dataset, system, metric, query_id, value, status, reason` and more.

        `value` is null unless `status` is "scored"; `reason` says why.
        """
        return self.data.values

    @property
    def samples(self) -> pl.DataFrame:
        """Each system's answer to each question, with contexts and references; see `docs/results.md`."""
        return self.data.samples

    def question(self, query_id: str, *, dataset: str | None = None, system: str | None = None) -> QuestionCard:
        """Everything about one question of one system: answer, marked claims, contexts, references, values, reasons.

        A notebook shows it as a card.

        Args:
            query_id: the question's id.
            dataset, system: which question is meant if several datasets or systems have it.

        Raises:
            UsageError: there is no such question, or several systems or datasets have it.
        """
        from rageval_spec.api.question_cards import make_cards
        from rageval_spec.drawing.cards import build_card

        return make_cards([build_card(self.data, *self._find_question(query_id, dataset, system))])[0]

    def questions(self, **wanted: Any) -> QuestionCards:
        """The cards of the questions that a filter chooses, worst first: a tuple, which notebooks show as a table.

        Args:
            wanted: `metric`, `below` and `above` (with `metric`), `system`, `dataset`, `slice`, `cause`, `regressed`,
                `failed`, `limit`, as the options of `rageval-spec show`.

        Raises:
            UsageError: the evaluation has no such metric, system, dataset, slice or cause.
        """
        from rageval_spec.api.question_cards import make_cards
        from rageval_spec.drawing.cards import select_cards
        from rageval_spec.drawing.question_order import Filter

        known = [field.name for field in fields(Filter)]
        for name in wanted.keys() - {*known}:
            hint = suggest(name, known) or f"there are {', '.join(known)}"
            raise UsageError(f"there is no filter '{name}'; {hint}")
        return make_cards(select_cards(self.data, Filter(**wanted)))

    def _find_question(self, query_id: str, dataset: str | None, system: str | None) -> tuple[str, str, str]:
        key = ("dataset", "system", "query_id")
        wanted = {"query_id": query_id, "dataset": dataset, "system": system}
        chosen = [pl.col(name) == text for name, text in wanted.items() if text is not None]
        tables = (self.values.select(key), self.samples.select(key))
        found = pl.concat([table.filter(*chosen) for table in tables]).unique(maintain_order=True).rows()
        if len(found) == 1:
            return found[0]
        of = "".join(f" of the {name} {text!r}" for name, text in wanted.items() if text and name != "query_id")
        if not found:
            ids = self.values["query_id"].unique().sort().to_list()
            more = ", ..." if len(ids) > _IDS_SHOWN else ""
            hint = suggest(query_id, ids) or f"the ids are {', '.join(ids[:_IDS_SHOWN])}{more}"
            raise UsageError(f"there is no question {query_id!r}{of}; {hint}")
        datasets, systems, _ = (dict.fromkeys(names) for names in zip(*found, strict=True))
        noun, names = ("system", systems) if len(systems) > 1 else ("dataset", datasets)
        which = list_choices([f"{noun}={one!r}" for one in [*names][:_IDS_SHOWN]])
        raise UsageError(f"{count_noun(len(names), noun)} have the question {query_id!r}{of}; add {which}")

    @property
    def findings(self) -> pl.DataFrame:
        """What judges decided about each claim: its text, verdict, evidence, reason and more, in one row each."""
        return self.data.findings

    @property
    def documents(self) -> pl.DataFrame:
        """The texts of all contexts, each once."""
        return self.data.documents

    def report(self, word: str, **keys: Any) -> str | bytes:
        """A report of the evaluation: text, or bytes if the format is binary (as Parquet is).

        Args:
            word: what `use:` would say under `reports:`, for example "markdown".
            keys: the other keys of the report's block.

        Raises:
            UsageError: there is no such report, or a key is wrong.
        """
        content = self._render(word, keys)
        # No text has a null character; every Parquet file and every zip file has some.
        return content if b"\0" in content else content.decode("utf-8")

    def save(self, folder: str | Path) -> Path:
        """Write a results folder, which `load_results` and `baseline:` of a gate read, and return its path.

        Raises:
            RagevalError: a file cannot be written.
        """
        from rageval_spec.history.results_folder import write_results

        target = Path(folder)
        write_results(self.data, target)
        return target

    def _render(self, word: str, keys: dict[str, Any]) -> bytes:
        from pydantic import ValidationError

        plugin = registry.load("reports", word)
        try:
            node = plugin.node_type.model_validate({"use": word, **keys}, by_alias=True)
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            key = ".".join(map(str, found["loc"]))
            if found["type"] == "extra_forbidden":
                known = [name for name in plugin.node_type.model_fields if name != "use"]
                told = suggest(key, known) or f"it has {', '.join(known)}"
                raise UsageError(f"the report '{word}' has no key '{key}'; {told}") from None
            raise UsageError(f"the report '{word}': {key}: {found['msg']}") from None
        with no_exit():
            content: bytes = plugin(node, Context(word)).render(self.data)
        return content

    def __repr__(self) -> str:
        """The outcome, a line for each aggregate of all queries and for each failure; why nothing could be scored."""
        lines = [f"{type(self).__name__}({self.data.name!r}, {self.outcome}: {self._describe()})"]
        wide = [max(map(len, column), default=0) for column in zip(*map(_name_row, self.data.aggregates), strict=True)]
        for aggregate in self.data.aggregates:
            names = "  ".join(f"{name:<{width}}" for name, width in zip(_name_row(aggregate), wide, strict=True))
            lines.append(f"  {names}  {describe_aggregate(aggregate, find_format(self.data, aggregate.metric))}")
        lines += (f"  failed: {make_visible(failure)}" for failure in self.data.failures)
        lines += (f"  {make_visible(told)}" for told in list_taken_over(self.data))
        if self.data.scored_nothing:
            lines += (
                f"  {make_visible(note.message)}" for note in self.data.notes if note.code == "unscorable_queries"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The outcome and the aggregates as HTML, for notebooks; it contains no scripts."""
        return render_html(self.data, self.outcome, self._describe())

    def _describe(self) -> str:
        return make_visible("; ".join((*self._lost, describe_verdict(self.data))))


def describe_aggregate(aggregate: Aggregate, shown: NumberFormat) -> str:
    """`0.6671 [0.5871, 0.7432]  40/40`: the number, its interval, and how many queries were scored.

    A weighted number has the plain one beside it: `0.6671 [0.5871, 0.7432] weighted, 0.7012 plain  40/40`.
    """
    interval = format_interval(aggregate.interval, formatter=shown.number)
    told = f"{format_mean(aggregate, shown=shown)} {interval}".rstrip()
    if aggregate.design is not None and aggregate.design.plain is not None:
        told += f" weighted, {shown.number(aggregate.design.plain, DIGITS)} plain"
    return f"{told}  {aggregate.scored}/{aggregate.total}"


def _name_row(aggregate: Aggregate) -> tuple[str, str, str]:
    return make_visible(aggregate.dataset), make_visible(aggregate.system), make_visible(aggregate.metric)


def _tabulate(
    rows: Iterable[Aggregate | Comparison],
    texts: Iterable[str],
    numbers: Iterable[str],
    counts: Iterable[str],
    more: Iterable[str] = (),
) -> pl.DataFrame:
    """A table of attributes; low, high and confidence are those of the interval. `more` texts follow the numbers."""
    kinds = ((texts, pl.String), (numbers, pl.Float64), (counts, pl.Int64), (more, pl.String))
    schema = {name: kind() for names, kind in kinds for name in names}
    of_interval = ("low", "high", "confidence")
    cells = [
        [getattr(row.interval, name, None) if name in of_interval else getattr(row, name) for name in schema]
        for row in rows
    ]
    return pl.DataFrame(cells, schema, orient="row")


def load_results(folder: str | Path) -> FinishedEvaluation:
    """Load the folder that an evaluation's results were saved to.

    Args:
        folder: what `run` on the command line wrote, what `.save` wrote, or a record under `.rageval/history`; the path
            of its `results.json` will do.

    Raises:
        DataError: a file is missing or cannot be read; the message names it.
    """
    from rageval_spec.history.results_folder import RESULTS
    from rageval_spec.history.saved_evaluations import load_record

    if (path := Path(folder)).name == RESULTS:
        path = path.parent
    if not (path / RESULTS).is_file():
        raise DataError(
            f"{folder} is not a results folder: it has no {RESULTS}; `run(output=...)` or `.save` writes one"
        )
    return FinishedEvaluation(load_record(path).evaluation)


_NOTES_SHOWN = 10


def render_html(evaluation: Evaluation, outcome: Overall, sentence: str) -> str:
    """The evaluation as HTML without scripts, links or images. Every text is escaped; `sentence` is the outcome."""
    mark = MARKS["fail" if outcome == "error" else outcome]
    head = f"<p><strong>{mark} {show_text(evaluation.name)}: {show_text(sentence)}</strong></p>"
    tables = (_draw_table(evaluation, dataset) for dataset in evaluation.datasets)
    return f"<div>{head}{''.join(tables)}{''.join(_list_notes(evaluation))}</div>"


def _draw_table(evaluation: Evaluation, dataset: str) -> str:
    """A row for each metric and a column for each system, with the worst outcome of the gates on each number."""

    def describe(system: str, metric: str) -> str:
        if (aggregate := evaluation.aggregate(dataset, system, metric)) is None:
            return ""
        gated = worst_outcome(evaluation.outcomes(dataset, system, metric))
        told = describe_aggregate(aggregate, find_format(evaluation, metric))
        return f"{told} {MARKS[gated]} {gated}" if gated else told

    rows = ((metric, *(describe(system, metric) for system in evaluation.systems)) for metric in evaluation.metrics)
    return draw_table((dataset, *evaluation.systems), rows)


def _list_notes(evaluation: Evaluation) -> Iterator[str]:
    """The first notes, warnings first; a last line counts the rest."""
    notes = sorted(evaluation.notes, key=lambda note: note.level != "warning")
    texts = [*evaluation.failures, *list_taken_over(evaluation)]
    for note in notes:
        of = ", ".join(filter(None, (note.dataset, note.system)))
        text = f"{of}: {note.message}" if of else note.message
        texts += [text] if text not in texts else []
    if not texts:
        return
    rest = len(texts) - _NOTES_SHOWN
    shown = [*texts[:_NOTES_SHOWN], *([f"{count_noun(rest, 'more note')}: see `.notes`"] if rest > 0 else [])]
    yield f"<ul>{''.join(f'<li>{show_text(text)}</li>' for text in shown)}</ul>"
