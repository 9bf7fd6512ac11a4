"""Writes a comparison as text, Markdown, JSON or an HTML page, with the words of answers that changed.

In text, removed words are in `[-...-]` and added ones in `{+...+}`, whatever the colours. In Markdown and on the page,
removed words are struck through; added ones are bold, or underlined. The page makes no request and runs no script, and
shows all texts as texts.

The work is bounded: where two long texts have little in common, all of one is removed and all of the other added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, Literal

from rageval_spec.commands.compare.changes import Compared, Kind, MetricChange, QuestionChange, QuestionChanges
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.diagnostics import dump_visible, make_visible
from rageval_spec.drawing import sections
from rageval_spec.drawing.card_text import draw_line, format_change, indent, shorten
from rageval_spec.drawing.escaping import escape, format_table, quote_cell
from rageval_spec.drawing.html_shell import fill_page, join_styles, read_asset
from rageval_spec.drawing.terminal import Block, begin_table, render_text
from rageval_spec.libraries import Table, Text
from rageval_spec.wording import (
    ADJUSTED,
    UNRESOLVABLE,
    NumberFormat,
    count_noun,
    find_format,
    format_interval,
    format_percent,
    format_probability,
    list_names,
    tell_apart,
    tell_means_apart,
)

FORMAT_VERSION = 1
"""Of the JSON shape. Within a version, keys are only added."""


def render_comparison(found: Compared, form: str) -> bytes:
    if form == "json":
        return dump_visible(_to_json(found)).encode("utf-8", "backslashreplace")
    if form == "markdown":
        return ("\n\n".join(_list_blocks(found)) + "\n").encode("utf-8", "backslashreplace")
    return render_text(lambda console: draw_comparison(found, console.width))


def _to_json(found: Compared) -> dict[str, Any]:
    """The object of the JSON output.

    `before` and `after` are the names of the results, `metrics` the attributes of `MetricChange`, `counts` those of
    questions by kind, and `questions` the attributes of `QuestionChange`, with `diff`: pairs of "equal", "removed" or
    "added" and a text.
    """
    return {
        "format_version": FORMAT_VERSION,
        "before": found.before.name,
        "after": found.after.name,
        "differences": list(found.differences),
        "metrics": [asdict(one) for one in found.metrics],
        "counts": {**found.questions.counts, "shared": found.questions.shared},
        "questions": [
            {**asdict(one), "diff": [astuple(edit) for edit in diff_words(one.answer_before or "", one.answer or "")]}
            for one in found.questions.shown
        ],
    }


SIGNS: dict[Kind, str] = {"broken": "✗", "fixed": "✓", "worse": "−", "better": "+", "changed": "~"}
_STYLES: dict[Kind, str] = {
    "broken": "bold red",
    "fixed": "bold green",
    "worse": "red",
    "better": "green",
    "changed": "cyan",
}
_NARROW = 100


def draw_comparison(found: Compared, width: int) -> Iterator[Block]:
    """What differs, the numbers, and the questions that changed."""
    yield f"{found.before.name} → {found.after.name}", "bold"
    if found.differences:
        yield ""
        yield "What else differs", "bold yellow"
        yield from (f"  • {shorten(line)}" for line in found.differences)
    yield from _draw_numbers(found, is_narrow=width < _NARROW)
    yield ""
    yield describe_counts(found)
    for one in found.questions.shown:
        yield ""
        yield from _draw_change(one, found)
    if more := describe_rest(found.questions):
        yield ""
        yield more, "dim"


def _draw_numbers(found: Compared, *, is_narrow: bool) -> Iterator[Block]:
    """A table for each dataset with the numbers that changed, and a line for those that did not."""
    changed = [one for one in found.metrics if not is_equal(one)]
    for dataset in dict.fromkeys(one.dataset for one in changed):
        yield ""
        if len(found.after.evaluation.datasets) > 1:
            yield dataset, "bold"
        of_dataset = [one for one in changed if one.dataset == dataset]
        yield _draw_metrics(of_dataset, found.after.evaluation, is_narrow=is_narrow)
    notes = [describe_test(changed, found.after.evaluation), describe_equal(found)]
    for note in filter(None, notes):
        yield ""
        yield note, "dim"


def is_equal(one: MetricChange) -> bool:
    """Whether a metric has the same numbers on both sides, for every question that has a value in both."""
    if one.before.mean != one.after.mean or one.difference:
        return False
    return one.comparison is None or one.comparison.wins == one.comparison.losses == 0


def describe_equal(found: Compared) -> str:
    """`Unchanged: ndcg@10 and rr of bm25; latency of v1.`, or "" if every number changed."""
    several = len(found.after.evaluation.datasets) > 1
    places: dict[str, list[str]] = {}
    for one in filter(is_equal, found.metrics):
        place = f"{one.system} on {one.dataset}" if several else one.system
        places.setdefault(place, []).append(one.metric)
    told = "; ".join(f"{', '.join(metrics)} of {place}" for place, metrics in places.items())
    return f"Unchanged: {told}." if told else ""


def describe_counts(found: Compared) -> str:
    """`40 questions in both: 3 broken, 2 fixed, 5 worse, 1 better, 4 with another answer, 25 as before`."""
    questions, several = found.questions, len(found.after.evaluation.systems) > 1
    counts = questions.counts.items()
    told = [f"{count} {'with another answer' if kind == 'changed' else kind}" for kind, count in counts if count]
    same = questions.shared - sum(questions.counts.values())
    told += [f"{same} as before"] if same or not told else []
    noun, rest = ("pair", " of question and system in both") if several else ("question", " in both")
    return f"{count_noun(questions.shared, f'{noun}{rest}', f'{noun}s{rest}')}: {', '.join(told)}"


def describe_rest(questions: QuestionChanges) -> str:
    """A sentence on the changes that the limit hides; "" if there are none."""
    more = sum(questions.counts.values()) - len(questions.shown)
    return f"{count_noun(more, 'smaller change')} not shown; --limit sets how many of each kind are" if more else ""


def describe_test(changes: Sequence[MetricChange], evaluation: Evaluation) -> str:
    """What the columns `difference` and `p` mean; "" if there is no test."""
    test = next((one.comparison for one in changes if one.comparison is not None), None)
    if test is None:
        return ""
    level = f"{format_percent(test.interval.confidence)} interval, " if test.interval else ""
    design = test.design
    weighted = ", weighted" if design is not None and design.plain is not None else ""
    clusters = ", drawn in whole clusters" if design is not None and design.clusters is not None else ""
    which = f"of the questions with a value in both{weighted}{clusters}"
    tests = [one.comparison for one in changes if one.comparison is not None]
    kind = "" if all(one.correction is not None for one in tests) else "paired permutation test, "
    told = [f"Difference: {which}; {level}{kind}{ADJUSTED} p."]
    told += ["pp: percentage points."] if any(one.metric in evaluation.show_as for one in changes) else []
    told += [f"{mark} {lacking}." for mark, lacking in sections.describe_unresolved(tests)]
    if corrected := [*dict.fromkeys(one.metric for one in tests if one.correction is not None)]:
        by = f"The numbers of {list_names(corrected)} are corrected by people's labels"
        told.append(f"{by}; the test is a t test of the corrected difference.")
    return " ".join(told)


def _draw_metrics(changes: Sequence[MetricChange], evaluation: Evaluation, *, is_narrow: bool) -> Table:
    systems = {one.system for one in changes}
    table = begin_table()
    for title in ("metric", *(["system"] if len(systems) > 1 else [])):
        table.add_column(title, overflow="fold", min_width=6)
    for title in ("before", "after", "difference"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("p",) if is_narrow else ("interval", "p"):
        table.add_column(title, no_wrap=True)
    for one in changes:
        is_clear = one.is_worse is not None and mark_change(one) in (sections.HIGHER, sections.LOWER)
        style = "" if not is_clear else "red" if one.is_worse else "green"
        shown = find_format(evaluation, one.metric)
        interval = show_interval(one, shown)
        difference = Text(describe_difference(one, shown), style)
        if is_narrow and interval:
            difference = Text.assemble(difference, "\n", (interval, "dim"))
        table.add_row(
            make_visible(one.metric),
            *([make_visible(one.system)] if len(systems) > 1 else []),
            *tell_means_apart(one.before, one.after, shown),
            difference,
            "" if is_narrow else Text(interval, "dim"),
            describe_p_value(one),
        )
    return table


def describe_p_value(one: MetricChange) -> str:
    """`0.0123` or `< 0.0001`, adjusted; "" without a test. `unresolvable` if no difference could be significant."""
    if one.comparison is None:
        return ""
    is_resolvable = one.comparison.is_resolvable(sections.SIGNIFICANCE)
    return format_probability(one.comparison.p_adjusted) if is_resolvable else UNRESOLVABLE


def show_interval(one: MetricChange, shown: NumberFormat) -> str:
    """The interval of the difference; "" without a test."""
    return format_interval(one.comparison.interval, formatter=shown.change) if one.comparison else ""


def mark_change(one: MetricChange) -> str:
    """▲ or ▼ for a significant difference, ∅ if none could be, else ""."""
    return sections.significance_mark(one.comparison)


def describe_difference(one: MetricChange, shown: NumberFormat) -> str:
    """`−0.1000 ▼ worse`: the direction in words where the difference is significant; ≠ where it is not comparable."""
    if not one.difference:
        return "–" if one.difference is None else "="
    mark = mark_change(one)
    is_clear = mark not in (sections.NOT_COMPARABLE, sections.UNRESOLVED, "")
    words = [mark, ("worse" if one.is_worse else "better") if is_clear else ""]
    return " ".join(filter(None, (format_change(one.difference, shown), *words)))


def _draw_change(one: QuestionChange, found: Compared) -> Iterator[Block]:
    parts = [Text(f"{SIGNS[one.kind]} {one.kind}", _STYLES[one.kind]), Text(shorten(one.query_id), "bold")]
    parts += [Text(shorten(name), "dim") for name in name_places(one, found)]
    parts.append(Text(shorten(describe_value(one, found.after.evaluation))))
    if one.edited:
        parts.append(Text(f"({' and '.join(one.edited)} edited)", "yellow"))
    yield Text("  ").join([part for part in parts if part])
    if one.question:
        yield indent(draw_line(one.question))
    if one.error is not None:
        yield indent(draw_line(one.error, "red"))
    if one.answer_before != one.answer:
        yield indent(_draw_diff(diff_words(one.answer_before or "", one.answer or "")))


def name_places(one: QuestionChange, found: Compared) -> list[str]:
    """The system and the dataset, where there are several."""
    evaluation = found.after.evaluation
    pairs = ((one.system, evaluation.systems), (one.dataset, evaluation.datasets))
    return [name for name, names in pairs if len(names) > 1]


def describe_value(one: QuestionChange, evaluation: Evaluation) -> str:
    """`faithfulness 0.9000 → 0.2000`, or what happened to the answer."""
    if one.metric is not None and one.before is not None and one.after is not None:
        before, after = tell_apart(one.before, one.after, find_format(evaluation, one.metric).number)
        return f"{one.metric} {before} → {after}"
    if one.answer is None and one.answer_before is not None:
        return "no answer any more"
    return "has an answer now" if one.answer is not None and one.answer_before is None else ""


def _draw_diff(edits: list[Edit]) -> Text:
    text = Text()
    for edit in shorten_edits(edits):
        shown = make_visible(edit.text.replace("\r\n", "\n").replace("\t", "    "), keep="\n")
        if edit.kind == "equal":
            text.append(shown, "dim")
        else:
            space, words = split_space(shown)
            sign = ("[-", "-]") if edit.kind == "removed" else ("{+", "+}")
            text.append(space).append(f"{sign[0]}{words}{sign[1]}", "red" if edit.kind == "removed" else "green")
    return text


def split_space(text: str) -> tuple[str, str]:
    """The white space at the beginning, and the rest; a text of white space alone is its own rest."""
    rest = text.lstrip()
    return (text[: len(text) - len(rest)], rest) if rest else ("", text)


def _list_blocks(found: Compared) -> Iterator[str]:
    """What differs, the numbers, and the questions that changed, as Markdown."""
    yield f"# {quote_cell(found.before.name)} → {quote_cell(found.after.name)}"
    if found.differences:
        yield "**What else differs**"
        yield "\n".join(f"- {escape(shorten(line))}" for line in found.differences)
    changed = [one for one in found.metrics if not is_equal(one)]
    if changed:
        header = ["dataset", "system", "metric", "before", "after", "difference", "interval", f"{ADJUSTED} p"]
        yield format_table(header, (_list_cells(one, found.after.evaluation) for one in changed))
    for note in filter(None, (describe_test(changed, found.after.evaluation), describe_equal(found))):
        yield escape(note)
    yield f"{describe_counts(found)}."
    for one in found.questions.shown:
        yield from _write_change(one, found)
    if more := describe_rest(found.questions):
        yield f"{more}."


def _list_cells(one: MetricChange, evaluation: Evaluation) -> list[str]:
    shown = find_format(evaluation, one.metric)
    return [
        *map(quote_cell, (one.dataset, one.system, one.metric)),
        *tell_means_apart(one.before, one.after, shown),
        describe_difference(one, shown),
        show_interval(one, shown).replace("[", "\\["),
        escape(describe_p_value(one)),
    ]


def _write_change(one: QuestionChange, found: Compared) -> Iterator[str]:
    names = " · ".join(quote_cell(shorten(name)) for name in (one.query_id, *name_places(one, found)))
    edited = f" ({' and '.join(one.edited)} edited)" if one.edited else ""
    value = escape(shorten(describe_value(one, found.after.evaluation)))
    yield f"### {SIGNS[one.kind]} {one.kind}: {names} {value}{edited}".rstrip()
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


_ONE_BY_ONE = r"\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"\s*(?:[{_ONE_BY_ONE}]|[^\W{_ONE_BY_ONE}]+|[^\w\s]|$)")
"""A word, or one character of a script without spaces, with the white space before it."""
_MOST_WORDS = 4_000
"""Texts that differ in more words than this are not compared word by word."""
_KEPT = 60
"""Characters of unchanged text that are kept before and after a change."""
_LONGEST = 600
"""Characters of a removed or added passage that are shown."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A passage that both texts have, or only one of them."""

    kind: Literal["equal", "removed", "added"]
    text: str


