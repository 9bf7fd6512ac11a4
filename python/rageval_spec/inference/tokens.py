"""Turns texts into token ids, as the model was trained to read them.

Verifiers are often trained on a sentence that contains the document and the claim, such as HHEM's "Determine if the
hypothesis is true given the premise?", and not on the two sequences that a tokenizer makes of a pair. Their pairs are
read through a template.

It also measures how much of some texts is in a model's vocabulary; models read unknown scripts letter by letter.

Everything here imports `tokenizers` or `transformers` when a tokenizer is loaded, not before.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

import numpy as np

from onnx_from_checkpoints import E5File, FilledPair, PairFormat, Span, read_e5s1, read_tokenizer, tame_forks
from rageval_spec import kernels
from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference.model_files import translated
from rageval_spec.recorded.values import clean_text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
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


class Tokenizer(ABC):
    """Reads texts or pairs into tokens, at most `max_length` of each, special tokens included; None keeps all."""

    def __init__(self, path: Path, tokens: int, max_length: int | None, vocabulary: int | None) -> None:
        """Refuse a tokenizer with less than half as many tokens as the model knows: it belongs to another model.

        Args:
            path: its file or folder, for messages.
            tokens: how many tokens it has.
            vocabulary: the number of ids that the model knows; None skips the checks.
        """
        if vocabulary is not None and tokens * 2 < vocabulary:
            raise DataError(
                f"{path}: the tokenizer does not match the model: it has {tokens} tokens, but the model knows "
                f"{vocabulary}"
            )
        self._path = path
        self._max_length = max_length
        self._vocabulary = vocabulary

    def read(self, texts: Sequence[Text]) -> TextTokens:
        """Tokenize texts or pairs. Lone surrogates are read as U+FFFD, because tokenizers reject them."""
        found = TextTokens([], [], np.zeros(len(texts), np.bool_))
        for text, (ids, type_ids, is_cut) in zip(texts, self._read(texts), strict=True):
            self._keep(found, text, ids, type_ids, is_cut=is_cut)
        return found

    @abstractmethod
    def _read(self, texts: Sequence[Text]) -> Iterator[tuple[ArrayLike, ArrayLike, bool]]:
        """The ids and the type ids of each text, and whether tokens were cut off."""

    def _keep(self, found: TextTokens, text: Text, ids: ArrayLike, type_ids: ArrayLike, *, is_cut: bool) -> None:
        """Add the tokens of a text to those found; refuse a text without tokens, and ids that the model lacks."""
        numbers = np.asarray(ids, np.int64)
        if not numbers.size:
            raise DataError(f"{self._path}: the tokenizer gives no tokens, not even special ones, for {_shorten(text)}")
        if self._vocabulary is not None and numbers.max() >= self._vocabulary:
            raise DataError(
                f"{self._path}: the tokenizer does not match the model: it gives the id {numbers.max()} for "
                f"{_shorten(text)}, but the model only knows ids below {self._vocabulary}"
            )
        found.truncated[len(found.ids)] = is_cut
        found.ids.append(numbers)
        found.type_ids.append(np.asarray(type_ids, np.int64))


def load_tokenizer(
    folder: Path,
    names: Sequence[str],
    pair_format: PairFormat | None = None,
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
        pair_format: the template through which the model reads pairs; None reads them as two sequences.
        max_length: the number of tokens to keep, including special tokens; None keeps all.
        vocabulary: the number of ids that the model knows; None skips the check.
        lowercase: whether to lowercase texts first, even if the tokenizer itself does not.
    """
    if pair_format is not None:
        return PairTokenizer(*_load_fast(folder, names), max_length, vocabulary, lowercase, pair_format)
    if names and names[0].endswith(E5File.ENDING):
        return UnigramReader(folder / names[0], max_length, vocabulary)
    with translated():
        found = read_tokenizer(folder, names)
    if found is not None:
        return Locator(*found, max_length, vocabulary, lowercase)
    return _SlowTokenizer(folder, max_length, vocabulary, lowercase)


def find_reply_ids(folder: Path, names: Sequence[str], replies: Mapping[str, str]) -> tuple[int, ...]:
    """The id of the first token of each reply, in their order; `replies` are the words by label."""
    tokenizer, _ = _load_fast(folder, names)
    found: dict[int, str] = {}
    for reply in replies.values():
        ids = tokenizer.encode(reply, add_special_tokens=False).ids
        if not ids:
            raise UsageError(f"replies: {reply!r} has no token; write the word that the model replies with")
        if ids[0] in found:
            raise UsageError(f"replies: {found[ids[0]]!r} and {reply!r} begin with the same token")
        found[ids[0]] = reply
    return tuple(found)


def _load_fast(folder: Path, names: Sequence[str]) -> tuple[FastTokenizer, Path]:
    with translated():
        found = read_tokenizer(folder, names)
    if found is None:
        raise UsageError(
            f"{folder}: has no tokenizer.json, which models that read pairs through a template need: their tokenizer "
            "cannot be built from a vocabulary"
        )
    return found


