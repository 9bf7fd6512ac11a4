"""Describes a comparison, with the words of answers that changed, and writes it as text, Markdown, JSON or a page.

In text, removed words are in `[-...-]` and added ones in `{+...+}`, whatever the colours. In Markdown removed words are
struck through and added ones bold.

The work is bounded: where two long texts have little in common, all of one is removed and all of the other added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, TypeAlias

from rageval_spec.commands.compare.changes import Compared, Kind, MetricChange, QuestionChange, QuestionChanges
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation
from rageval_spec.diagnostics import dump_visible
from rageval_spec.drawing import sections
from rageval_spec.drawing.card_view import format_change, shorten
from rageval_spec.drawing.view import (
    Block,
    Diff,
    Entry,
    Heading,
    Inline,
    Items,
    Line,
    Span,
    join,
    name,
    tabulate,
    write_markdown,
    write_page,
    write_text,
)
from rageval_spec.libraries import compile_later
from rageval_spec.wording import (
    ADJUSTED,
    DIGITS,
    UNRESOLVABLE,
    NumberFormat,
    count_noun,
    find_format,
    format_interval,
    format_mean,
    format_percent,
    format_probability,
    list_names,
    mark_versions,
    tell_apart,
    tell_means_apart,
)

FORMAT_VERSION = 1
"""Of the JSON shape. Within a version, keys are only added."""


def render_comparison(found: Compared, form: str) -> bytes:
    if form == "json":
        return dump_visible(_to_json(found)).encode("utf-8", "backslashreplace")
    if form == "html":
        return write_page(f"{found.before.name} → {found.after.name}", draw_comparison(found))
    if form == "markdown":
        return write_markdown(draw_comparison(found)).encode("utf-8", "backslashreplace")
    return write_text(draw_comparison(found))


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
            {
                **asdict(one),
                "diff": [("equal" if edit.kind == "prose" else edit.kind, edit.text) for edit in _diff(one)],
            }
            for one in found.questions.shown
        ],
    }


SIGNS: dict[Kind, str] = {"broken": "✗", "fixed": "✓", "worse": "−", "better": "+", "changed": "~"}
KIND_STYLES: dict[Kind, str] = {
    "broken": "bold red",
    "fixed": "bold green",
    "worse": "red",
    "better": "green",
    "changed": "cyan",
}


class Pair(NamedTuple):
    """Two numbers of one metric as `MetricChange` has them; None stands for one that is not known."""

    metric: str
    before: Aggregate | None
    after: Aggregate | None
    difference: float | None
    comparison: Comparison | None
    is_worse: bool | None


NUMBERS = ("before", "after", "difference", f"{ADJUSTED} p", "questions", "better / worse")
"""The columns of `list_numbers`."""
SPARE = NUMBERS[-2:]


def draw_comparison(found: Compared) -> Iterator[Block]:
    """What differs, the numbers, and the questions that changed."""
    yield Heading([name(found.before.name), " → ", name(found.after.name)], 1)
    yield from draw_differences(found.differences)
    yield from _draw_numbers(found)
    yield Line(f"{describe_counts(found)}.")
    for one in found.questions.shown:
        yield draw_question(one, found.after.evaluation)
    if more := describe_rest(found.questions):
        yield Line(Span(f"{more}.", "dim"))


def draw_differences(differences: Sequence[str]) -> Iterator[Block]:
    if differences:
        yield Heading("What else differs")
        yield Items([("", shorten(line), "") for line in differences])


def _draw_numbers(found: Compared) -> Iterator[Block]:
    """The numbers that changed, and a line for those that did not."""
    changed = [one for one in found.metrics if not is_equal(one)]
    if changed:
        header = ["metric", "system", "dataset", *NUMBERS]
        rows = [_list_cells(one, found) for one in changed]
        yield tabulate(header, rows, range(3, 3 + len(NUMBERS)), range(3), spare=SPARE)
    notes = [describe_test(changed, found.after.evaluation), describe_equal(found)]
    yield from (Line(Span(note, "dim")) for note in notes if note)


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


def describe_test(changes: Sequence[MetricChange | Pair], evaluation: Evaluation) -> str:
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


def _list_cells(one: MetricChange, found: Compared) -> list[Inline]:
    """Names of which there is only one are left out."""
    evaluation = found.after.evaluation
    system = one.system if len({other.system for other in found.metrics}) > 1 else ""
    dataset = one.dataset if len(evaluation.datasets) > 1 else ""
    return [one.metric, system, dataset, *list_numbers(one, find_format(evaluation, one.metric))]


def list_numbers(one: MetricChange | Pair, shown: NumberFormat) -> list[Inline]:
    """The cells of `NUMBERS`: both numbers of the questions that the test compares, and the test."""
    test, before, after = one.comparison, *_show_means(one, shown)
    style = "" if one.is_worse is None or not _is_clear(test) else "red" if one.is_worse else "green"
    interval = "" if test is None or not one.difference else format_interval(test.interval, formatter=shown.change)
    difference = [Span(_describe_difference(one, shown), style), Span(interval, "dim", is_below=True)]
    if test is None:
        counts = {str(side.scored): None for side in (one.before, one.after) if side is not None}
        return [before, after, difference, "", " → ".join(counts), ""]
    p_value = format_probability(test.p_adjusted) if test.is_resolvable(sections.SIGNIFICANCE) else UNRESOLVABLE
    return [before, after, difference, p_value, str(test.queries), f"{test.wins} / {test.losses}"]


def _is_clear(test: Comparison | None) -> bool:
    return sections.significance_mark(test) in (sections.HIGHER, sections.LOWER)


def _describe_difference(one: MetricChange | Pair, shown: NumberFormat) -> str:
    """`−0.1000 ▼ worse`: the direction in words where the difference is significant; ≠ where it is not comparable."""
    if not one.difference:
        return "–" if one.difference is None else "="
    word = "" if not _is_clear(one.comparison) else "worse" if one.is_worse else "better"
    mark = sections.significance_mark(one.comparison)
    return " ".join(filter(None, (format_change(one.difference, shown), mark, word)))


def _show_means(one: MetricChange | Pair, shown: NumberFormat) -> tuple[Inline, Inline]:
    """Both numbers; a whole number, which gates see, is added where the test compares fewer questions.

    Without a test, and where people's labels correct the numbers, both are of all their own questions.
    """
    before, after, test = one.before, one.after, one.comparison
    whole = ""
    if after is None or test is None or test.baseline_mean is None or test.correction is not None or after.mean is None:
        told = tuple("–" if side is None else format_mean(side, shown=shown) for side in (before, after))
        told = told if before is None or after is None else tell_means_apart(before, after, shown)
    else:
        is_whole = test.queries == after.scored
        number = after.mean if is_whole else test.baseline_mean + test.difference
        same = (shown.number(number, DIGITS),) * 2
        first, last = tell_apart(test.baseline_mean, number, shown.number) if test.difference else same
        told = first + ("" if before is None else mark_versions(before)), last + (mark_versions(after) * is_whole)
        whole = "" if is_whole else f"({format_mean(after, shown=shown)} of all {after.scored})"
    is_same = test is None or (before is not None and after is not None and before.system == after.system)
    named = "" if is_same or test is None else f"({test.baseline})"
    return [told[0], Span(named, "dim", is_below=True)], [told[1], Span(whole, "dim", is_below=True)]


def draw_question(one: QuestionChange, evaluation: Evaluation) -> Entry:
    """What happened to a question, with the changes of its answer."""
    value = shorten(describe_value(one, evaluation))
    head = [Span(f"{SIGNS[one.kind]} {one.kind}", KIND_STYLES[one.kind]), name(shorten(one.query_id), "bold")]
    places = ((one.system, evaluation.systems), (one.dataset, evaluation.datasets))
    head += [name(shorten(text), "dim") for text, names in places if len(names) > 1]
    head += [Span(value), Span(f"({' and '.join(one.edited)} edited)" if one.edited else "", "yellow")]
    lines: list[Line | Diff] = [Line(shorten(one.question), is_cut=True)] if one.question else []
    lines += [Line(Span(shorten(one.error), "red"), is_cut=True)] if one.error is not None else []
    if one.answer_before != one.answer:
        edits = _diff(one)
        lines.append(Diff(edits, shorten_edits(edits)))
    return Entry(join(head, " · "), lines)


def _diff(one: QuestionChange) -> list[Span]:
    return diff_words(one.answer_before or "", one.answer or "")


def describe_value(one: QuestionChange, evaluation: Evaluation) -> str:
    """`faithfulness 0.9000 → 0.2000`, or what happened to the answer."""
    if one.metric is not None and one.before is not None and one.after is not None:
        before, after = tell_apart(one.before, one.after, find_format(evaluation, one.metric).number)
        return f"{one.metric} {before} → {after}"
    if one.answer is None and one.answer_before is not None:
        return "no answer any more"
    return "has an answer now" if one.answer is not None and one.answer_before is None else ""


_ONE_BY_ONE = r"\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = compile_later(rf"\s*(?:[{_ONE_BY_ONE}]|[^\W{_ONE_BY_ONE}]+|[^\w\s]|$)")
"""A word, or one character of a script without spaces, with the white space before it."""
_MOST_WORDS = 4_000
"""Texts that differ in more words than this are not compared word by word."""
_KEPT = 60
"""Characters of unchanged text that are kept before and after a change."""
_LONGEST = 600
"""Characters of a removed or added passage that are shown."""
Edit: TypeAlias = Literal["prose", "removed", "added"]
"""Whether both texts have a passage, or only one of them."""
_EDITKIND_STYLES: dict[Edit, str] = {"prose": "dim", "removed": "red", "added": "green"}


def _edit(kind: Edit, text: str) -> Span:
    return Span(text, _EDITKIND_STYLES[kind], kind)


def diff_words(before: str, after: str) -> list[Span]:
    """The passages of both texts in order: `before` without the added ones, `after` without the removed ones."""
    from difflib import SequenceMatcher

    if before == after:
        return [_edit("prose", before)] if before else []
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _count_shared(old, new)
    end = _count_shared(old[start:][::-1], new[start:][::-1])
    middle = old[start : len(old) - end], new[start : len(new) - end]
    edits = [_edit("prose", "".join(old[:start]))]
    is_long = max(map(len, middle)) > _MOST_WORDS
    whole = [("replace", 0, len(middle[0]), 0, len(middle[1]))]
    for kind, low, high, first, last in whole if is_long else SequenceMatcher(None, *middle).get_opcodes():
        before, after = "".join(middle[0][low:high]), "".join(middle[1][first:last])
        edits += [_edit("prose", before)] if kind == "equal" else [_edit("removed", before), _edit("added", after)]
    edits.append(_edit("prose", "".join(old[len(old) - end :])))
    return list(_join([edit for edit in edits if edit.text]))


def _count_shared(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))


def _join(edits: Sequence[Span]) -> Iterator[Span]:
    """Join neighbouring changes, and those that only a comma or a space keeps apart: `a, b` -> `c, d` is one change."""
    removed = added = ""
    for at, edit in enumerate(edits):
        is_kept = edit.kind == "prose"
        between = bool(removed or added) and at + 1 < len(edits)
        if is_kept and not (between and not re.search(r"\w", edit.text)):
            yield from (one for one in (_edit("removed", removed), _edit("added", added), edit) if one.text)
            removed = added = ""
        else:
            removed += edit.text if edit.kind != "added" else ""
            added += edit.text if edit.kind != "removed" else ""
    yield from (one for one in (_edit("removed", removed), _edit("added", added)) if one.text)


def shorten_edits(edits: Sequence[Span]) -> list[Span]:
    """The edits with `…` in place of what is far from a change, and of the rest of a very long change."""
    last, found = len(edits) - 1, []
    for at, edit in enumerate(edits):
        text = edit.text
        head = 0 if at == 0 and last else _KEPT
        tail = 0 if at == last and last else _KEPT
        if edit.kind != "prose":
            text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        elif len(text) > head + tail + 10:
            text = f"{text[:head].rstrip()} … {text[len(text) - tail :].lstrip() if tail else ''}"
        found.append(edit._replace(text=text))
    return found
