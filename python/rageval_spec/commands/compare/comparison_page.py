"""Writes a comparison as an HTML page: the numbers, and the answers before and after side by side.

The page makes no request and runs no script, and shows all texts as texts. Words that only the earlier answer has are
struck through, and words that only the later one has are underlined; colours come on top.
"""

from __future__ import annotations

from typing import Any

from rageval_spec.commands.compare import comparison_text
from rageval_spec.commands.compare.metric_changes import MetricChange
from rageval_spec.commands.compare.question_changes import Compared, Kind, QuestionChange
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.html_shell import fill_page, join_styles, read_asset
from rageval_spec.wording import ADJUSTED, find_format, tell_means_apart

_HEADER = ("metric", "system", "dataset", "before", "after", "difference", "interval", f"{ADJUSTED} p")
_TEXTS = 3
"""The columns of names, which come before those of numbers."""
_KINDS: dict[Kind, str] = {"broken": "bad", "worse": "bad", "fixed": "good", "better": "good", "changed": ""}


def write_page(found: Compared) -> bytes:
    """The page in UTF-8."""
    changed = [one for one in found.metrics if not comparison_text.is_equal(one)]
    test = comparison_text.describe_test(changed, found.after.evaluation)
    return fill_page(
        read_asset("compare.html.jinja"),
        join_styles(("page.css", "overview.css", "texts.css", "questions.css", "compare.css")),
        before=make_visible(found.before.name),
        after=make_visible(found.after.name),
        differences=[make_visible(line) for line in found.differences],
        header=_HEADER,
        texts=_TEXTS,
        rows=[_describe_metric(one, found) for one in changed],
        notes=[*filter(None, (test, comparison_text.describe_equal(found)))],
        counts=comparison_text.describe_counts(found),
        questions=[_describe_question(one, found) for one in found.questions.shown],
        rest=comparison_text.describe_rest(found.questions),
    )


def _describe_metric(one: MetricChange, found: Compared) -> dict[str, Any]:
    names = map(make_visible, (one.metric, one.system, one.dataset))
    shown = find_format(found.after.evaluation, one.metric)
    difference = comparison_text.describe_difference(one, shown), comparison_text.show_interval(one, shown)
    numbers = (*tell_means_apart(one.before, one.after, shown), *difference)
    is_clear = one.is_worse is not None and comparison_text.mark_change(one)
    kind = ("bad" if one.is_worse else "good") if is_clear else ""
    return {"cells": [*names, *numbers, comparison_text.describe_p_value(one)], "kind": kind}


def _describe_question(one: QuestionChange, found: Compared) -> dict[str, Any]:
    """What the template shows of one question; `before` and `after` are the passages of the two answers."""
    edits = comparison_text.diff_words(one.answer_before or "", one.answer or "")
    return {
        "kind": one.kind,
        "style": _KINDS[one.kind],
        "sign": comparison_text.SIGNS[one.kind],
        "query_id": make_visible(one.query_id),
        "places": [make_visible(name) for name in comparison_text.name_places(one, found)],
        "value": make_visible(comparison_text.describe_value(one, found.after.evaluation)),
        "edited": " and ".join(one.edited),
        "question": make_visible(one.question, keep="\n"),
        "error": make_visible(one.error or "", keep="\n"),
        "has_answers": any(text is not None for text in (one.answer_before, one.answer, one.error)),
        "has_before": one.answer_before is not None,
        "has_after": one.answer is not None,
        **{side: _keep(edits, lost) for side, lost in (("before", "added"), ("after", "removed"))},
    }


def _keep(edits: list[comparison_text.Edit], lost: str) -> list[dict[str, str]]:
    kept = (edit for edit in edits if edit.kind != lost)
    return [{"kind": edit.kind, "text": make_visible(edit.text.replace("\r\n", "\n"), keep="\n\t")} for edit in kept]
