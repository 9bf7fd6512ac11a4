"""What people are asked, and on which scale."""

from __future__ import annotations

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.review.criteria import make_criterion


def test_a_scale_says_what_people_can_enter() -> None:
    assert make_criterion("faithfulness").choices == ("yes", "no")
    assert make_criterion("fluency", "1..5").choices == ("1", "2", "3", "4", "5")
    assert make_criterion("fluency", "1-5").scale == "1..5"
    assert make_criterion("change", "-2..2").choices == ("-2", "-1", "0", "1", "2")
    assert make_criterion("faithfulness", "claims").choices == ("supported", "contradicted", "not_enough_info")


@pytest.mark.parametrize("scale", ["5..1", "1..1", "0..100", "stars", "", "1.5..2"])
def test_other_scales_are_refused_with_what_to_write(scale: str) -> None:
    with pytest.raises(UsageError, match=r"1\.\.5"):
        make_criterion("fluency", scale)


def test_guidelines_follow_the_name_of_the_metric_and_its_scale() -> None:
    known = make_criterion("answer_completeness", "1..5")
    assert known.question == "Does the answer contain everything that the question asks for?"
    assert "\n5: Everything that the question asks for is there.\n4: A minor detail is missing.\n" in known.guidelines
    assert known.guidelines.endswith("\n1: The answer does not answer the question.")
    own = make_criterion("tone", summary="Whether the answer is polite.")
    assert own.question == "Is the answer good by 'tone'?"
    assert own.guidelines.startswith("Whether the answer is polite.\nyes: ")


def test_the_ends_of_other_scales_are_described() -> None:
    for name, scale in (("tone", "1..5"), ("fluency", "0..10")):
        low, high = scale.split("..")
        assert make_criterion(name, scale).guidelines.endswith(
            f"\n{high}: nothing to improve.\n{low}: useless or wrong."
        )
