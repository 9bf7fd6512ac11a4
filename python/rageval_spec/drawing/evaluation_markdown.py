"""Draws an evaluation as Markdown: the verdict, the gates that did not pass, the tables, and folded details."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rageval_spec import wording
from rageval_spec.data.evaluation import Aggregate, Evaluation, JudgingCost, Overall
from rageval_spec.data.outcomes import CauseCount, Verdict
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.cards import list_first
from rageval_spec.drawing.escaping import escape, format_table, longest_tick_run, quote, quote_cell
from rageval_spec.drawing.sections import (
    CAUSES,
    NOT_COMPARABLE,
    SIGNIFICANCE,
    describe_bands,
    describe_legend,
    describe_share,
    list_sections,
    list_slice_counts,
    name_band,
    significance_mark,
)
from rageval_spec.drawing.verdict import describe_headline, share_failures, share_notes, worst_first, worst_outcome

SIGNS: dict[Overall | Verdict, str] = {"pass": "✅", "warn": "⚠️", "inconclusive": "❔", "fail": "❌", "error": "❌"}
_VERDICTS: dict[Overall, str] = {
    "pass": "passed",
    "warn": "passed with warnings",
    "fail": "failed",
    "error": "is broken",
}
_LONGEST_REASON = 300
MOST_CARDS = 10
"""The number of questions that are shown."""
_ADJUSTED = (
    "p-values are Holm-adjusted within each dataset. For each baseline, the comparisons that gates request form one "
    "family; all other comparisons form another."
)
_LONGEST = 60_000
"""The length of a comment in characters; GitHub refuses comments of more than 65,536."""


def draw_evaluation(evaluation: Evaluation, digits: int) -> str:
    """Markdown text. Its first line is an HTML comment by which a bot finds its earlier report."""
    gates = [gate for gate in worst_first(evaluation.gates) if gate.outcome != "pass"]
    warnings = [note for note in share_notes(evaluation) if note.level == "warning"]
    blocks = [_heading(evaluation)]
    blocks += [_list(f"{SIGNS[gate.outcome]} {escape(gate.reason)}" for gate in gates)] if gates else []
    blocks += [_list(f"{SIGNS['warn']} {escape(str(note))}" for note in warnings)] if warnings else []
    for dataset in evaluation.datasets:
        blocks += _results(evaluation, dataset, digits)
    for section in (one for one in list_sections(evaluation, digits) if one.rows):
        rows = [[quote_cell(name), *map(escape, cells)] for name, *cells in section.rows]
        table = format_table([*map(escape, section.header)], rows)
        blocks.append("\n\n".join((f"**{escape(section.title)}**", table, *map(escape, section.remarks))))
    for summary, body in _details(evaluation, digits):
        block = f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
        if sum(map(len, blocks)) + len(block) > _LONGEST:
            block = f"{summary}: too long for a comment; see the JSON report."
        blocks.append(block)
    return "\n\n".join(blocks) + "\n"


def _heading(evaluation: Evaluation) -> str:
    marker = re.sub(r"[^\w.]+", "-", evaluation.name).strip("-")
    verdict = f"{SIGNS[evaluation.verdict]} {quote(evaluation.name)} {_VERDICTS[evaluation.verdict]}"
    headline = describe_headline(evaluation)
    reason = f" {escape(headline.reason)}" if headline.reason else ""
    failures = _list(f"{SIGNS['error']} {escape(failure)}" for failure in share_failures(evaluation))
    told = (f"**{headline.title}:** {escape(f'{headline.summary}.')}{reason}", *map(escape, headline.taken_over))
    return "\n\n".join(filter(None, (f"<!-- rageval-spec: {marker} -->\n## {verdict}", *told, failures)))


def _results(evaluation: Evaluation, dataset: str, digits: int) -> Iterator[str]:
    yield f"### {quote(dataset)}"
    header = ["metric", *(quote_cell(system) for system in evaluation.systems)]
    rows = [
        [quote_cell(metric), *(_cell(evaluation, dataset, system, metric, digits) for system in evaluation.systems)]
        for metric in evaluation.metrics
    ]
    yield format_table(header, rows)
    legend = [
        f"{sign} {sentence}" for sign, sentence in [*describe_bands(evaluation), *describe_legend(evaluation, dataset)]
    ]
    yield "<br>".join(map(escape, [*legend, _describe_scored(evaluation, dataset)]))


def _cell(evaluation: Evaluation, dataset: str, system: str, metric: str, digits: int) -> str:
    cell = evaluation.aggregate(dataset, system, metric)
    if cell is None:
        return ""
    outcome = worst_outcome(evaluation.outcomes(dataset, system, metric))
    mean, interval = _describe_mean(evaluation, cell, digits)
    parts = [
        f"**{mean}**",
        interval,
        escape(name_band(evaluation, cell)),
        significance_mark(evaluation.comparison(dataset, system, metric)),
        SIGNS[outcome] if outcome else "",
        f"({cell.scored} of {cell.total})" if cell.scored < cell.total else "",
    ]
    return " ".join(part for part in parts if part)


def _describe_scored(evaluation: Evaluation, dataset: str) -> str:
    cells = [a for a in evaluation.aggregates if a.dataset == dataset]
    totals = sorted({cell.total for cell in cells})
    queries = " or ".join(map(str, totals)) + " queries"
    complete = all(cell.scored == cell.total for cell in cells)
    return f"{queries}, all scored" if complete else f"{queries}; (n of N): only n of them could be scored"


def tabulate_slices(evaluation: Evaluation, digits: int) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """A table for each dataset with the means of every slice: its title, its header and its rows, as Markdown."""
    for dataset in dict.fromkeys(one.dataset for one in evaluation.slices):
        slices = [one for one in evaluation.slices if one.dataset == dataset]
        cells = {(a.system, a.metric): None for one in slices for a in one.aggregates}
        header = ["slice", "queries", *(f"{quote_cell(metric)} {quote_cell(system)}" for system, metric in cells)]
        rows = []
        for one in slices:
            found = (evaluation.aggregate(dataset, *cell, one.name) for cell in cells)
            told = (
                " ".join(_describe_mean(evaluation, cell, digits)).strip() if cell is not None else "" for cell in found
            )
            rows.append([quote_cell(one.name), str(one.queries), *told])
        yield f"Slices of {escape(dataset)} ({len(slices)})", header, rows


def _describe_mean(evaluation: Evaluation, cell: Aggregate, digits: int) -> tuple[str, str]:
    shown = wording.find_format(evaluation, cell.metric)
    interval = wording.format_interval(cell.interval, digits, shown.number)
    return wording.format_mean(cell, digits, shown), interval.replace("[", "\\[")


def _cause_table(slices: Mapping[str, Sequence[CauseCount]]) -> str:
    causes = [cause for cause in CAUSES if any(one.cause == cause for counts in slices.values() for one in counts)]
    rows = []
    for name, counts in slices.items():
        told = {one.cause: f"{one.count}, {describe_share(one)}".replace("[", "\\[") for one in counts}
        rows.append([quote_cell(name), str(counts[0].total), *(told.get(cause, "0") for cause in causes)])
    return format_table(["slice", "questions", *causes], rows)


def _details(evaluation: Evaluation, digits: int) -> Iterator[tuple[str, str]]:
    passed = [gate for gate in evaluation.gates if gate.outcome == "pass"]
    if passed:
        yield f"Passed gates ({len(passed)})", _list(f"{SIGNS['pass']} {escape(gate.reason)}" for gate in passed)
    if comparisons := evaluation.every_comparison:
        yield f"Comparisons ({len(comparisons)})", f"{_comparison_table(evaluation, digits)}\n\n{_ADJUSTED}"
    for title, header, rows in tabulate_slices(evaluation, digits):
        yield title, format_table(header, rows)
    for (dataset, system), slices in list_slice_counts(evaluation).items():
        yield f"Causes by slice of {escape(system)} on {escape(dataset)} ({len(slices)})", _cause_table(slices)
    yield from _highlights(evaluation, digits)
    notes = [note for note in share_notes(evaluation) if note.level == "note"]
    if notes:
        yield f"Notes ({len(notes)})", _list(escape(str(note)) for note in notes)
    yield "Versions and settings", describe_provenance(evaluation)


def _highlights(evaluation: Evaluation, digits: int) -> Iterator[tuple[str, str]]:
    """The questions to look at first, each once, with what went wrong."""
    found = list_first(evaluation, MOST_CARDS)
    if not found:
        return
    rows = []
    for card, metric in found:
        value, number = None if metric is None else card.value(metric), ""
        if value is not None and value.value is not None:
            number = f"{escape(value.metric)} {value.shown.number(value.value, digits)}"
        claims = [f"“{mark.text}”" for mark in card.marks if not mark.is_supported][:2]
        reason = card.error or "; ".join(claims) or (value.reason if value is not None else None) or ""
        texts = (card.question, card.answer or "", reason)
        cut = (text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..." for text in texts)
        rows.append([*map(quote_cell, (card.query_id, card.system)), number, card.cause or "", *map(escape, cut)])
    header = ["query", "system", "value", "cause", "question", "answer", "what is wrong"]
    yield f"Look at first ({len(rows)})", format_table(header, rows)


def _comparison_table(evaluation: Evaluation, digits: int) -> str:
    names = ["dataset", "metric", "system", "baseline"]
    rows = []
    for one in evaluation.every_comparison:
        shown = wording.find_format(evaluation, one.metric).change
        mark, difference = (
            "" if one.is_comparable else NOT_COMPARABLE,
            wording.format_signed(one.difference, digits, shown),
        )
        told = " ".join(filter(None, (difference, mark, wording.format_interval(one.interval, digits, shown))))
        p_value = wording.format_probability(one.p_adjusted)
        p_value = p_value if one.is_resolvable(SIGNIFICANCE) else wording.UNRESOLVABLE
        cells = [quote_cell(getattr(one, name)) for name in names]
        counts = str(one.queries), f"{one.wins} / {one.losses}"
        rows.append([*cells, told.replace("[", "\\["), escape(p_value), *counts])
    return format_table([*names, "difference", f"{wording.ADJUSTED} p", "queries", "better / worse"], rows)


def describe_provenance(evaluation: Evaluation) -> str:
    """The versions, the digest of the spec, the models and the settings, as a block of code."""
    settings = json.dumps(evaluation.provenance.settings, sort_keys=True, indent=2, ensure_ascii=False)
    versions = [f"{name} {version}" for name, version in sorted(evaluation.provenance.versions.items())]
    models = [
        f"model {name}: {', '.join(f'{key} {fact}' for key, fact in facts.items())}"
        for name, facts in evaluation.provenance.models.items()
    ]
    origins = [f"dataset {name}: {origin.describe()}" for name, origin in evaluation.provenance.origins.items()]
    digest = f"spec sha256 {evaluation.provenance.spec_digest}"
    prompts = [f"prompt {name} sha256 {sha256}" for name, sha256 in evaluation.provenance.prompts.items()]
    judging = [
        f"judging with {name}: {_describe_judging(cost)}" for name, cost in evaluation.provenance.judging.items()
    ]
    replies = [f"replies of {name}: {counts}" for name, counts in evaluation.provenance.replies.items()]
    told = (*versions, digest, *origins, *models, *judging, *replies, *prompts, *settings.splitlines())
    lines = [make_visible(line) for line in told]
    fence = "`" * (1 + longest_tick_run("\n".join(lines), 2))
    return "\n".join((fence, *lines, fence))


def _describe_judging(judging: JudgingCost) -> str:
    counts = ((judging.input_tokens, "input"), (judging.output_tokens, "output"))
    tokens = [f"{kind} tokens unknown" if count is None else f"{count:,} {kind} tokens" for count, kind in counts]
    cost = "cost unknown" if judging.cost is None else f"{judging.cost:.4g} USD"
    calls = "1 call" if judging.calls == 1 else f"{judging.calls:,} calls"
    return ", ".join((calls, *tokens, cost))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
