"""Draws cards as text for a terminal or a pipe, and writes them as Markdown.

Whatever a colour shows has a sign as well: an unsupported claim is in brackets that end with its sign and the number
of the note that explains it, `[It was built in 1911. ✗1]`.

In Markdown, no text of a user acts as Markdown or HTML, or mentions a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rageval_spec.data.tables import SAMPLE_COLUMNS
from rageval_spec.data.traces import Step
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing import cards
from rageval_spec.drawing.escaping import escape, format_table, quote_cell
from rageval_spec.libraries import Padding, RenderableType, Rule, Table, Text
from rageval_spec.recorded.messages import write_turn
from rageval_spec.wording import DIGITS, PLAIN, NumberFormat, count_noun

LONGEST_TEXT = 2_000
"""Characters of a question, an answer or a reference that a card shows; `full` shows all of them."""
LONGEST_CONTEXT = 160
LONGEST_LINE = 400
LONGEST_NAME = 40
MOST_MISSING = 5
"""Relevant documents outside the contexts that a card shows; `full` shows all of them."""
_COLUMNS_SHOWN = 8
_LABEL_WIDTH = 10
_STYLES = {cards.CONTRADICTED: "bold red", "?": "yellow"}
_STATUS_STYLES = {"failed": "bold red", "unfinished": "yellow"}


def draw_card(card: cards.Card, names: Sequence[str], *, full: bool = False) -> Iterator[RenderableType]:
    """One card: the question, the answer with its marks, the sources, the values.

    The heading has the names, usually the system and the dataset, after the query id. Unless `full`, long texts are
    cut, and a note says how many characters are missing.
    """
    yield _draw_heading(card, names)
    yield Rule(style="dim")
    rows: list[tuple[str, RenderableType]] = []
    if card.history:
        turns = map(write_turn, card.history)
        shown = (draw_text(turn, full=full, longest=LONGEST_LINE) for turn in turns)
        rows.append(("history", Text("\n").join(shown)))
    rows.append(("question", draw_text(card.question or "(the results do not hold its text)", full=full)))
    rows += _list_answer(card, full=full)
    if card.steps:
        rows.append(("steps", Text("\n").join(Text(shorten(line, full=full)) for line in describe_steps(card.steps))))
    rows += [("reference", draw_text(text, full=full)) for text in card.references]
    if card.cause is not None:
        rows.append(("cause", Text(make_visible(": ".join(filter(None, (card.cause, card.cause_reason)))))))
    if card.values:
        rows.append(("values", _draw_values(card.values, full=full)))
    if card.contexts or card.missing:
        rows.append(("contexts" if card.answer is not None else "retrieved", _draw_contexts(card, full=full)))
    if card.slices:
        rows.append(("slices", Text(shorten(", ".join(card.slices), full=full))))
    if card.columns:
        rows.append(("columns", _draw_columns(card, full=full)))
    yield _stack(rows)


def describe_steps(steps: Sequence[Step]) -> Iterator[str]:
    """A line for each step: `2 retrieval Search(Ada) → 1 document: “Ada is ...”`."""
    for number, step in enumerate(steps, 1):
        call = f"{step.name}({step.input})" if step.input is not None else step.name
        yield f"{number} {' '.join(filter(None, (step.kind, call)))}{_describe_result(step)}"


def _describe_result(step: Step) -> str:
    if step.error is not None:
        return f" → error: {step.error}"
    if step.documents is None:
        return "" if step.output is None else f" → {step.output}"
    names = (one.doc_id or (f"“{one.text}”" if one.text else "?") for one in step.documents)
    return f" → {count_noun(len(step.documents), 'document')}: {', '.join(names)}"


def _stack(rows: Sequence[tuple[str, RenderableType]]) -> Table:
    """Labels on the left, their content on the right, an empty line between the parts."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=_LABEL_WIDTH, no_wrap=True)
    grid.add_column(overflow="fold")
    for at, (label, content) in enumerate(rows):
        if at:
            grid.add_row()
        grid.add_row(Text(label, "dim"), content)
    return grid


