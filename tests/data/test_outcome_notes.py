"""Notes that are written once all parts of a step are together."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.outcomes import (
    AnyNote,
    Note,
    Remark,
    count_texts,
    digest_texts,
    join_notes,
    name_topics,
    remark,
    write_notes,
    writes_notes,
)
from rageval_spec.errors import DataError


@writes_notes
def write_sum(numbers: Sequence[int], what: str) -> Iterator[Note]:
    if sum(numbers):
        yield Note("sum", f"{sum(numbers)} {what}", count=sum(numbers))


PLAIN = Note("plain", "always the same")


@given(st.lists(st.lists(st.integers(0, 5)), min_size=1))
def test_parts_say_what_the_whole_says(parts: list[list[int]]) -> None:
    whole: list[AnyNote] = [remark(write_sum, [number for part in parts for number in part], "apples"), PLAIN]
    joined = join_notes([[remark(write_sum, part, "apples"), PLAIN] for part in parts])
    assert write_notes(joined) == write_notes(whole)


def test_nothing_to_say_is_no_note() -> None:
    assert write_notes([remark(write_sum, [], "apples")]) == ()
    assert write_notes([remark(write_sum, [0, 0], "apples")]) == ()


def test_several_remarks_of_a_kind_keep_their_places() -> None:
    first = [remark(write_sum, [1], "apples"), remark(write_sum, [10], "apples"), remark(write_sum, [5], "pears")]
    second = [remark(write_sum, [2], "apples"), remark(write_sum, [20], "apples")]
    assert [note.message for note in write_notes(join_notes([first, second]))] == ["3 apples", "30 apples", "5 pears"]


def test_facts_that_every_part_has_are_not_added_up() -> None:
    same = Remark(remark(write_sum, [], "documents").writer, (4,), ("documents",), is_same=True)
    assert [note.message for note in write_notes(join_notes([[same], [same], [same]]))] == ["4 documents"]


def test_a_note_names_its_topic_unless_all_topics_have_it() -> None:
    def told(of_reference: AnyNote, of_contexts: AnyNote) -> list[str]:
        parts = [("reference", [PLAIN, of_reference]), ("contexts", [PLAIN, of_contexts])]
        return [note.message for note in write_notes(name_topics(parts))]

    assert told(remark(write_sum, [3], "apples"), remark(write_sum, [3], "apples")) == [PLAIN.message, "3 apples"]
    assert told(remark(write_sum, [3], "apples"), remark(write_sum, [4], "apples")) == [
        PLAIN.message,
        "reference: 3 apples",
        "contexts: 4 apples",
    ]


def test_a_remark_can_be_sent_and_filed() -> None:
    one = remark(write_sum, [1, 2], "apples")
    assert pickle.loads(pickle.dumps(one)) == one
    assert json.loads(json.dumps(one.facts)) == [1, 2]
    assert one.writer == f"{__name__}.write_sum"


def test_a_writer_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match=r"no part of this version writes notes as 'os\.system'"):
        write_notes([Remark("os.system", ("rm",))])


@given(st.lists(st.lists(st.text())))
def test_different_texts_are_counted_once_whatever_part_has_them(parts: list[list[str]]) -> None:
    assert count_texts(map(digest_texts, parts)) == len({text for part in parts for text in part})


def test_damaged_digests_are_refused() -> None:
    with pytest.raises(DataError, match="digests of texts are damaged"):
        count_texts(["\x00"])
