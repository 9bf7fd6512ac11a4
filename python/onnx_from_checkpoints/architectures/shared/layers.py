"""An ONNX graph under construction, and the layers that add their nodes to it.

Layers read their weights by name. Activation functions have their names in transformers and no bias.

Rotary position embeddings (Su et al. 2021) turn queries and keys by angles that grow with the position. `Windows` is
the attention of each token to its neighbours only. Relative positions have the buckets of T5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper

from onnx_from_checkpoints.e5s1 import BLOCK
from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.onnx_files import make_constant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onnx_from_checkpoints.configuration import Task
    from onnx_from_checkpoints.settings import Settings
    from onnx_from_checkpoints.weights import Blocks, Weights

    Array = NDArray[np.float32]


MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""
OPSET, IR = 20, 10


class Nodes:
    """A graph under construction: names the output of each node, and stores each constant once."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._declared: list[onnx.ValueInfoProto] = []
        self._count = 0

    def add(self, operator: str, *inputs: str, domain: str = "", besides: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node and return the name of its output; further outputs are named `<name>_<one of besides>`."""
        output = f"{operator}_{self._count}"
        self._count += 1
        outputs = [output, *(f"{output}_{name}" for name in besides)]
        self._nodes.append(helper.make_node(operator, inputs, outputs, output, domain=domain, **attributes))
        return output

    def choose(self, condition: str, then: Callable[[], str], otherwise: Callable[[], str]) -> str:
        """Add an `If` and return the name of its output, float32.

        Each callable adds the nodes of one branch and returns the name of its output. It may use any value and constant
        of the graph so far. Only the branch that `condition` selects is computed.
        """
        return self.add("If", condition, then_branch=self._enclose(then), else_branch=self._enclose(otherwise))

    def _enclose(self, build: Callable[[], str]) -> onnx.GraphProto:
        outer, self._nodes = self._nodes, []
        output = build()
        inner, self._nodes = self._nodes, outer
        declared = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
        return helper.make_graph(inner, f"branch_{self._count}", [], [declared])

    def declare(self, name: str, *dimensions: str | int, kind: int = onnx.TensorProto.FLOAT) -> str:
        """Say the shape of a value that ONNX Runtime cannot infer, and return its name.

        ONNX Runtime searches all values of unknown shape for memory to use again. With thousands of them, a graph takes
        seconds to load.
        """
        self._declared.append(helper.make_tensor_value_info(name, kind, list(dimensions)))
        return name

    def hold(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant and return its name; a name that is already in use keeps its first values."""
        if name not in self._constants:
            self._constants[name] = make_constant(name, np.asarray(values))
        return name

    def gather(self, name: str, table: Array | Blocks, places: str) -> str:
        """Rows of a table, which is stored as `name`; one of blocks keeps its 4 bits."""
        if isinstance(table, np.ndarray):
            return self.add("Gather", self.hold(name, table), places)
        bits, scales = table.pack()
        inputs = (self.hold(f"{name}_bits", bits), places, self.hold(f"{name}_scales", scales))
        facts: dict[str, Any] = {"gather_axis": 0, "quantize_axis": 1, "block_size": BLOCK, "bits": 4}
        return self.add("GatherBlockQuantized", *inputs, domain=MICROSOFT, **facts)

    def number(self, value: int) -> str:
        return self.hold(f"number_{value}", np.array(value, np.int64))

    def vector(self, *values: int) -> str:
        return self.hold(f"vector_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def finish(self, inputs: Sequence[str], output: str, name: str, dimensions: Sequence[str | int]) -> onnx.ModelProto:
        """Assemble the model and rename `output`, float32 [dimensions], to `name`; `inputs` are [texts, tokens]."""
        self._nodes.append(helper.make_node("Identity", [output], [name], name))
        int64, float32 = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info(one, int64, ["texts", "tokens"]) for one in inputs],
            [helper.make_tensor_value_info(name, float32, list(dimensions))],
            list(self._constants.values()),
            value_info=self._declared,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="rageval-spec")

    def count_tokens(self) -> str:
        """The number of tokens, an int64 scalar."""
        return self.add("Squeeze", self.add("Shape", "input_ids", start=1, end=2))

    def count_to(self, limit: str) -> str:
        """The numbers from 0 to below `limit`."""
        return self.add("Range", self.number(0), limit, self.number(1))

    def attend(self, *inputs: str, heads: int, **attributes: Any) -> str:
        """ONNX Runtime's own attention: queries, keys, values, their biases, the padding and a bias on the scores.

        All three are [texts, tokens, hidden]. An input that is not there is "".
        """
        last = max(place for place, name in enumerate(inputs) if name)
        return self.add("MultiHeadAttention", *inputs[: last + 1], domain=MICROSOFT, num_heads=heads, **attributes)


