"""Checks what questions tell about systems: those that all fail, those that all solve, and those that mislead.

A question that every system fails is either hard or mislabelled. These signs speak against its label:

- systems that differ agree on the same other document, or on the same answer;
- that document has more of the question's words than every document that is labelled as relevant, or it contains the
  gold answer, and no labelled document does;
- the labelled documents share hardly a word with the question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec import kernels
from rageval_spec.audit.audit_findings import AuditFinding, CheckContent, Severity, Table, make_finding
from rageval_spec.audit.question_set import (
    NO_SAMPLES,
    AuditedQuestion,
    AuditedQuestions,
    MetricValues,
    Output,
    Outputs,
    contains,
    drop_fillers,
    find_overlap,
    shorten,
    split_compared_words,
)
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


def check_failed(questions: AuditedQuestions, measured: MetricValues, outputs: Outputs) -> CheckContent:
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
    return CheckContent("every_system_fails", FAILED, findings, remark=remark)


def _list_known(questions: AuditedQuestions, measured: MetricValues, places: Sequence[int]) -> list[AuditedQuestion]:
    ids = (measured.query_ids[place] for place in places)
    return [questions.by_id[query_id] for query_id in ids if query_id in questions.by_id]


def _read_texts(
    questions: AuditedQuestions,
    asked: Sequence[AuditedQuestion],
    outputs: Outputs,
) -> Mapping[str, str]:
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


def _describe_failed(question: AuditedQuestion, found: Suspicion, measured: MetricValues) -> AuditFinding:
    likely, count = found.score >= LIKELY, len(measured.systems)
    because = f": {'; '.join(found.reasons)}" if found.reasons else ""
    if likely:
        advice = "read the question with its label first: the label may be wrong or incomplete"
    else:
        advice = "keep it if its label is right: it is hard, and it shows when a system gets better"
    severity: Severity = "warning" if likely else "info"
    message = f"{count} of {count} systems fail it{because}"
    given = {"suspicion": found.score, "reasons": list(found.reasons)}
    row, metric = (question.row,), measured.metric
    return AuditFinding("every_system_fails", severity, message, advice, row, metric=metric, details=given)


def check_solved(questions: AuditedQuestions, measured: MetricValues) -> CheckContent:
    """The check `every_system_solves`: questions that tell nothing about which system is better."""
    asked, total = _list_known(questions, measured, measured.solved), len(measured.query_ids)
    count = len(measured.systems)
    message, metric = f"{count} of {count} systems have the highest possible {measured.metric}", measured.metric
    findings = tuple(make_finding("every_system_solves", message, one.row, metric=metric) for one in asked)
    share = format_percent(len(asked) / total) if total else "0%"
    remark = f"{share} of {count_noun(total, 'question')} do not show which system is better, by {measured.metric}."
    return CheckContent("every_system_solves", SOLVED, findings, remark=remark)


def check_discrimination(questions: AuditedQuestions, measured: MetricValues) -> CheckContent:
    """The check `discrimination`: whether better systems do better on a question (item-rest correlation)."""
    import numpy as np

    count = len(measured.systems)
    if count < FEWEST:
        skipped = (
            f"{count_noun(count, 'system')}; whether better systems do better on a question takes at least {FEWEST}, "
            f"better {_ENOUGH} or more. Name results with other systems, too: --results A --results B"
        )
        return CheckContent("discrimination", DISCRIMINATION, skipped=skipped)
    correlations = correlate_with_rest(measured.values)
    told = np.flatnonzero(~np.isnan(correlations))
    worst = [int(told[place]) for place in select_negative(correlations[told], count)]
    known = (
        (questions.by_id[query_id], float(correlations[place]))
        for place in worst
        if (query_id := measured.query_ids[place]) in questions.by_id
    )
    findings = tuple(_describe_negative(question, number, measured) for question, number in known)
    remark, table = _remark_on_count(count, measured.metric), _tabulate(correlations)
    return CheckContent("discrimination", DISCRIMINATION, findings, remark=remark, tables=(table,))


def correlate_with_rest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The correlation of each question's values [questions, systems] with the mean of all others, over the systems.

    Not a number for a question on which all systems, or the rest, are equal.
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

    Fisher's transformation would give a seventh of it for five systems and a correlation of -0.99.
    """
    rest = 1 - correlation * correlation
    t = correlation * math.sqrt((systems - 2) / rest) if rest > 0 else math.copysign(math.inf, correlation)
    tail = kernels.student_p_value(t, systems - 2) / 2
    return tail if correlation < 0 else 1 - tail


def find_bounds(correlation: float, systems: int) -> tuple[float, float]:
    """The 95% interval of a correlation (Fisher's transformation)."""
    middle, width = math.atanh(max(-0.999999, min(0.999999, correlation))), _Z / math.sqrt(systems - 3)
    return math.tanh(middle - width), math.tanh(middle + width)


def _describe_negative(question: AuditedQuestion, number: float, measured: MetricValues) -> AuditFinding:
    count, metric = len(measured.systems), measured.metric
    low, high = find_bounds(number, count)
    found = f"{format_number(number)} [{format_number(low)}, {format_number(high)}], {count} systems"
    message = f"better systems do worse on it: item-rest correlation {found}"
    details: dict[str, Any] = {"correlation": number, "low": low, "high": high, "systems": count}
    return make_finding("negative_discrimination", message, question.row, metric=metric, **details)