def diff_words(before: str, after: str) -> list[Edit]:
    """The passages of both texts in order: `before` without the added ones, `after` without the removed ones."""
    from difflib import SequenceMatcher

    if before == after:
        return [Edit("equal", before)] if before else []
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _count_shared(old, new)
    end = _count_shared(old[start:][::-1], new[start:][::-1])
    middle = old[start : len(old) - end], new[start : len(new) - end]
    edits = [Edit("equal", "".join(old[:start]))]
    is_long = max(map(len, middle)) > _MOST_WORDS
    whole = [("replace", 0, len(middle[0]), 0, len(middle[1]))]
    for kind, low, high, first, last in whole if is_long else SequenceMatcher(None, *middle).get_opcodes():
        before, after = "".join(middle[0][low:high]), "".join(middle[1][first:last])
        edits += [Edit("equal", before)] if kind == "equal" else [Edit("removed", before), Edit("added", after)]
    edits.append(Edit("equal", "".join(old[len(old) - end :])))
    return list(_join([edit for edit in edits if edit.text]))


def _count_shared(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))


def _join(edits: Sequence[Edit]) -> Iterator[Edit]:
    """Join neighbouring changes, and those that only a comma or a space keeps apart: `a, b` -> `c, d` is one change."""
    removed = added = ""
    for at, edit in enumerate(edits):
        is_kept = edit.kind == "equal"
        between = bool(removed or added) and at + 1 < len(edits)
        if is_kept and not (between and not re.search(r"\w", edit.text)):
            yield from (one for one in (Edit("removed", removed), Edit("added", added), edit) if one.text)
            removed = added = ""
        else:
            removed += edit.text if edit.kind != "added" else ""
            added += edit.text if edit.kind != "removed" else ""
    yield from (one for one in (Edit("removed", removed), Edit("added", added)) if one.text)


