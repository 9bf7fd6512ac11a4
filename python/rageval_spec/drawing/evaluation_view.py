"""Describes an evaluation: the outcome, the gates, the tables, what to look at first, and details to read up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rageval_spec import wording
from rageval_spec.data.evaluation import Comparison, Evaluation, JudgingCost, Overall
from rageval_spec.data.outcomes import GateOutcome, NoteLevel, Verdict
from rageval_spec.drawing.card_view import draw_entry, shorten
from rageval_spec.drawing.cards import list_first, write_show
from rageval_spec.drawing.question_order import got_no_answer
from rageval_spec.drawing.sections import (
    CAUSES,
    NOT_COMPARABLE,
    SIGNIFICANCE,
    describe_bands,
    describe_legend,
    describe_share,
    is_improvement,
    list_sections,
    list_slice_counts,
    name_band,
    significance_mark,
)
from rageval_spec.drawing.verdict import (
    MARKS,
    SharedNote,
    describe_headline,
    share_failures,
    share_notes,
    worst_first,
    worst_outcome,
)
from rageval_spec.drawing.view import (
    Block,
    Code,
    Column,
    Details,
    Grid,
    Heading,
    Inline,
    Items,
    Line,
    Span,
    join,
    name,
    tabulate,
    write_markdown,
)
from rageval_spec.wording import NO_MEAN, count_noun, find_format, format_interval, format_mean

if TYPE_CHECKING:
    from pathlib import Path

STYLES: dict[Verdict | None, str] = {
    "pass": "green",
    "warn": "yellow",
    "inconclusive": "yellow",
    "fail": "bold red",
    None: "",
}
_CHANGES: dict[bool | None, str] = {True: "green", False: "red", None: ""}
_WORDS: dict[Verdict, str] = {"pass": "pass", "warn": "warn", "fail": "FAIL", "inconclusive": "inconclusive"}
_NOTE_STYLES: dict[NoteLevel, str] = {"note": "cyan", "warning": "bold yellow"}
_PASSED_GATES_SHOWN = 12
_NOTES_SHOWN = 20
_SLICES_SHOWN = 12
_ADJUSTED = (
    "p-values are Holm-adjusted within each dataset. For each baseline, the comparisons that gates request form one "
    "family; all other comparisons form another."
)


LONGEST_COMMENT = 60_000
"""Characters of a comment; GitHub refuses comments of more than 65,536."""
_LONGEST_NAME = 120


def mark_comment(key: str) -> str:
    """The first line of a comment, by which it is found again: an HTML comment, which nobody sees."""
    shown = re.sub(r"[^\w.]+", "-", key).strip("-")
    return f"<!-- rageval-spec: {shown[:_LONGEST_NAME]} -->"


def write_comment(title: str, blocks: Iterable[Block], key: str | None = None, longest: int = LONGEST_COMMENT) -> str:
    """The Markdown of a comment of at most `longest` characters; `key` replaces the title in its first line."""
    first = f"{mark_comment(key or title)}\n"
    shown = Heading(name(shorten(title, _LONGEST_NAME)), 2)
    return first + write_markdown([shown, *blocks], longest - len(first))


def draw_evaluation(
    evaluation: Evaluation, digits: int, folder: Path | None = None, *, verdicts_first: bool = False
) -> Iterator[Block]:
    """The blocks of the report. `folder` has the results, if they are written.

    Gates and notes stand where a reader looks first: at the end on a terminal, at the beginning of a comment.
    """
    yield from draw_headline(evaluation, digits)
    if evaluation.failures and got_no_answer(evaluation):  # a server that is down is one message
        return
    told = [note for note in share_notes(evaluation) if not any(note.message in one for one in evaluation.failures)]
    warnings = [note for note in told if note.level == "warning"]
    verdicts = [*draw_notes(warnings), *draw_gates([gate for gate in evaluation.gates if gate.outcome != "pass"])]
    if verdicts_first:
        yield from verdicts
    for dataset in evaluation.datasets:
        yield Heading([name(evaluation.name), " on ", name(dataset)])
        yield _draw_means(evaluation, dataset, digits)
        legend = [*describe_bands(evaluation), *describe_legend(evaluation, dataset)]
        yield Items([(sign, sentence, "dim") for sign, sentence in legend])
    yield from draw_slices(evaluation, digits)
    for section in list_sections(evaluation, digits):
        yield Heading(section.title, 4)
        if section.rows:
            yield tabulate(section.header, section.rows, section.numbers)
        yield from map(Line, section.remarks)
    yield from _draw_first(evaluation, folder)
    yield from _draw_details(evaluation, digits)
    if notes := [note for note in told if note.level == "note"]:
        yield Details(f"Notes ({len(notes)})", [*draw_notes(notes)])
    if passed := [gate for gate in evaluation.gates if gate.outcome == "pass"]:
        yield Details(f"Passed gates ({len(passed)})", [*draw_gates(passed)])
    yield draw_provenance(evaluation)
    if not verdicts_first:
        yield from verdicts
        yield _say_outcome(evaluation, digits)


def draw_headline(evaluation: Evaluation, digits: int = wording.DIGITS) -> Iterator[Block]:
    """The outcome, the answers that were not asked now, and what failed besides what the outcome says."""
    yield _say_outcome(evaluation, digits)
    yield from (Line(Span(sentence, "yellow")) for sentence in describe_headline(evaluation, digits).taken_over)
    if others := share_failures(evaluation)[1:]:
        yield Items([(MARKS["fail"], failure, "bold red") for failure in others])


def _say_outcome(evaluation: Evaluation, digits: int) -> Line:
    headline, worst = describe_headline(evaluation, digits), read_outcome(evaluation.verdict)
    style = "bold green" if worst == "pass" else f"bold {STYLES[worst].removeprefix('bold ')}"
    mark = MARKS[worst] if evaluation.gates or worst != "pass" else ""
    reason = f" {headline.reason}" if headline.reason else ""
    return Line([*join([Span(mark, style), Span(headline.title, style)]), f": {headline.summary}.{reason}"])


def read_outcome(verdict: Overall) -> Verdict:
    return "fail" if verdict == "error" else verdict


def draw_notes(notes: Sequence[SharedNote]) -> Iterator[Block]:
    rows = [(note.level, str(note), _NOTE_STYLES[note.level]) for note in notes[:_NOTES_SHOWN]]
    if (more := len(notes) - _NOTES_SHOWN) > 0:
        rows.append(("note", f"{count_noun(more, 'other note')}; the JSON report lists all of them", "cyan"))
    if rows:
        yield Items(rows)


def draw_gates(gates: Sequence[GateOutcome]) -> Iterator[Block]:
    """The gates, worst first; of many that passed, the first."""
    passed = sum(gate.outcome == "pass" for gate in gates)
    shown = worst_first(gates)[: len(gates) - max(0, passed - _PASSED_GATES_SHOWN)]
    rows = [(f"{MARKS[one.outcome]} {_WORDS[one.outcome]}", one.reason, STYLES[one.outcome]) for one in shown]
    if more := len(gates) - len(shown):
        rows.append((f"{MARKS['pass']} {_WORDS['pass']}", count_noun(more, "other gate"), STYLES["pass"]))
    if rows:
        yield Items(rows)


def _draw_means(evaluation: Evaluation, dataset: str, digits: int) -> Grid:
    """A row for each metric, a column for each system, and one for each baseline of a gate.

    Columns with the difference from another system of the table are spare: the system's own column is there too.
    """
    changes: dict[tuple[str, str], dict[str, Comparison]] = {}
    for comparison in evaluation.baselines:
        if comparison.dataset == dataset and comparison.slice is None:
            changes.setdefault((comparison.system, comparison.baseline), {})[comparison.metric] = comparison
    columns = [Column("metric", list(evaluation.metrics), "name")]
    for system in evaluation.systems:
        cells = [_draw_cell(evaluation, dataset, system, metric, digits) for metric in evaluation.metrics]
        columns.append(Column(system, cells, "number", is_fixed=False))
        for (of, baseline), found in changes.items():
            if of == system:
                cells = [_draw_change(evaluation, found.get(metric), digits) for metric in evaluation.metrics]
                is_spare = baseline in evaluation.systems
                columns.append(Column(f"{system} vs {baseline}", cells, "number", is_spare, is_fixed=False))
    counts = [_count_common(evaluation, dataset, metric) for metric in evaluation.metrics]
    last = [Column("scored", [Span(count, "dim") for count in counts], "number")] if any(counts) else []
    return Grid([*columns, *last])


def draw_slices(evaluation: Evaluation, digits: int) -> Iterator[Details]:
    """For each dataset and system a table with a row for each slice and a column for each metric."""
    for dataset in dict.fromkeys(one.dataset for one in evaluation.slices):
        slices = [one for one in evaluation.slices if one.dataset == dataset]
        largest = sorted(slices, key=lambda one: -one.queries)[:_SLICES_SHOWN]
        shown = [one for one in slices if one in largest]
        more = len(slices) - len(shown)
        rest = [Line(f"{count_noun(more, 'other slice')} with fewer queries: see results.json")] if more else []
        place = "" if len(evaluation.datasets) == 1 else f" on {dataset}"
        for system in evaluation.systems:
            columns = [
                Column(metric, cells, "number", is_fixed=False)
                for metric in evaluation.metrics
                for cells in [[_draw_cell(evaluation, dataset, system, metric, digits, one.name) for one in shown]]
                if any(cell[0].text not in ("", NO_MEAN) for cell in cells)
            ]
            if columns:
                names = Column("slice", [one.name for one in shown], "name")
                counts = Column("queries", [Span(str(one.queries), "dim") for one in shown], "number")
                yield Details(f"Slices of {system}{place}", [Grid([names, *columns, counts]), *rest])


def _draw_first(evaluation: Evaluation, folder: Path | None) -> Iterator[Block]:
    found = list_first(evaluation)
    if not found:
        return
    several = len(evaluation.datasets) > 1
    entries: list[Block] = [
        draw_entry(
            card, [card.system, *([card.dataset] if several else [])], None if metric is None else card.value(metric)
        )
        for card, metric in found
    ]
    command = "" if folder is None else write_show(found[0][0].query_id, str(folder))
    hint = [Line(Span(f"One question in full: {command}", "dim"))] if command else []
    yield Details("Look at first", [*entries, *hint])


def _draw_change(evaluation: Evaluation, comparison: Comparison | None, digits: int) -> list[Span]:
    if comparison is None:
        return _list_parts()
    shown = find_format(evaluation, comparison.metric).change
    return _list_parts(
        wording.format_signed(comparison.difference, digits, shown),
        format_interval(comparison.interval, digits, shown),
        mark=significance_mark(comparison),
        is_good=is_improvement(comparison, evaluation),
    )


def _draw_cell(
    evaluation: Evaluation, dataset: str, system: str, metric: str, digits: int, slice: str | None = None
) -> list[Span]:
    cell = evaluation.aggregate(dataset, system, metric, slice)
    if cell is None:
        return _list_parts()
    comparison = evaluation.comparison(dataset, system, metric, slice)
    is_counted = cell.scored == cell.total if slice else bool(_count_common(evaluation, dataset, metric))
    shown = find_format(evaluation, metric)
    return _list_parts(
        format_mean(cell, digits, shown),
        format_interval(cell.interval, digits, shown.number),
        name_band(evaluation, cell),
        significance_mark(comparison),
        None if comparison is None else is_improvement(comparison, evaluation),
        worst_outcome(evaluation.outcomes(dataset, system, metric, slice)),
        "" if is_counted else f"{cell.scored}/{cell.total}",
    )


def _list_parts(
    number: str = "",
    interval: str = "",
    band: str = "",
    mark: str = "",
    is_good: bool | None = None,
    gate: Verdict | None = None,
    scored: str = "",
) -> list[Span]:
    """The parts of a cell; `scored` is empty if the row's last column shows it."""
    return [
        Span(number, "bold"),
        Span(interval, "dim", is_below=True),
        Span(band, is_below=True),
        Span(mark, _CHANGES[is_good]),
        Span(MARKS[gate] if gate else "", STYLES[gate]),
        Span(scored, is_below=True),
    ]


