"""ONNX graphs of BERT-family encoders, built from the weights and `config.json` of transformers.

The graph has the form that ONNX Runtime's CPU kernels run fastest: projections are plain matrix products, and
attention and GELU are ONNX Runtime's own fused operators. The arithmetic is that of transformers in float32, including
the exact GELU (with erf).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

from rageval_spec.inference.architecture import MICROSOFT, Shape, classifies, read_shape
from rageval_spec.inference.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

VERSION = "2"
"""Increase this when the same weights would give a different graph."""
OPSET, IR = 20, 10
MOST_BYTES_OF_TABLES = 150_000_000
"""Above this size, projections are not precomputed: the tables would cost more memory than the time saved is worth."""


_INVERSE = "inverse"
"""Suffix of the normalisation output that holds 1 / standard deviation."""


def build_graph(
    config: Mapping[str, Any],
    weights: Mapping[str, NDArray[Any]],
    *,
    task: Literal["embedding", "classification"] | None = None,
    padded: bool = False,
    tabled: bool = False,
) -> Any:
    """Build the graph of an encoder or of a sequence classifier.

    Inputs are `input_ids` and, if the model distinguishes the two texts of a pair, `token_type_ids`: int64
    [texts, tokens].
    An encoder's output is `last_hidden_state`, float32 [texts, tokens, hidden]; a classifier's is `logits`, float32
    [texts, labels]. Equal arguments give equal bytes.

    Args:
        config: config.json.
        weights: the model's tensors by name, with any prefix, in any floating-point type.
        task: which of the two to build; None follows `architectures` in the configuration.
        padded: whether to add the input `attention_mask`, which is 0 for padding. Without it, the texts of a batch must
            have equal length, and attention takes an eighth less time.
        tabled: whether to look up the first layer's queries, keys and values in precomputed tables, if these are small
            enough. With 6 layers and 30,000 words of 384 values, this saves 3 % of the time and costs 140 MB.

    Returns:
        An `onnx.ModelProto`.

    Raises:
        UsageError: the model type is not supported; the message names the supported ones.
        DataError: a tensor is missing, or its shape does not match the configuration.
    """
    shape = read_shape(config)
    found = Weights(weights)
    found.refuse_layers(shape.family.layer, shape.layers)
    builder = _Builder(shape, found, padded, tabled)
    wants_classifier = classifies(config) if task is None else task == "classification"
    return builder.build_classifier() if wants_classifier else builder.build_encoder()


class _Nodes:
    """A graph under construction: names the output of each node, and stores each constant once."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def add(self, operator: str, *inputs: str, domain: str = "", besides: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node and return the name of its output; further outputs are named `<name>_<one of besides>`."""
        output = f"{operator}_{len(self._nodes)}"
        outputs = [output, *(f"{output}_{name}" for name in besides)]
        self._nodes.append(helper.make_node(operator, inputs, outputs, output, domain=domain, **attributes))
        return output

    def hold(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant and return its name; a name that is already in use keeps its first values."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(values, order="C"), name)
        return name

    def number(self, value: int) -> str:
        """Add an int64 scalar."""
        return self.hold(f"number_{value}", np.array(value, np.int64))

    def vector(self, *values: int) -> str:
        """Add an int64 vector."""
        return self.hold(f"vector_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def finish(self, inputs: list[str], output: str, name: str, dimensions: list[str | int]) -> onnx.ModelProto:
        """Assemble the model and rename `output` to `name`."""
        self._nodes.append(helper.make_node("Identity", [output], [name], name))
        int64, float32 = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info(one, int64, ["texts", "tokens"]) for one in inputs],
            [helper.make_tensor_value_info(name, float32, dimensions)],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="rageval-spec")


