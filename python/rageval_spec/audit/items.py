"""Checks what questions tell about systems: those that all fail, those that all solve, and those that mislead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rageval_spec.audit.finding import Check, Finding, Table
from rageval_spec.audit.measured import NO_SAMPLES, Measured, Outputs
from rageval_spec.audit.question_set import Question, QuestionSet
from rageval_spec.audit.suspicion import LIKELY, Suspicion, suspect
from rageval_spec.wording import count_noun, format_number, format_percent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FAILED, SOLVED, DISCRIMINATION = (
    "Questions that every system fails",
    "Questions that every system solves",
    "Discrimination",
)
FEWEST = 4
"""With fewer systems a correlation over systems has no interval."""
_ENOUGH = 10
_FALSE_SHARE = 0.05
"""The expected share of wrong findings among those that are reported (Benjamini and Hochberg, 1995)."""
_Z = 1.959964


def check_failed(questions: QuestionSet, measured: Measured, outputs: Outputs) -> Check:
    """The check `every_system_fails`: those whose label is most likely wrong come first."""
    asked = _list_known(questions, measured, measured.failed)
    texts = _read_texts(questions, asked, outputs)
    judged = [(question, suspect(question, outputs.get(question.query_id, ()), texts)) for question in asked]
    judged.sort(key=lambda pair: -pair[1].score)
    findings = tuple(_describe_failed(question, found, measured) for question, found in judged)
    total = len(measured.query_ids)
    remark = (
        f"By {measured.metric}, of {count_noun(total, 'question')} and {count_noun(len(measured.systems), 'system')}."
    )
    if findings and not outputs:
        remark += f" The likeliest label errors are not first: {NO_SAMPLES}."
    return Check("every_system_fails", FAILED, findings, remark=remark)


def _list_known(questions: QuestionSet, measured: Measured, places: Sequence[int]) -> list[Question]:
    ids = (measured.query_ids[place] for place in places)
    return [questions.by_id[query_id] for query_id in ids if query_id in questions.by_id]


def _read_texts(questions: QuestionSet, asked: Sequence[Question], outputs: Outputs) -> Mapping[str, str]:
    """The texts of the documents that are compared: the relevant ones, and those that systems put first."""
    corpus = questions.collection.corpus
    if corpus is None or not asked:
        return {}
    import polars as pl

    wanted = {doc_id for question in asked for doc_id in question.relevant_ids}
    for question in asked:
        wanted |= {output.doc_ids[0] for output in outputs.get(question.query_id, ()) if output.doc_ids}
    found = corpus.filter(pl.col("doc_id").is_in(list(wanted)))
    return {doc_id: f"{title or ''} {text}" for doc_id, title, text in found.iter_rows()}


def _describe_failed(question: Question, found: Suspicion, measured: Measured) -> Finding:
    likely, count = found.score >= LIKELY, len(measured.systems)
    because = f": {'; '.join(found.reasons)}" if found.reasons else ""
    if likely:
        advice = "read the question with its label first: the label may be wrong or incomplete"
    else:
        advice = "keep it if its label is right: it is hard, and it shows when a system gets better"
    return Finding(
        "every_system_fails",
        "warning" if likely else "info",
        f"{count} of {count} systems fail it{because}",
        advice,
        (question.row,),
        metric=measured.metric,
        details={"suspicion": found.score, "reasons": list(found.reasons)},
    )


def check_solved(questions: QuestionSet, measured: Measured) -> Check:
    """The check `every_system_solves`: questions that tell nothing about which system is better."""
    asked, total = _list_known(questions, measured, measured.solved), len(measured.query_ids)
    count = len(measured.systems)
    findings = tuple(
        Finding(
            "every_system_solves",
            "info",
            f"{count} of {count} systems have the highest possible {measured.metric}",
            "keep some to notice when they break; add harder ones to tell systems apart",
            (question.row,),
            metric=measured.metric,
        )
        for question in asked
    )
    share = format_percent(len(asked) / total, 0) if total else "0%"
    remark = (
        f"{share} of {count_noun(total, 'question')} say nothing about which system is better, by {measured.metric}."
    )
    return Check("every_system_solves", SOLVED, findings, remark=remark)


def check_discrimination(questions: QuestionSet, measured: Measured) -> Check:
    """The check `discrimination`: whether better systems do better on a question (item-rest correlation)."""
    import numpy as np

    count = len(measured.systems)
    if count < FEWEST:
        skipped = (
            f"{count_noun(count, 'system')}; whether better systems do better on a question takes at least {FEWEST}, "
            f"better {_ENOUGH} or more. Name results with other systems, too: --results A --results B"
        )
        return Check("discrimination", DISCRIMINATION, skipped=skipped)
    correlations = correlate_with_rest(measured.values)
    told = np.flatnonzero(~np.isnan(correlations))
    worst = [int(told[place]) for place in select_negative(correlations[told], count)]
    known = (
        (questions.by_id[query_id], float(correlations[place]))
        for place in worst
        if (query_id := measured.query_ids[place]) in questions.by_id
    )
    findings = tuple(_describe_negative(question, number, measured) for question, number in known)
    return Check(
        "discrimination",
        DISCRIMINATION,
        findings,
        remark=_remark_on_count(count, measured.metric),
        tables=(_tabulate(correlations),),
    )


def correlate_with_rest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The correlation of each question's values with the mean of all other questions, over the systems.

    Args:
        values: shape (questions, systems).

    Returns:
        Shape (questions,): not a number for a question on which all systems, or the rest, are equal.
    """
    import numpy as np

    questions = len(values)
    if questions < 2:
        return np.full(questions, np.nan)
    rest = (values.sum(axis=0) - values) / (questions - 1)
    own = values - values.mean(axis=1, keepdims=True)
    rest = rest - rest.mean(axis=1, keepdims=True)
    spread = np.sqrt((own**2).sum(axis=1) * (rest**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: NDArray[np.float64] = np.where(spread > 1e-12, (own * rest).sum(axis=1) / spread, np.nan)
    return found


def select_negative(correlations: NDArray[np.float64], systems: int) -> list[int]:
    """The places of the correlations that are below 0 and not by chance, the lowest first.

    Of those that are selected, an expected share of at most 5% is below 0 by chance alone.
    """
    order = sorted(range(len(correlations)), key=lambda place: float(correlations[place]))
    kept = 0
    for number, place in enumerate(order, 1):
        if find_chance(float(correlations[place]), systems) <= _FALSE_SHARE * number / len(correlations):
            kept = number
    return order[:kept]


def find_chance(correlation: float, systems: int) -> float:
    """The probability of a correlation that is as low, where there is none (Student's t with `systems - 2` degrees).

    Fisher's transformation would give a seventh of it for five systems and a correlation of -0.99. The sums are those
    of Abramowitz and Stegun (1964), 26.7.3 and 26.7.4.
    """
    sine = max(-1.0, min(1.0, correlation))
    square, degrees = 1 - sine * sine, systems - 2
    is_odd = degrees % 2 == 1
    term, total = (math.sqrt(square), 0.0) if is_odd else (1.0, 0.0)
    for number in range(3 if is_odd else 2, degrees + 1, 2):
        total += term
        term *= square * (number - 1) / number
    inside = 2 / math.pi * (math.asin(sine) + sine * total) if is_odd else sine * total
    return (1 + inside) / 2


def find_bounds(correlation: float, systems: int) -> tuple[float, float]:
    """The 95% interval of a correlation (Fisher's transformation)."""
    middle, width = math.atanh(max(-0.999999, min(0.999999, correlation))), _Z / math.sqrt(systems - 3)
    return math.tanh(middle - width), math.tanh(middle + width)


def _describe_negative(question: Question, number: float, measured: Measured) -> Finding:
    low, high = find_bounds(number, len(measured.systems))
    return Finding(
        "negative_discrimination",
        "warning",
        f"better systems do worse on it: item-rest correlation {format_number(number)} "
        f"[{format_number(low)}, {format_number(high)}], {len(measured.systems)} systems",
        "read its label: a wrong one punishes the systems that are right",
        (question.row,),
        metric=measured.metric,
        details={"correlation": number, "low": low, "high": high, "systems": len(measured.systems)},
    )


def _remark_on_count(systems: int, metric: str) -> str:
    remark = f"By {metric}, over {systems} systems. Variants of one system are worth less than their number says."
    if systems >= _ENOUGH:
        return remark
    low, high = find_bounds(0.0, systems)
    return (
        f"{remark} With so few, the interval of a correlation of 0 is [{format_number(low)}, {format_number(high)}]: "
        "read the table, not single questions."
    )


def _tabulate(correlations: NDArray[np.float64]) -> Table:
    values = tuple((name, count, count / len(correlations)) for name, count in _count_ranges(correlations))
    rows = tuple((name, f"{count:,}", format_percent(share, 0)) for name, count, share in values)
    return Table(("item-rest correlation", "questions", "share"), rows, values)


def _count_ranges(correlations: NDArray[np.float64]) -> Iterator[tuple[str, int]]:
    import numpy as np

    told = correlations[~np.isnan(correlations)]
    ranges = (("below 0", -2.0, 0.0), ("0 to 0.2", 0.0, 0.2), ("0.2 to 0.4", 0.2, 0.4), ("0.4 and above", 0.4, 2.0))
    for name, low, high in ranges:
        yield name, int(((told >= low) & (told < high)).sum())
    yield "none: all systems are equal", len(correlations) - len(told)
