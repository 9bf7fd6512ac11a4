from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.inference.coverage import sample_foreign, unread_share


@dataclass
class Encoding:
    tokens: list[str]
    offsets: list[tuple[int, int]]


def encode(text: str, size: int, unknown: str = "") -> Encoding:
    """Splits text into pieces of `size` characters; pieces with a character in `unknown` become `[UNK]`."""
    offsets = [(start, min(start + size, len(text))) for start in range(0, len(text), size)]
    return Encoding(["[UNK]" if set(text[a:b]) & set(unknown) else text[a:b] for a, b in offsets], offsets)


@pytest.mark.parametrize(
    ("text", "size", "unknown", "share"),
    [
        ("каша", 2, "", 0.0),
        ("каша", 1, "", 1.0),
        ("ка12", 1, "", 1.0),
        ("каша", 2, "ш", 0.5),
        ("首都", 1, "", 0.0),
        ("首都", 1, "都", 0.5),
        ("", 1, "", 0.0),
        ("12 34", 1, "", 0.0),
    ],
)
def test_unknown_letters_and_single_letter_tokens_count(text: str, size: int, unknown: str, share: float) -> None:
    assert unread_share([text], [encode(text, size, unknown)]) == share


def test_a_letter_that_takes_two_tokens_counts_once() -> None:
    assert unread_share(["да"], [Encoding(["Ð", "´", "Ð°"], [(0, 1), (0, 1), (1, 2)])]) == 1.0


@given(st.text(), st.integers(1, 5))
def test_the_share_is_between_0_and_1(text: str, size: int) -> None:
    assert 0.0 <= unread_share([text], [encode(text, size, "e")]) <= 1.0


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["red fox", "naïve café", ""], 0),
        (["The capital of Japan is Tokyo (東京), a large city in the east of the country"], 0),
        (["Москва", "столица"], 2),
        ([], 0),
    ],
)
def test_only_texts_in_other_scripts_are_sampled(texts: list[str], found: int) -> None:
    assert len(sample_foreign(texts)) == found


def test_the_sample_has_texts_from_all_parts() -> None:
    texts = [f"текст номер {number}" for number in range(1000)]
    assert sample_foreign(texts, most=10) == texts[::100]
