""""""

from collections import Counter

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.generation.chunks import Chunk
from rageval_spec.generation.question_mix import (
    PARTS,
    Kind,
    Mix,
    Picker,
    Slot,
    check_shares,
    read_percentage,
    read_shares,
)

TYPES = {"factual": 0, "analytical": 0, "comparative": 0, "procedural": 0}
MIX = Mix(
    {"factual": 40, "analytical": 35, "comparative": 15, "procedural": 10},
    {"easy": 30, "medium": 50, "hard": 20},
    {"plain": 60, "informal": 20, "typos": 20},
    multi_hop=25,
    unanswerable=10,
)


@pytest.mark.parametrize("count", [1, 7, 40, 200])
def test_every_share_is_met_within_one_question_at_any_length(count: int) -> None:
    slots = MIX.list_slots(count, seed=13)
    assert [slot.number for slot in slots] == list(range(count))
    for part in PARTS:
        made = Counter(getattr(slot, part) for slot in slots)
        for name, share in MIX.shares[part].items():
            assert abs(made[name] - share * count / 100) <= 1 + 1e-9, (part, name)


def test_two_hundred_questions_have_exactly_the_shares() -> None:
    slots = MIX.list_slots(200, seed=13)
    assert Counter(slot.type for slot in slots) == {
        "factual": 80,
        "analytical": 70,
        "comparative": 30,
        "procedural": 20,
    }
    assert Counter(slot.kind for slot in slots) == {"single": 130, "multi_hop": 50, "unanswerable": 20}


def test_combinations_follow_the_shares_too() -> None:
    slots = MIX.list_slots(200, seed=13)
    made = Counter((slot.type, slot.difficulty) for slot in slots)
    assert abs(made["factual", "hard"] - 16) <= 3
    assert abs(made["analytical", "easy"] - 21) <= 3


def test_more_questions_leave_the_first_as_they_were() -> None:
    assert MIX.list_slots(200, seed=13)[:50] == MIX.list_slots(50, seed=13)


def test_names_without_numbers_share_equally_and_zero_is_never_drawn() -> None:
    assert read_shares("factual, procedural", TYPES, "--types") == {"factual": 50, "procedural": 50}
    shares = read_shares("factual:100,procedural:0", TYPES, "--types")
    mix = Mix(shares, {"easy": 100}, {"plain": 100})
    assert {slot.type for slot in mix.list_slots(20, 1)} == {"factual"}


def test_percent_signs_and_thirds_are_read() -> None:
    found = read_shares("factual:33.3%,analytical:33.3%,procedural:33.3%", TYPES, "--types")
    assert sum(found.values()) == pytest.approx(100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "factual:40,analytical:40",
            "sum to 80, and must sum to 100; in the same proportions: factual:50,analytical:50",
        ),
        ("factual:2,analytical:1", "in the same proportions: factual:67,analytical:33"),
        ("facutal:100", "--types: unknown name 'facutal'; did you mean 'factual'?"),
        ("quiz:100", "there are factual, analytical, comparative and procedural"),
        ("factual:a lot", "the share of 'factual' is 'a lot', which is not a number; write factual:50,analytical:50"),
        ("factual:60,analytical", "'analytical' has no share, but others have"),
        ("factual:60,factual:40", "'factual' is given twice"),
        ("factual:-5,analytical:105", "the share of 'factual' is -5, and must be from 0 to 100"),
        ("factual:nan", "must be from 0 to 100"),
        ("factual:0", "sum to 0, and must sum to 100; write factual:50,analytical:50"),
        (" , ", "no shares are given; write factual:50,analytical:50"),
    ],
)
def test_a_wrong_mix_says_what_to_write(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_shares(text, TYPES, "--types")
    assert message in str(raised.value)


def test_shares_of_a_spec_are_checked_alike() -> None:
    with pytest.raises(UsageError, match="sum to 30"):
        check_shares({"factual": 30}, TYPES, "types")


def test_percentages_are_read() -> None:
    assert read_percentage("25%", "--multi-hop") == read_percentage(" 25 ", "--multi-hop") == 25
    for text in ("120%", "-1", "some", "nan"):
        with pytest.raises(UsageError, match=r"--multi-hop: .* such as 25%"):
            read_percentage(text, "--multi-hop")


LONG = "a sentence of more than fifteen words, so that there is something in it that one could ask about"


def make_chunks(**counts: int) -> list[Chunk]:
    return [
        Chunk(f"{document}#{number}", document, 0, len(LONG), LONG)
        for document, count in counts.items()
        for number in range(count)
    ]


def slots(count: int, kind: Kind = "single", type: str = "factual") -> list[Slot]:
    return [Slot(number, type, "easy", "plain", kind) for number in range(count)]


def test_every_document_has_its_turn_before_one_has_a_second() -> None:
    chunks = make_chunks(long=50, a=1, b=1, c=1)
    picked = Picker(chunks, (), 1, seed=3).pick(slots(8))
    documents = [chunks[places[0]].doc_id for places in picked if places]
    assert sorted(documents[:4]) == ["a", "b", "c", "long"]
    assert documents[4:] == ["long"] * 4


def test_no_chunk_is_taken_twice_at_once_or_too_often() -> None:
    chunks = make_chunks(a=3)
    picker = Picker(chunks, (), 2, seed=3)
    picked = picker.pick(slots(5))
    assert sorted(places[0] for places in picked if places) == [0, 1, 2]
    assert picked[3:] == [None, None]
    for places in picked:
        if places:
            picker.count_use(places)
            picker.count_use(places)
    assert picker.pick(slots(3, type="analytical")) == [None] * 3


def test_a_chunk_is_not_asked_for_the_same_type_again() -> None:
    picker = Picker(make_chunks(a=1), (), 5, seed=3)
    assert picker.pick(slots(1)) == [(0,)]
    assert picker.pick(slots(1)) == [None]
    assert picker.pick(slots(1, type="analytical")) == [(0,)]
    assert picker.pick(slots(1, "unanswerable")) == [(0,)]


def test_questions_over_several_chunks_get_groups_best_first() -> None:
    picker = Picker(make_chunks(a=2, b=2), [(0, 2), (1, 3), (0, 3)], 1, seed=3)
    assert picker.can_group
    assert picker.pick(slots(3, "multi_hop")) == [(0, 2), (1, 3), None]
    assert not Picker(make_chunks(a=2), (), 1, seed=3).can_group


def test_the_seed_decides_and_short_chunks_are_left_out() -> None:
    chunks = make_chunks(a=9, b=9)
    assert Picker(chunks, (), 1, 3).pick(slots(9)) == Picker(chunks, (), 1, 3).pick(slots(9))
    assert Picker(chunks, (), 1, 3).pick(slots(9)) != Picker(chunks, (), 1, 4).pick(slots(9))
    short = Chunk("short", "short", 0, 8, "A title.")
    assert Picker([*chunks, short], (), 1, 3).pick(slots(19))[18] is None
    assert Picker([short], (), 1, 3).pick(slots(1)) == [(0,)]
