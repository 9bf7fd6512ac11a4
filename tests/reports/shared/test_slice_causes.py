"""Causes that are more frequent in a slice than elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.data.diagnosis import Cause, CauseCount, Diagnosis
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.reports.shared.slice_causes import list_frequent_causes, list_slice_counts
from tests.sample_evaluation import make_evaluation


def count(cause: Cause, number: int, total: int, slice_name: str | None = None) -> CauseCount:
    return CauseCount("golden", "bm25", cause, number, total, number / total, None, slice_name)


def diagnosed(*counts: CauseCount) -> Evaluation:
    return replace(make_evaluation(), diagnosis=Diagnosis("recall", "token_f1", None, 0.5, 0.7, counts))


def test_a_cause_that_is_frequent_in_one_slice_is_found_with_its_numbers() -> None:
    counts = count("retrieval", 20, 100), count("retrieval", 15, 20, "hard"), count("retrieval", 5, 50, "short")
    (found,) = list_frequent_causes(diagnosed(*counts))
    assert (found.count.slice, found.others, found.others_total) == ("hard", 5, 80)
    assert found.p_adjusted == pytest.approx(2 * 9.6e-10, rel=0.5)


def test_small_slices_good_causes_and_slices_of_everything_are_not_tested() -> None:
    counts = [count("fine", 50, 100), count("fine", 20, 20, "easy")]
    counts += [count("retrieval", 4, 100), count("retrieval", 4, 4, "few"), count("retrieval", 4, 100, "all")]
    assert list_frequent_causes(diagnosed(*counts)) == []


def test_many_slices_need_a_clearer_difference() -> None:
    whole, one = count("both", 10, 100), count("both", 5, 20, "a")
    assert len(list_frequent_causes(diagnosed(whole, one))) == 1
    others = [count("both", 2, 20, f"s{at}") for at in range(20)]
    assert list_frequent_causes(diagnosed(whole, one, *others)) == []


def test_the_counts_of_slices_are_grouped() -> None:
    counts = count("both", 10, 100), count("both", 5, 20, "a"), count("fine", 15, 20, "a")
    assert list_slice_counts(diagnosed(*counts)) == {("golden", "bm25"): {"a": [counts[1], counts[2]]}}
    assert list_slice_counts(make_evaluation()) == {}