def _remark_on_count(systems: int, metric: str) -> str:
    remark = f"By {metric}, over {systems} systems. Variants of one system count for less than their number suggests."
    if systems >= _ENOUGH:
        return remark
    low, high = find_bounds(0.0, systems)
    return (
        f"{remark} With so few, the interval of a correlation of 0 is [{format_number(low)}, {format_number(high)}]: "
        "read the table, not single questions."
    )


def _tabulate(correlations: NDArray[np.float64]) -> Table:
    import numpy as np

    told = correlations[~np.isnan(correlations)]
    ranges = (("below 0", -2.0, 0.0), ("0 to 0.2", 0.0, 0.2), ("0.2 to 0.4", 0.2, 0.4), ("0.4 and above", 0.4, 2.0))
    counts = {name: int(((told >= low) & (told < high)).sum()) for name, low, high in ranges}
    counts["none: all systems are equal"] = len(correlations) - len(told)
    values = tuple((name, count, count / len(correlations)) for name, count in counts.items())
    rows = tuple((name, f"{count:,}", format_percent(share)) for name, count, share in values)
    return Table(("item-rest correlation", "questions", "share"), rows, values)


LIKELY = 0.7
"""From this score on, look at the label before anything else.

In scifact, 30 of the 300 judged questions got a random document in place of their relevant ones, three times over. Of
the questions that all of five systems failed and that had such a score, 92% were among the 30; of the 30, 81% had one.
"""
_AGREE = 0.5
_OF_AGREEMENT = 0.25
"""The part of the score that is the agreement of systems; the rest is how far the other document leads by words."""


class Suspicion(NamedTuple):
    """How likely the label is wrong, 0 to 1, and why; the reasons are empty if nothing speaks against it."""

    score: float
    reasons: tuple[str, ...] = ()


def suspect(question: AuditedQuestion, outputs: Sequence[Output], texts: Mapping[str, str]) -> Suspicion:
    """Weigh what speaks against the label of a question that every system fails.

    Args:
        question: the question with its gold answers and judgements.
        outputs: what the systems made of it.
        texts: the texts of documents, as far as they are known.
    """
    answers = [output.answer for output in outputs if output.answer]
    found = [_suspect_reference(question, answers)] if question.references and len(answers) > 1 else []
    if question.relevant_ids and any(output.doc_ids for output in outputs):
        found.append(_suspect_judgements(question, outputs, texts))
    return max(found, key=lambda one: one.score, default=Suspicion(0.0))


def _suspect_judgements(question: AuditedQuestion, outputs: Sequence[Output], texts: Mapping[str, str]) -> Suspicion:
    first = [output.doc_ids[0] for output in outputs if output.doc_ids]
    (agreed, count), *_ = Counter(first).most_common(1)
    known = ", which is judged as not relevant" if agreed in (question.relevant or {}) else ""
    reasons = [f"{count} of {len(first)} systems put '{agreed}' first{known}"] if count > 1 else []
    share = count / len(first) if count > 1 else 0.0
    labelled = [texts[doc_id] for doc_id in sorted(question.relevant_ids) if doc_id in texts]
    if agreed not in texts or not labelled:
        return Suspicion(round(share * _AGREE, 4), tuple(reasons))
    (support,) = kernels.word_support([question.text], [[*labelled, texts[agreed]]])
    *others, other = (one.share or 0.0 for one in support[: len(labelled) + 1])
    own = max(others)
    if other > own:
        mine, theirs = format_percent(own), format_percent(other)
        reasons.append(f"it has {theirs} of the question's words, and the relevant document {mine}")
    gold = _find_gold(question, labelled, texts[agreed])
    if gold is not None:
        reasons.append(f"it contains the reference '{gold}', and the relevant document does not")
    lead = max(0.0, 1 - own / other) if other else 0.0
    score = (1 - _OF_AGREEMENT) * lead + _OF_AGREEMENT * share
    return Suspicion(round(1.0 if gold else score, 4), tuple(reasons))


def _find_gold(question: AuditedQuestion, labelled: Sequence[str], other: str) -> str | None:
    """A gold answer that only the other document contains."""
    words, known = split_compared_words(other), [split_compared_words(text) for text in labelled]
    for text in question.references:
        wanted = split_compared_words(text)
        is_only_there = contains(words, wanted) and not any(contains(one, wanted) for one in known)
        if len("".join(wanted)) > 3 and is_only_there:
            return shorten(text)
    return None


def _suspect_reference(question: AuditedQuestion, answers: Sequence[str]) -> Suspicion:
    """Answers that agree with each other more than with the gold answer."""
    words = [drop_fillers(split_compared_words(answer)) for answer in answers]
    pairs = [find_overlap(words[one], words[other]) for one in range(len(words)) for other in range(one)]
    agreement = sum(pairs) / len(pairs)
    golds = [drop_fillers(split_compared_words(text)) for text in question.references]
    likeness = max(find_overlap(gold, answer) for gold in golds for answer in words)
    score = round(max(0.0, agreement - likeness), 4)
    if score <= 0 or agreement < _AGREE:
        return Suspicion(score * _AGREE)
    told, gold = shorten(answers[0]), shorten(question.references[0])
    reason = f"{len(answers)} systems give nearly the same answer, '{told}', and the reference is '{gold}'"
    return Suspicion(score, (reason,))
