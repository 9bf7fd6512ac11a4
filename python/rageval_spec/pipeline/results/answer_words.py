"""Whether an answer is right, by its words: what a diagnosis makes of an answer where no judge says it.

The F1 of words falls where a right answer says more than a short gold answer ("Paris" in a sentence), and stays high
where a sentence has one wrong fact ("in 1994" for "in 1984"). So the words of a short gold answer must be found,
however much else it contains, and the numbers and names of a longer one must not be replaced by others.
`benches/diagnosis.py` sets `SHORT`, and shows how often causes are right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rageval_spec.data import arithmetic
from rageval_spec.judging.quantities import find_missing, find_quantities
from rageval_spec.judging.refusals import find_bare_refusal
from rageval_spec.metrics.shared.reference_metrics import token_f1, tokenize_answer

SHORT = 12
"""The most words of a gold answer that is short."""
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[^\W\d_a-z][^\W\d_]*[^\W_]", re.MULTILINE)
"""A word with a capital letter that does not begin a sentence."""


def decide_by_words(
    answer: str, references: Sequence[str], question: str, wrong_below: float, right_from: float
) -> bool | None:
    """Whether an answer is right by any of its gold answers; None between right and wrong.

    An answer that only declines is wrong, unless a gold answer declines too. Names in the question are no facts that an
    answer adds. `wrong_below` and `right_from` are bounds of the share of words.
    """
    if find_bare_refusal(answer) is not None and not any(find_bare_refusal(text) for text in references):
        return False
    share = max(_compare(answer, reference, question) for reference in references)
    if arithmetic.reaches(share, right_from):
        return True
    return None if arithmetic.reaches(share, wrong_below) else False


def _compare(answer: str, reference: str, question: str) -> float:
    """The share of a short gold answer that the answer has, or the F1 of a longer one; 0 if a fact is replaced."""
    gold, said = Counter(tokenize_answer(reference)), Counter(tokenize_answer(answer))
    if gold and sum(gold.values()) <= SHORT:
        if find_missing(reference, answer):
            return 0.0
        counted = Counter(word for one in find_quantities(reference) for word in tokenize_answer(one.text))
        return (gold & (said | counted)).total() / gold.total()
    return 0.0 if _replaces(answer, reference, question) else token_f1(answer, [reference])


def _replaces(answer: str, reference: str, question: str) -> bool:
    """Whether the answer lacks a number or name of the gold answer, and has another one instead."""
    if find_missing(reference, answer) and find_missing(answer, f"{reference}\n{question}"):
        return True
    known = set(tokenize_answer(reference)) | set(tokenize_answer(question))
    lacking = _list_names(reference) - set(tokenize_answer(answer)) - set(tokenize_answer(question))
    return bool(lacking) and bool(_list_names(answer) - known)


def _list_names(text: str) -> set[str]:
    return {word for found in _NAME.findall(text) for word in tokenize_answer(found)}
