from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.exchange.shared.otlp.wire import (
    WireError,
    read_fields,
    read_varint,
    to_signed,
    write_fixed64,
    write_message,
    write_number,
    write_text,
    write_varint,
)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    written = write_varint(value)
    read, after = read_varint(written, 0, len(written))
    assert (to_signed(read), after) == (value, len(written))


def test_fields_have_their_number_kind_and_place() -> None:
    data = write_number(3, 300) + write_text(4, "ab") + write_fixed64(5, 7)
    fields = list(read_fields(data, 0, len(data)))
    assert [field[:2] for field in fields] == [(3, 0), (4, 2), (5, 1)]
    assert fields[0][2] == 300 and data[fields[1][2] : fields[1][3]] == b"ab"


def test_what_is_zero_or_empty_is_not_written() -> None:
    assert write_number(1, 0) + write_text(1, "") + write_fixed64(1, 0) == b""
    assert write_message(1, b"") == b"\x0a\x00"


def test_a_field_never_reaches_beyond_its_message() -> None:
    data = write_message(1, write_text(1, "abc")) + write_text(2, "tail")
    with pytest.raises(WireError, match="5 bytes has only 3 left"):
        list(read_fields(b"\x0a\x05abc" + data, 0, 5))


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    assert write_text(1, "\ud800") == b"\x0a\x01?"