def _draw_heading(card: cards.Card, names: Sequence[str]) -> Text:
    parts = [Text(shorten(card.query_id), "bold"), *(Text(shorten(name)) for name in names)]
    if card.status != "answered":
        parts.append(Text(card.status, _STATUS_STYLES.get(card.status, "dim")))
    if card.truncated:
        parts.append(Text("cut off at the token limit", "yellow"))
    others = [one for one in SAMPLE_COLUMNS if one.name in card.others]
    parts += [Text(shorten(f"{one.label}: {card.others[one.name]}")) for one in others]
    return Text("  ").join([Text(" · ").join(parts), Text(", ".join(_describe_effort(card)), "dim")])


def _describe_effort(card: cards.Card) -> Iterator[str]:
    """`1.5 s`, `312 + 40 tokens`, `$0.002`: what is known of what the answer took."""
    if card.seconds is not None:
        yield f"{card.seconds:.3g} s"
    if card.input_tokens is not None or card.output_tokens is not None:
        yield f"{card.input_tokens or 0} + {card.output_tokens or 0} tokens"
    if card.cost is not None:
        yield f"${card.cost:.4g}"


def draw_text(text: str, *, full: bool = False, longest: int = LONGEST_TEXT, style: str = "") -> Text:
    """A user's text: its line breaks stay, other control characters are escaped, and a long text is cut."""
    shown, more = _cut(text, longest, full=full)
    return Text.assemble((_make_harmless(shown), style), (more, "dim"))


def _make_harmless(text: str) -> str:
    return make_visible(text.replace("\r\n", "\n").replace("\t", "    "), keep="\n")


def _cut(text: str, longest: int, *, full: bool) -> tuple[str, str]:
    """The text that is shown, and the words that say what is not."""
    if full or len(text) <= longest:
        return text, ""
    return text[:longest], f"… ({count_noun(len(text) - longest, 'more character')}; --full shows them)"


def shorten(text: str, longest: int = LONGEST_LINE, *, full: bool = False) -> str:
    """A user's text on one line, visible, and cut to `longest` characters unless `full`."""
    if full:
        return make_visible(" ".join(text.split()))
    line = " ".join(text[: 4 * longest].split())
    return make_visible(line if len(line) <= longest else f"{line[:longest].rstrip()}…")


def draw_line(text: str, style: str = "") -> Text:
    """A user's text on one line, which ends with `…` where it does not fit."""
    return Text(shorten(text), style, no_wrap=True, overflow="ellipsis")


def _list_answer(card: cards.Card, *, full: bool) -> Iterator[tuple[str, RenderableType]]:
    """The answer with its marks, and the notes on them; or why there is none."""
    if card.error is not None:
        yield "error", draw_text(card.error, full=full, style="red")
    if card.answer is None:
        return
    if not card.answer.strip():
        yield "answer", Text("(empty)", "dim")
        return
    yield "answer", _draw_answer(card.answer, card.marks, full=full)
    shown, _ = _cut(card.answer, LONGEST_TEXT, full=full)
    if notes := cards.list_notes(shown, card.marks):
        yield "", _draw_notes(notes, card, full=full)


def _draw_answer(answer: str, marks: Sequence[cards.Mark], *, full: bool) -> Text:
    shown, more = _cut(answer, LONGEST_TEXT, full=full)
    text = Text()
    for piece in cards.split_answer(shown, marks):
        if piece.number is None:
            text.append(_make_harmless(piece.text))
        else:
            sign = cards.choose_sign(piece.marks)
            text.append(f"[{_make_harmless(piece.text)} {sign}{piece.number}]", _STYLES[sign])
    return text.append(more, "dim")


