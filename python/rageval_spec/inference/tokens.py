"""Turns texts into token ids, as the model was trained to read them.

It also measures how much of some texts is in a model's vocabulary; models read unknown scripts letter by letter.

Everything here imports `tokenizers` or `transformers` when a tokenizer is loaded, not before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from onnx_from_checkpoints import read_tokenizer, tame_forks
from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference.model_files import translated
from rageval_spec.recorded.values import clean_text

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Encoding
    from tokenizers import Tokenizer as FastTokenizer


Text = str | tuple[str, str]
"""A text, or a pair of texts that the model reads together."""

_ENCODED_AT_ONCE = 512
"""The number of texts whose encodings, some hundred bytes per token, are in memory at a time."""
_LOCATED_AT_ONCE = 64
"""As `_ENCODED_AT_ONCE`, for prompts with many passages, which have thousands of tokens each."""
_LONG_TEXT = 64
"""Characters per token of `max_length` that are tried first for long texts; a token has four or five on average."""


class TextTokens(NamedTuple):
    """The tokens of texts, in the order of the texts, including special tokens.

    Attributes:
        ids: for each text int64 [tokens], without padding.
        type_ids: the same shapes: which of two texts a token belongs to, 0 or 1.
        truncated: bool [texts]: whether tokens were cut off.
    """

    ids: list[NDArray[np.int64]]
    type_ids: list[NDArray[np.int64]]
    truncated: NDArray[np.bool_]


class Tokenizer(Protocol):
    """Reads texts into tokens."""

    def read(self, texts: Sequence[Text]) -> TextTokens:
        """Tokenize texts or pairs, at most `max_length` tokens each.

        In a pair, the longer text is cut first. Lone surrogates are read as U+FFFD, because tokenizers reject them.
        """


def load_tokenizer(
    folder: Path,
    names: Sequence[str],
    *,
    max_length: int | None,
    vocabulary: int | None = None,
    lowercase: bool = False,
) -> Tokenizer:
    """Load a model's tokenizer from `tokenizer.json`, or else build it from its vocabulary.

    The families that can be built are those of `onnx_from_checkpoints.tokenizers.families`; `transformers` reads the
    others.

    Args:
        folder: the model's root, with the tokenizer files `names`.
        max_length: the number of tokens to keep, including special tokens; None keeps all.
        vocabulary: the number of ids that the model knows; None skips the check.
        lowercase: whether to lowercase texts first, even if the tokenizer itself does not.
    """
    with translated():
        found = read_tokenizer(folder, names)
    if found is not None:
        return Locator(*found, max_length, vocabulary, lowercase)
    return _SlowTokenizer(_load_slow(folder, max_length), folder, max_length, vocabulary, lowercase)


def measure_unread(folder: Path, names: Sequence[str], texts: Sequence[str]) -> float | None:
    """The share of letters in `texts` that a model's tokenizer does not know, as `coverage.unread_share` counts.

    None if `transformers` reads the tokenizer: only `tokenizers` gives the offsets of tokens.
    """
    with translated():
        found = read_tokenizer(folder, names)
    if found is None:
        return None
    tokenizer, _ = found
    tokenizer.no_padding()
    tokenizer.no_truncation()
    readable = [clean_text(text) for text in texts]
    encodings = tokenizer.encode_batch(readable, add_special_tokens=False)
    # The tokens as the vocabulary writes them: a unigram model's encoding has the text of unknown ones.
    spelled = ([tokenizer.id_to_token(number) or "" for number in one.ids] for one in encodings)
    return unread_share(readable, zip(spelled, (one.offsets for one in encodings), strict=True))


class FastReader:
    """A tokenizer of `tokenizers` with its file. Replaces the truncation and padding that the file may set."""

    def __init__(
        self,
        tokenizer: FastTokenizer,
        path: Path,
        max_length: int | None,
        vocabulary: int | None,
        lowercase: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._path = path
        self._max_length = max_length
        self._vocabulary = vocabulary
        if vocabulary is not None:
            check_size(path, tokenizer.get_vocab_size(), vocabulary)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if lowercase:
            add_lowercasing(tokenizer)

    def _begin(self, text: str) -> str:
        """The text up to a space well past what the model reads; a shorter one is returned unchanged."""
        if self._max_length is None or len(text) <= 2 * _LONG_TEXT * self._max_length:
            return text
        end = text.find(" ", _LONG_TEXT * self._max_length)
        return text if end < 0 else text[:end]


class Locator(FastReader):
    """Reads texts, and pairs as two sequences. It knows which characters a token stands for."""

    def __init__(
        self, tokenizer: FastTokenizer, path: Path, max_length: int | None, vocabulary: int | None, lowercase: bool
    ) -> None:
        super().__init__(tokenizer, path, max_length, vocabulary, lowercase)
        if max_length is not None:
            check_room(max_length, tokenizer.num_special_tokens_to_add(is_pair=True))
            tokenizer.enable_truncation(max_length, strategy="longest_first")

    def read(self, texts: Sequence[Text]) -> TextTokens:
        ids: list[NDArray[np.int64]] = []
        types: list[NDArray[np.int64]] = []
        truncated: list[bool] = []
        if any(isinstance(text, tuple) for text in texts):
            self._check_separated()
        for start in range(0, len(texts), _ENCODED_AT_ONCE):
            for one in self._encode([make_readable(text) for text in texts[start : start + _ENCODED_AT_ONCE]]):
                ids.append(np.array(one.ids, np.int64))
                types.append(np.array(one.type_ids, np.int64))
                truncated.append(self._is_cut(one))
        check_ids(self._path, ids, texts, self._vocabulary)
        return TextTokens(ids, types, np.array(truncated, np.bool_))

    def locate(self, pairs: Sequence[tuple[str, str]]) -> tuple[TextTokens, list[NDArray[np.int64]]]:
        """The tokens of pairs, as `read` gives them, and for each pair their offsets in its second text.

        Offsets are int64 [tokens, 2]: a token's first character and the one after its last. They are equal for tokens
        that stand for no character of the second text.
        """
        self._check_separated()
        found = TextTokens([], [], np.zeros(len(pairs), np.bool_))
        offsets: list[NDArray[np.int64]] = []
        for start in range(0, len(pairs), _LOCATED_AT_ONCE):
            block = pairs[start : start + _LOCATED_AT_ONCE]
            for one, pair in zip(self._tokenizer.encode_batch([*map(make_readable, block)]), block, strict=True):
                found.truncated[len(offsets)] = self._is_cut(one)
                found.ids.append(np.array(one.ids, np.int64))
                found.type_ids.append(np.array(one.type_ids, np.int64))
                offsets.append(_locate_second(one, pair[1]))
        check_ids(self._path, found.ids, pairs, self._vocabulary)
        return found, offsets

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, without special tokens; nothing is cut."""
        counts: list[int] = []
        for start in range(0, len(texts), _LOCATED_AT_ONCE):
            readable = [clean_text(text) for text in texts[start : start + _LOCATED_AT_ONCE]]
            encodings = self._tokenizer.encode_batch_fast(readable, add_special_tokens=False)
            counts += [len(one.ids) + sum(len(rest.ids) for rest in one.overflowing) for one in encodings]
        return counts

    @property
    def room(self) -> int | None:
        """The most tokens of a pair, without special tokens; None if there is no bound."""
        if self._max_length is None:
            return None
        return self._max_length - int(self._tokenizer.num_special_tokens_to_add(is_pair=True))

    def _check_separated(self) -> None:
        """Refuse a tokenizer that puts nothing between the two texts of a pair, which would be read as one."""
        if not self._tokenizer.num_special_tokens_to_add(is_pair=True):
            raise DataError(
                f"{self._path}: 'post_processor' adds no special tokens, so the model could not tell the two texts of "
                "a pair apart; write a template into it, or set 'tokenizer_class' in tokenizer_config.json, such as "
                "BertTokenizer, whose template is then used"
            )

    def _encode(self, texts: list[Text]) -> list[Encoding]:
        """Encode texts; only the beginning of a very long text, if that already fills `max_length`."""
        begun = [text if isinstance(text, tuple) else self._begin(text) for text in texts]
        encodings: list[Encoding] = self._tokenizer.encode_batch_fast(begun)
        for position, text in enumerate(texts):
            if begun[position] is not text and not self._is_cut(encodings[position]):
                encodings[position] = self._tokenizer.encode(text)
        return encodings

    def _is_cut(self, encoding: Encoding) -> bool:
        """Whether tokens were cut off. The length is checked first, because reading `overflowing` copies them all."""
        return len(encoding.ids) == self._max_length and len(encoding.overflowing) > 0