def _count_common(evaluation: Evaluation, dataset: str, metric: str) -> str:
    """`40/40` if all systems have the same counts, else ""."""
    cells = (evaluation.aggregate(dataset, system, metric) for system in evaluation.systems)
    counts = {f"{cell.scored}/{cell.total}" for cell in cells if cell is not None}
    return counts.pop() if len(counts) == 1 else ""


def _draw_details(evaluation: Evaluation, digits: int) -> Iterator[Details]:
    """What only a page or a comment has room for, folded."""
    if comparisons := evaluation.every_comparison:
        names = ["dataset", "metric", "system", "baseline"]
        header = [*names, "difference", f"{wording.ADJUSTED} p", "queries", "better / worse"]
        rows = [_list_comparison(one, names, evaluation, digits) for one in comparisons]
        table = tabulate(header, rows, range(4, 8), range(4))
        yield Details(f"Comparisons ({len(rows)})", [table, Line(_ADJUSTED)], is_on_terminal=False)
    for (dataset, system), slices in list_slice_counts(evaluation).items():
        causes = [cause for cause in CAUSES if any(one.cause == cause for of in slices.values() for one in of)]
        rows = []
        for slice_name, counts in slices.items():
            told = {one.cause: f"{one.count}, {describe_share(one)}" for one in counts}
            rows.append([slice_name, str(counts[0].total), *(told.get(cause, "0") for cause in causes)])
        table = tabulate(["slice", "questions", *causes], rows, range(1, 2 + len(causes)))
        title = f"Causes by slice of {system} on {dataset} ({len(slices)})"
        yield Details(title, [table], is_on_terminal=False)


