"""`cascade`: asks a cheap judge first, and the next judge only if the first one is unsure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rageval_spec.data.findings import Ability, Assessment, Criterion, Estimate, Failed, Finding
from rageval_spec.data.outcomes import AnyNote, Note, Remark, remark, writes_notes
from rageval_spec.data.samples import Sample
from rageval_spec.judges.shared.composed_judge import ComposedJudge
from rageval_spec.judging.composition import (
    Saving,
    assess_or_fail,
    describe_savings,
    is_free,
    list_prices,
    list_savings,
)
from rageval_spec.judging.grade_scores import scale_score, unscale_score
from rageval_spec.plugin import Judge, JudgeName, JudgeNode
from rageval_spec.plugin.judge_identity import digest_criterion
from rageval_spec.wording import count_noun, format_percent

if TYPE_CHECKING:
    from rageval_spec.data.judge_calibration import StepBounds

Band = tuple[float, float]
"""Low and high: a judge is unsure about samples with a score between them."""

BANDS: Mapping[str, Mapping[Ability, Band]] = {
    "overlap": {"support": (0.27, 0.94)},
    "embedding": {"support": (0.16, 0.98)},
    "nli": {"support": (0.1, 0.9)},
    "detector": {"support": (0.0, 1.0)},
}
"""Where judges without a threshold are unsure, by word and kind of criterion; a missing kind is always unsure.

Outside these bands the judge agrees with 95 % of the labels in the calibration halves (`benches/judges.md`). The band
of `nli` is not calibrated, because it depends on the model; it is set by probability. That of `detector`
leaves every answer with some unsupported tokens to the next judge.
"""
_WORST_BANDS: Mapping[Ability, Band] = {"support": (0.18, 0.97)}
"""The same for `overlap` with `combine: worst`."""
_ALL_OR_NOTHING: Band = (0.0, 1.0)
_NEVER_SURE: Band = (-math.inf, math.inf)


class CascadeStep(BaseModel):
    """A judge, and the band of scores in which it is unsure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: JudgeName = Field(description="A name under `judges:`, or a judge without required keys, such as overlap.")
    low: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The judge decides scores up to this one; the default is calibrated for its kind.",
    )
    high: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The judge decides scores from this one up; the default is calibrated for its kind.",
    )

    @model_validator(mode="after")
    def _check_band(self) -> CascadeStep:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low ({self.low:g}) is above high ({self.high:g})")
        return self


class CascadeNode(JudgeNode):
    """Asks judges in order: each decides the samples that it is sure about, and the next one gets the rest."""

    steps: tuple[JudgeName | CascadeStep, ...] = Field(
        min_length=2,
        description="Judges, the cheapest first: names, or {judge: name, low: 0.3, high: 0.9} with the scores between "
        "which the judge is unsure. Samples that a judge failed on go to the next one too; the last one decides the "
        "rest.",
    )

    @field_validator("steps")
    @classmethod
    def _check_steps(cls, steps: tuple[str | CascadeStep, ...]) -> tuple[str | CascadeStep, ...]:
        names = [_step(step).judge for step in steps]
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise ValueError(f"'{twice[0]}' is listed twice")
        last = _step(steps[-1])
        if last.low is not None or last.high is not None:
            raise ValueError(
                f"'{last.judge}' is the last step, which decides every remaining sample; remove its low and high"
            )
        return steps


def _step(step: str | CascadeStep) -> CascadeStep:
    return CascadeStep(judge=step) if isinstance(step, str) else step


