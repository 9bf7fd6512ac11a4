"""Checks the types, difficulties and languages of questions, and whether a test set is large enough.

The mix is checked against what is wanted, and the size against what its gates, or anybody, should see.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rageval_spec.audit.audit_findings import (
    AuditFinding,
    Check,
    CheckContent,
    Found,
    NotCheckedError,
    Shown,
    Table,
    check,
    make_finding,
    make_table,
)
from rageval_spec.audit.question_set import AuditedQuestions, split_compared_words
from rageval_spec.judging.language import FREQUENT_WORDS, NAMES, find_language
from rageval_spec.reading.column_names import spell_alike
from rageval_spec.wording import count_noun, format_number, format_percent, list_choices

TYPES: Mapping[str, float] = {"factual": 40, "analytical": 35, "comparative": 15, "procedural": 10}
DIFFICULTIES: Mapping[str, float] = {"easy": 30, "medium": 50, "hard": 20}
TOLERANCE = 0.1
"""How far a share may be from the wanted one."""
_RARE = 0.1
"""A language with a smaller share of the questions may be there by mistake."""
_FEW_TOLD = 20
_UNTOLD = "(too few common words to tell)"


class WantedMix(NamedTuple):
    """The wanted shares, in percent, of the values of a column, and the option that gives other ones.

    `columns` are the names that the column can have; `is_default` says that the user named no shares.
    """

    name: str
    columns: Sequence[str]
    shares: Mapping[str, float]
    option: str
    is_default: bool = True


TYPE = WantedMix("type", ("type", "question_type", "query_type", "category"), TYPES, "--types")
DIFFICULTY = WantedMix("difficulty", ("difficulty", "level"), DIFFICULTIES, "--difficulty")


def check_mix(questions: AuditedQuestions, wanted: WantedMix) -> CheckContent:
    """The check `types` or `difficulties`: the shares of a column's values next to the wanted ones."""
    name = {"type": "types", "difficulty": "difficulties"}[wanted.name]
    return Check(name, f"Mix of {name}", _find_mix)(questions, wanted)


def _find_mix(questions: AuditedQuestions, wanted: WantedMix) -> Found:
    values = read_values(questions, wanted.columns)
    if not values:
        known = list_choices([f"'{column}'" for column in wanted.columns])
        raise NotCheckedError(f"no question has a column {known}; add one to know what the set covers")
    counts, total = Counter(values.values()), len(values)
    if missing := len(questions.questions) - total:
        yield f"{count_noun(missing, 'question')} without a {wanted.name}; shares are of the others."
    are_other = wanted.is_default and sum(counts[value] for value in wanted.shares) / total < 0.5
    yield _tabulate_shares(wanted.name, counts, {} if are_other else wanted.shares, total)
    if are_other:
        names = ", ".join(value for value, _ in counts.most_common(4))
        advice = f"name the wanted shares: {wanted.option} '{_suggest(counts)}'"
        raise NotCheckedError(f"the values are {names}, not {list_choices([*wanted.shares])}; {advice}")
    apart = [
        value
        for value in [*wanted.shares, *sorted(counts.keys() - wanted.shares.keys())]
        if abs(counts[value] / total - wanted.shares.get(value, 0) / 100) > TOLERANCE
    ]
    if apart:
        yield _describe(wanted, apart, counts, total)


def read_values(questions: AuditedQuestions, columns: Sequence[str]) -> dict[str, str]:
    """The value of the first of these columns that any question has, by query id and in lower case."""
    found: dict[str, dict[str, str]] = {}
    for question in questions.questions:
        row = spell_alike(question.read_columns())
        for column in columns:
            value = row.get(column)
            if isinstance(value, str | int | float) and not isinstance(value, bool) and (text := str(value).strip()):
                found.setdefault(column, {})[question.query_id] = text.lower()
    return next((found[column] for column in columns if column in found), {})


