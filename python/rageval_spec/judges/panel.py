"""`panel`: asks several judges, or one judge several times, and measures how far they agree."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import Field, model_validator

from rageval_spec.data import arithmetic
from rageval_spec.data.findings import SUPPORTED_FROM, Assessment, Claim, Criterion, Estimate, Failed, Finding, Verdict
from rageval_spec.data.outcomes import Note, remark, writes_notes
from rageval_spec.data.samples import Sample
from rageval_spec.judges.shared.composed_judge import ComposedJudge
from rageval_spec.judging.composition import asks_chat, assess_or_fail, count_repeats, number_calls, repeat_judge
from rageval_spec.judging.grade_scores import scale_score
from rageval_spec.plugin import Judge, JudgeName, JudgeNode
from rageval_spec.wording import count_noun


class PanelNode(JudgeNode):
    """Asks several judges; their majority or their mean decides."""

    judges: tuple[JudgeName, ...] = Field(
        min_length=1, description="The members: names under `judges:`, or judges without required keys."
    )
    repeats: int = Field(
        default=1,
        ge=1,
        le=99,
        description="How many times to ask each judge that uses a chat model. Replies differ only if the model's "
        "temperature is above 0.",
    )
    by: Literal["majority", "mean"] = Field(
        default="majority",
        description="majority: the majority verdict on each claim if all members judge the same claims, else the "
        "median score; mean: the mean score.",
    )
    quorum: int | None = Field(
        default=None,
        ge=1,
        description="How many members, repeats included, must judge a sample without failing for it to get a value. By "
        "default more than half of them.",
    )

    @model_validator(mode="after")
    def _check_members(self) -> PanelNode:
        if twice := [name for place, name in enumerate(self.judges) if name in self.judges[:place]]:
            raise ValueError(f"'{twice[0]}' is listed twice; to ask it several times, set 'repeats'")
        if len(self.judges) * self.repeats == 1:
            raise ValueError("a panel needs several judges: name more of them, or set 'repeats'")
        return self


class _Seat(NamedTuple):
    """One repeat of a member: how far its sample numbers are moved, and its label in messages."""

    judge: Judge[Any]
    moved: int
    label: str


class Panel(ComposedJudge[PanelNode]):
    """Asks all members about every sample. Members that failed or found nothing to judge have no vote.

    If fewer members than the quorum judged a sample without failing, the sample gets no value: after an endpoint fails,
    the members that are left do not make a panel.

    Majority: if the members judged the same claims (the contexts one by one, or the same sentences), a claim gets the
    verdict of more than half of them, and its score is the share of votes for support. The sample's score is then the
    share of supported claims; a tie is not support. Otherwise the score is the median of the members' scores.

    A finding's confidence is 1 minus the mean difference between two members' scores, scaled to [0, 1]. A note has the
    mean difference and Krippendorff's alpha for interval data (Content Analysis, 3rd ed., 2013, chapter 12), which is 1
    if all members agree and 0 if they agree as if by chance.
    """

    known_as = ("jury", "committee", "vote", "voting", "poll")

    @property
    def names(self) -> Sequence[str]:
        return self.node.judges

    def check(self) -> str | None:
        if self.node.repeats > 1 and not any(asks_chat(member) for member in self.members):
            return "repeats: none of the judges asks a chat model, so each repeat would give the same result"
        if self._quorum > len(self._seats):
            seats = count_noun(len(self._seats), "member")
            return f"quorum: {self._quorum} of {seats} can never be reached; write {len(self._seats)} or less"
        return super().check()

    def content(self) -> dict[str, Any]:
        """The node; without `quorum`, the same content as before that key existed."""
        content = super().content()
        if self.node.quorum is None:
            del content["node"]["quorum"]
        return content

    def expect(self, criteria: Sequence[Criterion]) -> None:
        self.expected = criteria
        for seat in self._seats:
            seat.judge.expect(criteria)

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample, and a note on how far the members agree."""
        each = [assess_or_fail(seat.judge, criterion, samples) for seat in self._seats]
        votes = [[one.findings[place] for one in each] for place in range(len(samples))]
        findings = [self._decide(criterion, vote) for vote in votes]
        notes = [note for one in each for note in one.notes]
        ballots = [tuple(_record(found, criterion) for found in vote) for vote in votes]
        labels = tuple(seat.label for seat in self._seats)
        notes.append(remark(_write_votes, ballots, labels, self._quorum, criterion.name))
        return Assessment(findings, tuple(notes))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        estimate = Estimate()
        for seat in self._seats:
            asked = seat.judge.estimate(criterion, samples)
            estimate |= number_calls(asked, seat.moved) if seat.moved else asked
        return estimate

    @cached_property
    def _seats(self) -> Sequence[_Seat]:
        seats = []
        for name, member in zip(self.names, self.members, strict=True):
            for repeat in range(self.node.repeats if asks_chat(member) else 1):
                moved = repeat * count_repeats(member)
                label = f"{name} #{repeat + 1}" if repeat else name
                seats.append(_Seat(repeat_judge(member, moved) if repeat else member, moved, label))
        return seats

    @property
    def _quorum(self) -> int:
        return len(self._seats) // 2 + 1 if self.node.quorum is None else self.node.quorum

    def _decide(self, criterion: Criterion, vote: Sequence[Finding | Failed]) -> Finding | Failed:
        present = [(seat, found) for seat, found in zip(self._seats, vote, strict=True) if isinstance(found, Finding)]
        if len(present) < self._quorum:
            return self._fail([found for found in vote if isinstance(found, Failed)])
        scored = [(seat, found, found.score) for seat, found in present if found.score is not None]
        if not scored:
            return present[0][1]
        scores = [score for _, _, score in scored]
        shown = ", ".join(f"{seat.label} {score:.3g}" for seat, _, score in scored)
        confidence = 1 - _mean_difference([scale_score(score, criterion) for score in scores])
        claims = _vote_on_claims([found for _, found, _ in scored])
        if self.node.by == "majority" and claims:
            score = sum(claim.verdict == "supported" for claim in claims) / len(claims)
            return Finding(score, claims, shown, confidence=confidence)
        score = median(scores) if self.node.by == "majority" else arithmetic.average(scores)
        nearest = min((found for _, found, _ in scored), key=lambda found: abs((found.score or 0.0) - score))
        return Finding(score, claims or nearest.claims, shown, confidence=confidence)

    def _fail(self, failures: Sequence[Failed]) -> Failed:
        reasons = "; ".join(dict.fromkeys(failed.reason for failed in failures))
        raw = next((failed.raw for failed in failures if failed.raw is not None), None)
        is_unfinished = any(failed.is_unfinished for failed in failures)
        lost = f"{len(failures)} of {len(self._seats)} members failed (quorum: {self._quorum})"
        return Failed(f"{lost}: {reasons}", raw, is_unfinished)