class Cascade(ComposedJudge[CascadeNode]):
    """Asks each step about the samples that the steps before it were unsure about or failed on.

    A step is sure if its score is at most `low` or at least `high`; a grade is scaled to [0, 1] first. The defaults of
    these keys are calibrated for overlap, embedding and nli; `calibration` sets others. If one of these has its own
    `threshold`, it is sure where no claim or every claim is supported, and a detector where no token or every token is.
    Any other judge is sure of everything, so the next step gets only the samples that it failed on: an endpoint with a
    local fallback is such a cascade. A step that finds nothing to judge is unsure. The score is the deciding step's, on
    that step's scale.
    """

    known_as = ("fallback", "tiered", "escalation")

    @property
    def names(self) -> Sequence[str]:
        return [_step(step).judge for step in self.node.steps]

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample, `decided_by` the step that gave it; a note says which share each step decided."""
        findings: dict[int, Finding | Failed] = {}
        deciders: dict[int, str] = {}
        notes: list[AnyNote] = []
        for judge, band in self._steps(criterion):
            waiting = [place for place in range(len(samples)) if place not in deciders]
            is_last = judge.context.name == self.names[-1]
            found = assess_or_fail(judge, criterion, [samples[place] for place in waiting], is_last=is_last)
            notes += found.notes
            for place, finding in zip(waiting, found.findings, strict=True):
                findings[place] = _sign(finding, judge.context.name, findings.get(place), criterion)
                if is_last or _is_sure(finding, band, criterion):
                    deciders[place] = judge.context.name
        if self.node.calibrated is not None and self.node.calibrated.score == "guarantee":
            findings = {
                place: self._send(finding, deciders.get(place), criterion) for place, finding in findings.items()
            }
        if samples:
            notes.append(self._remark_on_shares(criterion, samples, deciders))
        return Assessment([findings[place] for place in range(len(samples))], tuple(notes))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """An upper bound: steps without a model are run, others may be unsure of everything. Foresees no failures."""
        estimate, waiting = Estimate(), list(samples)
        for judge, band in self._steps(criterion):
            estimate |= judge.estimate(criterion, waiting)
            if band is None:
                break
            if is_free(judge):
                pairs = zip(waiting, assess_or_fail(judge, criterion, waiting).findings, strict=True)
                waiting = [sample for sample, finding in pairs if not _is_sure(finding, band, criterion)]
        return estimate

    def _send(self, finding: Finding | Failed, decider: str | None, criterion: Criterion) -> Finding | Failed:
        """The finding with the best score if the step that decided says yes, else with the worst."""
        bounds = self._read_bands(criterion)
        if bounds is None or decider is None or isinstance(finding, Failed) or finding.score is None:
            return finding
        high = bounds.get([*self.names].index(decider), _NEVER_SURE)[1]
        is_sent = scale_score(finding.score, criterion) >= high
        return replace(finding, score=unscale_score(float(is_sent), criterion))

    def find_lows(self, kind: Ability) -> Sequence[float | None]:
        """Up to which score each step says no for good: None if it never does, infinity if it decides everything."""
        lows: list[float | None] = []
        for step, judge in zip(self.node.steps, self.members, strict=True):
            band = _find_band(_step(step), judge, kind)
            lows.append(math.inf if band is None else None if band[0] == -math.inf else band[0])
        return [*lows[:-1], math.inf]

    def check(self) -> str | None:
        """Check the members, and that a calibration sets no bound that a step has already."""
        own = [step.judge for step in map(_step, self.node.steps) if step.low is not None or step.high is not None]
        if self.node.calibrated is not None and own:
            return f"the step '{own[0]}' has its own low or high, which the calibration would replace; remove one"
        return super().check()

    def _steps(self, criterion: Criterion) -> Sequence[tuple[Judge[Any], Band | None]]:
        """The judges, each with the band in which it is unsure; None if it decides everything it does not fail on."""
        calibrated = self._read_bands(criterion) or {}
        steps = zip(self.node.steps, self.members, strict=True)
        return [
            (judge, calibrated.get(place) or _find_band(_step(step), judge, criterion.kind))
            for place, (step, judge) in enumerate(steps)
        ]

    def _read_bands(self, criterion: Criterion) -> Mapping[int, Band] | None:
        """The bands that the calibration has for a criterion, by the place of the step; None if it has none for it."""
        entry = self.calibrations.get(digest_criterion(criterion))
        return None if entry is None else {int(one.step): _read_bounds(one) for one in entry.steps}

    def _remark_on_shares(self, criterion: Criterion, samples: Sequence[Sample], deciders: Mapping[int, str]) -> Remark:
        last = self.members[-1]
        spared = [sample for place, sample in enumerate(samples) if deciders[place] != last.context.name]
        savings = list_savings(last, criterion, spared, self.expected)
        decided = tuple(sum(decider == name for decider in deciders.values()) for name in self.names)
        prices = list_prices(last)
        return remark(_write_shares, [(decided, savings)], criterion.name, tuple(self.names), last.context.name, prices)


@writes_notes
def _write_shares(
    facts: Sequence[tuple[Sequence[int], Sequence[Saving]]],
    _criterion: str,
    names: Sequence[str],
    last: str,
    prices: Sequence[tuple[str, float, float]],
) -> Iterator[Note]:
    """A note on how many samples each step decided, and on the calls that the last one did not have to make."""
    counts = {name: sum(decided[place] for decided, _ in facts) for place, name in enumerate(names)}
    total = sum(counts.values())
    shares = [f"{name} decided {count} ({format_percent(count / total)})" for name, count in counts.items()]
    saving = describe_savings(chain.from_iterable(savings for _, savings in facts), prices)
    message = f"{count_noun(total, 'sample')}: {', '.join(shares)}"
    yield Note("cascade", f"{message}; {saving}" if saving else message, count=total - counts[last])


def _read_bounds(bounds: StepBounds) -> Band:
    low, high = _NEVER_SURE
    return (low if bounds.low is None else bounds.low, high if bounds.high is None else bounds.high)


def _find_band(step: CascadeStep, judge: Judge[Any], kind: Ability) -> Band | None:
    """The step's own band, else the calibrated one of the judge's word; None if there is neither."""
    known = _WORST_BANDS if getattr(judge.node, "combine", None) == "worst" else BANDS.get(judge.node.use)
    if known is None and step.low is None and step.high is None:
        return None
    has_threshold = getattr(judge.node, "threshold", None) is not None
    low, high = _ALL_OR_NOTHING if known and has_threshold else (known or {}).get(kind, _NEVER_SURE)
    return (low if step.low is None else step.low, high if step.high is None else step.high)


def _is_sure(finding: Finding | Failed, band: Band | None, criterion: Criterion) -> bool:
    if isinstance(finding, Failed) or finding.score is None:
        return False
    return band is None or not band[0] < scale_score(finding.score, criterion) < band[1]


def _sign(
    finding: Finding | Failed, name: str, before: Finding | Failed | None, criterion: Criterion
) -> Finding | Failed:
    """The finding with the name of the judge that gave it, and how far it lies from that of the step before, in [0, 1].

    A failure gets the reason why the step before failed.
    """
    if isinstance(finding, Finding):
        apart = finding.apart
        if apart is None and isinstance(before, Finding) and None not in (before.score, finding.score):
            apart = abs(scale_score(finding.score or 0.0, criterion) - scale_score(before.score or 0.0, criterion))
        return replace(finding, decided_by=finding.decided_by or name, apart=apart)
    if isinstance(before, Failed):
        return replace(finding, reason=f"{before.reason}; {finding.reason}")
    return finding


PLUGIN = Cascade
