from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.external_data_helper import set_external_data

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.external_data import find_external_data
from rageval_spec.inference.graph import build_graph
from tests.inference.folders import BERT, bert_weights


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