def _suggest(counts: Counter[str]) -> str:
    """The shares as they are, as the option would give them."""
    common = counts.most_common(6)
    total = sum(count for _, count in common)
    shares = [(value, round(100 * count / total)) for value, count in common]
    return ",".join(f"{value}:{share}" for value, share in shares)


def _describe(wanted: WantedMix, apart: Sequence[str], counts: Counter[str], total: int) -> AuditFinding:
    named = [
        f"{value} {format_percent(counts[value] / total)} instead of {wanted.shares.get(value, 0):g}%"
        for value in apart
    ]
    lacking = {value: round(wanted.shares.get(value, 0) * total / 100) - counts[value] for value in apart}
    changes = [
        f"{count_noun(count, 'more question')} of {wanted.name} {value}"
        for value, count in lacking.items()
        if count > 0
    ]
    other = f"name other shares with {wanted.option}"
    advice = f"at this size it takes {', '.join(changes)}; or {other}" if changes else other
    shares = {value: counts[value] / total for value in sorted(counts)}
    message = f"{wanted.name}: {', '.join(named)}"
    return make_finding("mix", message, advice=advice, shares=shares, wanted=dict(wanted.shares))


def _tabulate_shares(name: str, counts: Counter[str], wanted: Mapping[str, float], total: int) -> Table:
    values = [*wanted, *(value for value, _ in counts.most_common() if value not in wanted)]
    aims = {value: share / 100 for value, share in wanted.items()}
    rows = ((value, counts[value], counts[value] / total, aims.get(value)) for value in values[:20])
    return make_table({name: str, "questions": "{:,}".format, "share": format_percent, "wanted": format_percent}, rows)


@check("languages", "Languages")
def check_languages(questions: AuditedQuestions) -> Found:
    """Which languages there are, and questions and references in another one than their neighbours."""
    told = {question.query_id: find_language(question.text) for question in questions.questions}
    main = next(iter(Counter(code for code in told.values() if code is not None).most_common(1)), ("", 0))[0]
    for question in questions.questions:
        code = told[question.query_id]
        if code is not None and code != main and not _is_clear(question.text, code, main):
            told[question.query_id] = None
    counts = Counter(code for code in told.values() if code is not None)
    if not counts:
        raise NotCheckedError("the questions have too few common words to tell their language")
    total, main_name = counts.total(), _name(main)
    rare = {code for code, count in counts.items() if code != main and total >= _FEW_TOLD and count / total < _RARE}
    for one in questions.questions:
        if (code := told[one.query_id]) is not None and code in rare:
            message = f"the question is in {_name(code)}, and most are in {main_name}"
            yield make_finding("language", message, one.row, language=code)
    yield from _find_mismatches(questions, told)
    if by_reference := _count_by_reference(questions, told, main):
        yield (
            f"{count_noun(by_reference, 'question')} with too few common words to tell count as {main_name}, "
            "the language of the reference."
        )
    listed: list[tuple[str | None, int]] = [*(counts + Counter({main: by_reference})).most_common()]
    if untold := len(told) - total - by_reference:
        listed.append((None, untold))
    columns: Shown = {"language": _name, "questions": "{:,}".format, "share": format_percent}
    yield make_table(columns, ((code, count, count / len(told)) for code, count in listed), _UNTOLD)


def _name(code: str) -> str:
    return NAMES.get(code, code)


def _count_by_reference(questions: AuditedQuestions, told: Mapping[str, str | None], main: str) -> int:
    """The number of questions that do not show their language, and whose reference is in the main one."""
    texts = (
        " ".join((question.text, *question.references[:1], *question.reference_contexts[:1]))
        for question in questions.questions
        if told[question.query_id] is None and question.text.strip() and question.references
    )
    return sum(find_language(text) == main for text in texts)