def _draw_notes(notes: Sequence[cards.ClaimNote], card: cards.Card, *, full: bool) -> Table:
    """One note for each unsupported claim: its sign and number, the verdicts, and what the judges read."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for note in notes:
        lines = [Text(shorten(str(note), full=full))]
        lines += [Text(shorten(line, full=full), "dim") for line in list_grounds(note, card.contexts)]
        grid.add_row(Text(f"{note.sign}{note.number or ''}", _STYLES[note.sign]), Text("\n").join(lines))
    return grid


def list_grounds(note: cards.ClaimNote, contexts: Sequence[cards.ShownContext]) -> list[str]:
    """The judges' reasons and the nearest sources, each once: `nearest: opening (rank 2): “It opened in 1909.”`."""
    lines = [line for mark in note.marks for line in (mark.reason, _describe_source(mark, contexts)) if line]
    return list(dict.fromkeys(lines))


def _describe_source(mark: cards.Mark, contexts: Sequence[cards.ShownContext]) -> str:
    if mark.evidence is None and mark.doc_id is None:
        return ""
    at = mark.source
    context = contexts[at] if at is not None and 0 <= at < len(contexts) else None
    place = shorten(mark.doc_id or "")
    if context is not None and mark.doc_id:
        place = f"{place} (rank {context.rank})"
    elif context is not None and mark.evidence and mark.evidence in (context.text or ""):
        place = f"context {context.rank}"
    evidence = f"“{mark.evidence}”" if mark.evidence else ""
    return "nearest: " + ": ".join(filter(None, (place, evidence)))


def _draw_values(values: Sequence[cards.CardValue], *, full: bool) -> Table:
    """Metric, value, the baseline's value with the change, and what there is to say."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in values:
        people = None if one.label is None else f"people say {one.shown.number(one.label, DIGITS)}"
        told = ", ".join(shorten(text, full=full) for text in (people, one.band, one.reason) if text)
        number = "–" if one.value is None else one.shown.number(one.value, DIGITS)
        style = "bold red" if one.status == "error" else "bold"
        table.add_row(make_visible(one.metric), Text(number, style), draw_change(one), Text(told, "dim"))
    return table


def draw_change(one: cards.CardValue) -> Text:
    """`was 0.810 (main), −0.190 worse`, `bm25 has 0.431, −0.431 worse`, or nothing without a baseline."""
    if one.baseline is None:
        return Text("")
    of_system = one.is_earlier is False and one.against is not None
    told = f"{shorten(one.against or '', LONGEST_NAME)} has {one.shown.number(one.baseline, DIGITS)}"
    was = Text(told if of_system else f"was {describe_base(one)}", "dim")
    if one.change is None or one.is_worse is None:
        return was
    style = "red" if one.is_worse else "green"
    return Text.assemble(
        was, ", ", (f"{format_change(one.change, one.shown)} {'worse' if one.is_worse else 'better'}", style)
    )


def describe_base(one: cards.CardValue) -> str:
    """The baseline's value, and its name on one line: `0.810 (main)`."""
    number = "–" if one.baseline is None else one.shown.number(one.baseline, DIGITS)
    return f"{number} ({shorten(one.against, LONGEST_NAME)})" if one.against else number


def format_change(change: float, shown: NumberFormat = PLAIN) -> str:
    """A difference with its sign: `+0.1500`, `−2.5 pp`."""
    return f"{'+' if change > 0 else '−'}{shown.change(abs(change), DIGITS)}"