def _list_comparison(one: Comparison, names: Sequence[str], evaluation: Evaluation, digits: int) -> list[Inline]:
    shown = find_format(evaluation, one.metric).change
    mark = "" if one.is_comparable else NOT_COMPARABLE
    interval = format_interval(one.interval, digits, shown)
    difference = [Span(wording.format_signed(one.difference, digits, shown)), Span(mark), Span(interval)]
    p_value = wording.format_probability(one.p_adjusted)
    p_value = p_value if one.is_resolvable(SIGNIFICANCE) else wording.UNRESOLVABLE
    cells = [getattr(one, key) for key in names]
    return [*cells, difference, p_value, str(one.queries), f"{one.wins} / {one.losses}"]


def draw_provenance(evaluation: Evaluation) -> Details:
    """The versions, the digest of the spec, the models and the settings."""
    of = evaluation.provenance
    return Details(
        "Versions and settings",
        [
            Code([
                *(f"{key} {version}" for key, version in sorted(of.versions.items())),
                f"spec sha256 {of.spec_digest}",
                *(f"dataset {key}: {origin.describe()}" for key, origin in of.origins.items()),
                *(f"model {key}: {_list_facts(facts)}" for key, facts in of.models.items()),
                *(f"judging with {key}: {_describe_judging(cost)}" for key, cost in of.judging.items()),
                *(f"replies of {key}: {counts}" for key, counts in of.replies.items()),
                *(f"prompt {key} sha256 {sha256}" for key, sha256 in of.prompts.items()),
                *json.dumps(of.settings, sort_keys=True, indent=2, ensure_ascii=False).splitlines(),
            ])
        ],
        is_on_terminal=False,
    )  # fmt: skip


def _list_facts(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {fact}" for key, fact in facts.items())


def _describe_judging(judging: JudgingCost) -> str:
    counts = ((judging.input_tokens, "input"), (judging.output_tokens, "output"))
    tokens = [f"{kind} tokens unknown" if count is None else f"{count:,} {kind} tokens" for count, kind in counts]
    cost = "cost unknown" if judging.cost is None else f"{judging.cost:.4g} USD"
    calls = "1 call" if judging.calls == 1 else f"{judging.calls:,} calls"
    return ", ".join((calls, *tokens, cost))
