"""Describes cards: in full, or as an entry of a list.

Whatever a colour shows has a sign as well: an unsupported claim is in brackets that end with its sign and the number
of the note that explains it, `[It was built in 1911. ✗1]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rageval_spec.data.tables import SAMPLE_COLUMNS
from rageval_spec.data.traces import describe_steps
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing import cards
from rageval_spec.drawing.view import Block, Entry, Fields, Heading, Inline, Items, Line, Span, join, name, tabulate
from rageval_spec.recorded.messages import write_turn
from rageval_spec.wording import DIGITS, PLAIN, NumberFormat, count_noun

LONGEST_TEXT = 2_000
"""Characters of a question, an answer or a reference that a card shows; `full` shows all of them."""
LONGEST_CONTEXT, LONGEST_RETRIEVED = 160, 56
"""Characters of a document that a card shows; fewer without an answer: a list reads better with short texts."""
LONGEST_LINE = 400
LONGEST_NAME = 40
MOST_MISSING = 5
"""Relevant documents outside the contexts that a card shows; `full` shows all of them."""
_COLUMNS_SHOWN = 8
_STYLES = {cards.CONTRADICTED: "bold red", cards.UNSUPPORTED: "bold yellow"}
_HELD = {"support": "✓ yes", "partial_support": "in part", "not_support": "✗ no"}
_STATUS_STYLES = {"failed": "bold red", "unfinished": "yellow"}


def draw_card(card: cards.Card, names: Sequence[str], *, full: bool = False) -> Iterator[Block]:
    """One card: the question, the answer with its marks, the sources, the values.

    The heading has the names, usually the system and the dataset, after the query id. Unless `full`, long texts are
    cut, and a note says how many characters are missing.
    """
    parts: list[str | Span] = [name(shorten(text)) for text in (card.query_id, *names)]
    if card.status != "answered":
        parts.append(Span(card.status, _STATUS_STYLES.get(card.status, "dim")))
    if card.truncated:
        parts.append(Span("cut off at the token limit", "yellow"))
    others = [one for one in SAMPLE_COLUMNS if one.name in card.others]
    parts += [shorten(f"{one.label}: {card.others[one.name]}") for one in others]
    yield Heading(join([*parts, Span(", ".join(_describe_effort(card)), "dim")], " · "), 2)
    yield Fields([*_list_fields(card, full=full)])


def _list_fields(card: cards.Card, *, full: bool) -> Iterator[tuple[str, Inline | Block]]:
    if card.history:
        yield "history", _stack(_cut(write_turn(turn), full=full, longest=LONGEST_LINE) for turn in card.history)
    yield "question", _cut(card.question or "(the results do not hold its text)", full=full)
    if card.error is not None:
        yield "error", _cut(card.error, full=full, style="red")
    if card.answer is not None:
        yield from _list_answer(card.answer, card, full=full)
    if card.citations:
        yield (
            "citations",
            tabulate(["citation", "context", "verdict"], [_list_cited(one, card) for one in card.citations]),
        )
    if card.nuggets:
        yield "nuggets", tabulate(["nugget", "", "in the answer"], [*map(_list_nugget, card.nuggets)])
    if card.steps or card.calls:
        yield "steps", _stack([shorten(line, full=full)] for line in describe_steps(card.steps, card.calls))
    yield from (("reference", _cut(text, full=full)) for text in card.references)
    if card.cause is not None:
        yield "cause", ": ".join(filter(None, (card.cause, card.cause_reason)))
    if card.values:
        base = "baseline" if any(one.is_earlier is False for one in card.values) else "was"
        rows = [_list_cells(one, full=full) for one in card.values]
        yield "values", tabulate(["metric", "value", base, "change", "reason"], rows, (1,))
    if card.contexts or card.missing:
        label = "contexts" if card.answer is not None else "retrieved"
        yield label, tabulate(["rank", "grade", "document"], _list_documents(card, full=full), (0, 1), ())
    if card.slices:
        yield "slices", join(map(name, card.slices), ", ")
    if card.columns:
        items = list(card.columns.items())
        shown = items if full else items[:_COLUMNS_SHOWN]
        more = [f"{count_noun(len(items) - len(shown), 'more column')}; show --full has them"] * (
            len(items) > len(shown)
        )
        yield "columns", _stack([[shorten(f"{key}: {value}", full=full)] for key, value in shown] + [more] * bool(more))


def _list_cited(one: cards.CitedDocument, card: cards.Card) -> list[Inline]:
    """The citation, the context that it names, and the verdicts: `supported: citation_support`."""
    place = card.contexts[one.rank - 1] if one.rank and one.rank <= len(card.contexts) else None
    named = "none" if one.rank is None else f"{one.rank} {(place and place.doc_id) or ''}"
    told: dict[str, list[str]] = {}
    for metric, verdict in one.verdicts:
        told.setdefault(verdict.replace("_", " "), []).append(metric)
    verdicts = "; ".join(f"{verdict}: {', '.join(metrics)}" for verdict, metrics in told.items())
    return [name(shorten(one.text)), Span(shorten(named), "yellow" if one.rank is None else ""), Span(verdicts, "dim")]


def _list_nugget(one: cards.ShownNugget) -> list[Inline]:
    """The fact, its importance, and whether the answer has it; by metric only where metrics differ."""
    found = {
        label: [name for name, said in one.assignments.items() if said == label] for label in one.assignments.values()
    }
    told = "; ".join(f"{_HELD[label]}: {', '.join(of)}" for label, of in found.items())
    (label, *more) = found
    style = {"support": "green", "partial_support": "yellow"}.get(label, "bold yellow")
    return [shorten(one.text), Span(one.importance, "dim"), Span(told if more else _HELD[label], style)]


def _describe_effort(card: cards.Card) -> Iterator[str]:
    """`1.5 s`, `312 + 40 tokens`, `$0.002`: what is known of what the answer took."""
    if card.seconds is not None:
        yield f"{card.seconds:.3g} s"
    if card.input_tokens is not None or card.output_tokens is not None:
        yield f"{card.input_tokens or 0} + {card.output_tokens or 0} tokens"
    if card.cost is not None:
        yield f"${card.cost:.4g}"


def _cut(text: str, *, full: bool, longest: int = LONGEST_TEXT, style: str = "") -> list[str | Span]:
    """A user's text with its line breaks, and the words that say what of it is not shown."""
    shown = text if full else text[:longest]
    rest = len(text) - len(shown)
    more = [Span(f"… ({count_noun(rest, 'more character')}; show --full has them)", "dim")] if rest else []
    return [Span(shown, style, "prose"), *more]


