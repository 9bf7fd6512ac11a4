"""How notebooks show an evaluation: its outcome, and a table of its aggregates for each dataset."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rageval_spec.data.evaluation import Evaluation, Overall
from rageval_spec.reports.shared.outcomes import MARKS, worst_outcome
from rageval_spec.wording import count_noun, format_interval, format_mean, make_visible

_CELL = 'style="text-align:left;padding:.2em .8em .2em 0;vertical-align:top"'
_NOTES_SHOWN = 10


def render_html(evaluation: Evaluation, outcome: Overall, sentence: str) -> str:
    """The evaluation as HTML without scripts, links or images. Every text is escaped.

    Args:
        evaluation: the evaluation.
        outcome: what it came to.
        sentence: the outcome in words.
    """
    head = f"<p><strong>{_mark(outcome)} {_show(evaluation.name)}: {_show(sentence)}</strong></p>"
    tables = (_draw_table(evaluation, dataset) for dataset in evaluation.datasets)
    return f"<div>{head}{''.join(tables)}{''.join(_list_notes(evaluation))}</div>"


def _draw_table(evaluation: Evaluation, dataset: str) -> str:
    """A row for each metric and a column for each system. A cell has the mean, its interval and the gates' outcome."""
    systems = "".join(f'<th scope="col" {_CELL}>{_show(system)}</th>' for system in evaluation.systems)
    rows = "".join(_draw_row(evaluation, dataset, metric) for metric in evaluation.metrics)
    return (
        f"<table><caption {_CELL}>{_show(dataset)}</caption>"
        f'<thead><tr><th scope="col" {_CELL}>metric</th>{systems}</tr></thead><tbody>{rows}</tbody></table>'
    )


def _draw_row(evaluation: Evaluation, dataset: str, metric: str) -> str:
    cells = (_draw_cell(evaluation, dataset, system, metric) for system in evaluation.systems)
    return f'<tr><th scope="row" {_CELL}>{_show(metric)}</th>{"".join(cells)}</tr>'


def _draw_cell(evaluation: Evaluation, dataset: str, system: str, metric: str) -> str:
    aggregate = evaluation.aggregate(dataset, system, metric)
    if aggregate is None:
        return f"<td {_CELL}></td>"
    gated = worst_outcome(evaluation.outcomes(dataset, system, metric))
    mark = f" {MARKS[gated]} {gated}" if gated else ""
    few = f"<br><small>{aggregate.scored} of {count_noun(aggregate.total, 'query', 'queries')} scored</small>"
    interval = f"<br><small>{format_interval(aggregate.interval)}</small>" if aggregate.interval else ""
    return (
        f"<td {_CELL}>{format_mean(aggregate)}{mark}{interval}{few if aggregate.scored < aggregate.total else ''}</td>"
    )


def _list_notes(evaluation: Evaluation) -> Iterator[str]:
    """The first notes, warnings first; a last line counts the rest."""
    notes = sorted(evaluation.notes, key=lambda note: note.level != "warning")
    texts = [*evaluation.failures]
    for note in notes:
        of = ", ".join(filter(None, (note.dataset, note.system)))
        text = f"{of}: {note.message}" if of else note.message
        texts += [text] if text not in texts else []
    if not texts:
        return
    rest = len(texts) - _NOTES_SHOWN
    shown = [*texts[:_NOTES_SHOWN], *([f"{count_noun(rest, 'more note')}: see `.notes`"] if rest > 0 else [])]
    yield f"<ul>{''.join(f'<li>{_show(text)}</li>' for text in shown)}</ul>"


def _mark(outcome: Overall) -> str:
    return MARKS["fail" if outcome == "error" else outcome]


def _show(text: str) -> str:
    return escape(make_visible(text))
