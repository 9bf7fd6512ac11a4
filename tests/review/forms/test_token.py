"""What a row is about survives a spreadsheet, and damage is noticed."""

from __future__ import annotations

import re

import pytest

from rageval_spec.review.forms.token import Token, decode_token, digest_shown
from tests.sample_evaluation import HOSTILE

TOKEN = Token("golden", "v1", "007", "faithfulness", 3, "0123456789abcdef", "low + random", 0.25, "89abcdef")


@pytest.mark.parametrize("query_id", ["007", "1/2", "ä ", HOSTILE, "\ud800"])
def test_a_token_comes_back(query_id: str) -> None:
    token = Token("golden", "v1", query_id, "", None, "0", "random", 1 / 3, "0")
    assert decode_token(f" {token.encode()}\n") == token


def test_a_spreadsheet_takes_it_for_text() -> None:
    assert re.fullmatch(r"rv1\.[A-Za-z0-9_-]+\.[0-9a-f]{8}", TOKEN.encode())


@pytest.mark.parametrize("text", ["", "7", "rv1.", "rv1..", "rv1.W10.4f53cda1", "rv1.[].x", "rv1.%%%.00000000"])
def test_what_is_no_token_is_none(text: str) -> None:
    assert decode_token(text) is None


def test_every_damage_is_noticed() -> None:
    text = TOKEN.encode()
    for at in range(len(text)):
        assert decode_token(text[:at] + text[at + 1 :]) is None
        assert decode_token(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]) is None


def test_the_digest_of_the_texts_ignores_what_spreadsheets_change() -> None:
    assert digest_shown(["a b\nc", "=1"]) == digest_shown([" a  b\r\nc ", "'=1"])
    assert digest_shown(["a", "b"]) != digest_shown(["a b", ""])
    assert digest_shown(["1909"]) != digest_shown(["1911"])
