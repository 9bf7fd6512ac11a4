"""Entries of `slices:` name the columns that they read."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec.spec.slices import ConditionNode, SliceNode


def test_columns_are_those_of_by_or_of_all_conditions() -> None:
    conditions = (
        ConditionNode(column="hops", min=2),
        ConditionNode(column="kind", equal="a"),
        ConditionNode(column="hops", max=9),
    )
    assert SliceNode(by="level").columns == ("level",)
    assert SliceNode(name="n", where=conditions).columns == ("hops", "kind")
    assert SliceNode(name="n", where=conditions[0]).conditions == conditions[:1]
    assert SliceNode(by="level").conditions == ()


def test_one_of_several_values_is_written_as_in() -> None:
    assert ConditionNode.model_validate({"column": "x", "in": ["a", 2, True]}).among == ("a", 2, True)
    with pytest.raises(ValidationError, match="at least 1 item"):
        ConditionNode.model_validate({"column": "x", "in": []})
