"""How likely it is that the label of a question is wrong, and not every system.

A question that every system fails is either hard or mislabelled. These signs speak against its label:

- systems that differ agree on the same other document, or on the same answer;
- that document has more of the question's words than every document that is labelled as relevant, or it contains the
  gold answer, and no labelled document does;
- the labelled documents share hardly a word with the question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rageval_spec.audit.measured import Output
from rageval_spec.audit.question_set import Question
from rageval_spec.audit.words import contains, drop_fillers, find_overlap, split_words
from rageval_spec.wording import format_percent

LIKELY = 0.7
"""From this score on, look at the label before anything else.

In scifact, 30 of the 300 judged questions got a random document in place of their relevant ones, three times over. Of
the questions that all of five systems failed and that had such a score, 92% were among the 30; of the 30, 81% had one.
"""
_AGREE = 0.5
_LONGEST = 60
_OF_AGREEMENT = 0.25
"""The part of the score that is the agreement of systems; the rest is how far the other document leads by words."""


class Suspicion(NamedTuple):
    """How likely the label is wrong, 0 to 1, and why; the reasons are empty if nothing speaks against it."""

    score: float
    reasons: tuple[str, ...] = ()


def suspect(question: Question, outputs: Sequence[Output], texts: Mapping[str, str]) -> Suspicion:
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


def _suspect_judgements(question: Question, outputs: Sequence[Output], texts: Mapping[str, str]) -> Suspicion:
    ranking = [output.doc_ids for output in outputs if output.doc_ids]
    agreed, agreement = _find_agreed(ranking)
    known = ", which is judged as not relevant" if agreed in (question.relevant or {}) else ""
    reasons = [f"{agreement[0]} of {agreement[1]} systems put '{agreed}' first{known}"] if agreement[0] > 1 else []
    share = agreement[0] / agreement[1] if agreement[0] > 1 else 0.0
    labelled = [texts[doc_id] for doc_id in sorted(question.relevant_ids) if doc_id in texts]
    if agreed not in texts or not labelled:
        return Suspicion(round(share * _AGREE, 4), tuple(reasons))
    own, other = _measure_support(question.text, [*labelled, texts[agreed]])
    if other > own:
        mine, theirs = format_percent(own, 0), format_percent(other, 0)
        reasons.append(f"it has {theirs} of the question's words, and the relevant document {mine}")
    gold = _find_gold(question, labelled, texts[agreed])
    if gold is not None:
        reasons.append(f"it contains the reference '{gold}', and the relevant document does not")
    lead = max(0.0, 1 - own / other) if other else 0.0
    score = (1 - _OF_AGREEMENT) * lead + _OF_AGREEMENT * share
    return Suspicion(round(1.0 if gold else score, 4), tuple(reasons))


def _find_agreed(rankings: Sequence[Sequence[str]]) -> tuple[str, tuple[int, int]]:
    """The document that most systems put first, how many did, and how many systems there are."""
    (agreed, count), *_ = Counter(ranking[0] for ranking in rankings).most_common(1)
    return agreed, (count, len(rankings))


def _measure_support(question: str, documents: Sequence[str]) -> tuple[float, float]:
    """The share of the question's words in the best document but the last one, and in the last one."""
    from rageval_spec import kernels

    (shares,) = kernels.word_support([question], [documents])
    found = [one.share or 0.0 for one in shares[: len(documents)]]
    return max(found[:-1]), found[-1]


def _find_gold(question: Question, labelled: Sequence[str], other: str) -> str | None:
    """A gold answer that only the other document contains."""
    words, known = split_words(other), [split_words(text) for text in labelled]
    for text in question.references:
        wanted = split_words(text)
        if len("".join(wanted)) > 3 and contains(words, wanted) and not any(contains(one, wanted) for one in known):
            return _shorten(text)
    return None


def _suspect_reference(question: Question, answers: Sequence[str]) -> Suspicion:
    """Answers that agree with each other more than with the gold answer."""
    words = [drop_fillers(split_words(answer)) for answer in answers]
    pairs = [find_overlap(words[one], words[other]) for one in range(len(words)) for other in range(one)]
    agreement = sum(pairs) / len(pairs)
    golds = [drop_fillers(split_words(text)) for text in question.references]
    likeness = max(find_overlap(gold, answer) for gold in golds for answer in words)
    score = round(max(0.0, agreement - likeness), 4)
    if score <= 0 or agreement < _AGREE:
        return Suspicion(score * _AGREE)
    told, gold = _shorten(answers[0]), _shorten(question.references[0])
    reason = f"{len(answers)} systems give nearly the same answer, '{told}', and the reference is '{gold}'"
    return Suspicion(score, (reason,))


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
