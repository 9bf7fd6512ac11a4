"""Describes a comment: the outcome, the checks against a baseline, and folded details.

The table has a row for each gate and each metric: its number before, its number now, and the test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rageval_spec.commands.compare.changes import (
    KINDS,
    MetricChange,
    compare_metrics,
    find_changes,
    list_differences,
)
from rageval_spec.commands.compare.comparison_view import (
    KIND_STYLES,
    NUMBERS,
    SIGNS,
    describe_test,
    draw_differences,
    draw_question,
    list_numbers,
)
from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.data.evaluation import Comparison, Evaluation, JudgingCost
from rageval_spec.data.outcomes import Cell, GateOutcome
from rageval_spec.drawing.card_view import shorten
from rageval_spec.drawing.evaluation_view import (
    LONGEST_COMMENT,
    STYLES,
    draw_gates,
    draw_headline,
    draw_notes,
    draw_provenance,
    draw_slices,
    write_comment,
)
from rageval_spec.drawing.question_order import Filter
from rageval_spec.drawing.sections import is_improvement
from rageval_spec.drawing.verdict import MARKS, share_notes, worst_first
from rageval_spec.drawing.view import Block, Details, Inline, Line, Span, join, name, tabulate
from rageval_spec.history.comparability import find_comparability
from rageval_spec.wording import DIGITS, count_noun, find_format

MOST_QUESTIONS = 50
"""Broken and fixed questions that are listed, each."""
_LONGEST_NAME = 80


def write_body(
    evaluation: Evaluation,
    baseline: NamedResults | None = None,
    *,
    key: str | None = None,
    commit: str | None = None,
    longest: int = LONGEST_COMMENT,
) -> str:
    """The text of a comment, of at most `longest` characters; what has no room is cut, details first.

    Without a baseline, the table has the comparisons that gates made. `key` replaces the evaluation's name in the line
    by which the comment is found again.
    """
    return write_comment(evaluation.name, draw_comment(evaluation, baseline, commit), key, longest)


def draw_comment(evaluation: Evaluation, baseline: NamedResults | None, commit: str | None = None) -> Iterator[Block]:
    yield from draw_headline(evaluation)
    yield from draw_notes([note for note in share_notes(evaluation) if note.level == "warning"])
    known = None if baseline is None else find_comparability(evaluation, baseline.evaluation, baseline.name)
    if baseline is not None and known is not None:
        yield from draw_differences(list_differences(evaluation, baseline.evaluation, known))
    checks = list_checks(evaluation, baseline)
    gated, others = ([one for one in checks if one.is_gate is wanted] for wanted in (True, False))
    yield from _tabulate(gated, evaluation)
    yield from draw_gates([gate for gate in evaluation.gates if gate.outcome != "pass"][1:])
    if not gated:
        yield from _tabulate(others, evaluation)
    if baseline is not None:
        yield from _draw_questions(evaluation, baseline)
    if gated and others:
        yield Details(f"Metrics without a gate ({len(others)})", [*_tabulate(others, evaluation)])
    yield from draw_slices(evaluation, DIGITS)
    if evaluation.provenance.judging:
        yield _draw_costs(evaluation, baseline)
    origin: list[str | Span] = ["Commit ", name(commit), ". "] if commit else []
    origin += [] if baseline is None else ["Base: ", name(baseline.name), "."]
    provenance = draw_provenance(evaluation)
    yield Details(provenance.title, [*([Line(origin)] if origin else []), *provenance.blocks])


def _tabulate(checks: Sequence[Check], evaluation: Evaluation) -> Iterator[Block]:
    """The table, and what its numbers are of."""
    if checks:
        rows = [[one.name, *list_numbers(one.change, find_format(evaluation, one.change.metric))] for one in checks]
        yield tabulate(["check", *NUMBERS], rows, range(1, 1 + len(NUMBERS)), ())
        if told := describe_test([one.change for one in checks], evaluation):
            yield Line(told)


def _draw_questions(evaluation: Evaluation, baseline: NamedResults) -> Iterator[Details]:
    """The questions that broke and those that were fixed, the largest changes first."""
    found = find_changes(evaluation, baseline.evaluation, Filter(limit=MOST_QUESTIONS))
    for kind in KINDS[:2]:
        changes: list[Block] = [draw_question(one, evaluation) for one in found.shown if one.kind == kind]
        more = found.counts[kind] - len(changes)
        rest = [Line(f"{count_noun(more, 'more question')} with smaller changes.")] if more else []
        if changes:
            title = count_noun(found.counts[kind], f"{kind} question")
            yield Details([Span(SIGNS[kind], KIND_STYLES[kind]), f" {title}"], [*changes, *rest])


def _draw_costs(evaluation: Evaluation, baseline: NamedResults | None) -> Details:
    """What the replies of each model took, beside what they took for the baseline."""
    before = {} if baseline is None else baseline.evaluation.provenance.judging
    rows = []
    for model, cost in evaluation.provenance.judging.items():
        tokens = ("–" if count is None else f"{count:,}" for count in (cost.input_tokens, cost.output_tokens))
        rows.append([model, f"{cost.calls:,}", *tokens, _format_dollars(before.get(model)), _format_dollars(cost)])
    known = [cost.cost for cost in evaluation.provenance.judging.values() if cost.cost is not None]
    header = ["model", "calls", "tokens in", "tokens out", "cost before", "cost"]
    total = f": ${sum(known):.4g}" if known else ""
    return Details(f"Cost of judging{total}", [tabulate(header, rows, range(1, 6))])


def _format_dollars(cost: JudgingCost | None) -> str:
    return "–" if cost is None or cost.cost is None else f"${cost.cost:.4g}"


class Check(NamedTuple):
    """A row: the metric with its place and bound, and its change."""

    name: Inline
    change: MetricChange
    is_gate: bool


def list_checks(evaluation: Evaluation, baseline: NamedResults | None) -> list[Check]:
    """A row for each gate, worst first, then one for each metric of a system that no gate looks at."""
    changes: dict[Cell, MetricChange] = {}
    if baseline is not None:
        known = find_comparability(evaluation, baseline.evaluation, baseline.name)
        changes = {one.after.cell: one for one in compare_metrics(evaluation, baseline.evaluation, known) if one.after}
    gates = worst_first(evaluation.gates)
    gated = {gate.cell for gate in gates}
    checks = [_check(evaluation, gate.cell, changes, has_baseline=baseline is not None, gate=gate) for gate in gates]
    rest = [one.cell for one in evaluation.aggregates if one.cell not in gated]
    return checks + [_check(evaluation, cell, changes, has_baseline=baseline is not None) for cell in rest]


def _check(
    evaluation: Evaluation,
    cell: Cell,
    changes: dict[Cell, MetricChange],
    *,
    has_baseline: bool,
    gate: GateOutcome | None = None,
) -> Check:
    # the comparison with another system of the spec that the gate asked for
    asked = None if gate is None or gate.baseline not in evaluation.systems else evaluation.find_asked(gate)
    change = changes.get(cell) if asked is None else None
    if change is None:
        test = asked
        if test is None and not has_baseline:  # the one that a gate asked for, or else that with the first system
            asking = (one for one in evaluation.baselines if one.cell == cell)
            test = next(asking, None) or evaluation.comparison(cell.dataset, cell.system, cell.metric, cell.slice)
        change = _read_test(evaluation, cell, test)
    shown = _name(evaluation, cell)
    if gate is not None:
        shown = [Span(MARKS[gate.outcome], STYLES[gate.outcome]), *shown, shorten(gate.bound or "", _LONGEST_NAME)]
    return Check(shown, change, gate is not None)


def _read_test(evaluation: Evaluation, cell: Cell, test: Comparison | None) -> MetricChange:
    head = evaluation.aggregate(cell.dataset, cell.system, cell.metric, cell.slice)
    base = None if test is None else evaluation.aggregate(cell.dataset, test.baseline, cell.metric, cell.slice)
    is_better = None if test is None else is_improvement(test, evaluation)
    is_worse = None if is_better is None else not is_better
    difference = None if test is None else test.difference
    return MetricChange(cell.dataset, cell.system, cell.metric, base, head, difference, test, is_worse)


def _name(evaluation: Evaluation, cell: Cell) -> list[str | Span]:
    """The metric, then what tells its cell from others."""
    places = (
        cell.system if len(evaluation.systems) > 1 else "",
        cell.dataset if len(evaluation.datasets) > 1 else "",
        cell.slice or "",
    )
    return join([name(shorten(text, _LONGEST_NAME)) for text in (cell.metric, *filter(None, places))], "·")
