""""""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers.normalizers import Precompiled

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.tokenizers.sentencepiece import (
    SPACE,
    is_sound,
    list_own,
    read_sentencepiece,
)
from onnx_from_checkpoints.tokenizers.tokenizer_loading import read_tokenizer
from tests.onnx_from_checkpoints.folders import write_json
from tests.onnx_from_checkpoints.tokenizers.vocabularies import GOLDEN, field, number_field, piece, sentencepiece_model

PIECES = [piece("<unk>", kind=2), piece("<s>", kind=3), piece("\u2581cat", -1.5), piece("\u00e9" * 70, -2.0)]
REAL = (GOLDEN / "deberta" / "spm.model").read_bytes()


def written(folder: Path, content: bytes) -> Path:
    path = folder / "spm.model"
    path.write_bytes(content)
    return path


def test_a_model_by_hand(tmp_path: Path) -> None:
    trainer = number_field(3, 2) + number_field(35, 1) + number_field(4, 99)
    model = read_sentencepiece(written(tmp_path, sentencepiece_model(PIECES, trainer, number_field(3, 1))))
    assert model.pieces == [("<unk>", 0.0), ("<s>", 0.0), ("\u2581cat", -1.5), ("\u00e9" * 70, -2.0)]
    assert list(model.types) == [2, 3, 1, 1]
    assert (model.kind, model.unknown, model.byte_fallback, model.charsmap) == ("bpe", 0, True, b"")
    assert [(token.content, token.special) for token in list_own(model)] == [("<s>", True)]


def test_a_trained_model() -> None:
    model = read_sentencepiece(GOLDEN / "deberta" / "spm.model")
    assert [text for text, _ in model.pieces[:4]] == ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    assert (model.kind, model.unknown, model.byte_fallback) == ("unigram", 3, False)
    assert model.charsmap and all(score <= 0 for _, score in model.pieces)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no pieces"),
        (b"not a model at all", "is not a SentencePiece model, or is damaged or truncated"),
        (b"\x7fELF" + bytes(100), "is not a SentencePiece model, or is damaged or truncated"),
        (b'{"version": "1.0", "model": {}}', "is not a SentencePiece model, or is damaged or truncated"),
        (REAL[:-1], "damaged or truncated"),
        (REAL[: len(REAL) // 3], "damaged or truncated|has no pieces|not the unknown piece"),
        (sentencepiece_model([piece("a")]), r"'trainer_spec.unk_id' is 0, which is not the unknown piece"),
        (sentencepiece_model(PIECES, number_field(40, 9)), r"'trainer_spec.unk_id' is 9"),
        (sentencepiece_model([*PIECES, piece("<s>")]), "has the same piece twice"),
        (sentencepiece_model([*PIECES, piece("")]), "a piece is empty"),
        (sentencepiece_model([*PIECES, piece("a", float("nan"))]), "has no finite score"),
        (sentencepiece_model([*PIECES, field(1, field(1, b"\xff\xfe"))]), "damaged or truncated"),
        (sentencepiece_model(PIECES, number_field(3, 4)), r"'trainer_spec.model_type' is char, which is not supported"),
        (sentencepiece_model(PIECES, number_field(24, 1)), r"'trainer_spec.treat_whitespace_as_suffix' is true"),
        (sentencepiece_model(PIECES, b"", number_field(3, 0)), r"'normalizer_spec.add_dummy_prefix' is false"),
        (sentencepiece_model(PIECES, b"", number_field(5, 0)), r"'normalizer_spec.escape_whitespaces' is false"),
        (sentencepiece_model(PIECES, b"", field(2, b"\xff\xff\x00\x00")), r"precompiled_charsmap' is damaged"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DamagedFile, match=rf"spm\.model: .*({message})"):
        read_sentencepiece(written(tmp_path, content))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match=r"spm\.model: cannot be read: No such file"):
        read_sentencepiece(tmp_path / "spm.model")


@given(place=st.integers(0, len(REAL) - 1), value=st.integers(0, 255))
def test_a_damaged_byte_is_noticed_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int
) -> None:
    path = written(tmp_path_factory.getbasetemp(), REAL[:place] + bytes([value]) + REAL[place + 1 :])
    try:
        model = read_sentencepiece(path)
    except DamagedFile:
        return
    assert len(model.pieces) == len(model.types) > model.unknown


REAL_CHARSMAP = read_sentencepiece(GOLDEN / "deberta" / "spm.model").charsmap
TRIE = int.from_bytes(REAL_CHARSMAP[:4], "little")
TEXTS: list[str] = json.loads((GOLDEN / "texts.json").read_text("ascii"))


