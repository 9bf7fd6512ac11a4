from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.planning.question_shards import connect, deal, read_shard, share_limits
from rageval_spec.plugin.budget import WHOLE, Shard
from rageval_spec.spec import load
from tests.tiny import write_spec


def test_a_shard_is_written_as_its_number_and_how_many_there_are() -> None:
    assert read_shard("3/8") == (3, 8) == read_shard(" 3 / 8 ")
    assert read_shard("1/1") == WHOLE
    assert str(Shard(3, 8)) == "3/8"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("3", "--shard 3 is not a shard; write the shard's number and how many there are, such as 3/8"),
        ("a/b", "--shard a/b is not a shard; write the shard's number and how many there are, such as 3/8"),
        ("-1/8", "--shard -1/8 is not a shard; write the shard's number and how many there are, such as 3/8"),
        ("3/8/2", "--shard 3/8/2 is not a shard; write the shard's number and how many there are, such as 3/8"),
        ("", "--shard  is not a shard; write the shard's number and how many there are, such as 3/8"),
        ("٣/٨", "--shard ٣/٨ is not a shard; write the shard's number and how many there are, such as 3/8"),
        ("0/8", "--shard 0/8: shards are numbered from 1; write 1/8 to 8/8"),
        ("9/8", "--shard 9/8: shards are numbered from 1; write 1/8 to 8/8"),
        ("1/0", "--shard 1/0: there can be 1 to 10,000 shards"),
        ("1/10001", "--shard 1/10001: there can be 1 to 10,000 shards"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(written: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_shard(written)
    assert str(caught.value) == told


def test_questions_that_share_a_key_are_one_unit() -> None:
    keys: dict[str, list[str]] = {"a": ["x"], "b": [], "c": ["y", "z"], "d": ["x", "w"], "e": ["z"], "f": []}
    assert connect(keys) == [["a", "d"], ["c", "e"], ["b"], ["f"]]
    assert connect({**keys, "f": ["w", "y"]}) == [["a", "c", "d", "e", "f"], ["b"]]


IDS = st.lists(st.text(max_size=4), unique=True, max_size=40)


@given(IDS, st.integers(1, 12), st.randoms())
def test_the_shards_are_everything_each_once_and_balanced(ids: list[str], count: int, random: Any) -> None:
    shards = deal([[one] for one in ids], count)
    assert len(shards) == count
    assert sorted(one for shard in shards for one in shard) == sorted(ids)
    sizes = [len(shard) for shard in shards]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
    random.shuffle(ids)
    assert deal([[one] for one in ids], count) == shards


@given(st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=30), st.integers(1, 8))
def test_no_unit_is_parted(keys: list[list[int]], count: int) -> None:
    units = connect({f"q{place}": of for place, of in enumerate(keys)})
    shards = deal(units, count)
    assert sorted(one for shard in shards for one in shard) == sorted(f"q{place}" for place in range(len(keys)))
    assert all(sum(bool(shard & {*unit}) for shard in shards) == 1 for unit in units)
    largest = max(map(len, units), default=0)
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= max(largest, 1)


def test_who_gets_which_question_never_changes() -> None:
    """All machines of a matrix, and all versions, must deal alike."""
    dealt = [sorted(shard) for shard in deal([[f"q{number}"] for number in range(8)], 3)]
    assert dealt == [["q0", "q4", "q5"], ["q1", "q3", "q6"], ["q2", "q7"]]


def test_the_shares_of_the_limits_add_up(tmp_path: Path) -> None:
    limits = {"max_calls": {"systems": 10, "models": 23}, "max_cost": 2.0, "max_errors": "1%", "concurrency": 6}
    spec = load(write_spec(tmp_path, limits=limits))
    shares = [share_limits(spec, Shard(number, 4)).limits for number in (1, 2, 3, 4)]
    assert [one.call_limits.systems for one in shares] == [2, 3, 2, 3]
    assert [one.call_limits.models for one in shares] == [5, 6, 6, 6]
    assert [one.max_cost for one in shares] == [0.5] * 4
    assert [one.max_errors for one in shares] == ["1%"] * 4
    assert [one.concurrency for one in shares] == [1, 2, 1, 2]
    assert share_limits(spec, Shard(1, 4)).digest == spec.digest
    unlimited = load(write_spec(tmp_path, "none.yaml"))
    assert share_limits(unlimited, Shard(2, 40)).limits.call_limits == unlimited.limits.call_limits
    assert share_limits(unlimited, Shard(2, 40)).limits.concurrency == 1


@given(st.integers(0, 1000), st.integers(1, 50))
def test_every_share_of_a_number_is_fair(limit: int, count: int) -> None:
    shares = [Shard(number, count).take(limit) for number in range(1, count + 1)]
    assert sum(shares) == limit
    assert max(shares) - min(shares) <= 1


def fault(spec_path: Path, shard: Shard) -> str:
    with pytest.raises(SpecError) as caught:
        share_limits(load(spec_path), shard)
    return str(caught.value)


def test_what_cannot_be_shared_is_an_error_at_its_line(tmp_path: Path) -> None:
    told = fault(write_spec(tmp_path, limits={"max_calls": 5}), Shard(3, 8))
    assert "spec.yaml:21:14: 5 calls cannot be shared by 8 shards; allow at least 8 calls, or use fewer shards" in told
    told = fault(write_spec(tmp_path, limits={"max_calls": {"systems": 900, "models": 7}}), Shard(3, 8))
    assert "spec.yaml:23:13: 7 calls cannot be shared by 8 shards" in told
    share_limits(load(write_spec(tmp_path, limits={"max_calls": 0})), Shard(3, 8))


def test_stopping_is_an_error_at_its_line(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.1}], stopping={"first": 2})
    told = fault(path, Shard(3, 8))
    assert "spec.yaml:23:1: 'stopping' cannot be combined with --shard" in told
    assert "no shard sees the questions of the others; remove 'stopping', or run without --shard" in told
