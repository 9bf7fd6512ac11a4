from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evidence.passages import (
    Chunk,
    Coverage,
    Passage,
    PassageRelevance,
    Touch,
    judge_ranking,
    name_document,
)
from rageval_spec.errors import DataError

ANSWER = Passage("guide.md", 100, 200, grade=2)
FEE = Passage("guide.md", 300, 310)


def touch(start: int, end: int, passage: int = 0) -> Touch:
    return Touch(passage, start, end)


def test_the_chunk_at_which_half_of_a_passage_has_been_seen_finds_it() -> None:
    """Thirds: the second one makes it 66 characters of 100."""
    thirds = {"a": [touch(0, 33)], "b": [touch(33, 66)], "c": [touch(66, 100)]}
    assert judge_ranking([ANSWER], thirds.items(), {}, 0.5) == {"a": 0, "b": 2, "c": 0}
    assert judge_ranking([ANSWER], [*thirds.items()][::-1], {}, 0.5) == {"c": 0, "b": 2, "a": 0}
    assert judge_ranking([ANSWER], [("a", thirds["a"])], {}, 0.5) == {"a": 0, "guide.md[100:200]": 2}
    assert judge_ranking([ANSWER], [], thirds, 0.5) == {"a": 2}, "c has the most, and a is the first of equals"


def test_graded_coverage_counts_what_each_chunk_adds_in_tenths_of_the_grade() -> None:
    """a has 60 characters; b has 60 with 20 of a's, so it adds 40; what repeats them adds nothing."""
    chunks = {"a": [touch(0, 60)], "b": [touch(40, 100)], "again": [touch(10, 50)]}
    assert judge_ranking([ANSWER], chunks.items(), {}, None) == {"a": 12, "b": 8, "again": 0}
    assert judge_ranking([ANSWER], [("b", chunks["b"])], {}, None) == {"b": 12, "guide.md[100:200]": 8}
    assert judge_ranking([ANSWER], [("b", chunks["b"])], chunks, None) == {"b": 12, "a": 8}
    assert judge_ranking([ANSWER], [("edge", [touch(0, 4)])], {}, None) == {"edge": 0, "guide.md[100:200]": 20}


def test_a_chunk_with_several_passages_has_the_highest_of_their_grades() -> None:
    whole = [touch(0, 100), touch(0, 10, 1)]
    assert judge_ranking([ANSWER, FEE], [("guide.md", whole)], {}, 0.5) == {"guide.md": 2}
    parts = {"a": [touch(0, 100)], "b": [touch(0, 10, 1)]}
    assert judge_ranking([ANSWER, FEE], [], parts, 0.5) == {"a": 2, "b": 1}
    assert judge_ranking([ANSWER, FEE], [], parts | {"guide.md": whole}, 0.5) == {"guide.md": 2}


def test_what_no_chunk_contains_stays_relevant_under_its_own_name() -> None:
    lost = Passage("guide.md", quote="A very long quote that nobody can read to its end because it never does end")
    found = judge_ranking([FEE, lost], [], {"a": [touch(0, 10)]}, 0.5)
    assert found == {"a": 1, 'guide.md "A very long quote that nobody can read to its end because i…"': 1}


SHARES = st.sampled_from([None, 0.1, 0.5, 0.8, 1.0])
SPANS = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted).filter(lambda span: span[0] < span[1])
TOUCHES = st.lists(st.tuples(st.integers(0, 1), SPANS), max_size=3)


def list_slowly(
    lengths: Sequence[int], ranked: Sequence[tuple[str, Sequence[Touch]]], at_least: float | None
) -> dict[str, int]:
    """What `judge_ranking` gives for the chunks of a ranking, with sets of characters and fractions."""
    seen: list[set[int]] = [set() for _ in lengths]
    reached, judged = [0] * len(lengths), {}
    for chunk_id, touches in ranked:
        for number, start, end in touches:
            seen[number] |= {*range(start, end)}
        now = []
        for characters, length in zip(seen, lengths, strict=True):
            share = Fraction(len(characters), length)
            tenths = int(10 * share + Fraction(1, 2))
            now.append(tenths if at_least is None else int(share >= Fraction(str(at_least))))
        judged[chunk_id] = max([0, *(after - before for before, after in zip(reached, now, strict=True))])
        reached = now
    return judged