def shorten_edits(edits: Sequence[Edit]) -> list[Edit]:
    """The edits with `…` in place of what is far from a change, and of the rest of a very long change."""
    last, found = len(edits) - 1, []
    for at, (kind, text) in enumerate((edit.kind, edit.text) for edit in edits):
        head = 0 if at == 0 and last else _KEPT
        tail = 0 if at == last and last else _KEPT
        if kind != "equal":
            text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        elif len(text) > head + tail + 10:
            text = f"{text[:head].rstrip()} … {text[len(text) - tail :].lstrip() if tail else ''}"
        found.append(Edit(kind, text))
    return found


_HEADER = ("metric", "system", "dataset", "before", "after", "difference", "interval", f"{ADJUSTED} p")
_TEXTS = 3
"""The columns of names, which come before those of numbers."""
_KINDS: dict[Kind, str] = {"broken": "bad", "worse": "bad", "fixed": "good", "better": "good", "changed": ""}


def write_page(found: Compared) -> bytes:
    changed = [one for one in found.metrics if not is_equal(one)]
    test = describe_test(changed, found.after.evaluation)
    return fill_page(
        read_asset("compare.html.jinja"),
        join_styles(("page.css", "overview.css", "texts.css", "questions.css", "compare.css")),
        before=make_visible(found.before.name),
        after=make_visible(found.after.name),
        differences=[make_visible(line) for line in found.differences],
        header=_HEADER,
        texts=_TEXTS,
        rows=[_describe_metric(one, found) for one in changed],
        notes=[*filter(None, (test, describe_equal(found)))],
        counts=describe_counts(found),
        questions=[_describe_question(one, found) for one in found.questions.shown],
        rest=describe_rest(found.questions),
    )


