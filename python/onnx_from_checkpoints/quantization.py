"""Quantises a model: products with a constant matrix use 8-bit integers, and large tables are stored as such.

Weights are quantised ahead of time, to symmetric integers with one scale per column. The values that they are
multiplied with are quantised at run time, to uint8 with one scale and zero point per token: a few tokens (such as the
first) have features many times as large as the others', and one scale for all tokens, as in ONNX's
DynamicQuantizeLinear, would leave these few steps. With all-MiniLM-L6-v2 this divides the error of similarities by
almost 3, for an eighth more time. It also makes a token's numbers independent of the other tokens. Attention and the
layers of a classifier's head stay float32.

A large table, such as that of the words' embeddings, has integers of 8 bits and a scale for each 32 values of a row.
The rows that a text needs become float32 when they are looked up.

The integers from -127 to 127 are stored as int8, or as uint8 with 128 added, which means the same. Some processors have
an instruction for products of uint8 and int8 (VNNI). On x86 processors without it, ONNX Runtime's products of uint8 and
int8 saturate: they are wrong, without a message, unless a program asks for exact ones, as `Session` does. Products
of uint8 and uint8 are exact in every program and on every processor, but do not use that instruction everywhere.

Int8 weights of any graph can be rewritten as uint8, with a zero point that is 128 higher.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor, uses_external_data

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.onnx_files import EXTERNAL_FROM, make_constant, written_beside

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MICROSOFT = "com.microsoft"
_LARGEST, _STEPS = 127, 255
_UINT8_ZERO = 128
"""The integer that stands for 0 among weights in uint8, and the bit that makes an int8 such a uint8."""
_SMALLEST_SCALE = 1e-20
"""Of a token whose values are all 0."""
_OPSET_OF_ROWS, _OPSET_OF_AXES = 13, 18
"""ONNX's versions from which values can have one scale per row, and reductions read their axes from an input."""
_BLOCK = 32
"""How many values of a table's row share a scale."""
_TABLE_FROM = 1_000_000
"""How many values a table has at least that is quantised: a smaller one is not worth the error."""
_ROWS_AT_ONCE = 1 << 14
_PACKED: Mapping[int, int] = {
    onnx.TensorProto.INT4: 2, onnx.TensorProto.UINT4: 2, onnx.TensorProto.FLOAT4E2M1: 2,
    onnx.TensorProto.INT2: 4, onnx.TensorProto.UINT2: 4,
}  # fmt: skip
"""How many values are in a byte, of the types with several; numpy has a byte for each."""
MOST_BYTES_IN_ONE_FILE = 1_500_000_000
"""Larger weights are written to a separate file, because a protobuf message is limited to 2 GiB."""


def quantize(source: Path, target: Path, *, signed: bool = False, single_up_to: int = MOST_BYTES_IN_ONE_FILE) -> None:
    """Write the int8 form of a float32 graph. The write is atomic: `target` is never incomplete.

    Args:
        source: the float32 graph.
        target: the `.onnx` file to write.
        signed: whether weights are int8: faster with VNNI, but only for `Session`. Other programs need uint8, because
            their products with int8 may saturate.
        single_up_to: if the weights have more bytes than this, they are written to `<target>_data`.

    Raises:
        DamagedFile: `source` cannot be read, is damaged, or has no products to quantise; it may be quantised already.
        OSError: `target` cannot be written.
    """
    model = _load(source)
    quantizer = _Quantizer(model, source, signed=signed)
    # The graph refers to an external file by name, so that file must be written under its final name.
    beside = target.with_name(f"{target.name}_data") if quantizer.count_bytes() > single_up_to else None
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        with written_beside(beside):
            quantizer.replace_products()
        onnx.save_model(model, part)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)


