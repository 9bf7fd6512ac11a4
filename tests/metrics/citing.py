"""Answers with citations for tests: a statement is supported if a cited context has all of its letters."""

from __future__ import annotations

from typing import Any

from rageval_spec.data.findings import Claim, Finding
from rageval_spec.data.samples import Sample
from tests.metrics.judges import RuleJudge, sample


def reading(partial: bool = False) -> RuleJudge:
    """A judge that finds the words of a statement in its passage; each is a claim if support can be partial."""

    def say(one: Sample) -> Finding:
        words = (one.answer or "").lower().strip(".").split()
        (passage,) = one.contexts or ("",)
        met = [word in passage.lower().split() for word in words]
        met = met if partial else [all(met)]
        claims = [
            Claim(str(place), float(one), "supported" if one else "not_enough_info") for place, one in enumerate(met)
        ]
        return Finding(sum(met) / len(met), tuple(claims))

    return RuleJudge(say=say)


def answer(text: str, *contexts: str, **parts: Any) -> Sample:
    return sample(answer=text, contexts=contexts, **parts)
