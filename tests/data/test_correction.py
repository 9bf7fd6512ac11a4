from __future__ import annotations

from rageval_spec.data.correction import Correction
from rageval_spec.data.interval import Interval


def test_a_correction_without_a_number_says_why() -> None:
    found = Correction("ppi", 0.8, Interval(0.7, 0.9), None, None, 0, None, "people", reason="no answer has labels")
    assert (found.labelled, found.worth, found.is_clipped) == (None, None, False)
    assert found.reason == "no answer has labels"