class _SlowTokenizer:
    def __init__(
        self, tokenizer: Any, folder: Path, max_length: int | None, vocabulary: int | None, lowercase: bool
    ) -> None:
        self._tokenizer = tokenizer
        self._path = folder
        self._max_length = max_length
        self._vocabulary = vocabulary
        self._lowercase = lowercase
        if vocabulary is not None:
            check_size(folder, len(tokenizer), vocabulary)

    def read(self, texts: Sequence[Text]) -> TextTokens:
        found = [self._read_one(make_readable(text)) for text in texts]
        ids = [np.array(one["input_ids"], np.int64) for one in found]
        check_ids(self._path, ids, texts, self._vocabulary)
        types = [np.array(one.get("token_type_ids", [0] * len(one["input_ids"])), np.int64) for one in found]
        return TextTokens(ids, types, np.array([one["truncated"] for one in found], np.bool_))

    def _read_one(self, text: Text) -> dict[str, Any]:
        parts: list[str] = [text] if isinstance(text, str) else list(text)
        if self._lowercase:
            parts = [part.lower() for part in parts]
        whole = self._tokenizer(*parts, truncation=False, verbose=False)
        if self._max_length is None or len(whole["input_ids"]) <= self._max_length:
            return {**whole, "truncated": False}
        cut = self._tokenizer(*parts, truncation="longest_first", max_length=self._max_length)
        return {**cut, "truncated": True}