@given(st.lists(TOUCHES, max_size=6), SHARES)
def test_relevance_equals_that_of_sets_of_characters(chunks: list[list[tuple[int, list[int]]]], least: float) -> None:
    passages = [Passage("a", 0, 12), Passage("b", 0, 12)]
    ranked = [(f"c{n}", [Touch(p, *span) for p, span in one]) for n, one in enumerate(chunks)]
    found = judge_ranking(passages, ranked, {}, least)
    slow = list_slowly([12, 12], ranked, least)
    assert {chunk_id: found[chunk_id] for chunk_id in slow} == slow


@given(st.lists(TOUCHES, max_size=6), SHARES, st.randoms())
def test_a_passage_is_worth_the_same_in_every_order(
    chunks: list[list[tuple[int, list[int]]]], least: float, random: object
) -> None:
    """One passage at a time: what all chunks and the rest have together is its grade, or ten times that."""
    touches = {f"c{n}": [Touch(0, *span) for _, span in one] for n, one in enumerate(chunks)}
    order = [*touches.items()]
    random.shuffle(order)  # type: ignore[attr-defined]
    for ranked in (order, order[: len(order) // 2], []):
        found = judge_ranking([Passage("a", 0, 12, grade=3)], ranked, touches, least)
        assert sum(found.values()) == (30 if least is None else 3)


def test_shares_of_a_passage_count_each_character_once() -> None:
    coverage = Coverage([ANSWER], 0.5)
    assert (coverage.add([touch(0, 30), touch(20, 40)]), coverage.share(0)) == (0, 0.4)
    assert coverage.weigh([touch(90, 100)]) == (2, 10) and coverage.share(0) == 0.4


def test_the_id_of_a_chunk_can_name_its_document() -> None:
    known = {"guide.md"}
    assert [name_document(Chunk(), one, known).document for one in ("guide.md", "guide.md#3", "guide.md-3")] == [
        "guide.md", "guide.md", None,
    ]  # fmt: skip
    assert name_document(Chunk("other.md"), "guide.md", known).document == "other.md"


def relate(corpus: Mapping[str, Sequence[Touch]], judged: pl.DataFrame | None = None) -> PassageRelevance:
    return PassageRelevance(
        {"q1": (ANSWER,)}, {"q1": corpus}, lambda passage, chunk: None, 0.5, frozenset({*corpus, "other"}), judged
    )


def run_of(**scores: float) -> pl.DataFrame:
    return pl.DataFrame(
        [("q1", doc, score) for doc, score in scores.items()], ["query_id", "doc_id", "score"], orient="row"
    )


def test_a_run_is_read_in_trec_evals_order_so_that_ties_count_once() -> None:
    relevance = relate({"a": [touch(0, 100)], "b": [touch(0, 100)]})
    assert relevance.judge_run(run_of(a=1.0, b=1.0)).rows() == [("q1", "b", 2), ("q1", "a", 0)]
    assert relevance.judge_run(run_of(a=1.0, b=1.0 + 1e-12)).rows() == [("q1", "b", 2), ("q1", "a", 0)]
    assert relevance.judge_run(run_of(other=1.0)).rows() == [("q1", "a", 2)]


def test_a_run_of_unknown_chunks_is_refused_because_all_its_values_would_be_0() -> None:
    with pytest.raises(
        DataError, match=r"none of the chunks in the run is a chunk of the dataset's corpus .*'x9'.*'corpus'"
    ):
        relate({"a": [touch(0, 100)]}).judge_run(run_of(x9=1.0))


def test_chunks_that_are_judged_by_their_ids_keep_the_higher_of_both_grades() -> None:
    judged = pl.DataFrame([("q1", "a", 3), ("q2", "z", 1)], ["query_id", "doc_id", "relevance"], orient="row")
    relevance = relate({"a": [touch(0, 100)]}, judged)
    assert relevance.judge().rows() == [("q1", "a", 3), ("q2", "z", 1)]
    assert relevance.tabulate_passages().rows()[0] == ("q1", "guide.md[100:200]", 2)