def replaced(content: bytes, place: int, value: int) -> bytes:
    return content[:place] + bytes([value]) + content[place + 1 :]


def test_rules_of_a_trained_model_are_sound() -> None:
    assert is_sound(REAL_CHARSMAP)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x00\x00\x00",
        REAL_CHARSMAP[:3],
        REAL_CHARSMAP[: TRIE // 2],
        REAL_CHARSMAP[: 4 + TRIE],
        struct.pack("<I", TRIE + 1) + REAL_CHARSMAP[4:],
        struct.pack("<I", 4) + REAL_CHARSMAP[4:],
        struct.pack("<II", 4, 0xFFFFFFFF),
        REAL_CHARSMAP[:-20] + b"\xff" * 20,
    ],
)
def test_rules_that_are_cut_short_or_overwritten(content: bytes) -> None:
    assert not is_sound(content)


@example(place=7, value=255)
@given(place=st.integers(4, len(REAL_CHARSMAP) - 1), value=st.integers(0, 255))
def test_rules_that_are_sound_can_read_any_text(place: int, value: int) -> None:
    content = replaced(REAL_CHARSMAP, place, value)
    if is_sound(content):
        normalizer = Precompiled(content)
        for text in TEXTS:
            normalizer.normalize_str(text)  # with a damaged trie this would panic


def test_a_step_out_of_the_trie_is_noticed() -> None:
    found = [is_sound(replaced(REAL_CHARSMAP, place + 3, 255)) for place in range(4, 4 + TRIE, 4)]
    assert not all(found)
    assert not is_sound(replaced(REAL_CHARSMAP, 7, 255))


SPECIAL = [piece("[PAD]", kind=3), piece("[CLS]", kind=3), piece("[SEP]", kind=3), piece("[UNK]", kind=2)]


def write_model(folder: Path, pieces: list[bytes], *, kind: int = 1, trainer: bytes = b"") -> Path:
    settings = number_field(40, 3) + number_field(3, kind) + trainer
    (folder / "spm.model").write_bytes(sentencepiece_model([*SPECIAL, *pieces], settings))
    write_json(folder / "config.json", {"model_type": "deberta-v2"})
    return folder


def spell(folder: Path, text: str) -> list[str]:
    found = read_tokenizer(folder, ["spm.model"])
    assert found is not None
    tokenizer = found.tokenizer
    return [tokenizer.id_to_token(number) or "" for number in tokenizer.encode(text).ids[1:-1]]


def test_a_unigram_model_takes_the_pieces_with_the_best_scores(tmp_path: Path) -> None:
    pieces = [piece(SPACE, -3), piece("a", -3), piece("b", -3), piece(f"{SPACE}a", -4), piece("ab", -4.5)]
    assert spell(write_model(tmp_path, pieces), "a ab") == [f"{SPACE}a", f"{SPACE}a", "b"]


def test_a_unigram_model_reads_unknown_characters_as_unknown_though_it_has_bytes(tmp_path: Path) -> None:
    pieces = [piece(SPACE, -3), piece("<0xC3>", kind=6), piece("<0xA9>", kind=6)]
    write_model(tmp_path, pieces, trainer=number_field(35, 1))
    assert spell(tmp_path, "\u00e9") == [SPACE, "[UNK]"]


def test_a_bpe_model_merges_in_the_order_of_its_pieces(tmp_path: Path) -> None:
    pieces = [
        piece(text, -number) for number, text in enumerate([SPACE, "a", "b", "c", "bc", "ab", f"{SPACE}a", "abc"])
    ]
    assert spell(write_model(tmp_path, pieces, kind=2), "abc abd") == [f"{SPACE}a", "bc", f"{SPACE}", "ab", "[UNK]"]


def test_a_bpe_model_reads_unknown_characters_as_bytes_if_it_has_them(tmp_path: Path) -> None:
    pieces = [piece(SPACE, 0), *(piece(f"<0x{byte:02X}>", kind=6) for byte in range(256))]
    write_model(tmp_path, pieces, kind=2, trainer=number_field(35, 1))
    assert spell(tmp_path, "\u00e9") == [SPACE, "<0xC3>", "<0xA9>"]


def test_symbols_that_a_user_defined_are_never_split(tmp_path: Path) -> None:
    pieces = [piece(SPACE, -3), piece("x", -3), piece("<sym>", kind=4)]
    assert spell(write_model(tmp_path, pieces), "x<sym>x") == [SPACE, "x", "<sym>", SPACE, "x"]
