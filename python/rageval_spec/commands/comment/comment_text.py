"""Writes the text of a comment: the outcome, the checks against a baseline, and folded details.

The table has a row for each gate and each metric: its number now, its number before, and the test. A text above the
greatest length is cut: rows first, from the end, then whole parts.

Every name and text of a user stands in a table, a list or code, so that none of them acts as Markdown, HTML, a
mention of a person or a command of GitLab.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rageval_spec.commands.compare.changes import (
    KINDS,
    MetricChange,
    QuestionChange,
    compare_metrics,
    find_changes,
    list_differences,
)
from rageval_spec.commands.compare.comparison_text import describe_difference, describe_value, show_interval
from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, JudgingCost
from rageval_spec.data.outcomes import Cell, GateOutcome
from rageval_spec.drawing.card_text import format_change, shorten
from rageval_spec.drawing.escaping import escape, format_table, quote, quote_cell
from rageval_spec.drawing.evaluation_markdown import SIGNS, describe_provenance, tabulate_slices
from rageval_spec.drawing.question_order import Filter
from rageval_spec.drawing.sections import UNRESOLVED, is_improvement, significance_mark
from rageval_spec.drawing.verdict import describe_headline, share_notes, worst_first
from rageval_spec.history.comparability import find_comparability
from rageval_spec.wording import (
    DIGITS,
    UNRESOLVABLE,
    NumberFormat,
    count_noun,
    find_format,
    format_interval,
    format_mean,
    mark_versions,
    tell_apart,
    tell_means_apart,
)

LONGEST = 60_000
"""Characters of a comment; GitHub refuses comments of more than 65,536."""
MOST_QUESTIONS = 50
"""Broken and fixed questions that are listed, each."""
_MOST_LINES = 20
_SHORT, _LONG = 120, 300
_NOT_IN_MARKS = re.compile(r"[^\w.]+")


def mark(evaluation: Evaluation, key: str | None = None) -> str:
    """The first line of a comment, by which it is found again: an HTML comment, which nobody sees."""
    name = _NOT_IN_MARKS.sub("-", key or evaluation.name).strip("-")
    return f"<!-- rageval-spec: {name[:_SHORT]} -->"


def write_body(
    evaluation: Evaluation,
    baseline: NamedResults | None = None,
    *,
    key: str | None = None,
    commit: str | None = None,
    longest: int = LONGEST,
) -> str:
    """The text of a comment, of at most `longest` characters; what has no room is cut, details first.

    Without a baseline, the table has the comparisons that gates made. `key` replaces the evaluation's name in the line
    by which the comment is found again.
    """
    head = f"{mark(evaluation, key)}\n{_write_headline(evaluation)}"
    return join_parts(head, [*_list_parts(evaluation, baseline, commit)], longest)


def _write_headline(evaluation: Evaluation) -> str:
    headline = describe_headline(evaluation)
    told = f"**{headline.title}:** {escape(headline.summary)}."
    reason = f" {escape(shorten(headline.reason, _LONG))}" if headline.reason else ""
    taken = "".join(f"\n\n{escape(shorten(sentence, _LONG))}" for sentence in headline.taken_over)
    return f"## {SIGNS[evaluation.verdict]} {quote(shorten(evaluation.name, _SHORT))}\n\n{told}{reason}{taken}"


def _list_parts(evaluation: Evaluation, baseline: NamedResults | None, commit: str | None) -> Iterator[Part]:
    if evaluation.failures:
        rows = list_lines(f"❌ {escape(shorten(failure, _LONG))}" for failure in evaluation.failures)
        yield Part(rows=rows, is_folded=False)
    yield from _list_warnings(evaluation, baseline)
    checks = list_checks(evaluation, baseline)
    gated, others = ([one for one in checks if one.is_gate is wanted] for wanted in (True, False))
    shown, folded = (gated, others) if gated else (others, [])
    if shown:
        yield _tabulate("", shown, is_folded=False)
    if baseline is not None:
        yield from _list_questions(evaluation, baseline)
    if folded:
        yield _tabulate(f"Metrics without a gate ({len(folded)})", folded, is_folded=True)
    for title, header, rows in tabulate_slices(evaluation, DIGITS):
        yield Part(title, rows, header)
    yield from _list_costs(evaluation, baseline)
    origin = [f"Commit {quote(shorten(commit, _SHORT))}."] if commit else []
    origin += [] if baseline is None else [f"Base: {quote(shorten(baseline.name, _SHORT))}."]
    yield Part("Provenance", before=" ".join(origin), after=describe_provenance(evaluation))


def _tabulate(title: str, checks: list[CheckRow], *, is_folded: bool) -> Part:
    """The table, what its numbers are of, and the reasons below; a single reason is already in the headline."""
    reasons = [escape(shorten(one.reason, _LONG)) for one in checks if one.reason]
    listed = "\n".join(f"- {reason}" for reason in reasons[:_MOST_LINES]) if len(reasons) > 1 else ""
    own = f" {OWN_QUESTIONS}" if any("base" in one.questions for one in checks) else ""
    told = f"{SAME_QUESTIONS}{own}" if any(one.test for one in checks) else own.strip()
    after = "\n\n".join(filter(None, (told, listed)))
    return Part(title, [one.list_cells() for one in checks], HEADER, after=after, is_folded=is_folded)


def _list_warnings(evaluation: Evaluation, baseline: NamedResults | None) -> Iterator[Part]:
    """The warnings of the evaluation, and what else differs from the baseline."""
    lines = [escape(shorten(str(note), _LONG)) for note in share_notes(evaluation) if note.level == "warning"]
    if lines:
        yield Part(rows=list_lines(f"{SIGNS['warn']} {line}" for line in lines), is_folded=False)
    if baseline is None:
        return
    known = find_comparability(evaluation, baseline.evaluation, baseline.name)
    differences = list_differences(evaluation, baseline.evaluation, known)
    if differences:
        title = f"What else differs from {quote(shorten(baseline.name, _SHORT))}"
        yield Part(title, list_lines(escape(shorten(line, _LONG)) for line in differences), is_folded=False)


def _list_questions(evaluation: Evaluation, baseline: NamedResults) -> Iterator[Part]:
    """The questions that broke and those that were fixed, the largest changes first."""
    found = find_changes(evaluation, baseline.evaluation, Filter(limit=MOST_QUESTIONS))
    for kind, sign in ((KINDS[0], "❌"), (KINDS[1], "✅")):
        changes = [one for one in found.shown if one.kind == kind]
        if not changes:
            continue
        more = found.counts[kind] - len(changes)
        after = f"{count_noun(more, 'more question')} with smaller changes." if more else ""
        title = f"{sign} {count_noun(found.counts[kind], f'{kind} question')}"
        header = ["query", "system", "what changed", "question", "answer before", "answer now"]
        yield Part(title, [_describe_change(one, evaluation) for one in changes], header, after=after)


def _describe_change(one: QuestionChange, evaluation: Evaluation) -> list[str]:
    edited = f" ({' and '.join(one.edited)} edited)" if one.edited else ""
    texts = (one.question, one.answer_before or "", one.error or one.answer or "")
    names = (quote_cell(shorten(name, _SHORT)) for name in (one.query_id, one.system))
    return [*names, escape(describe_value(one, evaluation)) + edited, *(escape(shorten(text, _LONG)) for text in texts)]


def _list_costs(evaluation: Evaluation, baseline: NamedResults | None) -> Iterator[Part]:
    """What the replies of each model took, beside what they took for the baseline."""
    if not evaluation.provenance.judging:
        return
    before = {} if baseline is None else baseline.evaluation.provenance.judging
    rows = []
    for name, cost in evaluation.provenance.judging.items():
        tokens = ("–" if count is None else f"{count:,}" for count in (cost.input_tokens, cost.output_tokens))
        dollars = _format_dollars(cost), _format_dollars(before.get(name))
        rows.append([quote_cell(shorten(name, _SHORT)), f"{cost.calls:,}", *tokens, *dollars])
    known = [cost.cost for cost in evaluation.provenance.judging.values() if cost.cost is not None]
    total = f": ${sum(known):.4g}" if known else ""
    yield Part(f"Cost of judging{total}", rows, ["model", "calls", "tokens in", "tokens out", "cost", "cost of base"])


def _format_dollars(cost: JudgingCost | None) -> str:
    return "–" if cost is None or cost.cost is None else f"${cost.cost:.4g}"


HEADER = ("Check", "Head", "Base", "Difference [interval]", "Questions", "Improved", "Regressed")
SAME_QUESTIONS = "Head, base and difference are of the same questions: those that have a value in both."
OWN_QUESTIONS = "Where two counts are shown, each number covers its own questions."
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A row; all texts are plain but `name`, which is Markdown.

    Attributes:
        name: the sign of the outcome, the metric with its place, and the bound.
        head, base: the numbers, of the questions that have a value in both if there is a test; "–" if there is none.
        difference: with its interval and whether it is significant; "" without a base.
        test: the paired test, for the counts of questions that improved and regressed.
        reason: why the gate did not pass; "" for other rows.
        is_gate: whether the row is a gate's.
        questions: how many questions the numbers are of.
    """

    name: str
    head: str
    base: str
    difference: str
    test: Comparison | None
    reason: str = ""
    is_gate: bool = False
    questions: str = ""

    def list_cells(self) -> list[str]:
        counts = ("", "") if self.test is None else (str(self.test.wins), str(self.test.losses))
        return [self.name, *map(escape, (self.head, self.base, self.difference, self.questions)), *counts]


