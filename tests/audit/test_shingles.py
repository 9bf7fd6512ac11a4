from __future__ import annotations

import random

from rageval_spec.audit import shingles
from rageval_spec.audit.shingles import compare, find_similar, list_shingles


def make_texts(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join("".join(drawn.choices("abcdefgh", k=5)) for _ in range(6)) for _ in range(count)]


def test_all_pairs_above_the_least_share_are_found() -> None:
    texts = make_texts(300, 1)
    texts += [text.replace("a", "e", 1) for text in texts[:100]]
    least = 0.75
    own = [list_shingles(text) for text in texts]
    wanted = {
        (one, other) for one in range(len(texts)) for other in range(one) if compare(own[one], own[other]) >= least
    }
    found = [*find_similar(texts, least)]
    assert len(wanted) > 50
    assert {(pair.later, pair.earlier) for pair in found} == wanted
    assert all(pair.share == compare(own[pair.later], own[pair.earlier]) for pair in found)


def test_short_equal_and_odd_texts_are_compared() -> None:
    assert [(p.later, p.earlier, p.share) for p in find_similar(["a", "b", "a"], 0.9)] == [(2, 0, 1.0)]
    assert [(p.later, p.earlier) for p in find_similar(["", "", "x"], 0.9)] == [(1, 0)]
    assert [*find_similar(["東京はどこですか", "東京はどこですか?"], 0.6)] != []
    assert [*find_similar([], 0.5)] == [] and [*find_similar(["a \ud800"], 0.5)] == []


def test_a_template_of_many_questions_is_not_compared_with_itself_pair_by_pair() -> None:
    texts = [f"what is the balance of account number {number:05}" for number in range(3000)]
    candidates = shingles._find_candidates(texts)
    assert len(candidates) < 3000 * shingles._CROWD * 16 < 3000 * 2999 / 2


def test_only_texts_of_a_group_are_compared() -> None:
    texts = ["what is the balance of account", "what is the balance of accounts", "what is the balance of an account"]
    assert [(pair.later, pair.earlier) for pair in find_similar(texts, 0.5, ["a", "b", "a"])] == [(2, 0)]
