"""Quantises a model: products with a constant matrix use 8-bit integers, and everything else stays float32.

Weights are quantised ahead of time, to symmetric int8 with one scale per column. The values that they are multiplied
with are quantised at run time, to uint8 with one scale and zero point per tensor (ONNX's DynamicQuantizeLinear). CPUs
have an instruction for products of uint8 and int8 (VNNI). Embeddings, attention and the layers of a classifier's head
stay float32.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from rageval_spec.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = "1"
"""Increase this when the same graph would be quantised differently."""
_MICROSOFT = "com.microsoft"
_LARGEST = 127
_MOST_BYTES_IN_ONE_FILE = 1_500_000_000


def quantize(source: Path, target: Path) -> None:
    """Write the int8 form of a float32 graph. The write is atomic: `target` is never incomplete.

    Raises:
        DataError: `source` cannot be read, is damaged, or has no products to quantise; it may be quantised already.
        OSError: `target` cannot be written.
    """
    model = _load(source)
    _Quantizer(model, source).replace_products()
    _write(model, target)


def _load(source: Path) -> onnx.ModelProto:
    try:
        model = onnx.load_model(source)
    except OSError as error:
        raise DataError(f"{source}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # protobuf's errors, and onnx's for external data, have no common base but Exception
        raise DataError(f"{source}: is damaged or not an ONNX model ({error}); download it again") from error
    if not model.graph.node:
        raise DataError(f"{source}: is damaged or not an ONNX model (it has no nodes); download it again")
    return model


def _write(model: onnx.ModelProto, target: Path) -> None:
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > _MOST_BYTES_IN_ONE_FILE
    # The graph refers to an external file by name, so that file must be written under its final name.
    beside = target.with_name(f"{target.name}_data")
    try:
        if large:
            beside.unlink(missing_ok=True)
        onnx.save_model(model, part, save_as_external_data=large, location=beside.name if large else None)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)


class _Quantizer:
    """Replaces the products in one graph."""

    def __init__(self, model: onnx.ModelProto, source: Path) -> None:
        self._graph = model.graph
        self._model = model
        self._source = source
        self._weights = {tensor.name: tensor for tensor in model.graph.initializer}
        self._quantized: set[str] = set()
        """The names of the values and the int8 weights that have been quantised so far."""

    def replace_products(self) -> None:
        """Replace each `MatMul` whose right operand is a constant float32 matrix.

        Raises:
            DataError: the graph has no such product.
        """
        nodes: list[onnx.NodeProto] = []
        for node in self._graph.node:
            nodes.extend(self._replace(node) if self._is_quantisable(node) else [node])
        if not self._quantized:
            raise DataError(
                f"{self._source}: has no products of float32 matrices to quantise; it may be quantised already"
            )
        del self._graph.node[:]
        self._graph.node.extend(nodes)
        self._drop_unused()
        if not any(opset.domain == _MICROSOFT for opset in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(_MICROSOFT, 1))

    def _is_quantisable(self, node: onnx.NodeProto) -> bool:
        if node.op_type != "MatMul" or node.domain not in ("", "ai.onnx"):
            return False
        weight = self._weights.get(node.input[1])
        return weight is not None and weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2

    def _replace(self, node: onnx.NodeProto) -> Iterable[onnx.NodeProto]:
        """The nodes of the integer product; a value that several products read is quantised only once."""
        value, weight = node.input
        integers, scale, zero = (f"{value}_{part}" for part in ("uint8", "scale", "zero"))
        if value not in self._quantized:
            self._quantized.add(value)
            yield helper.make_node("DynamicQuantizeLinear", [value], [integers, scale, zero], integers)
        matrix, scales = self._hold(weight)
        yield helper.make_node(
            "MatMulIntegerToFloat",
            [integers, matrix, scale, scales, zero],
            list(node.output),
            node.name,
            domain=_MICROSOFT,
        )

    def _hold(self, name: str) -> tuple[str, str]:
        """Store the int8 form of a weight and its scales, and return their names."""
        matrix, scales = f"{name}_int8", f"{name}_scales"
        if matrix not in self._quantized:
            self._quantized.add(matrix)
            integers, factors = quantize_columns(numpy_helper.to_array(self._weights[name]))
            self._graph.initializer.append(numpy_helper.from_array(integers, matrix))
            self._graph.initializer.append(numpy_helper.from_array(factors, scales))
        return matrix, scales

    def _drop_unused(self) -> None:
        used = {name for node in self._graph.node for name in node.input} | {one.name for one in self._graph.output}
        used |= set(_names_in_subgraphs(self._graph.node))
        kept = [tensor for tensor in self._graph.initializer if tensor.name in used]
        del self._graph.initializer[:]
        self._graph.initializer.extend(kept)


def _names_in_subgraphs(nodes: Iterable[onnx.NodeProto]) -> Iterable[str]:
    """Names that the subgraphs of control-flow nodes read; they may refer to the outer graph."""
    for node in nodes:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from (name for inner in body.node for name in inner.input)
                yield from _names_in_subgraphs(body.node)


def quantize_columns(matrix: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise each column symmetrically: int8 values from -127 to 127 [rows, columns], and float32 scales [columns].

    A column of integers times its scale approximates the original. A column of zeros has the scale 1.
    """
    factors = np.abs(matrix).max(axis=0) / np.float32(_LARGEST)
    factors = np.where(factors > 0, factors, np.float32(1)).astype(np.float32)
    return np.rint(matrix / factors).astype(np.int8), factors
