"""A series says where its numbers come from."""

from __future__ import annotations

from rageval_spec.data.trend import Series


def test_the_place_names_what_is_known() -> None:
    assert Series("ndcg@10", "golden", "bm25", "level=hard", ()).place == "golden, bm25, level=hard"
    assert Series("cost", "", "", None, ()).place == ""