def _load(source: Path) -> onnx.ModelProto:
    """The graph; weights in external files stay there until they are needed, which may be one after another."""
    try:
        model = onnx.load_model(source, load_external_data=False)
        for tensor in _find_tensors(model.graph):
            _fetch(tensor, source)
    except OSError as error:
        raise DamagedFile(f"{source}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # protobuf's errors, and onnx's for external data, have no common base but Exception
        raise DamagedFile(f"{source}: is damaged or not an ONNX model ({error}); download it again") from error
    if not model.graph.node:
        raise DamagedFile(f"{source}: is damaged or not an ONNX model (it has no nodes); download it again")
    return model


def _find_tensors(graph: onnx.GraphProto) -> Iterable[onnx.TensorProto]:
    """The tensors in nodes and in their subgraphs, which are usually small."""
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for body in (attribute.g, *attribute.graphs):
                yield from body.initializer
                yield from _find_tensors(body)


def _fetch(tensor: onnx.TensorProto, source: Path) -> onnx.TensorProto:
    """The tensor with its values, if they were in an external file."""
    if uses_external_data(tensor):
        load_external_data_for_tensor(tensor, str(source.parent))
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    return tensor


class _Quantizer:
    """Replaces the products in one graph."""

    def __init__(self, model: onnx.ModelProto, source: Path, *, signed: bool) -> None:
        self._graph = model.graph
        self._signed = signed
        self._model = model
        self._source = source
        self._weights = {tensor.name: tensor for tensor in model.graph.initializer}
        self._version = max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1)
        self._tables = self._find_tables()
        self._quantized: set[str] = set()
        """The names of the values and the constants that have been quantised or added so far."""

    def count_bytes(self) -> int:
        """The size of the weights that the quantised graph will have."""
        quantised = {node.input[1] for node in self._graph.node if self._is_quantisable(node)} | self._tables
        sizes = {name: _count_bytes(tensor) for name, tensor in self._weights.items()}
        return sum(size // 4 if name in quantised else size for name, size in sizes.items())

    def replace_products(self) -> None:
        """Replace each `MatMul` whose right operand is a constant float32 matrix, and each lookup in a large table."""
        nodes: list[onnx.NodeProto] = []
        for node in self._graph.node:
            nodes.extend(self._replace(node) if self._is_quantisable(node) else [node])
        if self._quantized:
            nodes = [self._look_up(node) if node.input and node.input[0] in self._tables else node for node in nodes]
        else:
            raise DamagedFile(
                f"{self._source}: has no products of float32 matrices to quantise; it may be quantised already"
            )
        del self._graph.node[:]
        self._graph.node.extend(nodes)
        self._keep_used()
        if not any(opset.domain == _MICROSOFT for opset in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(_MICROSOFT, 1))

    def _is_quantisable(self, node: onnx.NodeProto) -> bool:
        if node.op_type != "MatMul" or node.domain not in ("", "ai.onnx"):
            return False
        weight = self._weights.get(node.input[1])
        return weight is not None and weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2

    def _find_tables(self) -> set[str]:
        """The large float32 matrices whose rows are looked up, and which nothing else reads."""
        others = {one.name for one in self._graph.output} | set(_names_in_subgraphs(self._graph.node))
        looked_up: set[str] = set()
        for node in self._graph.node:
            by_row = node.op_type == "Gather" and all(one.i == 0 for one in node.attribute if one.name == "axis")
            looked_up.update(node.input[:1] if by_row else ())
            others.update(node.input[1:] if by_row else node.input)
        return {name for name in looked_up - others if name in self._weights and _is_table(self._weights[name])}

    def _look_up(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """The node that looks up rows of a table as integers, and multiplies them by their scales."""
        name, places = node.input
        integers, scales = f"{name}_blocks", f"{name}_block_scales"
        if integers not in self._quantized:
            self._quantized.add(integers)
            blocks, factors = quantize_blocks(self._read(name))
            self._graph.initializer.extend([make_constant(integers, blocks), make_constant(scales, factors)])
        facts: dict[str, Any] = {"gather_axis": 0, "quantize_axis": 1, "block_size": _BLOCK, "bits": 8}
        inputs = [integers, places, scales]
        return helper.make_node(
            "GatherBlockQuantized", inputs, list(node.output), node.name, domain=_MICROSOFT, **facts
        )

    def _replace(self, node: onnx.NodeProto) -> Iterable[onnx.NodeProto]:
        """The nodes of the integer product; a value that several products read is quantised only once."""
        value, weight = node.input
        new = value not in self._quantized
        self._quantized.add(value)
        if self._version < _OPSET_OF_ROWS:
            return [*(self._quantize_tensor(value) if new else ()), self._multiply_tensor(node)]
        inputs = self._weights[weight].dims[0]
        return [*(self._quantize_rows(value, inputs) if new else ()), *self._multiply_rows(node)]

    def _quantize_tensor(self, value: str) -> Iterable[onnx.NodeProto]:
        """One scale and zero point for all values."""
        outputs = [f"{value}_{part}" for part in ("uint8", "scale", "zero")]
        yield helper.make_node("DynamicQuantizeLinear", [value], outputs, outputs[0])

    def _multiply_tensor(self, node: onnx.NodeProto) -> onnx.NodeProto:
        value, weight = node.input
        matrix, scales, _ = self._hold(weight)
        inputs = [f"{value}_uint8", matrix, f"{value}_scale", scales, f"{value}_zero", *self._hold_zero()]
        return helper.make_node("MatMulIntegerToFloat", inputs, list(node.output), node.name, domain=_MICROSOFT)

    def _quantize_rows(self, value: str, inputs: int) -> Iterable[onnx.NodeProto]:
        """`<value>_uint8` [rows, inputs], with `_scale` and `_offset` [rows, 1] and the `_shape` of the rows.

        Scale times integer plus offset approximates a value; 0 is exact.
        """

        def name(part: str) -> str:
            return f"{value}_{part}"

        def add(operator: str, sources: list[str], part: str, **attributes: Any) -> onnx.NodeProto:
            return helper.make_node(operator, sources, [name(part)], name(part), **attributes)

        flat, nothing = self._hold_array("rows", np.array([-1])), self._hold_array("nothing", np.float32(0))
        rows = name("rows")
        yield add("Reshape", [value, self._hold_array(f"rows_{inputs}", np.array([-1, inputs]))], "rows")
        yield from self._find_leading(value, name("shape"))
        for operator, limit, part in (("ReduceMax", "Max", "highest"), ("ReduceMin", "Min", "lowest")):
            yield self._reduce(operator, rows, name(f"{part}_found"))
            yield add(limit, [name(f"{part}_found"), nothing], part)
        yield add("Sub", [name("highest"), name("lowest")], "range")
        yield add("Mul", [name("range"), self._hold_array("step", np.float32(1 / _STEPS))], "step")
        yield add("Max", [name("step"), self._hold_array("smallest_scale", np.float32(_SMALLEST_SCALE))], "scale")
        yield add("Div", [name("lowest"), name("scale")], "lowest_steps")
        yield add("Round", [name("lowest_steps")], "negative_zero")
        yield add("Mul", [name("negative_zero"), name("scale")], "offset")
        yield add("Neg", [name("negative_zero")], "zero_steps")
        yield add("Cast", [name("zero_steps")], "zero_column", to=onnx.TensorProto.UINT8)
        yield add("Reshape", [name("zero_column"), flat], "zero")
        yield add("Reshape", [name("scale"), flat], "scale_list")
        yield add("QuantizeLinear", [rows, name("scale_list"), name("zero")], "uint8", axis=0)

    def _reduce(self, operator: str, source: str, output: str) -> onnx.NodeProto:
        if self._version < _OPSET_OF_AXES:
            return helper.make_node(operator, [source], [output], output, axes=[-1], keepdims=1)
        axes = self._hold_array("last_axis", np.array([-1]))
        return helper.make_node(operator, [source, axes], [output], output, keepdims=1)

    def _find_leading(self, value: str, output: str) -> Iterable[onnx.NodeProto]:
        """The sizes of all dimensions but the last."""
        yield helper.make_node("Shape", [value], [f"{output}_whole"], f"{output}_whole")
        bounds = [self._hold_array(f"at_{place}", np.array([place])) for place in (0, -1)]
        yield helper.make_node("Slice", [f"{output}_whole", *bounds], [output], output)

    def _multiply_rows(self, node: onnx.NodeProto) -> Iterable[onnx.NodeProto]:
        """Scale times the product of the integers, plus offset times the sums of the weight's columns."""
        (value, weight), (output,) = node.input, node.output
        matrix, scales, sums = self._hold(weight)
        integers, scaled, added, flat, shape = (
            f"{output}_{part}" for part in ("product", "scaled", "added", "rows", "shape")
        )
        inputs = [f"{value}_uint8", matrix, self._hold_array("one", np.float32(1)), scales]
        if zero := self._hold_zero():
            inputs += ["", *zero]
        yield helper.make_node("MatMulIntegerToFloat", inputs, [integers], integers, domain=_MICROSOFT)
        yield helper.make_node("Mul", [integers, f"{value}_scale"], [scaled], scaled)
        yield helper.make_node("Mul", [f"{value}_offset", sums], [added], added)
        yield helper.make_node("Add", [scaled, added], [flat], flat)
        outputs = self._weights[weight].dims[1]
        width = self._hold_array(f"width_{outputs}", np.array([outputs]))
        yield helper.make_node("Concat", [f"{value}_shape", width], [shape], shape, axis=0)
        yield helper.make_node("Reshape", [flat, shape], [output], node.name)

    def _hold(self, name: str) -> tuple[str, str, str]:
        """Store the integers of a weight, their scales and the sums of its columns, and return their names."""
        matrix, scales, sums = (f"{name}_{part}" for part in ("int8" if self._signed else "unsigned", "scales", "sums"))
        if matrix not in self._quantized:
            self._quantized.add(matrix)
            integers, factors = quantize_columns(self._read(name))
            totals = integers.sum(axis=0, dtype=np.int64) * factors.astype(np.float64)
            stored = integers if self._signed else integers.view(np.uint8) ^ np.uint8(_UINT8_ZERO)
            for held, values in ((matrix, stored), (scales, factors), (sums, totals.astype(np.float32))):
                self._graph.initializer.append(make_constant(held, values))
        return matrix, scales, sums

    def _hold_zero(self) -> list[str]:
        """The name of the integer that stands for 0 in weights; none for int8, where it is 0."""
        return [] if self._signed else [self._hold_array("weights_zero", np.uint8(_UINT8_ZERO))]

    def _read(self, name: str) -> NDArray[Any]:
        """The values of a weight, mapped if they are in an external file of the graph's folder, and not kept in it."""
        mapped = _map(self._weights[name], self._source.parent)
        if mapped is not None:
            return mapped
        copy = onnx.TensorProto()
        copy.CopyFrom(self._weights[name])
        try:
            return numpy_helper.to_array(_fetch(copy, self._source))
        except OSError as error:
            raise DamagedFile(f"{self._source}: cannot be read: {error.strerror or error}") from error
        except Exception as error:  # onnx's errors for external data have no common base but Exception
            raise DamagedFile(f"{self._source}: '{name}' cannot be read ({error}); download it again") from error

    def _hold_array(self, name: str, values: NDArray[Any] | np.generic) -> str:
        """Store a constant once, under a name that no exporter gives, and return the name."""
        held = f"rageval_{name}"
        if held not in self._quantized:
            self._quantized.add(held)
            self._graph.initializer.append(numpy_helper.from_array(np.asarray(values), held))
        return held

    def _keep_used(self) -> None:
        """Drop the constants that are no longer used, and move large ones to the file beside the graph."""
        used = {name for node in self._graph.node for name in node.input} | {one.name for one in self._graph.output}
        used |= set(_names_in_subgraphs(self._graph.node))
        for tensor in [one for one in self._graph.initializer if one.name not in used]:
            self._graph.initializer.remove(tensor)
        for tensor in self._graph.initializer:
            elsewhere = uses_external_data(tensor) or _count_bytes(tensor) >= EXTERNAL_FROM
            if tensor.name in self._weights and elsewhere:
                tensor.CopyFrom(make_constant(tensor.name, self._read(tensor.name)))


def _is_table(tensor: onnx.TensorProto) -> bool:
    is_matrix = tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) == 2
    return is_matrix and math.prod(tensor.dims) >= _TABLE_FROM


def _map(tensor: onnx.TensorProto, folder: Path) -> NDArray[Any] | None:
    """The values of a tensor in an external file, mapped; None if they are elsewhere or do not fit the file."""
    if not uses_external_data(tensor):
        return None
    place, kind = ExternalDataInfo(tensor), helper.tensor_dtype_to_np_dtype(tensor.data_type)
    path, size = folder / place.location, _count_bytes(tensor)
    inside = path.is_file() and path.resolve().parent == folder.resolve()
    if not inside or place.length not in (None, size) or (place.offset or 0) + size > path.stat().st_size or not size:
        return None
    if tensor.data_type in _PACKED:
        return None
    return np.asarray(np.memmap(path, kind, "r", place.offset or 0, tuple(tensor.dims)))


def _count_bytes(tensor: onnx.TensorProto) -> int:
    """The size of a tensor's values, wherever they are."""
    count = math.prod(int(size) for size in tensor.dims)
    if tensor.data_type in _PACKED:
        return -(-count // _PACKED[tensor.data_type])
    return count * int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


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


def quantize_blocks(table: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Quantise 32 values of a row at a time: uint8 with 128 for 0 [rows, columns], and scales [rows, blocks]."""
    rows, columns = table.shape
    integers, factors = np.empty((rows, columns), np.uint8), np.empty((rows, -(-columns // _BLOCK)), np.float32)
    for first in range(0, rows, _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        padded = np.pad(table[some], ((0, 0), (0, -columns % _BLOCK)))
        steps, scales = quantize_columns(padded.reshape(-1, _BLOCK).T)
        integers[some] = steps.T.reshape(padded.shape)[:, :columns].view(np.uint8) ^ np.uint8(_UINT8_ZERO)
        factors[some] = scales.reshape(factors[some].shape)
    return integers, factors


_WEIGHT_INPUTS: Mapping[str, tuple[int, int]] = {
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


def read_unsigned(path: Path) -> bytes:
    """An `.onnx` file in which weights are uint8 instead of int8; empty if there are none.

    Weights in subgraphs stay as they are.

    Raises:
        Exception: the file cannot be read, or the result has more than 2 GiB.
    """
    model = onnx.load_model(path, load_external_data=False)
    weights = _UnsignedWeights(model.graph, path.parent)
    changed = [weights.replace(node) for node in model.graph.node if node.op_type in _WEIGHT_INPUTS]
    return model.SerializeToString() if any(changed) else b""


class _UnsignedWeights:
    """The int8 constants of a graph, and their forms in uint8."""

    def __init__(self, graph: onnx.GraphProto, folder: Path) -> None:
        self._graph = graph
        self._folder = folder
        self._constants = {tensor.name: tensor for tensor in graph.initializer}

    def replace(self, node: onnx.NodeProto) -> bool:
        """Let an operator read its weight in uint8. Returns whether the weight was a constant in int8."""
        weight, zero = _WEIGHT_INPUTS[node.op_type]
        inputs = [*node.input, *[""] * (zero + 1 - len(node.input))]
        if not self._is_int8(inputs[weight]) or not (inputs[zero] == "" or self._is_int8(inputs[zero])):
            return False
        inputs[zero] = self._make(inputs[zero]) if inputs[zero] else self._make_zero(node)
        inputs[weight] = self._make(inputs[weight])
        del node.input[:]
        node.input.extend(inputs)
        return True

    def _is_int8(self, name: str) -> bool:
        found = self._constants.get(name)
        return found is not None and found.data_type == onnx.TensorProto.INT8

    def _make(self, name: str) -> str:
        values = numpy_helper.to_array(self._constants[name], str(self._folder))
        return self._add(f"rageval_unsigned_{name}", values.view(np.uint8) ^ np.uint8(_UINT8_ZERO))

    def _make_zero(self, node: onnx.NodeProto) -> str:
        """A zero point for a weight without one; that of DequantizeLinear has the shape of the scale."""
        scale = self._constants.get(node.input[1]) if node.op_type == "DequantizeLinear" else None
        shape = tuple(scale.dims) if scale is not None else ()
        name = "_".join(("rageval_unsigned_zero", *map(str, shape)))
        return self._add(name, np.full(shape, _UINT8_ZERO, np.uint8))

    def _add(self, name: str, values: NDArray[np.uint8]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(values, name)
            self._graph.initializer.append(self._constants[name])
        return name
