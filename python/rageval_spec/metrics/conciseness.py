from collections.abc import Iterator, Sequence
from dataclasses import replace

from rageval_spec.data.findings import Claim, Estimate, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.judged_metrics import (
    RefusalAwareMetric,
    RefusalNode,
    ask_about,
    judge_each,
    measure_finding,
)
from rageval_spec.plugin import Measured, MetricInfo

NEEDED = ask_about("conciseness", "usefulness", "Is the statement needed to answer the question?", "claims")
CONCISE = ask_about(
    "conciseness",
    "grade",
    "How far is the answer free of everything that is not needed to answer the question?",
    "answer",
)


class Conciseness(RefusalAwareMetric[RefusalNode]):
    known_as = ("verbosity", "answer_conciseness")
    able = (frozenset({"claims", "usefulness"}), frozenset({"grade"}))
    ways = ((NEEDED,), (CONCISE,))
    info = MetricInfo(
        summary="The share of an answer's claims that are needed to answer the question: how little of it is padding.",
        formula="conciseness = claims of the answer needed to answer the question / claims of the answer; with a judge "
        "that only grades: its grade of how free the answer is of what the question does not ask for, in [0, 1]",
        edge_cases=(
            "answer without a claim, such as a refusal that says nothing else ('I don't know'): no value",
            "empty answer: no value, because it has no claims",
            "claim that is stated twice: counts twice",
            "right or wrong: does not matter; a wrong answer to the question counts as needed",
            "judges that give scores: the mean of the claims' scores, or the share that reaches the judge's threshold; "
            "overlap and embedding compare each claim with the question, and few claims repeat it",
            "question in which the judge finds nothing to compare with: no value",
        ),
        source="DeepEval documentation, answer relevancy (2024): relevant statements / statements",
    )

    def ask(self, samples: Sequence[Sample]) -> Measured:
        if not self._takes_claims:
            return super().ask(samples)
        split = self.judge.claims([(sample.question, sample.answer or "") for sample in samples])
        asked = [
            replace(sample, claims=claims)
            for sample, claims in zip(samples, split, strict=True)
            if not isinstance(claims, Failed) and claims
        ]
        judged = judge_each(self.judge, NEEDED, asked)
        given = iter(judged.findings)
        nothing = Finding(None, reason="the answer makes no claim")
        found = [claims if isinstance(claims, Failed) else next(given) if claims else nothing for claims in split]
        placed = [
            one if isinstance(one, Failed) else replace(one, claims=tuple(_place(one.claims, sample.answer or "")))
            for sample, one in zip(samples, found, strict=True)
        ]
        return Measured([*map(measure_finding, placed)], judged.notes)

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """The calls for the claims, and for one statement per answer, because the number of claims is not known yet."""
        if not self._takes_claims:
            return super().estimate_asking(samples)
        splitting = self.judge.estimate_writing("claims", [(one.question, one.answer or "") for one in samples])
        whole = [replace(sample, claims=(sample.answer or "",)) for sample in samples]
        return splitting | self.judge.estimate(NEEDED, whole)

    @property
    def _takes_claims(self) -> bool:
        return self.can("claims", "usefulness")


def _place(claims: Sequence[Claim], answer: str) -> Iterator[Claim]:
    """Claims with their offsets in the answer, for those that occur in it word for word."""
    after = 0
    for claim in claims:
        start = answer.find(claim.text, after) if claim.text else -1
        after = after if start < 0 else start + len(claim.text)
        yield replace(claim, start=None, end=None) if start < 0 else replace(claim, start=start, end=after)


PLUGIN = Conciseness
