"""The contract of labels: the scale, and a source in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from rageval_spec.data.labels import Label, Scale
from rageval_spec.plugin import Context, Labels, LabelsNode


class Two(Labels[LabelsNode]):
    node_type = LabelsNode

    def read(self) -> Sequence[Label]:
        return [Label(query_id, "", 5.0, "ann") for query_id in ("q1", "q2")]


def test_the_scale_is_from_the_worst_to_the_best() -> None:
    assert Two(LabelsNode(use="two"), Context("people")).scale == Scale(0, 1)
    assert Two(LabelsNode(use="two", scale=(5, 1)), Context("people")).scale == Scale(5, 1)
    with pytest.raises(ValidationError, match="two different numbers, the worst first"):
        LabelsNode(use="two", scale=(1, 1))