def list_checks(evaluation: Evaluation, baseline: NamedResults | None) -> list[CheckRow]:
    """A row for each gate, worst first, then one for each metric of a system that no gate looks at."""
    return [*_Table(evaluation, baseline).list_rows()]


class _Table:
    def __init__(self, evaluation: Evaluation, baseline: NamedResults | None) -> None:
        self.evaluation = evaluation
        self.has_baseline = baseline is not None
        self.changes: dict[Cell, MetricChange] = {}
        if baseline is not None:
            known = find_comparability(evaluation, baseline.evaluation, baseline.name)
            changes = compare_metrics(evaluation, baseline.evaluation, known)
            self.changes = {change.after.cell: change for change in changes}

    def list_rows(self) -> Iterator[CheckRow]:
        gates = worst_first(self.evaluation.gates)
        yield from map(self._describe_gate, gates)
        gated = {gate.cell for gate in gates}
        for aggregate in self.evaluation.aggregates:
            if aggregate.cell not in gated:
                yield self._describe(aggregate.cell, "")

    def _describe_gate(self, gate: GateOutcome) -> CheckRow:
        # the comparison with another system of the spec that the gate asked for
        asked = self.evaluation.find_asked(gate) if gate.baseline in self.evaluation.systems else None
        row = self._describe(gate.cell, gate.bound, asked)
        reason = "" if gate.outcome == "pass" else f"{SIGNS[gate.outcome]} {gate.reason}"
        name = f"{SIGNS[gate.outcome]} {row.name}"
        return replace(row, name=name, reason=reason, is_gate=True)

    def _describe(self, cell: Cell, bound: str, asked: Comparison | None = None) -> CheckRow:
        head = self.evaluation.aggregate(cell.dataset, cell.system, cell.metric, cell.slice)
        name = self._name(cell, bound)
        change = self.changes.get(cell)
        shown = find_format(self.evaluation, cell.metric)
        if change is not None and asked is None:
            return _compare(name, change, shown)
        test = asked
        if test is None and not self.has_baseline:  # the one that a gate asked for, or else that with the first system
            asking = (one for one in self.evaluation.baselines if one.cell == cell)
            test = next(asking, None) or self.evaluation.comparison(cell.dataset, cell.system, cell.metric, cell.slice)
        if head is None:
            return CheckRow(name, "–", "–", "", None)
        if test is None:
            return CheckRow(name, format_mean(head, shown=shown), "–", "", None, questions=str(head.scored))
        base = self.evaluation.aggregate(cell.dataset, test.baseline, cell.metric, cell.slice)
        now, before, questions = _describe_pair(head, base, test, shown)
        told = _describe_test(test, self.evaluation)
        return CheckRow(name, now, f"{before} ({test.baseline})", told, test, questions=questions)

    def _name(self, cell: Cell, bound: str) -> str:
        """The metric, then what tells its cell from others, then the bound."""
        places = (
            cell.system if len(self.evaluation.systems) > 1 else "",
            cell.dataset if len(self.evaluation.datasets) > 1 else "",
            cell.slice or "",
        )
        shown = [quote_cell(shorten(name, _LONGEST_NAME)) for name in (cell.metric, *filter(None, places))]
        return " · ".join(shown) + (f" {escape(shorten(bound, _LONGEST_NAME))}" if bound else "")