def measure_unread(folder: Path, names: Sequence[str], texts: Sequence[str]) -> float | None:
    """The share of letters in `texts` that a model's tokenizer does not know, as `coverage.unread_share` counts.

    None if `tokenizers` does not read it: others give no offsets of tokens.
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


class FastReader(Tokenizer):
    """A tokenizer of `tokenizers` with its file. Replaces the truncation and padding that the file may set."""

    def __init__(
        self, tokenizer: FastTokenizer, path: Path, max_length: int | None, vocabulary: int | None, lowercase: bool
    ) -> None:
        super().__init__(path, tokenizer.get_vocab_size(), max_length, vocabulary)
        self._tokenizer = tokenizer
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
        check_room(max_length, tokenizer.num_special_tokens_to_add(is_pair=True))
        if max_length is not None:
            tokenizer.enable_truncation(max_length, strategy="longest_first")

    def _read(self, texts: Sequence[Text]) -> Iterator[tuple[ArrayLike, ArrayLike, bool]]:
        if any(isinstance(text, tuple) for text in texts):
            self._check_separated()
        for start in range(0, len(texts), _ENCODED_AT_ONCE):
            for one in self._encode([make_readable(text) for text in texts[start : start + _ENCODED_AT_ONCE]]):
                yield one.ids, one.type_ids, self._is_cut(one)

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
                self._keep(found, pair, one.ids, one.type_ids, is_cut=self._is_cut(one))
                offsets.append(_locate_second(one, pair[1]))
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


class UnigramReader(Tokenizer):
    """Reads texts with the pieces of an E5S1 file. They have SentencePiece's tokens, and no special ones of their own.

    `tokenizers` would need twenty times the memory.
    """

    def __init__(self, path: Path, max_length: int | None = None, vocabulary: int | None = None) -> None:
        with translated():
            file = read_e5s1(path)
        super().__init__(path, len(file.scores), max_length, vocabulary)
        check_room(max_length, 2)
        self._rules = file.rules
        self._pieces = kernels.Unigram(file.pieces, file.offsets, file.scores, file.UNKNOWN)

    def _read(self, texts: Sequence[Text]) -> Iterator[tuple[ArrayLike, ArrayLike, bool]]:
        single = [clean_text(text) for text in texts if isinstance(text, str)]
        if len(single) < len(texts):
            raise TypeError("the tokenizer of an E5S1 file reads single texts, not pairs")
        room = None if self._max_length is None else self._max_length - 2
        # The rules are for single characters, so accents are composed before they apply.
        normal = [normalize("NFC", text).translate(self._rules) for text in single]
        for ids in self._pieces.read(normal, room):
            framed = np.concatenate(([E5File.START], ids[:room], [E5File.END]))
            yield framed, np.zeros_like(framed), len(framed) < len(ids) + 2


class PairTokenizer(FastReader):
    """Reads pairs through a template. Only the template can contain special tokens.

    Where the tokenizer would read a special token in one of the two texts, a space is put after the token's first
    character, which breaks it up: `</s>` is read as `< /s>`.
    """

    def __init__(
        self,
        tokenizer: FastTokenizer,
        path: Path,
        max_length: int | None,
        vocabulary: int | None,
        lowercase: bool,
        pair_format: PairFormat,
    ) -> None:
        super().__init__(tokenizer, path, max_length, vocabulary, lowercase)
        self._format = pair_format
        self._special = _find_special(tokenizer)
        check_room(max_length, len(tokenizer.encode(pair_format.fill("", "").text).ids))

    def _read(self, texts: Sequence[Text]) -> Iterator[tuple[ArrayLike, ArrayLike, bool]]:
        """What is too long is cut from the end of the document, and from the claim's end only if that does not do."""
        for start in range(0, len(texts), _LOCATED_AT_ONCE):
            for filled, encoding, begun in self._encode(texts[start : start + _LOCATED_AT_ONCE]):
                kept = self._choose(filled, encoding)
                ids, type_ids = np.array(encoding.ids, np.int64), np.array(encoding.type_ids, np.int64)
                yield ids[kept], type_ids[kept], begun or len(kept) < len(ids)

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


class _SlowTokenizer(Tokenizer):
    """A tokenizer of `transformers`."""

    def __init__(self, folder: Path, max_length: int | None, vocabulary: int | None, lowercase: bool) -> None:
        self._tokenizer = _load_slow(folder)
        super().__init__(folder, len(self._tokenizer), max_length, vocabulary)
        check_room(max_length, self._tokenizer.num_special_tokens_to_add(pair=True))
        self._lowercase = lowercase

    def _read(self, texts: Sequence[Text]) -> Iterator[tuple[ArrayLike, ArrayLike, bool]]:
        for text in map(make_readable, texts):
            parts: list[str] = [text] if isinstance(text, str) else list(text)
            if self._lowercase:
                parts = [part.lower() for part in parts]
            found = self._tokenizer(*parts, truncation=False, verbose=False)
            is_cut = self._max_length is not None and len(found["input_ids"]) > self._max_length
            if is_cut:
                found = self._tokenizer(*parts, truncation="longest_first", max_length=self._max_length)
            ids = found["input_ids"]
            yield ids, found.get("token_type_ids", [0] * len(ids)), is_cut


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


def check_room(max_length: int | None, taken: int) -> None:
    """Refuse a length that has room only for special tokens and those of a template."""
    if max_length is not None and max_length < taken + 2:
        raise UsageError(
            f"max_length: {max_length} leaves no room for texts, because {taken} tokens are special or of the template"
        )


def _load_slow(folder: Path) -> Any:
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
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:  # dozens of tokenizer classes raise errors of many kinds
        raise DataError(f"{folder}: transformers cannot read the tokenizer: {error}") from error


def add_lowercasing(tokenizer: FastTokenizer) -> None:
    """Make the tokenizer lowercase texts first, unless it already lowercases at some point."""
    from tokenizers.normalizers import Lowercase, Normalizer, Sequence

    present: Normalizer | None = tokenizer.normalizer
    described = json.loads(tokenizer.to_str())["normalizer"] or {}
    parts = described.get("normalizers", [described])
    if not any(part.get("type") == "Lowercase" for part in parts):
        tokenizer.normalizer = Sequence([Lowercase(), *([present] if present else [])])


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