def _stack(lines: Iterator[list[str | Span]] | Sequence[list[str]]) -> list[str | Span]:
    """Several texts below one another."""
    return [piece for line in lines for piece in (Span("\n", kind="prose"), *line)][1:]


def shorten(text: str, longest: int = LONGEST_LINE, *, full: bool = False) -> str:
    """A user's text on one line, visible, and cut to `longest` characters unless `full`."""
    if full:
        return make_visible(" ".join(text.split()))
    line = " ".join(text[: 4 * longest].split())
    return make_visible(line if len(line) <= longest else f"{line[:longest].rstrip()}…")


def _list_answer(answer: str, card: cards.Card, *, full: bool) -> Iterator[tuple[str, Inline | Block]]:
    """The answer with its marks, and a note for each unsupported claim: the verdicts, and what the judges read."""
    shown, *more = _cut(answer, full=full)
    assert isinstance(shown, Span)
    marked: list[str | Span] = []
    for piece in cards.split_answer(shown.text, card.marks):
        sign = "" if piece.number is None else cards.choose_sign(piece.marks)
        text = f"[{piece.text} {sign}{piece.number}]" if sign else piece.text
        marked.append(Span(text, _STYLES.get(sign, ""), "prose"))
    yield "answer", [*marked, *more] if answer.strip() else Span("(empty)", "dim")
    if notes := cards.list_notes(shown.text, card.marks):
        rows: list[tuple[str, Inline, str]] = []
        for note in notes:
            grounds = "".join(f"\n{shorten(line, full=full)}" for line in list_grounds(note, card.contexts))
            told: Inline = [shorten(str(note), full=full), Span(grounds, "dim", "prose")]
            rows.append((f"{note.sign}{note.number or ''}", told, _STYLES[note.sign]))
        yield "", Items(rows)


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


def _list_cells(one: cards.CardValue, *, full: bool) -> list[Inline]:
    """Metric, value, the baseline's value, the change, and what there is to say."""
    people = None if one.label is None else f"people say {one.shown.number(one.label, DIGITS)}"
    told = ", ".join(shorten(text, full=full) for text in (people, one.band, one.reason) if text)
    number = "–" if one.value is None else one.shown.number(one.value, DIGITS)
    style = "bold red" if one.status == "error" else "bold"
    was = "" if one.baseline is None else describe_base(one)
    return [one.metric, Span(number, style), Span(was, "dim"), _draw_difference(one), Span(told, "dim")]


