"""Formats numbers, counts, lists and unsafe characters in the same way in every message and report.

Numbers have four digits after the point, unless that would hide something: a small number has at least two significant
digits, a tiny one is written with an exponent instead of as zero, and two different numbers that are compared never
get the same text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rageval_spec.diagnostics import make_visible

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation
    from rageval_spec.data.outcomes import AnswerSource, Interval, TakenOver

DIGITS = 3
ADJUSTED = "Holm-adjusted"
"""What comes before a p-value that was corrected for the other comparisons of its family."""
NO_MEAN = "–"
"""What stands in place of a mean where nothing was scored."""
_MOST_DIGITS = 17
ALL_DIGITS = 12
"""Enough digits for a number as it is written in a spec."""


def format_number(value: float, digits: int = DIGITS) -> str:
    """`value` with `digits` digits after the point, or with an exponent if it would read as zero or be too long.

    Numbers below 0.01 have at least two significant digits: 0.000070, because 0.0001 would be far off.
    """
    if value == 0:
        return f"{0:.{digits}f}"
    if abs(value) < 0.5 * 10.0**-digits or abs(value) >= 1e9:
        return f"{value:.{max(digits - 1, 0)}e}"
    shown = max(digits, 1 - math.floor(math.log10(abs(value)))) if abs(value) < 0.01 else digits
    return f"{value:.{shown}f}"


def format_percent(share: float, digits: int = 1) -> str:
    """A share as a percentage: `97.5%`. Zeros at the end are left out: `20%`.

    Halves are rounded up, whatever binary makes of them: 1 of 16 is `6.3%`. Only 0 is `0%` and only 1 is `100%`: a
    share that is nearly one of them gets the digits that show it, as in `0.04%` and `99.97%`.
    """
    exact = Decimal(f"{share:.12g}").scaleb(2)
    for shown in range(digits, _MOST_DIGITS):
        rounded = exact.quantize(Decimal(1).scaleb(-shown), ROUND_HALF_UP)
        if exact == rounded or rounded not in (0, 100):
            break
    text = f"{rounded:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


Formatter: TypeAlias = Callable[[float, int], str]
POINTS = " pp"
"""What follows a number of percentage points."""


def format_share(share: float, digits: int = DIGITS) -> str:
    """A share as a percentage, as exact as a number with `digits` digits after the point: `72.5%`."""
    return format_percent(share, max(digits - 2, 0))


def format_points(difference: float, digits: int = DIGITS) -> str:
    """A difference of two shares in percentage points: `2.5 pp`, `-0.04 pp`."""
    size = format_share(abs(difference), digits).removesuffix("%")
    return f"{'-' if difference < 0 else ''}{size}{POINTS}"


class NumberFormat(NamedTuple):
    number: Formatter = format_number
    change: Formatter = format_number


PLAIN = NumberFormat()
PERCENT = NumberFormat(format_share, format_points)


def find_format(evaluation: Evaluation, metric: str) -> NumberFormat:
    return PERCENT if metric in evaluation.show_as else PLAIN


def format_p_value(p_value: float) -> str:
    """`p = 0.0123`, or `p < 0.0001`."""
    number = format_probability(p_value)
    return f"p {number}" if number.startswith("<") else f"p = {number}"


def format_probability(p_value: float) -> str:
    """A p-value for a column of p-values: `0.0123`, or `< 0.0001`."""
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


UNRESOLVABLE = "unresolvable"
"""Said of a comparison that could not be significant, whatever its values are."""


def describe_limit(comparison: Comparison, alpha: float) -> str:
    """What a comparison lacks: `4 pairs cannot show a difference (p < 0.05); that takes at least 6`."""
    limit = comparison.limit
    if limit is None:
        return ""
    noun = "pair" if comparison.design is None or comparison.design.clusters is None else "cluster"
    among = f" among {limit.family} comparisons" if limit.family > 1 else ""
    needed = limit.count_pairs(alpha)
    shown = f"cannot show a difference (p < {alpha:g}{among}); that takes at least"
    if limit.pairs >= needed:
        return f"the spec's permutations {shown} {limit.count_permutations(alpha):,}, under 'statistics'"
    return f"{count_noun(limit.pairs, noun)} {shown} {needed}"


def format_mean(aggregate: Aggregate, digits: int = DIGITS, shown: NumberFormat = PLAIN) -> str:
    """An aggregate's number; a sum of whole numbers has no digits after the point. `–` if nothing was scored.

    A number that mixes answers of several versions of an application says so: `0.900 (2 versions)`.
    """
    if aggregate.mean is None:
        return NO_MEAN
    is_whole = aggregate.statistic == "sum" and aggregate.mean.is_integer()
    number = f"{aggregate.mean:.0f}" if is_whole else shown.number(aggregate.mean, digits)
    return number + mark_versions(aggregate)


def mark_versions(aggregate: Aggregate) -> str:
    """` (2 versions)` for a number that mixes answers of two versions of an application; "" for all others."""
    return f" ({len(aggregate.versions)} versions)" if aggregate.versions else ""


def tell_means_apart(first: Aggregate, second: Aggregate, shown: NumberFormat = PLAIN) -> tuple[str, str]:
    """Two means of one metric, with enough digits to tell them apart, as `format_mean` would mark them."""
    if first.mean is None or second.mean is None or first.statistic == "sum":
        return format_mean(first, shown=shown), format_mean(second, shown=shown)
    told = tell_apart(first.mean, second.mean, shown.number)
    return told[0] + mark_versions(first), told[1] + mark_versions(second)


def format_interval(interval: Interval | None, digits: int = DIGITS, formatter: Formatter = format_number) -> str:
    """`[0.4702, 0.5512]`, `[68%, 76.5%]` or `[-1.2, 3.4 pp]`; "" for None."""
    if interval is None:
        return ""
    return f"[{formatter(interval.low, digits).removesuffix(POINTS)}, {formatter(interval.high, digits)}]"


def format_signed(number: float, digits: int = DIGITS, formatter: Formatter = format_number) -> str:
    """A difference: `+0.031`, `-0.012`, `0.000`, `+2.5 pp`."""
    return ("+" if number > 0 else "") + formatter(number, digits)


def tell_apart(
    first: float, second: float, formatter: Formatter = format_number, digits: int = DIGITS
) -> tuple[str, str]:
    """Both numbers, with enough digits to show that they differ. Equal numbers give equal texts."""
    for more in range(digits, _MOST_DIGITS + 1):
        texts = formatter(first, more), formatter(second, more)
        if first == second or texts[0] != texts[1]:
            return texts
    return repr(first), repr(second)


_FORMULA_STARTS = (
    *"=+-@\t\r", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}", "\N{FULLWIDTH HYPHEN-MINUS}",
    "\N{FULLWIDTH COMMERCIAL AT}",
)  # fmt: skip
"""How a formula begins; spreadsheets take the wide forms of East Asian keyboards too."""


def protect_cell(text: str) -> str:
    """`text` for a table cell that a spreadsheet can open: made visible, and escaped so that it is not a formula."""
    return ("'" if text.startswith(_FORMULA_STARTS) else "") + make_visible(text)


def neutralize(text: str) -> str:
    """`text` with a leading `'` if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def format_size(size: int) -> str:
    """A size in bytes with one decimal and a unit: `12.4 MB`."""
    units = {"GB": 10**9, "MB": 10**6, "kB": 10**3}
    unit = next((unit for unit, least in units.items() if size >= least), None)
    return count_noun(size, "byte") if unit is None else f"{size / units[unit]:.1f} {unit}"


