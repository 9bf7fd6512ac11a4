""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_tensor, set_external_data

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.onnx_files import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    find_external_data,
    is_quantized,
    make_constant,
    read_fields,
    read_varint,
    save_whole,
    start_field,
    written_beside,
)
from tests.onnx_from_checkpoints.folders import BERT, bert_weights

MESSAGE = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d\x01\x02\x03\x04" + b"\x21" + b"\x00" * 8


def test_fields_by_hand() -> None:
    found = list(read_fields(MESSAGE, 0, len(MESSAGE)))
    assert [(number, kind) for number, kind, _, _ in found] == [(1, VARINT), (2, BYTES), (3, FIXED32), (4, FIXED64)]
    assert [MESSAGE[start:stop] for _, _, start, stop in found] == [
        b"\x96\x01", b"abc", b"\x01\x02\x03\x04", b"\x00" * 8,
    ]  # fmt: skip
    assert read_varint(MESSAGE, 1) == (150, 3)


@pytest.mark.parametrize("end", [1, 2, 4, 7, 9, 12, 14, 20])
def test_an_incomplete_field(end: int) -> None:
    with pytest.raises(IndexError):
        list(read_fields(MESSAGE[:end], 0, end))


@pytest.mark.parametrize("content", [b"\x0b", b"\x08" + b"\xff" * 11, b"\x12\x05ab"])
def test_what_is_not_protobuf(content: bytes) -> None:
    with pytest.raises(IndexError):
        list(read_fields(content, 0, len(content)))


@given(content=st.binary(max_size=60))
def test_any_bytes_end_in_fields_or_an_index_error(content: bytes) -> None:
    try:
        found = list(read_fields(content, 0, len(content)))
    except IndexError:
        return
    assert not found or found[-1][3] == len(content)


@given(st.integers(1, 2**29 - 1), st.integers(0, 300), st.integers(0, 2**40))
def test_fields_that_are_started_are_read_back(number: int, size: int, large: int) -> None:
    message = start_field(number, size) + bytes(size)
    assert list(read_fields(message, 0, len(message))) == [(number, BYTES, len(message) - size, len(message))]
    assert read_varint(start_field(1, large), 1)[0] == large


def make_tensor(name: str, location: str | None = None) -> onnx.TensorProto:
    tensor = numpy_helper.from_array(np.arange(3, dtype=np.float32), name)
    if location is not None:
        set_external_data(tensor, location, offset=0, length=12, checksum="0")
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
    return tensor


def make_graph(*tensors: onnx.TensorProto, nodes: tuple[onnx.NodeProto, ...] = ()) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), "g", [], [], list(tensors))


