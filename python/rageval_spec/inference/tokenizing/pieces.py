"""Makes the model of a tokenizer from the pieces of a SentencePiece model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.tokenizing.sentencepiece import CONTROL, USER_DEFINED, SentencePieceModel
from rageval_spec.inference.tokenizing.settings import Token

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer

SPACE = "\u2581"
"""What SentencePiece writes for a space."""

Pieces = Sequence[tuple[str, float]]


def make_tokenizer(model: SentencePieceModel, pieces: Pieces, unknown: int) -> Tokenizer:
    """A tokenizer without normalisation over `pieces`, which may be the model's in another order.

    As in the tokenizer.json files that transformers writes, a unigram model reads a character without a piece as the
    unknown token, even if the SentencePiece model would read it as bytes.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import BPE, Unigram

    try:
        if model.kind == "unigram":
            return Tokenizer(Unigram(list(pieces), unknown, False))
        vocabulary = {piece: number for number, (piece, _) in enumerate(pieces)}
        return Tokenizer(
            BPE(
                vocabulary,
                list(_find_merges(vocabulary)),
                unk_token=pieces[unknown][0],
                fuse_unk=True,
                byte_fallback=model.byte_fallback,
            )
        )
    except Exception as error:  # tokenizers raises a plain Exception
        raise DamagedFile(f"{model.path}: cannot be turned into a tokenizer: {error}") from error


def make_charsmap(model: SentencePieceModel) -> list[Normalizer]:
    """The model's rules of normalisation, if it has any."""
    from tokenizers.normalizers import Precompiled

    if not model.charsmap:
        return []
    try:
        return [Precompiled(model.charsmap)]
    except Exception as error:
        raise DamagedFile(
            f"{model.path}: 'normalizer_spec.precompiled_charsmap' is damaged; download the model again"
        ) from error


def list_own(model: SentencePieceModel) -> list[Token]:
    """The pieces that are found in a text before it is split: control pieces, and those that a user defined."""
    return [
        Token(piece, special=kind == CONTROL, named=f"{model.path}: '{piece}'")
        for piece, kind in model.of_type(CONTROL, USER_DEFINED)
    ]


def _find_merges(vocabulary: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The pairs of pieces that make a piece, those of the first piece first; among these the more common parts first.

    SentencePiece orders pieces by the order in which it merged them, and ids keep that order.
    """
    for piece in vocabulary:
        parts = [(piece[:place], piece[place:]) for place in range(1, len(piece))]
        known = [part for part in parts if part[0] in vocabulary and part[1] in vocabulary]
        yield from sorted(known, key=lambda part: (vocabulary[part[0]], vocabulary[part[1]]))
