from __future__ import annotations

import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.plugin import Context, Dataset, DatasetNode


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