class _Builder:
    """Builds one model, layer by layer."""

    def __init__(self, shape: Shape, weights: Weights, padded: bool, tabled: bool) -> None:
        self._shape = shape
        self._family = shape.family
        self._weights = weights
        self._nodes = _Nodes()
        self._inputs = ["input_ids", *(["attention_mask"] if padded else [])]
        self._mask = self._nodes.add("Cast", "attention_mask", to=onnx.TensorProto.INT32) if padded else ""
        self._places = self._find_places()
        self._tabled = tabled and shape.embedding == shape.hidden and _count_bytes(shape) <= MOST_BYTES_OF_TABLES
        self._embedded = ""

    def build_encoder(self) -> onnx.ModelProto:
        hidden = self._run_layers(first_only=False)
        return self._nodes.finish(self._inputs, hidden, "last_hidden_state", ["texts", "tokens", self._shape.hidden])

    def build_classifier(self) -> onnx.ModelProto:
        """Build a classifier. It reads only the first token, so the last layer computes only that one."""
        first = self._run_layers(first_only=True)
        first = self._nodes.add("Squeeze", first, self._nodes.vector(1))
        logits, labels = self._classify(first)
        return self._nodes.finish(self._inputs, logits, "logits", ["texts", labels])

    def _run_layers(self, *, first_only: bool) -> str:
        hidden = self._embed()
        bias = self._bucket_distances() if self._shape.buckets else ""
        for number in range(self._shape.layers):
            last = number == self._shape.layers - 1
            hidden = self._run_layer(number, hidden, bias, first_only=first_only and last)
        return hidden

    def _embed(self) -> str:
        """Normalised sum of word, position and type embeddings, projected if it is narrower than the layers."""
        shape = self._shape
        tables = self._read_embeddings()
        if shape.types > 1:
            self._inputs.append("token_type_ids")
        embedded = self._normalize(self._look_up("", tables), "embeddings.LayerNorm", shape.embedding)
        self._embedded = embedded
        if shape.embedding == shape.hidden:
            return embedded
        return self._apply_linear(embedded, "embeddings_project", shape.embedding, shape.hidden)

    def _read_embeddings(self) -> dict[str, Array]:
        """Embeddings of words and positions, and of token types if there are several."""
        shape, weights = self._shape, self._weights
        words = weights.read("embeddings.word_embeddings.weight", shape.vocabulary, shape.embedding)
        places = weights.read("embeddings.position_embeddings.weight", shape.positions, shape.embedding)
        if not shape.types:
            return {"words": words, "positions": places}
        kinds = weights.read("embeddings.token_type_embeddings.weight", shape.types, shape.embedding)
        if shape.types == 1:
            return {"words": words, "positions": places + kinds[0]}
        return {"words": words, "types": kinds, "positions": places}

    def _look_up(self, prefix: str, tables: Mapping[str, Array]) -> str:
        """Sum, for each token, its rows in the tables, which are stored as constants named prefix + name."""
        nodes = self._nodes
        held = {name: nodes.hold(prefix + name, table) for name, table in tables.items()}
        found = nodes.add("Gather", held["words"], "input_ids")
        if "types" in held:
            found = nodes.add("Add", found, nodes.add("Gather", held["types"], "token_type_ids"))
        return nodes.add("Add", found, self._place(held["positions"]))

    def _find_places(self) -> str:
        """The number of tokens, or the position of each token if positions skip padding."""
        nodes = self._nodes
        if self._family.positions == "absolute":
            return nodes.add("Shape", "input_ids", start=1, end=2)
        padding = nodes.number(self._shape.padding)
        empty = nodes.add("Equal", "input_ids", padding)
        counted = nodes.add("Cast", nodes.add("Not", empty), to=onnx.TensorProto.INT64)
        places = nodes.add("Mul", nodes.add("CumSum", counted, nodes.number(1)), counted)
        return nodes.add("Add", places, padding)

    def _place(self, positions: str) -> str:
        """Rows of the tokens: [tokens, width], or [texts, tokens, width] if positions skip padding."""
        nodes = self._nodes
        if self._family.positions == "absolute":
            return nodes.add("Slice", positions, nodes.vector(0), self._places, nodes.vector(0))
        return nodes.add("Gather", positions, self._places)

    def _bucket_distances(self) -> str:
        """MPNet's attention bias by distance, [1, heads, tokens, tokens]."""
        shape, nodes = self._shape, self._nodes
        table = self._weights.read("encoder.relative_attention_bias.weight", shape.buckets, shape.heads)
        reach = shape.positions
        by_distance = table[_find_buckets(np.arange(-reach, reach + 1), shape.buckets)]
        tokens = nodes.add("Squeeze", nodes.add("Shape", "input_ids", start=1, end=2))
        places = nodes.add("Range", nodes.number(0), tokens, nodes.number(1))
        from_each = nodes.add("Unsqueeze", places, nodes.vector(1))
        distances = nodes.add("Add", nodes.add("Sub", places, from_each), nodes.number(reach))
        bias = nodes.add("Gather", nodes.hold("distances", by_distance), distances)
        return nodes.add("Unsqueeze", nodes.add("Transpose", bias, perm=[2, 0, 1]), nodes.vector(0))

    def _run_layer(self, number: int, hidden: str, bias: str, *, first_only: bool) -> str:
        """Attention and feed-forward network with their residuals and norms, for all tokens or only the first."""
        shape, names, nodes = self._shape, self._family, self._nodes
        layer = names.layer.format(number)
        asking = hidden
        if first_only:
            asking = self._take_first(hidden, 1)
            bias = self._take_first(bias, 2) if bias else ""
        attended = self._attend(layer, asking, hidden, bias)
        attended = self._apply_linear(attended, layer + names.attended, shape.hidden, shape.hidden)
        attended = self._normalize(nodes.add("Add", asking, attended), layer + names.attention_norm, shape.hidden)
        inner = self._widen(attended, layer + names.widened)
        inner = self._apply_linear(inner, layer + names.narrowed, shape.inner, shape.hidden)
        return self._normalize(nodes.add("Add", attended, inner), layer + names.output_norm, shape.hidden)

    def _attend(self, layer: str, asking: str, hidden: str, bias: str) -> str:
        shape, names = self._shape, self._family
        projected, biases = [], []
        for source, name in ((asking, names.query), (hidden, names.key), (hidden, names.value)):
            values, one = self._project(source, layer + name)
            projected.append(values)
            biases.append(one)
        together = self._nodes.hold(f"{layer}attention.bias", np.concatenate(biases))
        inputs = [*projected, together, self._mask, bias]
        while not inputs[-1]:
            inputs.pop()
        return self._nodes.add("MultiHeadAttention", *inputs, domain=MICROSOFT, num_heads=shape.heads)

    def _project(self, source: str, name: str) -> tuple[str, Array]:
        """Queries, keys or values before the bias is added, and the bias."""
        weight, bias = self._weights.read_linear(name, self._shape.hidden, self._shape.hidden)
        if self._tabled and source == self._embedded:
            return self._look_up_projected(name, weight, bias)
        return self._multiply(source, name, weight), bias

    def _look_up_projected(self, name: str, weight: Array, bias: Array) -> tuple[str, Array]:
        """Look up projections of normalised embeddings instead of multiplying.

        Normalising is linear except for the division by the standard deviation, which depends on all embeddings of a
        token. Up to that division, the projection of a sum of embeddings is therefore the sum of their projections.
        """
        scale, shift = (
            self._weights.read(f"embeddings.LayerNorm.{kind}", self._shape.hidden) for kind in ("weight", "bias")
        )
        exact = weight.astype(np.float64)
        tables = {
            kind: ((table - table.mean(axis=1, keepdims=True, dtype=np.float64)) * scale @ exact).astype(np.float32)
            for kind, table in self._read_embeddings().items()
        }
        projected = self._nodes.add("Mul", self._look_up(f"{name}.", tables), f"{self._embedded}_{_INVERSE}")
        return projected, (bias + shift @ exact).astype(np.float32)

    def _widen(self, hidden: str, name: str) -> str:
        """The inner layer of the feed-forward network, including its activation."""
        weight, bias = self._weights.read_linear(name, self._shape.hidden, self._shape.inner)
        product = self._multiply(hidden, name, weight)
        held = self._nodes.hold(f"{name}.bias", bias)
        operator, domain = self._shape.activation
        if domain:
            return self._nodes.add(operator, product, held, domain=domain)
        return self._nodes.add(operator, self._nodes.add("Add", product, held))

    def _classify(self, first: str) -> tuple[str, int]:
        """The logits for first tokens [texts, hidden], and the number of labels."""
        shape, nodes = self._shape, self._nodes
        if self._family.head == "pooler":
            pooled = self._apply_gemm(first, self._weights.read, "pooler.dense", shape.hidden)
            return self._label(nodes.add("Tanh", pooled), "classifier")
        if self._family.head == "relu":
            pooled = self._apply_gemm(first, self._weights.read_head, "pre_classifier", shape.hidden)
            return self._label(nodes.add("Relu", pooled), "classifier")
        pooled = self._apply_gemm(first, self._weights.read_head, "classifier.dense", shape.hidden)
        pooled = nodes.add("Gelu" if self._family.head == "gelu" else "Tanh", pooled)
        return self._label(pooled, "classifier.out_proj")

    def _label(self, pooled: str, name: str) -> tuple[str, int]:
        labels = len(self._weights.read_head(f"{name}.bias", None))
        return self._apply_gemm(pooled, self._weights.read_head, name, labels), labels

    def _apply_gemm(self, source: str, read: Callable[..., Array], name: str, outputs: int) -> str:
        """A linear layer of the head. `Gemm` is not quantised: the head's share of the time is too small to matter."""
        nodes = self._nodes
        weight = nodes.hold(f"{name}.weight", read(f"{name}.weight", outputs, self._shape.hidden))
        return nodes.add("Gemm", source, weight, nodes.hold(f"{name}.bias", read(f"{name}.bias", outputs)), transB=1)

    def _apply_linear(self, source: str, name: str, inputs: int, outputs: int) -> str:
        weight, bias = self._weights.read_linear(name, inputs, outputs)
        return self._nodes.add("Add", self._multiply(source, name, weight), self._nodes.hold(f"{name}.bias", bias))

    def _multiply(self, source: str, name: str, weight: Array) -> str:
        return self._nodes.add("MatMul", source, self._nodes.hold(f"{name}.weight", weight))

    def _normalize(self, source: str, name: str, size: int) -> str:
        scale = self._nodes.hold(f"{name}.weight", self._weights.read(f"{name}.weight", size))
        bias = self._nodes.hold(f"{name}.bias", self._weights.read(f"{name}.bias", size))
        besides = ("mean", _INVERSE) if self._tabled and not self._embedded else ()
        epsilon = self._shape.epsilon
        return self._nodes.add("LayerNormalization", source, scale, bias, axis=-1, epsilon=epsilon, besides=besides)

    def _take_first(self, source: str, axis: int) -> str:
        nodes = self._nodes
        return nodes.add("Slice", source, nodes.vector(0), nodes.vector(1), nodes.vector(axis))


def _count_bytes(shape: Shape) -> int:
    """Size of the tables of the first layer's projections: queries, keys and values of each word, in float32."""
    return 3 * 4 * shape.vocabulary * shape.hidden


def _find_buckets(distances: NDArray[np.int64], buckets: int, furthest: int = 128) -> NDArray[np.int64]:
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
