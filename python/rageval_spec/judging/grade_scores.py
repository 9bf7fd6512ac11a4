"""Turns grades and words into scores, weighted by the probabilities of a reply's tokens if it has them.

A score over token probabilities is the expected value, as in G-Eval (Liu et al., EMNLP 2023, arXiv:2303.16634).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rageval_spec.data.chat import ChatReply
from rageval_spec.data.findings import Criterion, Failed, Finding, Verdict
from rageval_spec.dataclass import dataclass

_NEGLIGIBLE = 0.001
"""Tokens that can belong to several options may have at most this share of the probability of the option said."""
_ROUNDING = 1e-6
"""By how much an endpoint's log probabilities may exceed 0 through rounding."""


@dataclass(frozen=True, slots=True)
class PieceOpinion:
    """A judge's opinion of one piece.

    Attributes:
        score: in [0, 1].
        confidence: the probability of the option that the reply names, among all options; None if the endpoint
            gives no probabilities or was not asked for them.
    """

    score: float
    verdict: Verdict | None = None
    reason: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class GradeScale:
    """The lowest and the highest grade. Grades are whole numbers unless the scale has fewer than three of them."""

    low: float
    high: float

    @classmethod
    def of(cls, criterion: Criterion, default: GradeScale) -> GradeScale:
        """The criterion's own scale, or `default`, the judge's."""
        return default if criterion.scale is None else cls(*criterion.scale)

    @property
    def is_whole(self) -> bool:
        bounds = float(self.low), float(self.high)
        return all(map(float.is_integer, bounds)) and self.high - self.low >= 2

    @property
    def schema(self) -> dict[str, Any]:
        low, high = self.bounds
        return {"type": "integer" if self.is_whole else "number", "minimum": low, "maximum": high}

    @property
    def bounds(self) -> tuple[int | float, int | float]:
        """The lowest and the highest grade, as integers if they are whole."""
        return tuple(int(bound) if float(bound).is_integer() else bound for bound in (self.low, self.high))  # type: ignore[return-value]

    @property
    def grades(self) -> Mapping[str, float]:
        """The score of every whole grade by its spelling; empty where grades are not whole."""
        if not self.is_whole:
            return {}
        return {str(grade): self.score(grade) for grade in range(int(self.low), int(self.high) + 1)}

    def score(self, grade: float) -> float:
        return (grade - self.low) / (self.high - self.low)

    def grade(self, score: float) -> float:
        return min(max(self.low + score * (self.high - self.low), self.low), self.high)


def weigh(reply: ChatReply, said: str, options: Sequence[str], key: str | None = None) -> dict[str, float] | None:
    """The probability of each option at the place where the reply says `said`; the probabilities sum to 1.

    With a `key`, the place is the key's value in the reply's JSON; without one, the first token that equals `said`.
    None if the reply has no probabilities or its tokens do not show them: `said` takes several tokens, or one token
    can be an option or begin another, as with 1 and 10 where each digit is a token.
    """
    signed = any(option.startswith("-") for option in options)
    place = _find_place(reply, said, key, signed=signed)
    if place is None or reply.choices is None:
        return None
    shown = [
        (_fold(token, signed), math.exp(min(logprob, 0.0)) if -math.inf < logprob <= _ROUNDING else 0.0)
        for token, logprob in reply.choices[place]
    ]
    folded = {_fold(option, signed): option for option in options}
    chosen, probability_of_chosen = shown[0]
    if folded.get(chosen) != said or probability_of_chosen == 0:
        return None
    longest = max(len(token.lstrip("-")) for token, _ in shown if token in folded)
    doubtful = math.fsum(probability for token, probability in shown if _may_begin(token, folded, longest))
    if doubtful > _NEGLIGIBLE * probability_of_chosen:
        return None
    weights = dict.fromkeys(options, 0.0)
    for token, probability in shown:
        if (option := folded.get(token)) is not None:
            weights[option] += probability
    total = math.fsum(weights.values())
    return {option: weight / total for option, weight in weights.items()}


