from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.tokenizing.sentencepiece import CONTROL, UNKNOWN, read_sentencepiece
from tests.inference.tokenizing.vocabularies import GOLDEN, field, number_field, piece, sentencepiece_model

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
    assert list(model.of_type(UNKNOWN, CONTROL)) == [("<unk>", UNKNOWN), ("<s>", CONTROL)]


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
