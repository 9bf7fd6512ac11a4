from __future__ import annotations

from rageval_spec.data.comparability import Overlap


def test_the_queries_of_an_evaluation_are_those_that_are_the_same_changed_or_new() -> None:
    overlap = Overlap("golden", "main", same=37, changed=2, added=1, removed=5)
    assert (overlap.total, overlap.is_complete) == (40, False)
    assert Overlap("golden", "main", same=40).is_complete
    assert not Overlap("golden", "main", same=40, removed=1).is_complete