def score_option(
    reply: ChatReply, said: str, scores: Mapping[str, float], key: str | None = None
) -> tuple[float, float | None]:
    """The expected score over the options, and the probability of the option said; without probabilities, its score."""
    weights = weigh(reply, said, [*scores], key)
    if weights is None:
        return scores[said], None
    expected = math.fsum(weight * scores[option] for option, weight in weights.items())
    # Rounding must not move the score outside the options' scores.
    return min(max(expected, min(scores.values())), max(scores.values())), weights[said]


def _may_begin(token: str, options: Iterable[str], longest: int) -> bool:
    """Whether an option that takes several tokens can begin with this token.

    If an option of `longest` characters is one token, so is every option that is not longer. A sign by itself never
    is an option.
    """
    begun = [option for option in options if token and option != token and option.startswith(token)]
    return any(token == "-" or len(option.lstrip("-")) > longest for option in begun)


def _find_place(reply: ChatReply, said: str, key: str | None, *, signed: bool) -> int | None:
    """The number of the token at which the reply begins to say `said`."""
    tokens = [choice[0].token for choice in reply.choices or () if choice]
    if not tokens or len(tokens) < len(reply.choices or ()):
        return None
    start = 0
    if key is not None:
        found = [*re.finditer(rf"\b{re.escape(key)}\W*:\s*[^\w-]?", "".join(tokens))]
        if not found:
            return None
        start = found[-1].end()
    end = 0
    for place, token in enumerate(tokens):
        end += len(token)
        word = _fold(token, signed)
        if end > start and word:
            return place if _fold(said, signed).startswith(word) else None
    return None


def _fold(token: str, signed: bool) -> str:
    """A token without case, punctuation and white space; a sign is kept where options have one."""
    kept = re.sub(r"[^\w-]+" if signed else r"\W+", "", token.replace("−", "-"))
    return kept.casefold()


def read_grade(
    scale: GradeScale,
    uses_probabilities: bool,
    value: Mapping[str, Any],
    reply: ChatReply,
    *,
    key: str | None = "grade",
) -> PieceOpinion:
    """The opinion in a reply `{"reason": ..., "grade": ...}`, or in one that is the grade alone if `key` is None."""
    grade, grades = value["grade"], scale.grades
    score, confidence = scale.score(grade), None
    if uses_probabilities and grades:
        score, confidence = score_option(reply, str(grade), grades, key)
    return PieceOpinion(score, None, value["reason"] or None, confidence)


def write_guide(guide: Mapping[str, str]) -> str:
    """What grades mean, one line per grade; "" without a guide."""
    return "\n".join(f"{grade}: {meaning}" for grade, meaning in guide.items())


def _scale_of(criterion: Criterion) -> GradeScale | None:
    """The scale of a criterion that asks for a grade and has one."""
    return GradeScale(*criterion.scale) if criterion.kind == "grade" and criterion.scale else None


def rescale(criterion: Criterion, score: float) -> float:
    """A score in [0, 1] on the criterion's scale."""
    scale = _scale_of(criterion)
    return scale.grade(score) if scale else score


def list_scores(findings: Sequence[Finding | Failed], criterion: Criterion) -> list[float | None]:
    """The scores of findings, from 0 to 1; None where a judge failed or gave none."""
    scores = [getattr(finding, "score", None) for finding in findings]
    return [None if score is None else scale_score(score, criterion) for score in scores]


def scale_score(score: float, criterion: Criterion) -> float:
    """A finding's score moved from the criterion's scale to [0, 1]."""
    scale = _scale_of(criterion)
    return scale.score(score) if scale else score


def unscale_score(score: float, criterion: Criterion) -> float:
    """The inverse of `scale_score`, exact at both ends of the scale."""
    scale = _scale_of(criterion)
    return (1 - score) * scale.low + score * scale.high if scale else score
