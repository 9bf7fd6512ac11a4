""""""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnx_from_checkpoints import build_graph, read_e5s1, read_weights
from onnx_from_checkpoints.e5s1 import E5File
from onnx_from_checkpoints.errors import CheckpointError, DamagedFile
from onnx_from_checkpoints.weights import Blocks
from tests.onnx_from_checkpoints.e5s1_files import HIDDEN, PIECES, write_e5s1

NAME = f"small-{E5File.ENDING}"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("e5s1") / NAME
    write_e5s1(path)
    return path


def damage(folder: Path, whole: Path, place: int, value: bytes) -> Path:
    content = bytearray(whole.read_bytes())
    content[place : place + len(value)] = value
    path = folder / NAME
    path.write_bytes(content)
    return path


def run(graph: Any, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": ids, "token_type_ids": np.zeros_like(ids)})
    return np.asarray(found)


def test_values_of_a_block_worked_by_hand() -> None:
    content = np.frombuffer(struct.pack("<e16B", 0.5, 0x80, 0x8F, 0x19, *[0x88] * 13), np.uint8)
    blocks = Blocks(content, (1, 32), "a tensor")
    values = [-4.0, 3.5, 0.5, *[0.0] * 13, 0.0, 0.0, -3.5, *[0.0] * 13]
    assert blocks.astype(np.float32).tolist() == [values]
    bits, scales = blocks.pack()
    assert scales.tolist() == [[0.5]]
    # Neighbours share a byte, the first in its low bits.
    assert bits.tolist() == [[0xF0, 0x89, *[0x88] * 6, 0x88, 0x81, *[0x88] * 6]]


def test_tensors_have_the_names_of_transformers_and_the_values_of_the_file(small: Path, tmp_path: Path) -> None:
    expected = write_e5s1(tmp_path / NAME)
    weights = read_weights([tmp_path / NAME])
    assert len(weights) == len(expected)
    for ours, theirs in {
        "embeddings.word_embeddings.weight": "emb.word",
        "embeddings.LayerNorm.bias": "emb.ln.b",
        "encoder.layer.0.attention.self.key.weight": "l0.k.w",
        "encoder.layer.1.attention.output.LayerNorm.weight": "l1.aln.w",
        "encoder.layer.1.output.dense.weight": "l1.fo.w",
        "encoder.layer.1.intermediate.dense.bias": "l1.fi.b",
    }.items():
        assert np.array_equal(weights[ours].astype(np.float32), expected[theirs])


def test_the_table_of_words_keeps_its_four_bits_and_the_vectors_their_bits(small: Path) -> None:
    config, weights = read_e5s1(small).config, read_weights([small])
    graph = build_graph(config, weights, tabled=True)
    (node,) = (node for node in graph.graph.node if node.op_type == "GatherBlockQuantized")
    sizes = {one.name: len(one.raw_data) for one in graph.graph.initializer}
    rows = config["vocab_size"]
    assert [sizes[name] for name in (node.input[0], node.input[2])] == [rows * HIDDEN // 2, rows * HIDDEN // 32 * 4]
    floats = {name: np.asarray(weights[name].astype(np.float32)) for name in weights}
    ids = np.arange(rows, dtype=np.int64)[None, :]
    assert np.array_equal(run(graph, ids), run(build_graph(config, floats), ids))


def test_the_configuration_is_that_of_the_described_model(small: Path) -> None:
    file = read_e5s1(small)
    found = file.configuration
    assert (found.query_prefix, found.document_prefix, found.max_length) == ("query: ", "passage: ", 48)
    assert (found.task, found.pooling, found.normalize, found.similarity) == ("embedding", ("mean",), True, "cosine")
    assert (found.positions, found.vocabulary, found.token_types) == (48, file.config["vocab_size"], True)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, b"GGUF", "not an E5S1 file"),
        (4, struct.pack("<I", 2), "version 1"),
        (44, struct.pack("<i", -5), "damaged or truncated"),
        (44, struct.pack("<i", 2**31 - 1), "damaged or truncated"),
        (64, struct.pack("<Q", 2**63), "damaged or truncated"),
    ],
)
def test_damage_is_named(small: Path, tmp_path: Path, place: int, value: bytes, message: str) -> None:
    path = damage(tmp_path, small, place, value)
    with pytest.raises(DamagedFile, match=message) as caught:
        read_e5s1(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        (b"emb.word", "Q", 2**40, "it ends before the tensor 'emb.word'"),
        (b"emb.ln.w", "I", 63, "'emb.ln.w' has 256 bytes for 63 values"),
        (b"l0.q.w", "B", 2, "damaged or truncated"),
        (b"l1.fo.w", "I", 6143, "'l1.fo.w' has 3456 bytes for 6143 values"),
    ],
)
def test_a_damaged_entry_of_a_tensor_is_named(
    small: Path, tmp_path: Path, name: bytes, field: str, value: int, message: str
) -> None:
    place = small.read_bytes().index(name) + len(name) + {"B": 0, "I": 1, "Q": 5}[field]
    with pytest.raises(DamagedFile, match=message):
        read_e5s1(damage(tmp_path, small, place, struct.pack(f"<{field}", value)))


def test_a_truncated_file_is_refused(small: Path, tmp_path: Path) -> None:
    whole, path = small.read_bytes(), tmp_path / NAME
    for size in (3, 20, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedFile, match="is damaged or truncated"):
            read_e5s1(path)


def test_a_tensor_of_no_known_name_is_refused(small: Path, tmp_path: Path) -> None:
    place = small.read_bytes().index(b"l0.q.w")
    for name in (b"l0.z.w", b"lx.q.w", b"......", b"\xff\xff\xff\xff\xff\xff"):
        with pytest.raises(DamagedFile):
            read_e5s1(damage(tmp_path, small, place, name))


def test_scales_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    blocks = np.full((HIDDEN * HIDDEN // 32, 18), 0x11, np.uint8)
    blocks[3, :2] = 0x00, 0x7C
    write_e5s1(tmp_path / NAME, change={"l0.q.w": blocks})
    with pytest.raises(DamagedFile, match=r"'encoder.layer.0.attention.self.query.weight' has a scale that is NaN or"):
        build_graph(read_e5s1(tmp_path / NAME).config, read_weights([tmp_path / NAME]))


def test_no_file_and_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match="cannot be read"):
        read_e5s1(tmp_path / NAME)
    (tmp_path / NAME).touch()
    with pytest.raises(DamagedFile, match="damaged or truncated"):
        read_e5s1(tmp_path / NAME)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_damage_ends_in_another_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged" / NAME
    if not path.exists():
        write_e5s1(path)
    whole = path.read_bytes()
    size = 72 + 9 * len(PIECES) + 40 * 30
    if data.draw(st.booleans()):
        content = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        place, value = data.draw(st.integers(0, size)), data.draw(st.binary(min_size=1, max_size=4))
        content = whole[:place] + value + whole[place + len(value) :]
    other = path.with_name(f"other-{NAME}")
    other.write_bytes(content)
    try:
        file = read_e5s1(other)
        build_graph(file.config, read_weights([other]))
    except CheckpointError as error:
        assert error.args