def _compare(name: str, change: MetricChange, shown: NumberFormat) -> CheckRow:
    head, base, questions = _describe_pair(change.after, change.before, change.comparison, shown)
    interval = show_interval(change, shown) if change.difference else ""
    told = f" {UNRESOLVABLE}" if significance_mark(change.comparison) == UNRESOLVED and change.difference else ""
    difference = f"{describe_difference(change, shown)}{told} {interval}".strip()
    return CheckRow(name, head, base, difference, change.comparison, questions=questions)


def _describe_pair(
    head: Aggregate, base: Aggregate | None, test: Comparison | None, shown: NumberFormat
) -> tuple[str, str, str]:
    """Both numbers of the questions that the test compares, and how many these are.

    If the head has values of other questions too, its whole number, which gates see, is added in brackets. Without a
    test, and where people's labels correct the numbers, both are of all their own questions.
    """
    if test is None or test.baseline_mean is None or test.correction is not None or head.mean is None:
        count = str(head.scored) if base is None or base.scored == head.scored else f"{head.scored}, base {base.scored}"
        if base is None or head.mean is None or base.mean is None or head.statistic == "sum":
            return format_mean(head, shown=shown), "–" if base is None else format_mean(base, shown=shown), count
        return *tell_means_apart(head, base, shown), count
    is_whole = test.queries == head.scored
    number = head.mean if is_whole else test.baseline_mean + test.difference
    same = (shown.number(number, DIGITS),) * 2
    now, before = tell_apart(number, test.baseline_mean, shown.number) if test.difference else same
    now += mark_versions(head) if is_whole else f" ({format_mean(head, shown=shown)} of all {head.scored})"
    return now, before + ("" if base is None else mark_versions(base)), str(test.queries)