def _describe_metric(one: MetricChange, found: Compared) -> dict[str, Any]:
    names = map(make_visible, (one.metric, one.system, one.dataset))
    shown = find_format(found.after.evaluation, one.metric)
    difference = describe_difference(one, shown), show_interval(one, shown)
    numbers = (*tell_means_apart(one.before, one.after, shown), *difference)
    is_clear = one.is_worse is not None and mark_change(one)
    kind = ("bad" if one.is_worse else "good") if is_clear else ""
    return {"cells": [*names, *numbers, describe_p_value(one)], "kind": kind}


def _describe_question(one: QuestionChange, found: Compared) -> dict[str, Any]:
    """What the template shows of one question; `before` and `after` are the passages of the two answers."""
    edits = diff_words(one.answer_before or "", one.answer or "")
    return {
        "kind": one.kind,
        "style": _KINDS[one.kind],
        "sign": SIGNS[one.kind],
        "query_id": make_visible(one.query_id),
        "places": [make_visible(name) for name in name_places(one, found)],
        "value": make_visible(describe_value(one, found.after.evaluation)),
        "edited": " and ".join(one.edited),
        "question": make_visible(one.question, keep="\n"),
        "error": make_visible(one.error or "", keep="\n"),
        "has_answers": any(text is not None for text in (one.answer_before, one.answer, one.error)),
        "has_before": one.answer_before is not None,
        "has_after": one.answer is not None,
        **{side: _keep(edits, lost) for side, lost in (("before", "added"), ("after", "removed"))},
    }


def _keep(edits: list[Edit], lost: str) -> list[dict[str, str]]:
    kept = (edit for edit in edits if edit.kind != lost)
    return [{"kind": edit.kind, "text": make_visible(edit.text.replace("\r\n", "\n"), keep="\n\t")} for edit in kept]
