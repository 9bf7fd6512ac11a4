"""`cascade`: a cheap judge first, and the next one only where it is unsure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rageval_spec.data.assessment import Ability, Assessment, Criterion, Estimate, Failed, Finding
from rageval_spec.data.evaluation import Note
from rageval_spec.judges.shared.composed import ComposedJudge
from rageval_spec.judging.delegation import assess_or_fail, describe_saving, is_free
from rageval_spec.judging.grading import scale_score
from rageval_spec.plugin import Judge, JudgeName, JudgeNode
from rageval_spec.wording import count_noun, format_percent

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample

Band = tuple[float, float]
"""Low and high: a judge is unsure of what it scores between them."""

BANDS: Mapping[str, Mapping[Ability, Band]] = MappingProxyType(
    {
        "overlap": MappingProxyType({"support": (0.27, 0.94)}),
        "embedding": MappingProxyType({"support": (0.16, 0.98)}),
        "nli": MappingProxyType({"support": (0.1, 0.9)}),
    }
)
"""Where judges without a threshold are unsure, by word and kind of criterion; what is not there is always unsure.

Outside these bands 95 % of the labels of the calibration halves agree (`benches/judges.md`); that of `nli` is set by
probabilities alone, because it depends on the model.
"""
_ALL_OR_NOTHING: Band = (0.0, 1.0)
_NEVER_SURE: Band = (-math.inf, math.inf)


class CascadeStep(BaseModel):
    """A judge, and between which scores it is unsure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: JudgeName = Field(description="A name under `judges:`, or a judge that needs no keys, such as overlap.")
    low: float | None = Field(
        default=None, ge=0, le=1, description="Up to this score it decides; by default as calibrated for its kind."
    )
    high: float | None = Field(
        default=None, ge=0, le=1, description="From this score on it decides; by default as calibrated for its kind."
    )

    @model_validator(mode="after")
    def _check_band(self) -> CascadeStep:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low ({self.low:g}) is above high ({self.high:g})")
        return self


class CascadeNode(JudgeNode):
    """Judges in order: each decides what it is sure of, and the next one sees the rest."""

    steps: tuple[JudgeName | CascadeStep, ...] = Field(
        min_length=2,
        description="Judges, the cheapest first: names, or {judge: name, low: 0.3, high: 0.9}, which says between "
        "which scores it is unsure. What a judge failed at goes to the next one too; the last one decides the rest.",
    )

    @field_validator("steps")
    @classmethod
    def _check_steps(cls, steps: tuple[str | CascadeStep, ...]) -> tuple[str | CascadeStep, ...]:
        names = [_step(step).judge for step in steps]
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise ValueError(f"'{twice[0]}' is there twice")
        last = _step(steps[-1])
        if last.low is not None or last.high is not None:
            raise ValueError(f"'{last.judge}' is the last, which decides the rest; remove its low and high")
        return steps


def _step(step: str | CascadeStep) -> CascadeStep:
    return CascadeStep(judge=step) if isinstance(step, str) else step


