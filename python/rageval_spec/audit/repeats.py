"""Checks for questions that are there twice, and for gold answers that contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

from rageval_spec.audit.finding import Check, Finding
from rageval_spec.audit.pairs import Asked, Embed, Pair, contradicts, find_pairs
from rageval_spec.audit.question_set import Question, QuestionSet

_HOW = {
    "equal": "the same question as {other}",
    "wording": "nearly the same question as {other}: only articles, endings or typing differ",
    "reference": "nearly the same question as {other}, with the same gold answer",
    "meaning": "means nearly the same as {other} (cosine {share:.2f}), with the same gold answer",
}


def check_repeats(questions: QuestionSet, embed: Embed | None, remark: str = "") -> tuple[Check, Check]:
    """The checks `duplicates` and `contradictions`.

    Variants of one question under several conditions, which have the same group, may be equal.

    Args:
        embed: gives the vectors of texts; None to compare only words.
        remark: how questions were compared.
    """
    every = questions.questions
    title, other = "Duplicates", "Contradictory references"
    if not any(question.text for question in every):
        reason = "the dataset has judgements but no texts of questions"
        return Check("duplicates", title, skipped=reason), Check("contradictions", other, skipped=reason)
    pairs = [
        pair
        for pair in find_pairs([Asked(question.text, question.references) for question in every], embed)
        if every[pair.later].group is None or every[pair.later].group != every[pair.earlier].group
    ]
    apart = {pair for pair in pairs if contradicts(every[pair.later].references, every[pair.earlier].references)}
    repeated = tuple(_describe_repeat(pair, every) for pair in pairs if pair not in apart)
    duplicates = Check("duplicates", title, repeated, remark=remark)
    if not questions.has_references:
        skipped = "the dataset has no references"
        return duplicates, Check("contradictions", other, skipped=skipped)
    return duplicates, Check(
        "contradictions", other, tuple(_describe_conflict(pair, every) for pair in pairs if pair in apart)
    )


def _describe_repeat(pair: Pair, every: Sequence[Question]) -> Finding:
    later, earlier = every[pair.later], every[pair.earlier]
    is_equal = pair.sameness == "equal"
    differs = is_equal and _norm(later.references) != _norm(earlier.references)
    split = later.relevant_ids != earlier.relevant_ids and bool(later.relevant_ids or earlier.relevant_ids)
    if split:
        advice = "remove one, and give the other all relevant documents: each is judged by a part of them now"
    elif differs:
        advice = "remove one, and give the other both references, as alternatives"
    else:
        advice = "remove one: the question counts twice in every mean, and intervals take it for independent"
    return Finding(
        "duplicate" if is_equal else "near_duplicate",
        "warning",
        _HOW[pair.sameness].format(other=earlier.row, share=pair.share)
        + (_say_worded(later, earlier) if differs else ""),
        advice,
        (later.row, earlier.row),
        removes=is_equal and not split and not differs,
        details={"sameness": pair.sameness, "share": round(pair.share, 4)},
    )


def _say_worded(later: Question, earlier: Question) -> str:
    if not (later.references and earlier.references):
        return ", and only one has a reference"
    return f", with another wording of the reference: {_quote(later)} here, {_quote(earlier)} there"


def _describe_conflict(pair: Pair, every: Sequence[Question]) -> Finding:
    later, earlier = every[pair.later], every[pair.earlier]
    same = "the same question" if pair.sameness == "equal" else "nearly the same question"
    return Finding(
        "contradiction",
        "error" if pair.sameness == "equal" else "warning",
        f"{same} as {earlier.row}, but the references differ: {_quote(later)} here, {_quote(earlier)} there",
        "correct one; if both are right, put both into one row as alternatives, and remove the other row",
        (later.row, earlier.row),
        details={"references": [list(later.references), list(earlier.references)], "sameness": pair.sameness},
    )


def _quote(question: Question) -> str:
    text = question.references[0]
    return f"'{text if len(text) <= 60 else text[:59] + '…'}'"


def _norm(references: Sequence[str]) -> frozenset[str]:
    return frozenset(" ".join(text.casefold().split()) for text in references)