def _draw_difference(one: cards.CardValue) -> Span:
    """`−0.190 worse`, `=`, or nothing without a baseline."""
    if one.change is None:
        return Span("")
    if one.is_worse is None:
        return Span(format_change(one.change, one.shown) if one.change else "=", "dim")
    direction = "worse" if one.is_worse else "better"
    return Span(f"{format_change(one.change, one.shown)} {direction}", "red" if one.is_worse else "green")


def describe_base(one: cards.CardValue) -> str:
    """The baseline's value, and its name on one line: `0.810 (main)`."""
    number = "–" if one.baseline is None else one.shown.number(one.baseline, DIGITS)
    return f"{number} ({shorten(one.against, LONGEST_NAME)})" if one.against else number


def format_change(change: float, shown: NumberFormat = PLAIN) -> str:
    """A difference with its sign: `+0.1500`, `−2.5 pp`."""
    return f"{'+' if change > 0 else '−'}{shown.change(abs(change), DIGITS)}"


def _list_documents(card: cards.Card, *, full: bool) -> Iterator[tuple[Inline, ...]]:
    """Rank, grade, and the document with its text; relevant documents that are missing come last."""
    missing = card.missing if full else card.missing[:MOST_MISSING]
    longest = LONGEST_RETRIEVED if card.answer is None else LONGEST_CONTEXT
    listed: list[cards.ShownContext | cards.Missing] = [*card.contexts, *missing]
    for one in listed:
        place = ""
        if isinstance(one, cards.Missing):
            place = "not retrieved" if one.rank is None else f"only at rank {one.rank}"
        style = "yellow" if place else "green" if one.grade else ""
        text = (one.text or "") if full else shorten(one.text or "", longest)
        named = [name(shorten(one.doc_id or "")), Span(place, "yellow")]
        document = [*named, Span(f"\n{text}" if text and any(named[0][:1]) else text, "dim", "prose")]
        yield "–" if place else str(one.rank), Span("" if one.grade is None else str(one.grade), style), document
    if more := len(card.missing) - len(missing):
        yield "", "", f"and {count_noun(more, 'more relevant document')} that {'is' if more == 1 else 'are'} not here"


def draw_entry(card: cards.Card, names: Sequence[str], deciding: cards.CardValue | None) -> Entry:
    """A card in a few lines, for a list; `deciding` is the value that gave the question its place, if one did."""
    parts = [name(shorten(card.query_id), "bold"), *(name(shorten(one), "dim") for one in names)]
    if card.status in _STATUS_STYLES:
        parts.append(Span(card.status, _STATUS_STYLES[card.status]))
    elif deciding is not None and deciding.value is not None:
        parts.append(Span(f"{deciding.metric} {deciding.shown.number(deciding.value, DIGITS)}"))
        if deciding.is_worse is not None:
            of_system = deciding.is_earlier is False and deciding.against is not None
            verb = f"{shorten(deciding.against or '', LONGEST_NAME)} has" if of_system else "was"
            number = deciding.shown.number(deciding.baseline or 0.0, DIGITS) if of_system else describe_base(deciding)
            parts += [Span(f"{verb} {number}", "dim"), _draw_difference(deciding)]
    if any(one.status == "error" for one in card.values) and card.status not in _STATUS_STYLES:
        parts.append(Span("error", "bold red"))
    parts.append(Span(card.cause or "", "dim"))
    return Entry(join(parts, " · "), [Line(line, is_cut=True) for line in _list_lines(card)])


def _list_lines(card: cards.Card) -> Iterator[Inline]:
    """The question, the answer or why there is none, and the worst unsupported claim."""
    if card.question:
        yield shorten(card.question)
    if card.error is not None:
        yield Span(shorten(card.error), "red")
    elif card.answer is not None:
        yield Span(shorten(f"→ {card.answer.strip() or '(empty)'}"), "dim")
    if notes := cards.list_notes(card.answer or "", card.marks):
        worst = min(notes, key=lambda note: (note.sign != cards.CONTRADICTED, note.marks[0].score or 0.0))
        text = f": {worst.marks[0].text}" if worst.marks[0].text else ""
        style = _STYLES[worst.sign].removeprefix("bold ")
        yield Span(shorten(f"{worst.sign} {worst.decision}{text}"), style)
