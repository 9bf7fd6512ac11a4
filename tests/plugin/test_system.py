from __future__ import annotations

import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.errors import UsageError
from rageval_spec.plugin import Context, System, SystemNode
from rageval_spec.registry import load

CAN_ANSWER = {"command", "file", "http", "python"}
RETRIEVE = {"bm25", "dense", "hybrid", "rerank"}


class Answers(System[SystemNode]):
    node_type = SystemNode
    can_answer = True


def test_a_system_that_can_answer_does_so_on_every_dataset_by_default() -> None:
    node = SystemNode(use="x")
    assert Answers(node, Context("x")).answers_on("golden")
    assert not System(node, Context("x")).answers_on("golden")


@pytest.mark.parametrize("word", sorted(CAN_ANSWER | RETRIEVE))
def test_a_system_declares_whether_it_can_answer(word: str) -> None:
    assert load("systems", word).can_answer == (word in CAN_ANSWER)


def test_a_system_without_rankings_or_answers_says_so() -> None:
    system = System(SystemNode(use="x"), Context("mine"))
    collection = Collection("golden")
    with pytest.raises(UsageError, match=r"systems\.mine \(use: x\) gives no ranking of golden"):
        system.retrieve(collection, {})
    with pytest.raises(UsageError, match=r"systems\.mine \(use: x\) gives no answers to golden"):
        system.answer(collection)
    assert system.find_answers(collection).is_empty()
