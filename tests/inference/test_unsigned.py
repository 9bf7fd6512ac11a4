from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from rageval_spec.inference.session import Session
from rageval_spec.inference.unsigned import read_unsigned

SIZE = 64
RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.integers(-127, 128, (SIZE, SIZE)).astype(np.int8)
WEIGHT[:, :2] = [127, -127]
VALUES = RANDOM.integers(0, 256, (4, SIZE)).astype(np.uint8)
VALUES[0] = 255
EXPECTED = VALUES.astype(np.int64) @ WEIGHT.astype(np.int64)
"""A pair of products such as 255 x 127 does not fit in 16 bits, and so is wrong where such sums saturate."""
UINT8, FLOAT = onnx.TensorProto.UINT8, onnx.TensorProto.FLOAT


def multiply(operator: str, values: str, output: str, zero: str) -> list[onnx.NodeProto]:
    """The nodes that multiply the integers `values` by WEIGHT, whose zero point is 0, given or not."""
    product = f"{output}_product"
    match operator:
        case "MatMulInteger":
            inputs = [values, "weight", *(["", zero] if zero else [])]
            return [
                helper.make_node(operator, inputs, [product]),
                helper.make_node("Cast", [product], [output], to=FLOAT),
            ]
        case "MatMulIntegerToFloat":
            inputs = [values, "weight", "one", "one", *(["", zero] if zero else [])]
            return [helper.make_node(operator, inputs, [output], domain="com.microsoft")]
        case "DequantizeLinear":
            return [
                helper.make_node(operator, [values, "one"], [f"{output}_values"]),
                helper.make_node(operator, ["weight", "one", *([zero] if zero else [])], [f"{output}_weight"]),
                helper.make_node("MatMul", [f"{output}_values", f"{output}_weight"], [output]),
            ]
        case _:
            raise AssertionError(operator)


def save_encoder(path: Path, operator: str, *, zero: bool, shared: bool, beside: bool) -> Path:
    """An encoder whose vector for the token t is row t of EXPECTED; doubled if two products share the weight."""
    given = "zero" if zero else ""
    integers = [
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
        helper.make_node("QuantizeLinear", ["embedded", "one", "nothing"], ["values"]),
    ]
    if shared:
        products = [*multiply(operator, "values", "first", given), *multiply(operator, "values", "second", given)]
        end = helper.make_node("Add", ["first", "second"], ["last_hidden_state"])
    else:
        products = multiply(operator, "values", "first", given)
        end = helper.make_node("Identity", ["first"], ["last_hidden_state"])
    constants: dict[str, Any] = {
        "table": VALUES.astype(np.float32),
        "weight": WEIGHT,
        "one": np.float32(1),
        "nothing": np.uint8(0),
        "zero": np.int8(0),
    }
    graph = helper.make_graph(
        [*integers, *products, end],
        "encoder",
        [helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["b", "t"])],
        [helper.make_tensor_value_info("last_hidden_state", FLOAT, ["b", "t", SIZE])],
        [numpy_helper.from_array(np.asarray(values), name) for name, values in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    saving: dict[str, Any] = (
        {"save_as_external_data": True, "location": "weights", "size_threshold": 100} if beside else {}
    )
    onnx.save_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), path, **saving)
    return path


OPERATORS = pytest.mark.parametrize("operator", ["MatMulInteger", "MatMulIntegerToFloat", "DequantizeLinear"])
ZERO = pytest.mark.parametrize("zero", [False, True])
SHARED = pytest.mark.parametrize("shared", [False, True])
BESIDE = pytest.mark.parametrize("beside", [False, True])


@OPERATORS
@ZERO
@SHARED
@BESIDE
def test_sessions_multiply_integers_exactly_on_every_processor(
    tmp_path: Path, operator: str, zero: bool, shared: bool, beside: bool
) -> None:
    session = Session(save_encoder(tmp_path / "model.onnx", operator, zero=zero, shared=shared, beside=beside))
    found = dict[int, Any]()
    for positions, vectors in session.run([np.array([token]) for token in range(len(VALUES))]):
        found |= dict(zip(positions.tolist(), vectors, strict=True))
    assert np.array_equal([found[token] for token in range(len(VALUES))], EXPECTED * (2 if shared else 1))


@OPERATORS
@ZERO
@SHARED
@BESIDE
def test_unsigned_graphs_are_exact_in_other_programs(
    tmp_path: Path, operator: str, zero: bool, shared: bool, beside: bool
) -> None:
    path = save_encoder(tmp_path / "model.onnx", operator, zero=zero, shared=shared, beside=beside)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
    session = onnxruntime.InferenceSession(read_unsigned(path), options, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": np.arange(len(VALUES))[None]})
    assert np.array_equal(found[0], EXPECTED * (2 if shared else 1))


def test_scales_of_columns_keep_their_shape(tmp_path: Path) -> None:
    """A zero point of DequantizeLinear must have the shape of its scale."""
    path = save_encoder(tmp_path / "model.onnx", "DequantizeLinear", zero=False, shared=False, beside=False)
    model = onnx.load_model(path)
    node = next(node for node in model.graph.node if node.input[0] == "weight")
    node.input[1] = "scales"
    scales = np.arange(1, SIZE + 1, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scales, "scales"))
    onnx.save_model(model, path)
    session = onnxruntime.InferenceSession(read_unsigned(path), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": np.arange(len(VALUES))[None]})
    assert np.array_equal(found[0], EXPECTED * scales)


def test_the_same_weight_is_stored_once(tmp_path: Path) -> None:
    path = save_encoder(tmp_path / "model.onnx", "MatMulInteger", zero=True, shared=True, beside=False)
    graph = onnx.load_model_from_string(read_unsigned(path)).graph
    weights = {node.input[1] for node in graph.node if node.op_type == "MatMulInteger"}
    (kept,) = [one for one in graph.initializer if one.name in weights]
    assert (kept.data_type, len(weights)) == (UINT8, 1)
    assert np.array_equal(numpy_helper.to_array(kept), WEIGHT.astype(int) + 128)


def test_graphs_without_int8_weights(tmp_path: Path) -> None:
    once = read_unsigned(save_encoder(tmp_path / "model.onnx", "MatMulInteger", zero=True, shared=True, beside=False))
    (tmp_path / "again.onnx").write_bytes(once)
    assert read_unsigned(tmp_path / "again.onnx") == b""