def _record(found: Finding | Failed, criterion: Criterion) -> float | str | None:
    """A vote as a fact: its scaled score, None without one, or "failed"."""
    if isinstance(found, Failed):
        return "failed"
    return None if found.score is None else scale_score(found.score, criterion)


Ballot: TypeAlias = "tuple[float | str | None, ...]"


@writes_notes
def _write_votes(ballots: Sequence[Ballot], labels: Sequence[str], quorum: int, _criterion: str) -> Iterator[Note]:
    """Notes on the members that failed, and on how far their scores agree."""
    lacking = sum(sum(vote != "failed" for vote in ballot) < quorum for ballot in ballots)
    for label, votes in zip(labels, zip(*ballots, strict=True), strict=bool(ballots)):
        if failed := votes.count("failed"):
            message = f"{label} failed on {failed} of {count_noun(len(ballots), 'sample')}"
            yield Note("panel_failures", f"{message}; {lacking} got no value (quorum: {quorum})", count=failed)
    scores = [[vote for vote in ballot if isinstance(vote, float)] for ballot in ballots]
    if several := sorted(each for each in scores if len(each) > 1):
        difference = arithmetic.average(map(_mean_difference, several))
        alpha = find_alpha(several)
        agreement = "all scores are equal" if alpha is None else f"Krippendorff's alpha is {alpha:.2f}"
        message = (
            f"the scores of {len(labels)} members differ by {difference:.3f} on average, pair by pair, over "
            f"{count_noun(len(several), 'sample')}; {agreement}"
        )
        yield Note("panel_agreement", message, count=len(several))


def find_alpha(units: Sequence[Sequence[float]]) -> float | None:
    """Krippendorff's alpha for interval data, of units that have at least two values; None if all values are equal."""
    from rageval_spec.statistics.raters.rater_agreement import Ratings, measure_agreement

    values: dict[tuple[Hashable, Hashable], float | str] = {}
    for item, unit in enumerate(units):
        values.update(((item, rater), value) for rater, value in enumerate(unit))
    ratings = Ratings.of(values, range(len(units)), range(max(map(len, units))))
    return measure_agreement(ratings, "alpha-interval", resamples=0).value


def _mean_difference(scores: Sequence[float]) -> float:
    """The mean difference between two members over all pairs; 0 if there is only one member."""
    return arithmetic.average([abs(a - b) for a, b in combinations(scores, 2)] or [0.0])


def _vote_on_claims(findings: Sequence[Finding]) -> tuple[Claim, ...]:
    """The claims with the members' votes; empty if the members did not judge the same claims."""
    first = findings[0].claims
    alike = all([c.text for c in found.claims] == [c.text for c in first] for found in findings)
    if not first or not alike:
        return ()
    return tuple(_vote_on_claim(each) for each in zip(*(found.claims for found in findings), strict=True))


def _vote_on_claim(each: Sequence[Claim]) -> Claim:
    verdicts = [_verdict(claim) for claim in each]
    winner: Verdict = next((v for v in verdicts if 2 * verdicts.count(v) > len(verdicts)), "not_enough_info")
    example = next((claim for claim in each if _verdict(claim) == winner), each[0])
    return replace(example, verdict=winner, score=verdicts.count("supported") / len(verdicts))


def _verdict(claim: Claim) -> Verdict:
    return claim.verdict or ("supported" if claim.score >= SUPPORTED_FROM else "not_enough_info")


PLUGIN = Panel
