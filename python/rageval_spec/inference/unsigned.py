"""Rewrites the int8 weights of a graph as uint8, which means the same with a zero point that is 128 higher.

On x86 processors without VNNI, ONNX Runtime's products of uint8 and uint8 are exact, but those of uint8 and int8
saturate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray

_WEIGHTS: Mapping[str, tuple[int, int]] = {
    "DequantizeLinear": (0, 2),
    "DynamicQuantizeMatMul": (1, 3),
    "MatMulInteger": (1, 3),
    "MatMulIntegerToFloat": (1, 5),
    "QAttention": (1, 7),
    "QGemm": (3, 5),
    "QLinearConv": (3, 5),
    "QLinearMatMul": (3, 5),
}
"""The inputs of operators that are a weight and its zero point."""
_SIGN = 0x80
"""The bit that makes an int8 with a zero point a uint8 with a zero point that is 128 higher."""


def read_unsigned(path: Path) -> bytes:
    """An `.onnx` file in which weights are uint8 instead of int8; empty if there are none.

    Weights in subgraphs stay as they are.

    Raises:
        Exception: the file cannot be read, or the result has more than 2 GiB.
    """
    import onnx

    model = onnx.load_model(path, load_external_data=False)
    weights = _Weights(model.graph, path.parent)
    changed = [weights.replace(node) for node in model.graph.node if node.op_type in _WEIGHTS]
    return model.SerializeToString() if any(changed) else b""


class _Weights:
    """The int8 constants of a graph, and their forms in uint8."""

    def __init__(self, graph: onnx.GraphProto, folder: Path) -> None:
        self._graph = graph
        self._folder = folder
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._made: set[str] = set()

    def replace(self, node: onnx.NodeProto) -> bool:
        """Let an operator read its weight in uint8. Returns whether the weight was a constant in int8."""
        weight, zero = _WEIGHTS[node.op_type]
        inputs = [*node.input, *[""] * (zero + 1 - len(node.input))]
        if not self._is_int8(inputs[weight]) or not (inputs[zero] == "" or self._is_int8(inputs[zero])):
            return False
        inputs[zero] = self._make(inputs[zero]) if inputs[zero] else self._make_zero(node)
        inputs[weight] = self._make(inputs[weight])
        del node.input[:]
        node.input.extend(inputs)
        return True

    def _is_int8(self, name: str) -> bool:
        import onnx

        found = self._constants.get(name)
        return found is not None and found.data_type == onnx.TensorProto.INT8

    def _make(self, name: str) -> str:
        from onnx import numpy_helper

        values = numpy_helper.to_array(self._constants[name], str(self._folder))
        return self._add(f"rageval_unsigned_{name}", values.view(np.uint8) ^ np.uint8(_SIGN))

    def _make_zero(self, node: onnx.NodeProto) -> str:
        """A zero point for a weight without one; that of DequantizeLinear has the shape of the scale."""
        scale = self._constants.get(node.input[1]) if node.op_type == "DequantizeLinear" else None
        shape = tuple(scale.dims) if scale is not None else ()
        return self._add("_".join(("rageval_unsigned_zero", *map(str, shape))), np.full(shape, _SIGN, np.uint8))

    def _add(self, name: str, values: NDArray[np.uint8]) -> str:
        from onnx import numpy_helper

        if name not in self._made:
            self._made.add(name)
            self._graph.initializer.append(numpy_helper.from_array(values, name))
        return name