def count_noun(count: int, noun: str, plural: str | None = None) -> str:
    """`1 query`, `3 queries`, `5,183 queries`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


_PLURALS = {"is": "are", "was": "were", "has": "have", "does": "do", "it does": "they do", "it": "them"}


def agree(count: int, words: str) -> str:
    """A verb or a pronoun as it goes with a number: `is` with 1, `are` with 2."""
    return words if count == 1 else _PLURALS.get(words) or words.removesuffix("s")


def list_some(names: Sequence[str], most: int) -> str:
    """The first names, in quotes: `'source', 'topic', ...`."""
    return ", ".join([*map(repr, names[:most]), *(["..."] if len(names) > most else [])])


def list_choices(words: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`; "" without words."""
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def list_names(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; "" without words."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def list_counts(counts: Mapping[Any, int]) -> str:
    """`3 judged, 1 sampled out`: what there is any of, by words in which `_` stands for a space; "" for nothing."""
    return ", ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in counts.items() if count)


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
DURATION = r"\d+(?:\.\d+)?\s*[smhdw]"
"""A duration as it is written: `30d`, `12h`, `90m`, `60s`, `2w`."""


def read_duration(text: str) -> float | None:
    """The seconds in `30d`, `12h`, `90m`, `60s` or `2w`; None for any other text."""
    written = text.strip()
    return float(written[:-1]) * _SECONDS[written[-1]] if re.fullmatch(DURATION, written) else None


_SOURCES: dict[AnswerSource, str] = {
    "unfinished": "an unfinished evaluation",
    "last": "the last evaluation (--retry-failed)",
    "always": "earlier evaluations (reuse: always)",
    "recorded": "a recording",
}


def describe_taken_over(one: TakenOver) -> str:
    """`9 of 10 answers are taken over from an unfinished evaluation, asked 2026-03-01 10:42 UTC at commit a1b2c3d4e5`.

    Says which versions of the code the answers mix, if they mix any.
    """
    are = "is" if one.answers == 1 else "are"
    told = f"{one.answers:,} of {count_noun(one.questions, 'answer')} {are} "
    told += f"recorded in {one.place}" if one.place else f"taken over from {describe_sources(one)}"
    when = describe_asked(one)
    told += f", {when}" if when else ""
    if one.versions:
        return f"{told}; {describe_versions(one.versions)}"
    named = "of version" if one.place else "at commit"
    return told + (f" {named} {next(iter(one.commits))}" if one.commits else "")


def describe_sources(one: TakenOver) -> str:
    """Where answers were taken over from: `earlier evaluations (reuse: always, version: v7)`."""
    version = f", version: {one.version})"
    return list_names([
        _SOURCES[source].replace(")", version) if source == "always" and one.version else _SOURCES[source]
        for source in one.sources
    ])  # fmt: skip


def describe_asked(one: TakenOver) -> str:
    """`asked from 2026-03-01 10:42 to 2026-03-02 08:00 UTC`; "" for a recording without times."""
    if one.first is None or one.last is None:
        return "" if one.place else "asked at an unknown time"
    first, last = (f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M}" for time in (one.first, one.last))
    told = f"asked {first} UTC" if first == last else f"asked from {first} to {last} UTC"
    return told + (f" ({one.undated:,} at an unknown time)" if one.undated else "")


def describe_versions(versions: Sequence[str]) -> str:
    """`the answers are of 2 versions of the code: a1b2c3d4e5 and d4e5f6a7b8`."""
    return f"the answers are of {len(versions)} versions of the code: {list_names(versions)}"


def hide_password(text: str) -> str:
    """The text with `***` in place of the passwords in URLs."""
    return re.sub(r"(?<=://)([^/@\s]*:)[^@\s]*(?=@)", r"\1***", text)