def _draw_contexts(card: cards.Card, *, full: bool) -> Table:
    """Rank, grade and document; relevant documents that are missing come last."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in _list_documents(card, full=full):
        style = "yellow" if one.place else "green" if one.grade else ""
        head = [Text(shorten(one.doc_id or "")), Text(one.place, "yellow")]
        text = "" if one.text is None else _make_harmless(one.text) if full else shorten(one.text, LONGEST_CONTEXT)
        content = Text("\n").join(filter(None, (Text("  ").join(filter(None, head)), Text(text, "dim"))))
        if card.answer is None and not full and not one.place:  # a list of ten documents reads better with a line each
            content.no_wrap, content.overflow = True, "ellipsis"
        grade = "" if one.grade is None else f"grade {one.grade}"
        table.add_row(Text("–", "yellow") if one.place else one.rank, Text(grade, style), content)
    if more := _count_missing(card, full=full):
        table.add_row("", "", Text(more, "dim"))
    return table


class _Document(NamedTuple):
    """A context, or a relevant document that is not among the contexts: `place` then says where it is."""

    rank: str
    grade: int | None
    doc_id: str | None
    text: str | None
    place: str = ""


def _list_documents(card: cards.Card, *, full: bool) -> Iterator[_Document]:
    for context in card.contexts:
        yield _Document(str(context.rank), context.grade, context.doc_id, context.text)
    for one in card.missing if full else card.missing[:MOST_MISSING]:
        place = "not retrieved" if one.rank is None else f"only at rank {one.rank}"
        yield _Document("", one.grade, one.doc_id, one.text, place)


def _count_missing(card: cards.Card, *, full: bool) -> str:
    """A sentence on the relevant documents that a card leaves out; "" if it leaves out none."""
    more = 0 if full else len(card.missing) - MOST_MISSING
    told = f"and {count_noun(more, 'more relevant document')} that {'is' if more == 1 else 'are'} not here"
    return told if more > 0 else ""


def _draw_columns(card: cards.Card, *, full: bool) -> Text:
    items = list(card.columns.items())
    shown = items if full else items[:_COLUMNS_SHOWN]
    more = len(items) - len(shown)
    hidden = [Text(f"{count_noun(more, 'more column')}; --full shows them", "dim")] if more else []
    return Text("\n").join([*(draw_line(f"{key}: {value}") for key, value in shown), *hidden])


def draw_entry(card: cards.Card, names: Sequence[str], deciding: cards.CardValue | None) -> Iterator[RenderableType]:
    """A card in a few lines, for a list; `deciding` is the value that gave the question its place, if one did."""
    yield _draw_entry_heading(card, names, deciding)
    if card.question:
        yield indent(draw_line(card.question))
    if card.error is not None:
        yield indent(draw_line(card.error, "red"))
    elif card.answer is not None:
        yield indent(draw_line(f"→ {card.answer.strip() or '(empty)'}", "dim"))
    if notes := cards.list_notes(card.answer or "", card.marks):
        worst = min(notes, key=lambda note: (note.sign != cards.CONTRADICTED, note.marks[0].score or 0.0))
        text = f": {worst.marks[0].text}" if worst.marks[0].text else ""
        yield indent(draw_line(f"{worst.sign} {worst.decision}{text}", _STYLES[worst.sign]))


def _draw_entry_heading(card: cards.Card, names: Sequence[str], deciding: cards.CardValue | None) -> Text:
    parts = [Text(shorten(card.query_id), "bold"), *(Text(shorten(name), "dim") for name in names)]
    if card.status in _STATUS_STYLES:
        parts.append(Text(card.status, _STATUS_STYLES[card.status]))
    elif deciding is not None and deciding.value is not None:
        parts.append(Text(f"{make_visible(deciding.metric)} {deciding.shown.number(deciding.value, DIGITS)}"))
        if deciding.is_worse is not None:
            parts.append(draw_change(deciding))
    if any(one.status == "error" for one in card.values) and card.status not in _STATUS_STYLES:
        parts.append(Text("error", "bold red"))
    if card.cause is not None:
        parts.append(Text(make_visible(card.cause), "dim"))
    return Text("  ").join([part for part in parts if part])


def indent(line: Text) -> RenderableType:
    return Padding(line, (0, 0, 0, 2))


def write_card(card: cards.Card, names: Sequence[str], *, full: bool = False) -> str:
    """One card as a section in Markdown, with the parts of `draw_card`."""
    status = [] if card.status == "answered" else [card.status]
    heading = f"## {' · '.join([*map(quote_cell, (card.query_id, *names)), *status])}"
    return "\n\n".join([heading, *_list_blocks(card, full=full)]) + "\n"


def _list_blocks(card: cards.Card, *, full: bool) -> Iterator[str]:
    if card.history:
        told = (_show(write_turn(turn), LONGEST_LINE, full=full) for turn in card.history)
        yield f"**History:** {'<br>'.join(told)}"
    if card.question:
        yield f"**Question:** {_show(card.question, LONGEST_TEXT, full=full)}"
    if card.error is not None:
        yield f"**Error:** {_show(card.error, LONGEST_TEXT, full=full)}"
    if card.answer is not None:
        yield from _list_answer_markdown(card.answer, card, full=full)
    if card.steps:
        lines = "\n".join(f"- {escape(shorten(line, full=full))}" for line in describe_steps(card.steps))
        yield f"**Steps:**\n\n{lines}"
    for text in card.references:
        yield f"**Reference:** {_show(text, LONGEST_TEXT, full=full)}"
    if card.cause is not None:
        yield f"**Cause:** {escape(': '.join(filter(None, (card.cause, card.cause_reason))))}"
    if card.values:
        base = "baseline" if any(one.is_earlier is False for one in card.values) else "was"
        header = ["metric", "value", base, "change", "reason"]
        rows = [_list_cells(one) for one in card.values]
        kept = [at for at, name in enumerate(header) if name not in (base, "change") or any(row[at] for row in rows)]
        yield format_table([header[at] for at in kept], ([row[at] for at in kept] for row in rows))
    if card.contexts or card.missing:
        rows = [
            [
                one.place or one.rank,
                "" if one.grade is None else str(one.grade),
                quote_cell(shorten(one.doc_id)) if one.doc_id else "",
                _show(one.text or "", LONGEST_CONTEXT, full=full),
            ]
            for one in _list_documents(card, full=full)
        ]
        more = _count_missing(card, full=full)
        yield format_table(["rank", "grade", "document", "text"], [*rows, *([["", "", "", more]] if more else [])])
    if card.slices:
        yield f"**Slices:** {', '.join(map(quote_cell, card.slices))}"


def _list_answer_markdown(answer: str, card: cards.Card, *, full: bool) -> Iterator[str]:
    shown = answer if full else answer[:LONGEST_TEXT]
    told = "".join(
        _show_lines(piece.text)
        if piece.number is None
        else f"**\\[{_show_lines(piece.text)} {cards.choose_sign(piece.marks)}{piece.number}\\]**"
        for piece in cards.split_answer(shown, card.marks)
    )
    yield f"**Answer:** {told or '(empty)'}{_count_rest(answer, shown)}"
    if notes := cards.list_notes(shown, card.marks):
        lines = ([f"{one.sign}{one.number or ''} {one}", *list_grounds(one, card.contexts)] for one in notes)
        yield "\n".join(f"- {'; '.join(escape(shorten(line, full=full)) for line in told)}" for told in lines)


def _show(text: str, longest: int, *, full: bool) -> str:
    shown = text if full else text[:longest]
    return f"{_show_lines(shown)}{_count_rest(text, shown)}"


def _show_lines(text: str) -> str:
    """Text whose line breaks stay; spaces at its ends stay too, because pieces are joined."""
    return "<br>".join(escape(line) for line in text.replace("\r\n", "\n").split("\n"))


def _count_rest(text: str, shown: str) -> str:
    more = len(text) - len(shown)
    return f"… ({count_noun(more, 'more character')})" if more else ""


def _list_cells(one: cards.CardValue) -> list[str]:
    number = "–" if one.value is None else one.shown.number(one.value, DIGITS)
    told = ", ".join(filter(None, (one.band, one.reason)))
    change = "" if one.change is None else format_change(one.change, one.shown) if one.change else "="
    direction = "" if one.is_worse is None else " worse" if one.is_worse else " better"
    was = "" if one.baseline is None else escape(describe_base(one))
    return [quote_cell(one.metric), number, was, f"{change}{direction}", escape(shorten(told))]
