"""Strategies for judgements and rankings as dicts, and a small collection."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]

QUERY_IDS = ["q1", "q10", "q2", "Q", "é"]
# Beyond the Basic Multilingual Plane: bytes of UTF-8 and code points agree on the order, units of UTF-16 do not.
DOC_IDS = ["a", "ab", "b", "B", "9", "10", "é", "z", "文", "\uff5e", "\U0001f600", "q1", "Q"]
EQUAL_AS_FLOAT32 = [1.0, 1.00000001, 0.1, 0.1 + 1e-12, 16777216.0, 16777217.0, 1e300, 2e39, 1e-45, 5e-324, 0.0, -0.0]
SCORES = [*EQUAL_AS_FLOAT32, 0.5, -2.0, 3.0, -1e300, float("inf"), float("-inf"), 2, -1]


class Collection(NamedTuple):
    qrels: Qrels
    run: Run


def rankings(min_size: int = 0, max_size: int = 12) -> st.SearchStrategy[dict[str, float]]:
    return st.dictionaries(st.sampled_from(DOC_IDS), st.sampled_from(SCORES), min_size=min_size, max_size=max_size)


def judgements(lowest: int = -2, min_size: int = 1) -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(st.sampled_from(DOC_IDS), st.integers(lowest, 4), min_size=min_size)


def collections(
    of_query: st.SearchStrategy[dict[str, int]] | None = None, min_retrieved: int = 0
) -> st.SearchStrategy[Collection]:
    qrels = st.dictionaries(st.sampled_from(QUERY_IDS), judgements() if of_query is None else of_query, min_size=1)
    run = st.dictionaries(st.sampled_from(QUERY_IDS), rankings(min_retrieved))
    return st.builds(Collection, qrels, run)


SMALL = Collection(
    qrels={
        "q1": {"d1": 2, "d2": 0, "d3": 1, "d9": -1},
        "q2": {"d1": 1, "d4": 3, "d5": 0},
        "q3": {"d7": 1},
        "ünï 文": {"é": 1, "d1": 0},
    },
    run={
        "q2": {"d4": 1.5, "d1": 1.5, "d5": 1.5, "d6": 0.5},
        "q1": {"d2": 3.0, "d1": 2.0, "d8": 2.0, "d9": 1.0, "d3": -1.0},
        "unjudged": {"d1": 1.0},
        "ünï 文": {"d1": 1.00000001, "é": 1.0},
    },
)
"""Has ties (one of them only in float32), grades, an unjudged and a missing query, and ids that are not ASCII."""
