from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.assessment import Assessment, Claim, Failed, Finding
from rageval_spec.data.note import Note
from rageval_spec.metrics.shared.criteria import ANSWER_IN_CONTEXTS, ANSWER_IN_REFERENCE
from rageval_spec.metrics.shared.findings import collect_notes, f_beta, is_met, measure_finding, measure_findings
from rageval_spec.plugin import Measurement


def test_findings_become_measurements_and_none_is_lost() -> None:
    note = Note("few", "few")
    claim = Claim("a", 0.25, "contradicted", 3, 9, 1, "not a", "it says so")
    found: list[Finding | Failed] = [
        Finding(0.25, (claim,), "one claim", "nli", 0.8),
        Finding(None, reason="no claim"),
        Failed("502", "<html>"),
    ]
    measured = measure_findings(Assessment(found, (note,)))
    assert measured.notes == (note,)
    assert list(measured.measurements) == [
        Measurement(
            0.25,
            "scored",
            "one claim",
            {
                "score": 0.25,
                "claims": [
                    {
                        "text": "a", "score": 0.25, "verdict": "contradicted", "start": 3, "end": 9, "source": 1,
                        "evidence": "not a", "reason": "it says so",
                    }
                ],
                "decided_by": "nli",
                "confidence": 0.8,
            },
        ),
        Measurement(None, "unscorable", "no claim", {"claims": []}),
        Measurement(None, "error", "502", {"raw": "<html>"}),
    ]  # fmt: skip
    assert measure_finding(Finding(0.0, (Claim("a", 0.0),))).details == {
        "score": 0.0,
        "claims": [{"text": "a", "score": 0.0}],
    }
    assert measure_finding(Failed("timeout")).details is None


@pytest.mark.parametrize(
    ("claim", "met"),
    [
        (Claim("a", 0.2, "supported"), True),  # the verdict follows the judge's own threshold
        (Claim("a", 0.9, "not_enough_info"), False),
        (Claim("a", 0.9, "contradicted"), False),
        (Claim("a", 0.5), True),
        (Claim("a", 0.49), False),
    ],
)
def test_what_counts_as_supported(claim: Claim, met: bool) -> None:
    assert is_met(claim) is met


def test_notes_name_the_assessment_if_there_are_several() -> None:
    slow, both = Note("slow", "slow", count=1), Note("cut", "cut")
    found = [Assessment((), (both, slow)), Assessment((), (both,))]
    assert collect_notes([ANSWER_IN_CONTEXTS, ANSWER_IN_REFERENCE], found) == (
        both,
        Note("slow", "answer against contexts: slow", count=1),
    )
    assert collect_notes([ANSWER_IN_CONTEXTS], found[:1]) == (both, slow)
    assert collect_notes([], []) == ()


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10))
def test_f_beta_is_the_weighted_harmonic_mean(precision: float, recall: float, beta: float) -> None:
    value = f_beta(precision, recall, beta)
    if precision < 1e-9 or recall < 1e-9:
        assert value <= 1e-6
        return
    weight = 1 / (1 + beta**2)
    assert value == pytest.approx(1 / (weight / precision + (1 - weight) / recall), rel=1e-6)
    assert min(precision, recall) - 1e-9 <= value <= max(precision, recall) + 1e-9


def test_f_beta_by_counts() -> None:
    # 2 right, 1 wrong, 2 missing: 2 / (2 + 0.5 * (1 + 2)) = 4/7
    assert f_beta(2 / 3, 2 / 4) == pytest.approx(4 / 7)
    assert f_beta(2 / 3, 2 / 4, 2.0) == pytest.approx(5 * 2 / (5 * 2 + 4 * 2 + 1))
    assert f_beta(0.0, 0.0) == 0.0
