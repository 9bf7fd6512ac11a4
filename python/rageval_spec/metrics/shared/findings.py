"""Turns a judge's findings into measurements, details and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rageval_spec.data.assessment import Failed, Finding, is_supported
from rageval_spec.metrics.shared.reasons import UNDECIDED
from rageval_spec.plugin import Measured, Measurement

if TYPE_CHECKING:
    from rageval_spec.data.assessment import Assessment, Claim, Criterion
    from rageval_spec.data.note import Note

SHOWN = 200
"""Characters of a context that details show; the answers have all of it, and every metric would store it again."""


def first_failure(findings: Sequence[object]) -> Failed | None:
    """The first failure; None if there is none."""
    return next((finding for finding in findings if isinstance(finding, Failed)), None)


def collect_notes(criteria: Sequence[Criterion], assessments: Sequence[Assessment]) -> tuple[Note, ...]:
    """The distinct notes of one assessment per criterion; a note that not all have names its criterion's texts."""
    shared = set(assessments[0].notes).intersection(*(one.notes for one in assessments)) if assessments else set()
    return tuple(
        dict.fromkeys(
            note if note in shared else replace(note, message=f"{_name_texts(criterion)}: {note.message}")
            for criterion, assessment in zip(criteria, assessments, strict=True)
            for note in assessment.notes
        )
    )


def _name_texts(criterion: Criterion) -> str:
    return f"{criterion.text} against {criterion.against}".replace("_", " ")


def is_met(claim: Claim) -> bool:
    """Whether a claim is supported, or a context useful: by its verdict, or by its score if it has none."""
    return is_supported(claim.verdict, claim.score)


def measure_findings(assessment: Assessment) -> Measured:
    """A judge's findings as measurements: a score, nothing to judge, or a failure."""
    return Measured([measure_finding(finding) for finding in assessment.findings], assessment.notes)


def measure_finding(finding: Finding | Failed) -> Measurement:
    """The judge's score as the value; unscorable without a score, and an error if the judge failed."""
    if isinstance(finding, Failed):
        return measure_failure(finding)
    details = describe_finding(finding)
    if finding.score is None:
        return Measurement.unscorable(finding.reason or UNDECIDED, details)
    return Measurement.scored(finding.score, finding.reason, details)


def measure_failure(failed: Failed) -> Measurement:
    """An error with its reason, and the judge's raw reply if there is one."""
    if failed.is_unfinished:
        return Measurement.unfinished(failed.reason)
    return Measurement.error(failed.reason, None if failed.raw is None else {"raw": failed.raw})


def describe_finding(finding: Finding) -> dict[str, Any]:
    """The details of a value: `score`, `claims`, `decided_by`, `confidence`, `apart`; unknown ones are left out."""
    return without_unknown(
        score=finding.score,
        claims=describe_claims(finding.claims),
        decided_by=finding.decided_by,
        confidence=finding.confidence,
        apart=finding.apart,
    )


def sign_details(measurement: Measurement, criterion: Criterion | None, judge: str) -> Measurement:
    """The measurement with the judge in its details, and with the `part` that was judged and what it was judged
    `against` where the details hold claims. Details without findings stay as they are.
    """
    details = measurement.details
    if details is None or not (_holds_claims(details) or _holds_both_ways(details)):
        return measurement
    parts = {"part": criterion.text, "against": criterion.against} if criterion and _holds_claims(details) else {}
    return replace(measurement, details={**details, **parts, "judge": judge})


def _holds_claims(details: Mapping[str, Any]) -> bool:
    return any(isinstance(found := details.get(key), list) and found for key in ("claims", "contexts"))


def _holds_both_ways(details: Mapping[str, Any]) -> bool:
    parts = (details.get(key) for key in ("answer", "reference"))
    return any(isinstance(part, dict) and part.get("claims") for part in parts)


def describe_claims(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Claims in JSON types: `text, verdict, score, start, end, source, evidence, reason`, without unknown ones."""
    return [
        without_unknown(
            text=claim.text,
            verdict=claim.verdict,
            score=claim.score,
            start=claim.start,
            end=claim.end,
            source=claim.source,
            evidence=claim.evidence,
            reason=claim.reason,
        )
        for claim in claims
    ]


def describe_contexts(finding: Finding) -> dict[str, Any]:
    """As `describe_finding`, for a finding on contexts: `contexts` in their order, with long texts cut."""
    details = describe_finding(finding)
    contexts = [{**claim, "text": _cut(claim["text"])} for claim in details.pop("claims")]
    return {**details, "contexts": [{key: one[key] for key in one if key not in ("start", "end")} for one in contexts]}


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1].rstrip() + "…"


def without_unknown(**details: Any) -> dict[str, Any]:
    """The details that are not None."""
    return {key: value for key, value in details.items() if value is not None}


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """(1 + beta^2) * precision * recall / (beta^2 * precision + recall); 0 if both are 0."""
    if precision == 0 or recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