def write(folder: Path, graph: onnx.GraphProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


def test_each_file_once(tmp_path: Path) -> None:
    tensors = [make_tensor("a", "w.bin"), make_tensor("b"), make_tensor("c", "./w.bin"), make_tensor("d", "sub/v")]
    assert find_external_data(write(tmp_path, make_graph(*tensors))) == ("sub/v", "w.bin")
    assert find_external_data(write(tmp_path, make_graph(make_tensor("b")))) == ()


def test_tensors_of_nodes_and_of_their_graphs(tmp_path: Path) -> None:
    constant = helper.make_node("Constant", [], ["x"], value=make_tensor("v", "constant"))
    branch = make_graph(make_tensor("w", "branch"), nodes=(constant,))
    node = helper.make_node("If", ["y"], ["z"], then_branch=branch, else_branch=make_graph())
    assert find_external_data(write(tmp_path, make_graph(nodes=(node,)))) == ("branch", "constant")


@pytest.mark.parametrize("location", ["weights.bin", "model.onnx_data"])
def test_what_onnx_writes(tmp_path: Path, location: str) -> None:
    path = tmp_path / "model.onnx"
    model = build_graph(BERT, bert_weights())
    onnx.save_model(model, path)
    assert find_external_data(path) == ()
    onnx.save_model(model, path, save_as_external_data=True, location=location, size_threshold=0)
    assert find_external_data(path) == (location,)


@pytest.mark.parametrize("location", ["../secret", "/etc/secret", "a/../../b", "a\\b"])
def test_files_outside_of_the_folder(tmp_path: Path, location: str) -> None:
    path = write(tmp_path, make_graph(make_tensor("a", location)))
    with pytest.raises(DamagedFile, match=r"model\.onnx: has weights in .*, which is outside of its folder"):
        find_external_data(path)


def test_files_that_are_not_models_have_no_external_data(tmp_path: Path) -> None:
    path = write(tmp_path, make_graph(make_tensor("a", "w.bin")))
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        assert find_external_data(path) in (None, (), ("w.bin",))
    for text in (b"", b"graph", b"version https://git-lfs.github.com/spec/v1\n", b"\xff" * 20):
        path.write_bytes(text)
        assert find_external_data(path) is None


def test_constants_stay_in_the_graph_without_a_file() -> None:
    values = np.arange(2000, dtype=np.float32)
    assert (numpy_helper.to_array(make_constant("x", values)) == values).all()


@pytest.mark.parametrize("at_once", [1, 5000, 1 << 24])
def test_large_constants_are_written_beside_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("onnx_from_checkpoints.onnx_files._WRITTEN_AT_ONCE", at_once)
    turned = np.arange(3000, dtype=np.float32).reshape(60, 50).T
    bytes_ = np.arange(2500, dtype=np.int64).astype(np.int8).reshape(50, 50)
    with written_beside(tmp_path / "m.onnx_data"):
        found = [make_constant(name, values) for name, values in (("x", turned), ("small", np.ones(3)), ("y", bytes_))]
    assert [one.data_location for one in found] == [onnx.TensorProto.EXTERNAL, 0, onnx.TensorProto.EXTERNAL]
    for tensor, values in zip(found[::2], (turned, bytes_), strict=True):
        assert {entry.key: entry.value for entry in tensor.external_data}["location"] == "m.onnx_data"
        load_external_data_for_tensor(tensor, str(tmp_path))
        tensor.data_location = onnx.TensorProto.DEFAULT
        assert (numpy_helper.to_array(tensor) == values).all()
    again = make_constant("z", turned)
    assert again.data_location == onnx.TensorProto.DEFAULT


def test_no_file_is_left_if_nothing_was_large(tmp_path: Path) -> None:
    with written_beside(tmp_path / "m.onnx_data"):
        make_constant("small", np.ones(3))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at_once", [7, 1 << 24])
def test_a_graph_and_the_file_beside_it_become_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    arrays: dict[str, NDArray[Any]] = {
        "x": np.arange(3000, dtype=np.float32).reshape(60, 50),
        "small": np.ones(3, np.float32),
        "y": np.arange(2500, dtype=np.int64).astype(np.int8),
    }
    with written_beside(tmp_path / "m.onnx_data"):
        constants = [make_constant(name, values) for name, values in arrays.items()]
    graph = helper.make_graph([helper.make_node("Add", ["x", "a"], ["b"])], "sum", [], [], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    monkeypatch.setattr("onnx_from_checkpoints.onnx_files._WRITTEN_AT_ONCE", at_once)
    save_whole(model, tmp_path / "m.onnx")
    (tmp_path / "m.onnx_data").unlink()
    found = onnx.load_model(tmp_path / "m.onnx")
    read = {tensor.name: numpy_helper.to_array(tensor) for tensor in found.graph.initializer}
    assert [*read] == [*arrays]
    assert all((read[name] == values).all() for name, values in arrays.items())
    assert found.graph.node == model.graph.node
    assert (found.opset_import, found.ir_version) == (model.opset_import, model.ir_version)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"..DynamicQuantizeLinear..", True),
        (b"..QuantizeLinear..QLinearMatMul", True),
        (b"DynamicQuantizeMatMul", True),
        (b"MatMulIntegerToFloat", True),
        (b"MatMul Gather LayerNormalization", False),
        (b"", False),
        (None, False),
    ],
)
def test_integer_products_are_told_by_the_names_of_operators(
    tmp_path: Path, content: bytes | None, found: bool
) -> None:
    path = tmp_path / "m.onnx"
    if content is not None:
        path.write_bytes(content)
    assert is_quantized(path) is found