def _describe_test(test: Comparison, evaluation: Evaluation) -> str:
    if not test.difference:
        return "="
    mark = significance_mark(test)
    is_better = is_improvement(test, evaluation)
    unclear = f" {UNRESOLVABLE}" if mark == UNRESOLVED else ""
    word = unclear if is_better is None else " better" if is_better else " worse"
    told = f" {mark}{word}" if mark else ""
    shown = find_format(evaluation, test.metric)
    interval = format_interval(test.interval, formatter=shown.change)
    return f"{format_change(test.difference, shown)}{told} {interval}".strip()


_RESERVED = 160
"""Characters that are kept for each further part, which at least says that it was left out."""
_MOST_RESERVED = 20
"""For at most this many parts; of more, some are only counted."""
_LONGEST_TITLE = 100
_NEW_BLOCK = 2


@dataclass(frozen=True)
class Part:
    """A part of a comment; all texts are Markdown.

    The title unfolds it, if it is folded. The rows are lines if there is no header.
    """

    title: str = ""
    rows: Sequence[Sequence[str]] = ()
    header: Sequence[str] = ()
    before: str = ""
    after: str = ""
    is_folded: bool = True

    def render(self, most_rows: int | None = None) -> str:
        """The part with its first rows, and a count of the others."""
        shown = self.rows[:most_rows]
        left_out = len(self.rows) - len(shown)
        more = f"{count_noun(left_out, 'more row')}: too long for a comment; see the results." if left_out else ""
        listed = format_table(self.header, shown) if self.header else "\n".join(line for (line,) in shown)
        body = "\n\n".join(filter(None, (self.before, listed if shown else "", more, self.after)))
        if not self.is_folded:
            return "\n\n".join(filter(None, (f"**{self.title}**" if self.title else "", body)))
        return f"<details><summary>{self.title}</summary>\n\n{body}\n\n</details>"

    def omit(self) -> str:
        """A line in place of a part that has no room."""
        title = self.title if len(self.title) <= _LONGEST_TITLE else f"{self.title[:_LONGEST_TITLE].rstrip()}..."
        return f"{title or 'A part'}: too long for a comment; see the results."


def join_parts(head: str, parts: Sequence[Part], longest: int) -> str:
    """The text of the comment, of at most `longest` characters.

    `head` stands first and is never cut. A part gets the room that the parts before it left, except for a line for each
    part after it. If there is no room for a line either, the last parts are only counted.
    """
    blocks, omitted = [head], 0
    for number, part in enumerate(parts):
        used = sum(len(block) + _NEW_BLOCK for block in blocks)
        reserved = _RESERVED * min(len(parts) - number - 1, _MOST_RESERVED)
        block = _fit(part, longest - used - reserved - 1)
        is_last = number == len(parts) - 1 and not omitted
        if used + len(block) + (0 if is_last else _RESERVED) < longest:
            blocks.append(block)
        else:
            omitted += 1
    if omitted:
        blocks.append(f"{count_noun(omitted, 'more part')}: too long for a comment; see the results.")
    return "\n\n".join(blocks) + "\n"


def _fit(part: Part, room: int) -> str:
    """The part with as many rows as fit; a line in its place if not even one does."""
    if len(whole := part.render()) <= room:
        return whole
    low, high = 0, len(part.rows) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(part.render(middle)) <= room else (low, middle - 1)
    text = part.render(low)
    return text if low > 0 and len(text) <= room else part.omit()


def list_lines(lines: Iterable[str]) -> list[list[str]]:
    return [[f"- {line}"] for line in lines]