class Layers(Nodes):
    """A graph under construction with the layers of one model's weights."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self._weights = weights

    def multiply(self, source: str, name: str, weight: Array) -> str:
        """`source` times `weight` [inputs, outputs], which is stored as `<name>.weight`."""
        return self.add("MatMul", source, self.hold(f"{name}.weight", weight))

    def apply_linear(self, source: str, name: str, inputs: int, outputs: int, *, biased: bool = True) -> str:
        """A linear layer over the last dimension."""
        weight = self._weights.read(f"{name}.weight", outputs, inputs).T
        return self._apply(source, name, weight, self._weights.read(f"{name}.bias", outputs) if biased else None)

    def apply_stacked(
        self, source: str, name: str, part: int, parts: int, inputs: int, outputs: int, *, biased: bool = True
    ) -> str:
        """One of several equally large linear layers whose weights are stacked in one tensor; `part` counts from 0.

        A product for each part takes less time than one for all, whose result must be split.
        """
        rows = slice(part * outputs, (part + 1) * outputs)
        weight = self._weights.read(f"{name}.weight", parts * outputs, inputs)[rows].T
        bias = self._weights.read(f"{name}.bias", parts * outputs)[rows] if biased else None
        return self._apply(source, f"{name}.{part}", weight, bias)

    def _apply(self, source: str, name: str, weight: Array, bias: Array | None) -> str:
        product = self.multiply(source, name, weight)
        return product if bias is None else self.add("Add", product, self.hold(f"{name}.bias", bias))

    def normalize(
        self,
        source: str,
        name: str,
        size: int,
        epsilon: float,
        besides: Sequence[str] = (),
        *,
        biased: bool = True,
        read: Callable[..., Array] | None = None,
    ) -> str:
        """Layer normalisation over the last dimension.

        Args:
            besides: names of further outputs of the operator.
            read: reads its tensors; None reads those of the encoder.
        """
        read = read or self._weights.read
        kinds = ("weight", "bias") if biased else ("weight",)
        held = [self.hold(f"{name}.{kind}", read(f"{name}.{kind}", size)) for kind in kinds]
        return self.add("LayerNormalization", source, *held, axis=-1, epsilon=epsilon, besides=besides)

    def normalize_by_root(self, source: str, name: str, size: int, epsilon: float) -> str:
        """Division by the root of the mean square over the last dimension, and a scale."""
        scale = self.hold(f"{name}.weight", self._weights.read(f"{name}.weight", size))
        return self.add("SimplifiedLayerNormalization", source, scale, axis=-1, epsilon=epsilon)

    def activate(self, product: str, name: str, bias: Array, activation: str) -> str:
        """Add a bias, which is stored as `<name>.bias`, and apply one of `ACTIVATIONS`."""
        held = self.hold(f"{name}.bias", bias)
        if activation in _WITH_BIAS:
            return self.add(_WITH_BIAS[activation], product, held, domain=MICROSOFT)
        return ACTIVATIONS[activation](self, self.add("Add", product, held))

    def widen(self, source: str, name: str, inputs: int, outputs: int, activation: str) -> str:
        """A linear layer and its activation, in one operator where there is one."""
        weight, bias = self._weights.read_linear(name, inputs, outputs)
        return self.activate(self.multiply(source, name, weight), name, bias, activation)

    def take_first(self, source: str, axis: int, count: int = 1) -> str:
        """The first elements along an axis, which remains."""
        return self.add("Slice", source, self.vector(0), self.vector(count), self.vector(axis))

    def apply_gemm(
        self, source: str, read: Callable[..., Array], name: str, inputs: int, outputs: int, *, biased: bool = True
    ) -> str:
        """A linear layer of a head, for `source` [rows, inputs].

        `Gemm` is not quantised: a head's share of the time is too small to matter.
        """
        held = [self.hold(f"{name}.weight", read(f"{name}.weight", outputs, inputs))]
        if biased:
            held.append(self.hold(f"{name}.bias", read(f"{name}.bias", outputs)))
        return self.add("Gemm", source, *held, transB=1)

    def label(self, pooled: str, name: str, inputs: int) -> tuple[str, int]:
        """The logits for pooled vectors [texts, inputs], and the number of labels."""
        labels = len(self._weights.read_head(f"{name}.bias", None))
        return self.apply_gemm(pooled, self._weights.read_head, name, inputs, labels), labels

    def label_tokens(self, hidden: str, name: str, inputs: int) -> tuple[str, int]:
        """The logits for the vectors of tokens [texts, tokens, inputs], and the number of labels."""
        logits, labels = self.label(self.add("Reshape", hidden, self.vector(-1, inputs)), name, inputs)
        shape = self.add("Concat", self.add("Shape", "input_ids"), self.vector(labels), axis=0)
        return self.add("Reshape", logits, shape), labels

    def average(self, tokens: str, *, padded: bool) -> str:
        """The mean over the tokens of [texts, tokens, values]; if `padded`, those that `attention_mask` leaves."""
        axis = self.vector(1)
        if not padded:
            return self.add("ReduceMean", tokens, axis, keepdims=0)
        mask = self.add("Cast", "attention_mask", to=onnx.TensorProto.FLOAT)
        kept = self.add("Mul", tokens, self.add("Unsqueeze", mask, self.vector(2)))
        total = self.add("ReduceSum", kept, axis, keepdims=0)
        return self.add("Div", total, self.add("ReduceSum", mask, axis, keepdims=1))


class Encoder(Layers):
    """The graph of one encoder; each architecture adds its layers and its classifier.

    Attributes:
        layers: the number of layers.
        last_norm: the name of the norm after the last layer; "" if there is none.
    """

    layers: int
    last_norm = ""

    def __init__(self, weights: Weights, hidden: int, padded: bool) -> None:
        """Add the mask of padding.

        Args:
            hidden: the width of a token's vector.
            padded: see `WantedGraph`.
        """
        super().__init__(weights)
        self._width = hidden
        self._inputs = ["input_ids", *(["attention_mask"] if padded else [])]
        self._mask = self._mark_padding() if padded else ""

    def build(self, task: Task) -> onnx.ModelProto:
        """Build the graph for a task; see `WantedGraph.task`."""
        if task == "classification":
            logits, labels = self._classify()
            return self.finish(self._inputs, logits, "logits", ["texts", labels])
        hidden = self._run_layers()
        if task == "token_classification":
            logits, labels = self._classify_tokens(hidden)
            return self.finish(self._inputs, logits, "token_logits", ["texts", "tokens", labels])
        return self.finish(self._inputs, hidden, "last_hidden_state", ["texts", "tokens", self._width])

    def _mark_padding(self) -> str:
        return self.add("Cast", "attention_mask", to=onnx.TensorProto.INT32)

    def _run_layers(self, *, first_only: bool = False) -> str:
        """The vectors of all tokens [texts, tokens, hidden]; with `first_only`, the last layer gives only the first."""
        hidden = self._embed()
        for number in range(self.layers):
            hidden = self._run_layer(number, hidden, first_only=first_only and number == self.layers - 1)
        return self._normalize(hidden, self.last_norm) if self.last_norm else hidden

    def _embed(self) -> str:
        """What the first layer reads: the sum of all embeddings."""
        raise NotImplementedError

    def _run_layer(self, number: int, hidden: str, *, first_only: bool) -> str:
        """Attention and feed-forward network with their residuals and norms, for all tokens or only the first."""
        raise NotImplementedError

    def _normalize(self, source: str, name: str) -> str:
        raise NotImplementedError

    def _classify(self) -> tuple[str, int]:
        """The logits [texts, labels], and the number of labels.

        Where only the first token counts, the last layer computes no other.
        """
        raise NotImplementedError

    def _classify_tokens(self, hidden: str) -> tuple[str, int]:
        """The logits [texts, tokens, labels] from the vectors of all tokens, and the number of labels."""
        return self.label_tokens(hidden, "classifier", self._width)

    def _run_first(self) -> str:
        """The vectors of first tokens: [texts, hidden]."""
        return self.add("Squeeze", self._run_layers(first_only=True), self.vector(1))


@dataclass(frozen=True, slots=True)
class LayerNames:
    """How an architecture names the tensors of a layer.

    Attributes:
        layer: the prefix of all, with the layer's number.
        attended: the linear layer after attention.
        attention_norm: the norm before attention or after it.
        widened: the first layer of the feed-forward network, and `narrowed` the last.
        output_norm: the norm before the feed-forward network or after it.
    """

    layer: str
    attended: str
    attention_norm: str
    widened: str
    narrowed: str
    output_norm: str


class Transformer(Encoder):
    """An encoder whose layers are attention and a feed-forward network, each with a residual and a norm.

    Attributes:
        norms_first: whether norms come before attention and the feed-forward network, or after their residuals.
        embeds_normalized: whether the embeddings are normalised, so that the first layer does not do it again.
        size: how many values a head has.
        activation: that of the feed-forward network, by its name in `ACTIVATIONS`.
        attention_bias: whether the linear layers of attention have biases.
    """

    norms_first = embeds_normalized = False
    activation: str
    attention_bias = True

    def __init__(
        self,
        config: Settings,
        weights: Weights,
        padded: bool,
        names: LayerNames,
        further_keys: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Read the sizes; `further_keys` are other names of keys of config.json."""

        def read(key: str) -> int:
            return config.size(config.find(key, *[further_keys[key]] if key in further_keys else []))

        hidden, self.heads = read("hidden_size"), read("num_attention_heads")
        if hidden % self.heads:
            raise DamagedFile(
                f"config.json: 'hidden_size' {hidden} is not a multiple of 'num_attention_heads' {self.heads}"
            )
        self.names, self.size = names, hidden // self.heads
        self.layers, self.inner = read("num_hidden_layers"), read("intermediate_size")
        self.vocabulary = read("vocab_size")
        super().__init__(weights, hidden, padded)
        weights.refuse_layers(names.layer, self.layers)

    def _run_layer(self, number: int, hidden: str, *, first_only: bool) -> str:
        names, layer = self.names, self.names.layer.format(number)
        is_normal = not self.norms_first or (self.embeds_normalized and number == 0)
        source = hidden if is_normal else self._normalize(hidden, layer + names.attention_norm)
        asking = self.take_first(source, 1) if first_only else source
        attended = self._attend(number, layer, asking, source)
        attended = self.apply_linear(
            attended, layer + names.attended, self.heads * self.size, self._width, biased=self.attention_bias
        )
        if self.norms_first:
            hidden = self.add("Add", self.take_first(hidden, 1) if first_only else hidden, attended)
            return self.add("Add", hidden, self._feed(layer, self._normalize(hidden, layer + names.output_norm)))
        hidden = self._normalize(self.add("Add", asking, attended), layer + names.attention_norm)
        return self._normalize(self.add("Add", hidden, self._feed(layer, hidden)), layer + names.output_norm)

    def _attend(self, number: int, layer: str, asking: str, source: str) -> str:
        """Attention from all tokens, or only the first one, to those of `source`; the layer's names begin `layer`."""
        raise NotImplementedError

    def _feed(self, layer: str, source: str) -> str:
        """The feed-forward network."""
        inner = self.widen(source, layer + self.names.widened, self._width, self.inner, self.activation)
        return self.apply_linear(inner, layer + self.names.narrowed, self.inner, self._width)


