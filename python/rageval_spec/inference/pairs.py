"""Reads pairs of texts for models whose input is a template over the two texts.

Verifiers are often trained on a sentence that contains the document and the claim, such as HHEM's "Determine if the
hypothesis is true given the premise?", and not on the two sequences that a tokenizer makes of a pair.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onnx_from_checkpoints import FilledPair, PairFormat, Span, read_tokenizer
from rageval_spec.errors import UsageError
from rageval_spec.inference.model_files import translated
from rageval_spec.inference.tokens import FastReader, Text, TextTokens, check_ids, make_readable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Encoding
    from tokenizers import Tokenizer as FastTokenizer


_ENCODED_AT_ONCE = 64
"""Fewer than plain texts at a time, because the places of the tokens are kept as well."""


def load_pair_tokenizer(
    folder: Path,
    names: Sequence[str],
    pair_format: PairFormat,
    *,
    max_length: int | None,
    vocabulary: int | None = None,
    lowercase: bool = False,
) -> PairTokenizer:
    """Load a model's tokenizer, to read pairs through a template."""
    tokenizer, path = _load(folder, names)
    return PairTokenizer(tokenizer, path, pair_format, max_length, vocabulary, lowercase)


def find_reply_ids(folder: Path, names: Sequence[str], replies: Mapping[str, str]) -> tuple[int, ...]:
    """The id of the first token of each reply, in their order; `replies` are the words by label."""
    tokenizer, _ = _load(folder, names)
    found: dict[int, str] = {}
    for reply in replies.values():
        ids = tokenizer.encode(reply, add_special_tokens=False).ids
        if not ids:
            raise UsageError(f"replies: {reply!r} has no token; write the word that the model replies with")
        if ids[0] in found:
            raise UsageError(f"replies: {found[ids[0]]!r} and {reply!r} begin with the same token")
        found[ids[0]] = reply
    return tuple(found)


class PairTokenizer(FastReader):
    """Reads pairs through a template. Only the template can contain special tokens.

    Where the tokenizer would read a special token in one of the two texts, a space is put after the token's first
    character, which breaks it up: `</s>` is read as `< /s>`.
    """

    def __init__(
        self,
        tokenizer: FastTokenizer,
        path: Path,
        pair_format: PairFormat,
        max_length: int | None,
        vocabulary: int | None,
        lowercase: bool = False,
    ) -> None:
        super().__init__(tokenizer, path, max_length, vocabulary, lowercase)
        self._format = pair_format
        self._special = _find_special(tokenizer)
        if max_length is not None:
            taken = len(tokenizer.encode(pair_format.fill("", "").text).ids)
            if max_length < taken + 2:
                raise UsageError(
                    f"max_length: {max_length} leaves no room for texts, because the template takes {taken} tokens"
                )

    def read(self, texts: Sequence[Text]) -> TextTokens:
        """Tokenize pairs, at most `max_length` tokens each.

        What is too long is cut from the end of the document, and from the end of the claim only if the claim and the
        template alone are too long.
        """
        ids: list[NDArray[np.int64]] = []
        types: list[NDArray[np.int64]] = []
        truncated: list[bool] = []
        for start in range(0, len(texts), _ENCODED_AT_ONCE):
            for filled, encoding, begun in self._encode(texts[start : start + _ENCODED_AT_ONCE]):
                kept = self._choose(filled, encoding)
                ids.append(np.array(encoding.ids, np.int64)[kept])
                types.append(np.array(encoding.type_ids, np.int64)[kept])
                truncated.append(begun or len(kept) < len(encoding.ids))
        check_ids(self._path, ids, texts, self._vocabulary)
        return TextTokens(ids, types, np.array(truncated, np.bool_))

    def _encode(self, texts: Sequence[Text]) -> Iterator[tuple[FilledPair, Encoding, bool]]:
        """The filled template and its tokens for each pair, and whether only the document's beginning was read."""
        pairs = [_split(text) for text in texts]
        filled = [self._format.fill(self._begin(document), claim) for document, claim in pairs]
        encodings = self._tokenizer.encode_batch([one.text for one in filled])
        for (document, claim), one, encoding in zip(pairs, filled, encodings, strict=True):
            begun = self._begin(document) is not document
            if begun and len(encoding.ids) <= (self._max_length or 0):
                whole = self._format.fill(document, claim)
                yield *self._disarm(whole, self._tokenizer.encode(whole.text)), False
            else:
                yield *self._disarm(one, encoding), begun

    def _disarm(self, filled: FilledPair, encoding: Encoding) -> tuple[FilledPair, Encoding]:
        """Break up the special tokens in the two texts; blank what is still one afterwards."""
        for change in (_break_up, _blank):
            found = [span for span, _ in self._find_hostile(filled, encoding)]
            if not found:
                break
            filled = _change(filled, found, change)
            encoding = self._tokenizer.encode(filled.text)
        return filled, encoding

    def _find_hostile(self, filled: FilledPair, encoding: Encoding) -> Iterator[tuple[Span, int]]:
        """The places, and the numbers, of special tokens that are not the template's own or the tokenizer's."""
        special = np.flatnonzero(np.isin(encoding.ids, self._special))
        if not special.size:
            return
        # Each reading of these properties makes a new list of all tokens.
        added, offsets = encoding.special_tokens_mask, encoding.offsets
        for number in special:
            start, end = offsets[number]
            # A special token may take the spaces around it.
            start += len(filled.text[start:end]) - len(filled.text[start:end].lstrip())
            end -= len(filled.text[start:end]) - len(filled.text[start:end].rstrip())
            for first, last in (filled.document, filled.claim):
                if not added[number] and max(start, first) < min(end, last):
                    yield (max(start, first), min(end, last)), int(number)

    def _choose(self, filled: FilledPair, encoding: Encoding) -> NDArray[np.intp]:
        """The numbers of the tokens to keep."""
        dropped = {number for _, number in self._find_hostile(filled, encoding)}
        excess = 0 if self._max_length is None else len(encoding.ids) - len(dropped) - self._max_length
        for part in (filled.document, filled.claim):
            if excess > 0:
                inside = [number for number in _find_inside(encoding, part) if number not in dropped]
                dropped |= set(inside[-excess:])
                excess -= len(inside)
        return np.array([number for number in range(len(encoding.ids)) if number not in dropped], np.intp)