def _is_clear(text: str, told: str, other: str) -> bool:
    """Whether a text has many more frequent words of one language than of another, or is in another script."""
    words = set(split_compared_words(text))
    counts = []
    for code in (told, other):
        frequent = next((set(known[code].split()) for known in FREQUENT_WORDS.values() if code in known), set[str]())
        counts.append(len(words & frequent))
    return not counts[1] if not counts[0] else counts[0] >= 2 * counts[1] + 2


def _find_mismatches(questions: AuditedQuestions, told: Mapping[str, str | None]) -> Iterator[AuditFinding]:
    """References that are clearly in another language than their question. Short ones are mostly names."""
    for question in questions.questions:
        own, reference = told[question.query_id], next(iter(question.references), "")
        if own is None or len(reference.split()) < 6:
            continue
        other = find_language(reference)
        if other not in (None, own) and _is_clear(reference, other, own):
            message = f"the question is in {_name(own)}, and its reference in {_name(other)}"
            yield make_finding("reference_language", message, question.row)


UNKNOWN = "another evaluation"
"""What a system is compared with if the values of no second evaluation are known."""


class Power(NamedTuple):
    """What the questions can show of one cell.

    Attributes:
        against: what the system is compared with.
        smallest_drop: the smallest true drop that is found with a probability of 80%; None if there are too few
            questions for any.
        max_drop: the drop that a gate must find; None without one.
        needed: how many questions finding it takes.
    """

    system: str
    metric: str
    against: str
    questions: int
    sd: float
    smallest_drop: float | None
    max_drop: float | None = None
    needed: int | None = None


@check("size", "Size")
def check_size(questions: AuditedQuestions, wanted: int, powers: Sequence[Power] | None, why_none: str) -> Found:
    """Whether there are `wanted` questions, and what they can show.

    `powers` come from the values of an evaluation; without one, `why_none` says why there are none, and what to do.
    """
    if (count := len(questions.questions)) < wanted:
        message = f"{count_noun(count, 'question')}, and {wanted:,} are wanted"
        advice = f"add {count_noun(wanted - count, 'question')}, or set the number with --count"
        yield make_finding("few_questions", message, advice=advice, questions=count, wanted=wanted)
    if powers is None:
        yield f"What drop the questions can show is not known: {why_none}."
    elif powers:
        yield from (_describe_weak(one) for one in powers if one.needed is not None and one.needed > one.questions)
        yield _explain(powers)
        columns: Shown = {
            "system": str, "metric": str, "compared with": str, "questions": "{:,}".format, "sd": format_number,
            "smallest drop": format_number,
        }  # fmt: skip
        rows = ((*one[:5], one.smallest_drop if one.sd else None) for one in powers)
        yield make_table(columns, rows, "unknown: too few questions, or all values are equal")


def _explain(powers: Sequence[Power]) -> str:
    text = "The smallest drop is one that a paired test finds with a probability of 80%."
    if any(power.against == UNKNOWN for power in powers):
        text += (
            f" Against '{UNKNOWN}' it is an upper estimate: it takes a second evaluation as unrelated, and values of "
            "the same questions usually go together. For the real one: plan --power --from A --from B."
        )
    return text


def _describe_weak(power: Power) -> AuditFinding:
    """A gate on a drop that the questions cannot show."""
    needed, max_drop = power.needed or 0, power.max_drop or 0.0
    message = (
        f"the gate on {power.metric} must find a drop of {max_drop:g} against {power.against}, which takes "
        f"{count_noun(needed, 'question')}; there are {power.questions:,}"
    )
    advice = f"add {count_noun(needed - power.questions, 'question')}"
    if power.smallest_drop is not None:  # in thousandths, and not below it: a smaller one would still be too small
        advice += f", or raise max_drop to {math.ceil(round(power.smallest_drop * 1000, 6)) / 1000:.3f}"
    details: dict[str, Any] = {"needed": needed, "questions": power.questions, "max_drop": max_drop}
    return make_finding("weak_gate", message, advice=advice, system=power.system, metric=power.metric, **details)
