from rageval_spec.generation.chunks import Chunk
from rageval_spec.generation.mixes import Kind, Slot
from rageval_spec.generation.picking import Picker

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