def _load(folder: Path, names: Sequence[str]) -> tuple[FastTokenizer, Path]:
    with translated():
        found = read_tokenizer(folder, names)
    if found is None:
        raise UsageError(
            f"{folder}: has no tokenizer.json, which models that read pairs through a template need: their tokenizer "
            "cannot be built from a vocabulary"
        )
    return found


def _split(text: Text) -> tuple[str, str]:
    readable = make_readable(text)
    if isinstance(readable, str):
        raise TypeError("a template is for pairs of texts, not for one text")
    return readable


def _find_special(tokenizer: FastTokenizer) -> NDArray[np.int64]:
    """The ids of special tokens, except the one for unknown text, which any text may contain."""
    model = tokenizer.model
    unknown = {getattr(model, "unk_token", None), "<unk>", "[UNK]"}
    added = tokenizer.get_added_tokens_decoder()
    return np.array([one for one, token in added.items() if token.special and token.content not in unknown], np.int64)


def _find_inside(encoding: Encoding, part: Span) -> list[int]:
    """The numbers of the tokens that stand for characters of this part only.

    A token that stands for nothing but spaces may have them cut from its offsets, which are then both where they end.
    """
    first, last = part
    return [
        number
        for number, (start, end) in enumerate(encoding.offsets)
        if first <= start < end <= last or first < start == end <= last
    ]


def _change(filled: FilledPair, spans: Sequence[Span], change: Callable[[str], str]) -> FilledPair:
    """Apply `change` to parts of the document and the claim."""
    texts: list[str] = []
    ends, moved = [0], [0]
    for start, end in sorted(spans):
        text = change(filled.text[start:end])
        texts += (filled.text[ends[-1] : start], text)
        moved.append(moved[-1] + len(text) - (end - start))
        ends.append(end)

    def move(place: int) -> int:
        return place + moved[bisect_right(ends, place) - 1]

    parts = ((move(first), move(last)) for first, last in (filled.document, filled.claim))
    return FilledPair("".join((*texts, filled.text[ends[-1] :])), *parts)


def _break_up(token: str) -> str:
    return f"{token[0]} {token[1:]}" if len(token) > 1 else " "


def _blank(token: str) -> str:
    return " " * len(token)
