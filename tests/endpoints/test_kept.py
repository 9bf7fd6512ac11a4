from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.chat import ChatReply, TokenChoice
from rageval_spec.endpoints.kept import pack_reply, unpack_reply

REPLY = ChatReply("1.0 é 🐈\n", 7, 3, "stop", ((TokenChoice("1", -0.5), TokenChoice("0", -1.0)),), reused=True)


def test_a_stored_reply_is_read_back_unchanged() -> None:
    assert unpack_reply(pack_reply(REPLY)) == REPLY
    assert unpack_reply(pack_reply(ChatReply(""))) == ChatReply("", reused=True)


@given(st.integers(0, 8 * len(pack_reply(REPLY)) - 1))
def test_a_flipped_bit_is_always_detected(bit: int) -> None:
    damaged = bytearray(pack_reply(REPLY))
    damaged[bit // 8] ^= 1 << bit % 8
    assert unpack_reply(bytes(damaged)) in (None, REPLY)  # upper case of a hexadecimal digit is the same number


@given(st.integers(0, len(pack_reply(REPLY)) - 1))
def test_a_stored_reply_that_is_cut_off_is_not_used(length: int) -> None:
    found = unpack_reply(pack_reply(REPLY)[:length])
    assert found is None or found == REPLY  # all but the checksum, as earlier versions wrote it


def test_replies_that_earlier_versions_stored_without_a_checksum_are_used() -> None:
    kept = b'{"text":"yes","input_tokens":7,"output_tokens":3,"finish":"stop","choices":[[["yes",-0.1]]]}'
    assert unpack_reply(kept) == ChatReply("yes", 7, 3, "stop", ((TokenChoice("yes", -0.1),),), reused=True)


@pytest.mark.parametrize(
    "content",
    [
        {"text": 1},
        {"text": None},
        {},
        [],
        "yes",
        {"text": "a", "input_tokens": "7"},
        {"text": "a", "output_tokens": -1},
        {"text": "a", "input_tokens": True},
        {"text": "a", "finish": 3},
        {"text": "a", "choices": [[1]]},
        {"text": "a", "choices": [[["a", "b"]]]},
        {"text": "a", "choices": [[["a"]]]},
        {"text": "a", "choices": 5},
    ],
)
def test_a_stored_reply_with_a_wrong_type_is_not_used(content: object) -> None:
    assert unpack_reply(json.dumps(content).encode()) is None
