"""Writes a comparison as Markdown. Removed words are struck through, added ones are bold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rageval_spec.commands.compare.metrics import MetricChange
from rageval_spec.commands.compare.questions import QuestionChange
from rageval_spec.commands.compare.text import (
    SIGNS,
    describe_counts,
    describe_difference,
    describe_equal,
    describe_p_value,
    describe_rest,
    describe_test,
    describe_value,
    is_equal,
    name_places,
    show_means,
    split_space,
)
from rageval_spec.reports.shared.card_text import shorten
from rageval_spec.reports.shared.markup import escape, format_table, quote_cell
from rageval_spec.reports.shared.word_diff import Edit, diff_words, shorten_edits
from rageval_spec.wording import ADJUSTED, format_interval

if TYPE_CHECKING:
    from rageval_spec.commands.compare.command import Compared


def write_comparison(found: Compared) -> str:
    """What differs, the numbers, and the questions that changed."""
    return "\n\n".join(_list_blocks(found)) + "\n"


def _list_blocks(found: Compared) -> Iterator[str]:
    yield f"# {quote_cell(found.before.name)} → {quote_cell(found.after.name)}"
    if found.differences:
        yield "**What else differs**"
        yield "\n".join(f"- {escape(shorten(line))}" for line in found.differences)
    changed = [one for one in found.metrics if not is_equal(one)]
    if changed:
        header = ["dataset", "system", "metric", "before", "after", "difference", "interval", f"{ADJUSTED} p"]
        yield format_table(header, map(_list_cells, changed))
    for note in filter(None, (describe_test(changed), describe_equal(found))):
        yield escape(note)
    yield f"{describe_counts(found)}."
    for one in found.questions.shown:
        yield from _write_change(one, found)
    if more := describe_rest(found.questions):
        yield f"{more}."


def _list_cells(one: MetricChange) -> list[str]:
    test = one.comparison
    return [
        *map(quote_cell, (one.dataset, one.system, one.metric)),
        *show_means(one),
        describe_difference(one),
        format_interval(test.interval).replace("[", "\\[") if test else "",
        escape(describe_p_value(one)),
    ]


def _write_change(one: QuestionChange, found: Compared) -> Iterator[str]:
    names = " · ".join(quote_cell(shorten(name)) for name in (one.query_id, *name_places(one, found)))
    edited = f" ({' and '.join(one.edited)} edited)" if one.edited else ""
    yield f"### {SIGNS[one.kind]} {one.kind}: {names} {escape(shorten(describe_value(one)))}{edited}".rstrip()
    if one.question:
        yield f"**Question:** {escape(shorten(one.question))}"
    if one.error is not None:
        yield f"**Error:** {escape(shorten(one.error))}"
    if one.answer_before != one.answer:
        edits = shorten_edits(diff_words(one.answer_before or "", one.answer or ""))
        yield f"**Answer:** {''.join(map(_write_edit, edits))}"


def _write_edit(edit: Edit) -> str:
    space, words = split_space(edit.text)
    text = escape(words)
    marked = {"equal": text, "removed": f"~~{text}~~", "added": f"**{text}**"}[edit.kind]
    return f" {marked}" if space else marked
