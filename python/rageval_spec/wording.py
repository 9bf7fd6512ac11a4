"""How numbers, names and outcomes are put in words, the same in every report.

Numbers are shown with four digits after the point unless that would hide something: a small number has two that are no
leading zeros, a tiny one is written with an exponent instead of as zero, and two numbers that differ are never shown as
the same text side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, GateOutcome, Interval, Note, Verdict
from rageval_spec.diagnostics import make_visible as make_visible

DIGITS = 4
SIGNIFICANCE = 0.05
"""Reports mark a comparison whose adjusted p-value is below this."""
MARKS: dict[Verdict, str] = {"pass": "✓", "warn": "!", "fail": "✗"}
HIGHER, LOWER = "▲", "▼"
_MOST_DIGITS = 17


def format_number(value: float, digits: int = DIGITS) -> str:
    """`value` with `digits` digits after the point; with an exponent where that would read as zero or be too long.

    Numbers below 0.01 have at least two significant digits: 0.000070, which would be off by half as 0.0001.
    """
    if value == 0:
        return f"{0:.{digits}f}"
    if abs(value) < 0.5 * 10.0**-digits or abs(value) >= 1e9:
        return f"{value:.{max(digits - 1, 0)}e}"
    shown = max(digits, 1 - math.floor(math.log10(abs(value)))) if abs(value) < 0.01 else digits
    return f"{value:.{shown}f}"


def format_percent(share: float, digits: int = 1) -> str:
    """A share between 0 and 1 as `97.5%`; a whole percentage has no digits after the point."""
    text = f"{100 * share:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def format_p_value(p_value: float) -> str:
    """`p = 0.0123`, or `p < 0.0001`."""
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}"


def format_mean(aggregate: Aggregate, digits: int = DIGITS) -> str:
    """An aggregate's number; a sum of whole numbers has no digits after the point. `–` where nothing was scored."""
    if aggregate.mean is None:
        return "–"
    if aggregate.statistic == "sum" and aggregate.mean.is_integer():
        return f"{aggregate.mean:.0f}"
    return format_number(aggregate.mean, digits)


def format_interval(interval: Interval | None, digits: int = DIGITS) -> str:
    """`[0.4702, 0.5512]`, or empty for None."""
    if interval is None:
        return ""
    return f"[{format_number(interval.low, digits)}, {format_number(interval.high, digits)}]"


def tell_apart(
    first: float, second: float, formatter: Callable[[float, int], str] = format_number, digits: int = DIGITS
) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to see that they differ (equal numbers give equal texts)."""
    for more in range(digits, _MOST_DIGITS + 1):
        texts = formatter(first, more), formatter(second, more)
        if first == second or texts[0] != texts[1]:
            return texts
    return repr(first), repr(second)


def protect_cell(text: str) -> str:
    """`text` for a cell of a table that people open in a spreadsheet: visible, and nothing that it would compute."""
    return ("'" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else "") + make_visible(text)


def count_noun(count: int, noun: str, plural: str | None = None) -> str:
    """`1 query`, `3 queries`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def list_choices(words: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`; nothing of no words."""
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def describe_verdict(evaluation: Evaluation) -> str:
    """`2 of 5 gates failed, 1 warned`; says so where there is no gate, or where the evaluation itself failed."""
    gates = _describe_gates(evaluation)
    if evaluation.failures:
        return f"{count_noun(len(evaluation.failures), 'evaluation')} of a system failed; {gates}"
    return f"nothing could be scored; {gates}" if evaluation.scored_nothing else gates


def _describe_gates(evaluation: Evaluation) -> str:
    total = len(evaluation.gates)
    if not total:
        return "no gates to check"
    failed, warned = (sum(gate.outcome == outcome for gate in evaluation.gates) for outcome in ("fail", "warn"))
    if failed:
        return f"{failed} of {count_noun(total, 'gate')} failed" + (f", {warned} warned" if warned else "")
    if warned:
        return f"{warned} of {count_noun(total, 'gate')} warned, none failed"
    return f"{count_noun(total, 'gate')} passed"


def worst_first(gates: Iterable[GateOutcome]) -> list[GateOutcome]:
    """Failed gates, then warnings, then the rest; otherwise in the order of the spec."""
    rank: dict[Verdict, int] = {"fail": 0, "warn": 1, "pass": 2}
    return sorted(gates, key=lambda gate: rank[gate.outcome])


def worst_outcome(gates: Sequence[GateOutcome]) -> Verdict | None:
    """The worst outcome, or None where there is no gate."""
    return worst_first(gates)[0].outcome if gates else None


def significance_mark(comparison: Comparison | None) -> str:
    """▲ or ▼ where the system's values are significantly higher or lower than the baseline's, else empty."""
    if comparison is None or comparison.p_adjusted >= SIGNIFICANCE:
        return ""
    return HIGHER if comparison.difference > 0 else LOWER


def describe_note(note: Note) -> str:
    """The message, after the dataset and system that it speaks of."""
    place = ", ".join(part for part in (note.dataset, note.system) if part)
    return f"{place}: {note.message}" if place else note.message