class Cascade(ComposedJudge[CascadeNode]):
    """Asks each step of what the steps before it were unsure of, or failed at.

    A step is sure of a score up to `low` or from `high` on (a grade is brought to [0, 1] first). Without these keys,
    overlap, embedding and nli have calibrated ones, and with a `threshold` of their own they are sure where none or
    all claims are supported; any other judge is sure of whatever it says, and the next step sees only what it failed
    at: an endpoint with a local fallback is such a cascade. A step that finds nothing to judge is unsure. The score is
    that of the step that decided, on its own scale.
    """

    node_type = CascadeNode
    known_as = ("fallback", "tiered", "escalation")

    @property
    def names(self) -> Sequence[str]:
        """The judges of its steps."""
        return [_step(step).judge for step in self.node.steps]

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """A finding a sample, `decided_by` the step that gave it; a note says what share each step decided.

        Raises:
            LimitError: the spec's limits allow no further call.
            RagevalError: the last step can assess nothing, or the spec or a file is wrong.
        """
        findings: dict[int, Finding | Failed] = {}
        deciders: dict[int, str] = {}
        notes: list[Note] = []
        for judge, band in self._steps(criterion):
            waiting = [place for place in range(len(samples)) if place not in deciders]
            is_last = judge.context.name == self.names[-1]
            assess = _assess_all if is_last else assess_or_fail
            found, told = assess(judge, criterion, [samples[place] for place in waiting])
            notes += told
            for place, finding in zip(waiting, found, strict=True):
                findings[place] = _sign(finding, judge.context.name, findings.get(place))
                if is_last or _is_sure(finding, band, criterion):
                    deciders[place] = judge.context.name
        if samples:
            notes.append(self._remark_on_shares(criterion, samples, deciders))
        return Assessment([findings[place] for place in range(len(samples))], tuple(dict.fromkeys(notes)))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """At most what is yet to be asked: steps that need no model are asked, others may be unsure of everything.

        What a step will fail at is not foreseen.
        """
        estimate, waiting = Estimate(), list(samples)
        for judge, band in self._steps(criterion):
            estimate |= judge.estimate(criterion, waiting)
            if band is None:
                break
            if is_free(judge):
                findings, _ = assess_or_fail(judge, criterion, waiting)
                pairs = zip(waiting, findings, strict=True)
                waiting = [sample for sample, finding in pairs if not _is_sure(finding, band, criterion)]
        return estimate

    def _steps(self, criterion: Criterion) -> Sequence[tuple[Judge[Any], Band | None]]:
        """The judges, and where each is unsure; None where it decides whatever it can say something about."""
        steps = zip(self.node.steps, self.members, strict=True)
        return [(judge, _find_band(_step(step), judge, criterion.kind)) for step, judge in steps]

    def _remark_on_shares(self, criterion: Criterion, samples: Sequence[Sample], deciders: Mapping[int, str]) -> Note:
        last = self.members[-1]
        counts = {name: sum(decider == name for decider in deciders.values()) for name in self.names}
        shares = [f"{name} decided {count} ({format_percent(count / len(samples))})" for name, count in counts.items()]
        spared = [sample for place, sample in enumerate(samples) if deciders[place] != last.context.name]
        saving = describe_saving(last, criterion, spared, self.expected)
        message = f"{count_noun(len(samples), 'sample')}: {', '.join(shares)}"
        return Note("cascade", f"{message}; {saving}" if saving else message, count=len(spared))


def _assess_all(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample]
) -> tuple[Sequence[Finding | Failed], tuple[Note, ...]]:
    if not samples:
        return (), ()
    assessment = judge.assess(criterion, samples)
    return assessment.findings, assessment.notes


def _find_band(step: CascadeStep, judge: Judge[Any], kind: Ability) -> Band | None:
    """As the step says, else as calibrated for the judge's word; None where nothing is said."""
    known = BANDS.get(judge.node.use)
    if known is None and step.low is None and step.high is None:
        return None
    has_threshold = getattr(judge.node, "threshold", None) is not None
    low, high = _ALL_OR_NOTHING if known and has_threshold else (known or {}).get(kind, _NEVER_SURE)
    return (low if step.low is None else step.low, high if step.high is None else step.high)


def _is_sure(finding: Finding | Failed, band: Band | None, criterion: Criterion) -> bool:
    if isinstance(finding, Failed) or finding.score is None:
        return False
    return band is None or not band[0] < scale_score(finding.score, criterion) < band[1]


def _sign(finding: Finding | Failed, name: str, before: Finding | Failed | None) -> Finding | Failed:
    """The finding with who gave it; a failure with why the step before was of no help."""
    if isinstance(finding, Finding):
        return replace(finding, decided_by=finding.decided_by or name)
    if isinstance(before, Failed):
        return replace(finding, reason=f"{before.reason}; {finding.reason}")
    return finding


PLUGIN = Cascade
