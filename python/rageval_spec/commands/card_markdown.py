"""Writes cards as Markdown. No text of a user acts as Markdown or HTML, or mentions a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rageval_spec.data.conversation import write_turn
from rageval_spec.reports.shared.card_text import (
    LONGEST_CONTEXT,
    LONGEST_LINE,
    LONGEST_TEXT,
    MOST_MISSING,
    describe_base,
    describe_more_missing,
    describe_steps,
    format_change,
    list_grounds,
    shorten,
)
from rageval_spec.reports.shared.cards import Card, CardValue
from rageval_spec.reports.shared.marks import ClaimNote, choose_sign, list_notes, split_answer
from rageval_spec.reports.shared.markup import escape, format_table, quote_cell
from rageval_spec.wording import count_noun, format_number


def write_card(card: Card, names: Sequence[str], *, full: bool = False) -> str:
    """One card as a section: the question, the answer with its marks, the reference, values and contexts.

    Args:
        card: the card.
        names: what the heading says after the query id, usually the system and the dataset.
        full: show texts in full; otherwise long ones are cut, and a note says how many characters are missing.
    """
    status = [] if card.status == "answered" else [card.status]
    heading = f"## {' · '.join([*map(quote_cell, (card.query_id, *names)), *status])}"
    return "\n\n".join([heading, *_list_blocks(card, full=full)]) + "\n"


def _list_blocks(card: Card, *, full: bool) -> Iterator[str]:
    if card.history:
        told = (_show(write_turn(turn), LONGEST_LINE, full=full) for turn in card.history)
        yield f"**History:** {'<br>'.join(told)}"
    if card.question:
        yield f"**Question:** {_show(card.question, LONGEST_TEXT, full=full)}"
    if card.error is not None:
        yield f"**Error:** {_show(card.error, LONGEST_TEXT, full=full)}"
    if card.answer is not None:
        yield from _list_answer(card.answer, card, full=full)
    if card.steps:
        lines = "\n".join(f"- {escape(shorten(line, full=full))}" for line in describe_steps(card.steps))
        yield f"**Steps:**\n\n{lines}"
    for text in card.references:
        yield f"**Reference:** {_show(text, LONGEST_TEXT, full=full)}"
    if card.cause is not None:
        yield f"**Cause:** {escape(': '.join(filter(None, (card.cause, card.cause_reason))))}"
    if card.values:
        header = ["metric", "value", "was", "change", "reason"]
        rows = [_list_cells(one) for one in card.values]
        kept = [at for at, name in enumerate(header) if name not in ("was", "change") or any(row[at] for row in rows)]
        yield format_table([header[at] for at in kept], ([row[at] for at in kept] for row in rows))
    if card.contexts or card.missing:
        yield format_table(["rank", "grade", "document", "text"], _list_documents(card, full=full))
    if card.slices:
        yield f"**Slices:** {', '.join(map(quote_cell, card.slices))}"


def _list_answer(answer: str, card: Card, *, full: bool) -> Iterator[str]:
    shown = answer if full else answer[:LONGEST_TEXT]
    pieces = split_answer(shown, card.marks)
    told = "".join(
        _show_lines(piece.text)
        if piece.number is None
        else f"**\\[{_show_lines(piece.text)} {choose_sign(piece.marks)}{piece.number}\\]**"
        for piece in pieces
    )
    yield f"**Answer:** {told or '(empty)'}{_count_rest(answer, shown)}"
    notes = list_notes(shown, card.marks)
    if notes:
        yield "\n".join(_write_note(note, card, full=full) for note in notes)


def _write_note(note: ClaimNote, card: Card, *, full: bool) -> str:
    claim = "" if note.claim is None else f": “{note.claim}”"
    told = [f"{choose_sign(note.marks)}{note.number or ''} {note.decision}{claim}", *list_grounds(note, card.contexts)]
    return f"- {'; '.join(escape(shorten(line, full=full)) for line in told)}"


def _show(text: str, longest: int, *, full: bool) -> str:
    shown = text if full else text[:longest]
    return f"{_show_lines(shown)}{_count_rest(text, shown)}"


def _show_lines(text: str) -> str:
    """Text whose line breaks stay; spaces at its ends stay too, because pieces are joined."""
    return "<br>".join(escape(line) for line in text.replace("\r\n", "\n").split("\n"))


def _count_rest(text: str, shown: str) -> str:
    more = len(text) - len(shown)
    return f"… ({count_noun(more, 'more character')})" if more else ""


def _list_cells(one: CardValue) -> list[str]:
    number = "–" if one.value is None else format_number(one.value)
    told = ", ".join(filter(None, (one.band, one.reason)))
    change = "" if one.change is None else format_change(one.change) if one.change else "="
    direction = "" if one.is_worse is None else " worse" if one.is_worse else " better"
    was = "" if one.baseline is None else escape(describe_base(one))
    return [quote_cell(one.metric), number, was, f"{change}{direction}", escape(shorten(told))]


def _list_documents(card: Card, *, full: bool) -> Iterator[list[str]]:
    for context in card.contexts:
        grade = "" if context.grade is None else str(context.grade)
        text = _show(context.text or "", LONGEST_CONTEXT, full=full)
        yield [str(context.rank), grade, quote_cell(shorten(context.doc_id)) if context.doc_id else "", text]
    missing = card.missing if full else card.missing[:MOST_MISSING]
    for one in missing:
        place = "not retrieved" if one.rank is None else f"only at rank {one.rank}"
        yield [
            place,
            str(one.grade),
            quote_cell(shorten(one.doc_id)),
            _show(one.text or "", LONGEST_CONTEXT, full=full),
        ]
    if more := len(card.missing) - len(missing):
        yield ["", "", "", describe_more_missing(more)]
