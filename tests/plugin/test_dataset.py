"""The contract of labels: the scale, and a source in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from rageval_spec.data.labels import Label, LabelScale
from rageval_spec.data.tables import Collection
from rageval_spec.plugin import Context, Dataset, DatasetNode, Labels, LabelsNode


class Empty(Dataset[DatasetNode]):
    node_type = DatasetNode

    def open(self) -> Collection:
        return Collection(self.context.name)


def test_a_dataset_can_have_every_part_until_it_is_opened() -> None:
    dataset = Empty(DatasetNode(use="empty"), Context("golden"))
    assert dataset.parts == {"queries", "corpus"}
    assert dataset.open().queries is None


def test_a_dataset_must_implement_open() -> None:
    with pytest.raises(TypeError, match="open"):
        Dataset(DatasetNode(use="empty"), Context("golden"))  # type: ignore[abstract]


def test_a_dataset_need_not_know_where_its_questions_are() -> None:
    assert Empty(DatasetNode(use="empty"), Context("golden")).iterate_questions() is None


class Two(Labels[LabelsNode]):
    node_type = LabelsNode

    def read(self) -> Sequence[Label]:
        return [Label(query_id, "", 5.0, "ann") for query_id in ("q1", "q2")]


def test_the_scale_is_from_the_worst_to_the_best() -> None:
    assert Two(LabelsNode(use="two"), Context("people")).scale == LabelScale(0, 1)
    assert Two(LabelsNode(use="two", scale=(5, 1)), Context("people")).scale == LabelScale(5, 1)
    with pytest.raises(ValidationError, match="two different numbers, the worst first"):
        LabelsNode(use="two", scale=(1, 1))
