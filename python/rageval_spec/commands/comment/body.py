"""Writes the text of a comment: the outcome, the checks against a baseline, and folded details.

Every name and text of a user stands in a table, a list or code, so that none of them acts as Markdown, HTML, a mention
of a person or a command of GitLab.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rageval_spec.commands.comment.checks import HEADER, Check, list_checks
from rageval_spec.commands.comment.parts import Part, join_parts, list_lines
from rageval_spec.commands.compare.differences import list_differences
from rageval_spec.commands.compare.questions import KINDS, QuestionChange, find_changes
from rageval_spec.commands.compare.text import describe_value
from rageval_spec.history.comparability import find_comparability
from rageval_spec.reports.shared.card_text import shorten
from rageval_spec.reports.shared.evaluation_markdown import SIGNS, describe_provenance, tabulate_slices
from rageval_spec.reports.shared.markup import escape, quote, quote_cell
from rageval_spec.reports.shared.notes import share_notes
from rageval_spec.reports.shared.verdict import describe_headline
from rageval_spec.reports.shared.worst import Filter
from rageval_spec.wording import DIGITS, count_noun

if TYPE_CHECKING:
    from rageval_spec.commands.results import Opened
    from rageval_spec.data.evaluation import Evaluation, JudgingCost

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
    baseline: Opened | None = None,
    *,
    key: str | None = None,
    commit: str | None = None,
    longest: int = LONGEST,
) -> str:
    """The text of a comment, of at most `longest` characters.

    Args:
        evaluation: what was evaluated.
        baseline: earlier results to compare with; without them, the table has the comparisons that gates made.
        key: replaces the evaluation's name in the line by which the comment is found again.
        commit: the commit that was evaluated.
        longest: the most characters; what has no room is cut, details first.
    """
    head = f"{mark(evaluation, key)}\n{_write_headline(evaluation)}"
    return join_parts(head, [*_list_parts(evaluation, baseline, commit)], longest)


def _write_headline(evaluation: Evaluation) -> str:
    headline = describe_headline(evaluation)
    told = f"**{headline.title}:** {escape(headline.summary)}."
    reason = f" {escape(shorten(headline.reason, _LONG))}" if headline.reason else ""
    return f"## {SIGNS[evaluation.verdict]} {quote(shorten(evaluation.name, _SHORT))}\n\n{told}{reason}"


def _list_parts(evaluation: Evaluation, baseline: Opened | None, commit: str | None) -> Iterator[Part]:
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
    yield _describe_origin(evaluation, baseline, commit)


def _tabulate(title: str, checks: list[Check], *, is_folded: bool) -> Part:
    """The table, and the reasons below it; a single one is already in the headline."""
    reasons = [escape(shorten(one.reason, _LONG)) for one in checks if one.reason]
    after = "\n".join(f"- {reason}" for reason in reasons[:_MOST_LINES]) if len(reasons) > 1 else ""
    return Part(title, [one.list_cells() for one in checks], HEADER, after=after, is_folded=is_folded)


def _list_warnings(evaluation: Evaluation, baseline: Opened | None) -> Iterator[Part]:
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


def _list_questions(evaluation: Evaluation, baseline: Opened) -> Iterator[Part]:
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
        yield Part(title, [_describe_change(one) for one in changes], header, after=after)


def _describe_change(one: QuestionChange) -> list[str]:
    edited = f" ({' and '.join(one.edited)} edited)" if one.edited else ""
    texts = (one.question, one.answer_before or "", one.error or one.answer or "")
    names = (quote_cell(shorten(name, _SHORT)) for name in (one.query_id, one.system))
    return [*names, escape(describe_value(one)) + edited, *(escape(shorten(text, _LONG)) for text in texts)]


def _list_costs(evaluation: Evaluation, baseline: Opened | None) -> Iterator[Part]:
    """What the replies of each model took, beside what they took for the baseline."""
    if not evaluation.judging:
        return
    before = {} if baseline is None else baseline.evaluation.judging
    rows = [
        [quote_cell(shorten(name, _SHORT)), *_describe_cost(cost), _format_dollars(before.get(name))]
        for name, cost in evaluation.judging.items()
    ]
    known = [cost.cost for cost in evaluation.judging.values() if cost.cost is not None]
    total = f": ${sum(known):.4g}" if known else ""
    yield Part(f"Cost of judging{total}", rows, ["model", "calls", "tokens in", "tokens out", "cost", "cost of base"])


def _describe_cost(cost: JudgingCost) -> list[str]:
    tokens = ("–" if count is None else f"{count:,}" for count in (cost.input_tokens, cost.output_tokens))
    return [f"{cost.calls:,}", *tokens, _format_dollars(cost)]


def _format_dollars(cost: JudgingCost | None) -> str:
    return "–" if cost is None or cost.cost is None else f"${cost.cost:.4g}"


def _describe_origin(evaluation: Evaluation, baseline: Opened | None, commit: str | None) -> Part:
    lines = []
    if commit:
        lines.append(f"Commit {quote(shorten(commit, _SHORT))}.")
    if baseline is not None:
        lines.append(f"Base: {quote(shorten(baseline.name, _SHORT))}.")
    return Part("Provenance", before=" ".join(lines), after=describe_provenance(evaluation))
