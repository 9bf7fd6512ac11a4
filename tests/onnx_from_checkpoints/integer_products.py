"""Graphs of small integer products whose results are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

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
