"""What all targets share."""

from __future__ import annotations

from rageval_spec.exchange.shared.target import Parcel, TargetNode
from rageval_spec.plugin import Context
from tests.exchange.tool import ToyTarget


def test_a_target_has_nothing_to_say_before_it_sends() -> None:
    target = ToyTarget(TargetNode(), Context("toy"))
    assert (target.destination, target.batch) == ("the toy", 2)
    target.close()


def test_the_kind_of_a_parcel_is_a_value_unless_it_says() -> None:
    assert Parcel("k", {}, "s").kind == "value"
