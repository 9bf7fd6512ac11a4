"""Measures how much of some texts is in a model's vocabulary; models read unknown scripts letter by letter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

_LATIN_ENDS = 0x250
_CHARACTERS_READ = 400
_UNKNOWN = frozenset({"[UNK]", "<unk>", "<UNK>"})


class Encoded(Protocol):
    """A text as `tokenizers` encodes it: each token and its offsets in the text."""

    @property
    def tokens(self) -> Sequence[str]:
        """The tokens as the vocabulary writes them."""

    @property
    def offsets(self) -> Sequence[tuple[int, int]]:
        """The offsets of each token in the text, start inclusive and end exclusive."""


def sample_foreign(texts: Sequence[str], most: int = 200) -> list[str]:
    """Beginnings of at most about `most` texts from all parts of `texts`; empty if nearly all letters are Latin."""
    step = max(1, len(texts) // most)
    sample = [text[:_CHARACTERS_READ] for text in texts[::step]]
    letters = foreign = 0
    for text in sample:
        letters += sum(map(str.isalpha, text))
        if not text.isascii():
            foreign += sum(ord(character) >= _LATIN_ENDS and character.isalpha() for character in text)
    return sample if 20 * foreign > letters else []


def unread_share(texts: Iterable[str], encodings: Iterable[Encoded]) -> float:
    """The share of letters, 0 to 1, that a tokenizer does not know or knows only as single letters.

    A Han character is a word of its own in most vocabularies, so only unknown ones count. 0 if there are no
    letters. On BERT's English vocabulary seven languages in Latin script came to at most 0.17, nine in other scripts to
    at least 0.67.
    """
    letters = unread = 0
    for text, encoding in zip(texts, encodings, strict=True):
        letters += sum(map(str.isalpha, text))
        lost: set[int] = set()
        for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            piece = text[start:end]
            if token in _UNKNOWN or (sum(map(str.isalpha, piece)) == 1 and not _is_han(piece)):
                lost.update(place for place in range(start, end) if text[place].isalpha())
        unread += len(lost)
    return unread / letters if letters else 0.0


def _is_han(piece: str) -> bool:
    return any("\u3400" <= character <= "\u9fff" or character >= "\U00020000" for character in piece)