def _apply_silu(nodes: Nodes, source: str) -> str:
    return nodes.add("Mul", source, nodes.add("Sigmoid", source))


def _one_operator(operator: str, domain: str = "") -> Callable[[Nodes, str], str]:
    return lambda nodes, source: nodes.add(operator, source, domain=domain)


ACTIVATIONS: Mapping[str, Callable[[Nodes, str], str]] = MappingProxyType(
    {
        "gelu": _one_operator("Gelu", MICROSOFT),
        "gelu_new": _one_operator("FastGelu", MICROSOFT),
        "relu": _one_operator("Relu"),
        "sigmoid": _one_operator("Sigmoid"),
        "silu": _apply_silu,
        "tanh": _one_operator("Tanh"),
    }
)
"""Each adds the nodes of one function and returns the name of its output. `contract.read_activation` gives the
names."""
_WITH_BIAS: Mapping[str, str] = MappingProxyType({"gelu": "BiasGelu", "gelu_new": "FastGelu"})
"""Operators that add a bias and apply an activation."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """How far each pair of values turns from one position to the next.

    Attributes:
        theta: the base of the frequencies: pair `i` of `width / 2` turns by `theta ** (-2 * i / width)`.
        width: how many values of a head are turned, an even number; the others stay as they are.
        interleaved: whether neighbours are a pair, rather than a value of the first half and one of the second.
        factor: for a text of more than `trained` tokens, `theta` is scaled by this factor and by the number of tokens
            (dynamic NTK scaling); None never scales it.
        trained: the number of tokens from which on `theta` is scaled.
    """

    theta: float
    width: int
    interleaved: bool = False
    factor: float | None = None
    trained: int = 0

    def __post_init__(self) -> None:
        if self.width % 2:
            raise DamagedFile(
                f"config.json: rotary positions turn pairs of values, but {self.width} values of a head are turned"
            )


class Rotary:
    """Turns queries and keys. The angles are computed once in a run, so there is no longest text."""

    def __init__(self, nodes: Nodes, rotation: Rotation, tokens: str, heads: int, size: int) -> None:
        """Add the nodes that compute cosines and sines.

        Args:
            tokens: the number of tokens, an int64 scalar.
            size: how many values a head has.
        """
        self._nodes = nodes
        self._attributes: dict[str, Any] = {"interleaved": int(rotation.interleaved), "num_heads": heads}
        if rotation.width != size:
            self._attributes["rotary_embedding_dim"] = rotation.width
        places = nodes.add("Cast", nodes.count_to(tokens), to=onnx.TensorProto.FLOAT)
        places = nodes.add("Unsqueeze", places, nodes.vector(1))
        angles = nodes.add("Mul", places, _find_frequencies(nodes, rotation, tokens))
        self._cosines, self._sines = nodes.add("Cos", angles), nodes.add("Sin", angles)

    def turn(self, source: str) -> str:
        """Turn queries or keys [texts, tokens, hidden], whose tokens are the first of the text."""
        nodes = self._nodes
        inputs = (source, nodes.vector(0), self._cosines, self._sines)
        return nodes.add("RotaryEmbedding", *inputs, domain=MICROSOFT, **self._attributes)


def _find_frequencies(nodes: Nodes, rotation: Rotation, tokens: str) -> str:
    """Radians per position for each pair, float32 [width / 2].

    They are powers in float64, rounded to float32 before the reciprocal, as in PyTorch: at position 8,000, the last bit
    of a frequency moves an angle by 0.0005.
    """
    steps = np.arange(0, rotation.width, 2, dtype=np.float32) / np.float32(rotation.width)
    if rotation.factor is None:
        powers = (rotation.theta ** steps.astype(np.float64)).astype(np.float32)
        return nodes.hold(f"frequencies_{rotation.theta:g}_{rotation.width}", np.float32(1) / powers)
    exponents = nodes.hold("rotary_exponents", steps.astype(np.float64))
    scaled = nodes.add("Pow", _scale_theta(nodes, rotation, tokens), exponents)
    return nodes.add("Reciprocal", nodes.add("Cast", scaled, to=onnx.TensorProto.FLOAT))


def _scale_theta(nodes: Nodes, rotation: Rotation, tokens: str) -> str:
    """`theta` for this number of tokens, a float64 scalar."""

    def hold(name: str, value: float) -> str:
        return nodes.hold(f"rotary_{name}", np.array(value, np.float64))

    factor = rotation.factor or 1.0
    relative = nodes.add("Cast", tokens, to=onnx.TensorProto.DOUBLE)
    relative = nodes.add("Mul", relative, hold("factor", factor / rotation.trained))
    grown = nodes.add("Max", nodes.add("Sub", relative, hold("excess", factor - 1)), hold("unscaled", 1.0))
    grown = nodes.add("Pow", grown, hold("power", rotation.width / (rotation.width - 2)))
    return nodes.add("Mul", grown, hold("theta", rotation.theta))


_LONGEST_WHOLE = 3
"""A text of more windows than this is cut into parts. Below, copying keys and values costs more than it saves."""


class Windows:
    """Attention to the tokens at most `reach` positions away.

    A text is cut into parts of about twice `reach` tokens, and the tokens of a part attend to those of the part and
    `reach` more at either side. So time and memory grow with the number of tokens, not with its square. A short text is
    one part: all its scores are computed and those outside of the window masked.
    """

    def __init__(self, nodes: Nodes, reach: int, heads: int, hidden: int, *, cut: bool) -> None:
        """Add the nodes that find the parts, once for all layers.

        Args:
            reach: 0 or more.
            hidden: the number of values of all heads together.
            cut: whether texts may be cut into parts; without, a mask for padding is possible.
        """
        self._nodes, self._heads, self._hidden = nodes, heads, hidden
        self._texts = nodes.add("Shape", "input_ids", start=0, end=1)
        self._tokens = nodes.add("Shape", "input_ids", start=1, end=2)
        self._cut = cut
        whole = max(1, 2 * reach)
        tokens = nodes.add("Squeeze", self._tokens)
        self._is_short, parts, margin = "", nodes.number(1), nodes.number(0)
        if cut:
            self._is_short = nodes.add("LessOrEqual", tokens, nodes.number(_LONGEST_WHOLE * whole))
            several = self._divide_up(tokens, nodes.number(whole))
            parts = nodes.add("Where", self._is_short, parts, several)
            margin = nodes.add("Where", self._is_short, margin, nodes.number(reach))
        size = self._divide_up(tokens, parts)
        length = nodes.add("Add", size, nodes.add("Add", margin, margin))
        starts = nodes.add("Unsqueeze", nodes.add("Mul", nodes.count_to(parts), size), nodes.vector(1))
        keys = nodes.add("Add", nodes.add("Sub", starts, margin), nodes.count_to(length))
        self._bias = self._mask(keys, size, length, margin, reach, tokens)
        if cut:
            last = nodes.add("Sub", tokens, nodes.number(1))
            self._queries = nodes.add("Min", nodes.add("Add", starts, nodes.count_to(size)), last)
            self._keys = nodes.add("Max", nodes.add("Min", keys, last), nodes.number(0))
            self._query_shape, self._key_shape = self._shape_parts(size), self._shape_parts(length)

    def attend(self, queries: str, keys: str, values: str, padding: str = "") -> str:
        """Attention of `queries` to `keys` and `values`, all [texts, tokens, hidden].

        Args:
            padding: int32 [texts, tokens], 0 for padding; only possible if texts are not cut.
        """
        if not self._cut:
            return self._attend_whole(queries, keys, values, padding)
        return self._nodes.choose(
            self._is_short,
            lambda: self._attend_whole(queries, keys, values),
            lambda: self._attend_parts(queries, keys, values),
        )

    def _attend_whole(self, queries: str, keys: str, values: str, padding: str = "") -> str:
        return self._nodes.attend(queries, keys, values, "", padding, self._bias, heads=self._heads)

    def _attend_parts(self, queries: str, keys: str, values: str) -> str:
        nodes = self._nodes
        parts = nodes.add("Reshape", nodes.add("Gather", queries, self._queries, axis=1), self._query_shape)
        around = [
            nodes.add("Reshape", nodes.add("Gather", source, self._keys, axis=1), self._key_shape)
            for source in (keys, values)
        ]
        found = self._attend_whole(parts, *around)
        shape = nodes.add("Concat", self._texts, nodes.vector(-1, self._hidden), axis=0)
        together = nodes.add("Reshape", found, shape)
        return nodes.add("Slice", together, nodes.vector(0), self._tokens, nodes.vector(1))

    def _mask(self, keys: str, size: str, length: str, margin: str, reach: int, tokens: str) -> str:
        """What is added to the scores, [1 or texts * parts, 1, size, length]: 0, or so little that nothing is left.

        Not minus infinity: a query of which all keys are masked would become NaN.
        """
        nodes = self._nodes
        own = nodes.add("Unsqueeze", nodes.add("Add", nodes.count_to(size), margin), nodes.vector(1))
        distances = nodes.add("Abs", nodes.add("Sub", nodes.count_to(length), own))
        near = nodes.add("LessOrEqual", distances, nodes.number(reach))
        exists = nodes.add("GreaterOrEqual", keys, nodes.number(0))
        exists = nodes.add("Unsqueeze", nodes.add("And", exists, nodes.add("Less", keys, tokens)), nodes.vector(1, 2))
        lowest = nodes.hold("window_masked", np.array(np.finfo(np.float32).min, np.float32))
        bias = nodes.add(
            "Where", nodes.add("And", near, exists), nodes.hold("window_open", np.zeros((), np.float32)), lowest
        )
        if not self._cut:
            return bias
        copies = nodes.add("Where", self._is_short, nodes.vector(1), self._texts)
        return nodes.add("Tile", bias, nodes.add("Concat", copies, nodes.vector(1, 1, 1), axis=0))

    def _divide_up(self, dividend: str, divisor: str) -> str:
        """The quotient of two positive numbers, rounded up."""
        nodes = self._nodes
        less = nodes.add("Sub", nodes.add("Add", dividend, divisor), nodes.number(1))
        return nodes.add("Div", less, divisor)

    def _shape_parts(self, size: str) -> str:
        nodes = self._nodes
        size = nodes.add("Unsqueeze", size, nodes.vector(0))
        return nodes.add("Concat", nodes.vector(-1), size, nodes.vector(self._hidden), axis=0)


def find_buckets(distances: NDArray[np.int64], buckets: int, furthest: int = 128) -> NDArray[np.int64]:
    """T5's buckets of relative positions (key minus query) for attention in both directions (Raffel et al. 2020).

    Half of the buckets are for keys after the query. In each half, the first half of the buckets holds one distance
    each; the others widen logarithmically up to the distance `furthest`.
    """
    half = buckets // 2
    exact = half // 2
    size = np.abs(distances)
    # In float32, as in PyTorch: a distance at a bucket's border may otherwise fall into the next bucket.
    ratio = np.log(np.maximum(size, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(furthest / exact))
    grown = exact + (ratio * np.float32(half - exact)).astype(np.int64)
    within = np.where(size < exact, size, np.minimum(grown, half - 1))
    return np.asarray(within + np.where(distances > 0, half, 0), np.int64)