def make_readable(text: Text) -> Text:
    """The text, or pair, with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    if not isinstance(text, str):
        first, second = text
        return clean_text(first), clean_text(second)
    return clean_text(text)


def _locate_second(encoding: Encoding, text: str) -> NDArray[np.int64]:
    """The offsets of the tokens in the second text, as it was before `make_readable`; (0, 0) for other tokens."""
    is_second = np.array([number == 1 for number in encoding.sequence_ids], np.bool_)
    offsets = np.where(is_second[:, None], np.array(encoding.offsets, np.int64).reshape(-1, 2), 0)
    return offsets if len(clean_text(text)) == len(text) else _list_origins(text)[offsets]


def _list_origins(text: str) -> NDArray[np.int64]:
    """For each character of the text with surrogate pairs joined, and for its end, its place in the text as it is."""
    places = [0]
    while places[-1] < len(text):
        at = places[-1]
        is_pair = "\ud800" <= text[at] <= "\udbff" and "\udc00" <= text[at + 1 : at + 2] <= "\udfff"
        places.append(at + (2 if is_pair else 1))
    return np.array(places, np.int64)


def check_room(max_length: int, special: int) -> None:
    """Refuse a length that has room only for special tokens."""
    if max_length < special + 2:
        raise UsageError(f"max_length: {max_length} leaves no room for texts, because {special} tokens are special")


def _load_slow(folder: Path, max_length: int | None) -> Any:
    tame_forks()
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise UsageError(
            f"{folder}: has no tokenizer.json, and its tokenizer is not one of those that can be built from a "
            "vocabulary, so it needs transformers: run "
            '`pip install "rageval-spec[transformers]"`'
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # dozens of tokenizer classes raise errors of many kinds
        raise DataError(f"{folder}: transformers cannot read the tokenizer: {error}") from error
    if max_length is not None:
        check_room(max_length, tokenizer.num_special_tokens_to_add(pair=True))
    return tokenizer


def add_lowercasing(tokenizer: FastTokenizer) -> None:
    """Make the tokenizer lowercase texts first, unless it already lowercases at some point."""
    from tokenizers.normalizers import Lowercase, Normalizer, Sequence

    present: Normalizer | None = tokenizer.normalizer
    described = json.loads(tokenizer.to_str())["normalizer"] or {}
    parts = described.get("normalizers", [described])
    if not any(part.get("type") == "Lowercase" for part in parts):
        tokenizer.normalizer = Sequence([Lowercase(), *([present] if present else [])])


def check_size(path: Path, tokens: int, vocabulary: int) -> None:
    """Refuse a tokenizer with less than half as many tokens as the model knows: it belongs to another model."""
    if tokens * 2 < vocabulary:
        raise DataError(
            f"{path}: the tokenizer does not match the model: it has {tokens} tokens, but the model knows {vocabulary}"
        )


def check_ids(path: Path, ids: Sequence[NDArray[np.int64]], texts: Sequence[Text], vocabulary: int | None) -> None:
    """Refuse texts without tokens, and ids that the model does not know."""
    for one, text in zip(ids, texts, strict=True):
        if not one.size:
            raise DataError(f"{path}: the tokenizer gives no tokens, not even special ones, for {_shorten(text)}")
        if vocabulary is not None and one.max() >= vocabulary:
            raise DataError(
                f"{path}: the tokenizer does not match the model: it gives the id {one.max()} for {_shorten(text)}, "
                f"but the model only knows ids below {vocabulary}"
            )


def _shorten(text: Text) -> str:
    shown = json.dumps(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."


_LATIN_ENDS = 0x250
_CHARACTERS_READ = 400
_UNKNOWN = frozenset({"[UNK]", "<unk>", "<UNK>"})


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


def unread_share(texts: Iterable[str], encodings: Iterable[tuple[Sequence[str], Sequence[tuple[int, int]]]]) -> float:
    """The share of letters, 0 to 1, that a tokenizer does not know or knows only as single letters.

    `encodings` are the tokens of each text as the vocabulary writes them, and their offsets in the text, start
    inclusive and end exclusive.

    A Han character is a word of its own in most vocabularies, so only unknown ones count. 0 if there are no
    letters. On BERT's English vocabulary seven languages in Latin script came to at most 0.17, nine in other scripts to
    at least 0.67.
    """
    letters = unread = 0
    for text, (tokens, offsets) in zip(texts, encodings, strict=True):
        letters += sum(map(str.isalpha, text))
        lost: set[int] = set()
        for token, (start, end) in zip(tokens, offsets, strict=True):
            piece = text[start:end]
            if token in _UNKNOWN or (sum(map(str.isalpha, piece)) == 1 and not _is_han(piece)):
                lost.update(place for place in range(start, end) if text[place].isalpha())
        unread += len(lost)
    return unread / letters if letters else 0.0


def _is_han(piece: str) -> bool:
    return any("\u3400" <= character <= "\u9fff" or character >= "\U00020000" for character in piece)
