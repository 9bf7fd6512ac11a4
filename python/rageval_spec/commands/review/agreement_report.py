"""`review agreement`: how well the people who labelled the same answers agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.calibration.verdict_sentences import list_told, show_measure, show_number
from rageval_spec.diagnostics import dump_visible
from rageval_spec.drawing.view import Block, Heading, Line, Span, tabulate, write_text
from rageval_spec.errors import UsageError
from rageval_spec.reading.label_files import read_columns, read_labels
from rageval_spec.review.agreement import DOMINANT, ENOUGH_AGREEMENT, MetricAgreement, Value, compare_annotators
from rageval_spec.wording import count_noun, format_number, format_percent, list_choices

if TYPE_CHECKING:
    from rageval_spec.data.labels import Label


MOST_SHOWN = 10
"""The most items that people disagree on that the text names; JSON has all."""
_NAMES: Mapping[str, str] = {
    "percent": "equal labels",
    "kappa": "Cohen's kappa",
    "kappa-linear": "kappa, linear weights",
    "kappa-quadratic": "kappa, quadratic weights",
    "fleiss": "Fleiss' kappa",
    "ac1": "Gwet's AC1",
    "alpha-nominal": "Krippendorff's alpha",
    "alpha-ordinal": "Krippendorff's alpha (ordinal)",
    "alpha-interval": "Krippendorff's alpha (interval)",
}
MOST_IN_PAIRS = 8
"""The most annotators whose pairs the text shows."""
_NOBODY = "(unnamed)"
_LONGEST_VALUE = 24


def describe_agreement(paths: Sequence[Path], columns: Sequence[str], metrics: Sequence[str], form: str) -> bytes:
    """The agreement of the annotators of label files on each (of these) metrics, as `text` or `json`.

    Columns are named as `part=name`. Raises DataError: a file cannot be read. Raises UsageError: a column is not
    `part=name`, or no label has one of the metrics.
    """
    labels = read_labels(paths, read_columns(columns))
    known = [*dict.fromkeys(label.metric for label in labels)]
    for metric in metrics:
        if metric not in known:
            raise UsageError(f"no label has the metric '{metric}'; the labels have {list_choices(known) or 'none'}")
    found = compare_annotators([label for label in labels if not metrics or label.metric in metrics])
    if form == "json":
        return dump_visible([_to_json(one) for one in found]).encode()
    return write_text(block for one in found for block in _describe(one))


def _describe(found: MetricAgreement) -> Iterator[Block]:
    who = count_noun(len(found.annotators), "annotator")
    title = f"Agreement on {found.metric}" if found.metric else "Agreement"
    yield Heading(f"{title}: {count_noun(found.items, 'item')}, {found.shared:,} with two or more labels, {who}")
    coefficients = [(_NAMES[one.coefficient], show_measure(one)) for one in found.coefficients]
    yield tabulate(("coefficient", "value, 95% interval"), coefficients, (1,), ())
    yield list_told(_conclude(found))
    total = sum(count for _, count in found.scale)
    if len(found.scale) <= MOST_SHOWN:
        rows = [(_show(value), f"{count:,}", format_percent(count / total)) for value, count in found.scale]
        yield tabulate(("label", "count", "share"), rows, (1, 2), ())
    if len(found.annotators) > 2:
        yield from _describe_people(found)
    if found.confusion and len(found.scale) <= MOST_SHOWN:
        yield from _describe_confusion(found)
    if apart := found.disagreements:
        items = count_noun(len(apart), "item")
        yield Heading(f"People disagree on {items}; those that lie furthest apart come first")
        yield tabulate(("item", "labels"), map(_describe_item, apart[:MOST_SHOWN]), (), ())
        yield from _tell_rest(apart)


def _tell_rest(listed: Sequence[object]) -> Iterator[Block]:
    if (rest := len(listed) - MOST_SHOWN) > 0:
        yield Line(Span(f"... and {rest:,} more; --format json lists all.", "dim"))


def _conclude(found: MetricAgreement) -> Iterator[str]:
    """Whether the labels are reliable, and what to do if they are not."""
    name, value = _NAMES[found.deciding.coefficient], found.deciding.value
    if value is None:
        yield f"! Agreement cannot be computed: {found.deciding.reason}."
        if not found.shared and found.questions:
            same = "question" if found.questions == 1 else f"{found.questions:,} questions"
            yield (
                f"Several people labelled the same {same}, but their labels differ in the dataset, the system, the "
                "answer's digest or the claim, so they are not about the same answers."
            )
        elif not found.shared:
            yield "Ask a second person to label at least 50 of the same items."
        return
    if found.deciding.coefficient == "ac1":
        top, count = max(found.scale, key=lambda pair: pair[1])
        share = format_percent(count / sum(number for _, number in found.scale))
        yield (
            f"{share} of the labels are {_show(top)}. Above {format_percent(DOMINANT)} kappa and alpha collapse, "
            "so AC1 decides."
        )
    number = f"{name} is {format_number(value)}"
    if found.is_enough:
        yield f"✓ {number}, at least {ENOUGH_AGREEMENT}: people agree well enough to judge a judge by."
    else:
        yield f"✗ {number}, below {ENOUGH_AGREEMENT}: do not judge a judge by these labels yet."
        yield (
            "Discuss the items below, write into the guidelines what decided each, and label them again. Below "
            f"{ENOUGH_AGREEMENT} a judge that is perfect would also seem to err."
        )
    if found.is_few:
        yield f"Only {found.shared} items have two labels, so the intervals are wide; 50 or more narrow them."


def _describe_people(found: MetricAgreement) -> Iterator[Block]:
    """How often the others agree with each annotator, those first with whom they agree least; and each pair."""
    ordered = sorted(found.annotators, key=lambda one: 1.0 if one.percent.value is None else one.percent.value)
    rows = [(one.annotator or _NOBODY, f"{one.labels:,}", show_measure(one.percent)) for one in ordered[:MOST_SHOWN]]
    yield tabulate(("annotator", "labels", "others agree"), rows, (1, 2))
    yield from _tell_rest(ordered)
    if len(found.annotators) > MOST_IN_PAIRS:
        return
    pairs = [
        (
            f"{pair.first or _NOBODY} and {pair.second or _NOBODY}",
            f"{pair.percent.items:,}",
            show_number(pair.percent.value),
            show_measure(pair.corrected),
        )
        for pair in sorted(found.pairs, key=lambda pair: pair.percent.value or 0.0)
    ]
    name = next((_NAMES[pair.corrected.coefficient] for pair in found.pairs), "")
    yield tabulate(("annotators", "items", "equal labels", name), pairs, (1, 2, 3), ())


def _describe_confusion(found: MetricAgreement) -> Iterator[Block]:
    values = [_show(value) for value, _ in found.scale]
    names = [one.annotator or _NOBODY for one in found.annotators]
    first, second = names if len(names) == 2 else ("one annotator", "another")
    yield Line(Span(f"Rows: {first}. Columns: {second}.", "dim"))
    rows = [(value, *(f"{count:,}" for count in counts)) for value, counts in zip(values, found.confusion, strict=True)]
    yield tabulate(("", *values), rows, range(1, len(values) + 1), ())


def _describe_item(labels: Sequence[Label]) -> tuple[str, str]:
    first = labels[0]
    claim = None if first.claim is None else f"claim {first.claim}"
    name = " ".join(filter(None, (first.dataset, first.query_id, first.system, claim)))
    return name, ", ".join(f"{label.annotator or _NOBODY} {_show(label.value)}" for label in labels)


def _show(value: Value) -> str:
    text = value if isinstance(value, str) else f"{value:g}"
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _to_json(found: MetricAgreement) -> dict[str, Any]:
    return {
        "metric": found.metric,
        "items": found.items,
        "shared": found.shared,
        "annotators": [asdict(one) for one in found.annotators],
        "scale": [{"value": value, "count": count} for value, count in found.scale],
        "coefficients": [asdict(one) for one in found.coefficients],
        "deciding": found.deciding.coefficient,
        "enough": found.is_enough,
        "pairs": [
            {
                "annotators": [pair.first, pair.second],
                "percent": asdict(pair.percent),
                "corrected": asdict(pair.corrected),
            }
            for pair in found.pairs
        ],
        "confusion": [list(row) for row in found.confusion],
        "disagreements": [
            {
                **{name: getattr(one[0], name) for name in ("dataset", "query_id", "system", "claim")},
                "labels": [
                    {"annotator": label.annotator, "value": label.value, "comment": label.comment, "place": label.place}
                    for label in one
                ],
            }
            for one in found.disagreements
        ],
    }
