"""ONNX graphs of BERT-family encoders, built from the weights and `config.json` of transformers.

The form is the one that ONNX Runtime's CPU kernels run fastest: projections as plain matrix products, attention and
GELU in ONNX Runtime's own fused operators. The arithmetic is that of transformers in float32, exact-erf GELU included.

Architectures: BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019), DistilBERT (Sanh et al. 2019), ELECTRA (Clark et
al. 2020), MPNet (Song et al. 2020, with the relative position buckets of T5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

from rageval_spec.errors import DataError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

VERSION = "2"
"""Raise it when the same weights would now give another graph."""
OPSET, IR = 20, 10
MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""
MOST_BYTES_OF_TABLES = 150_000_000
"""Above this, no projections are tabled: they would take more memory than their share of the time is worth."""


@dataclass(frozen=True, slots=True)
class _Family:
    """How one architecture names its tensors.

    Attributes:
        layer: what stands before a layer's tensors, with its number.
        positions: `absolute` counts from 0; `offset` counts tokens other than padding from `pad_token_id` + 1.
        head: which sequence classifier it has.
    """

    layer: str
    query: str
    key: str
    value: str
    attended: str
    attention_norm: str
    widened: str
    narrowed: str
    output_norm: str
    positions: Literal["absolute", "offset"] = "absolute"
    types: bool = True
    head: Literal["pooler", "dense", "gelu", "relu"] = "dense"
    renamed: tuple[tuple[str, str], ...] = ()


_BERT = _Family(
    layer="encoder.layer.{}.",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attended="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    widened="intermediate.dense",
    narrowed="output.dense",
    output_norm="output.LayerNorm",
    head="pooler",
)


_ROBERTA = replace(_BERT, positions="offset", head="dense")
_MPNET = replace(
    _ROBERTA,
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    attended="attention.attn.o",
    attention_norm="attention.LayerNorm",
    types=False,
)
_DISTILBERT = _Family(
    layer="transformer.layer.{}.",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attended="attention.out_lin",
    attention_norm="sa_layer_norm",
    widened="ffn.lin1",
    narrowed="ffn.lin2",
    output_norm="output_layer_norm",
    types=False,
    head="relu",
    renamed=(
        ("hidden_size", "dim"),
        ("num_hidden_layers", "n_layers"),
        ("num_attention_heads", "n_heads"),
        ("intermediate_size", "hidden_dim"),
        ("hidden_act", "activation"),
    ),
)
FAMILIES: Mapping[str, _Family] = {
    "bert": _BERT,
    "camembert": _ROBERTA,
    "distilbert": _DISTILBERT,
    "electra": replace(_BERT, head="gelu"),
    "mpnet": _MPNET,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
"""The architectures that can be built, by transformers' `model_type`."""

_INVERSE = "inverse"
"""The output of a normalisation that is one over the deviation."""
_GELU, _FAST_GELU = ("BiasGelu", MICROSOFT), ("FastGelu", MICROSOFT)
_ACTIVATIONS: Mapping[str, tuple[str, str]] = {
    "gelu": _GELU,
    "gelu_new": _FAST_GELU,
    "gelu_fast": _FAST_GELU,
    "gelu_pytorch_tanh": _FAST_GELU,
    "relu": ("Relu", ""),
    "tanh": ("Tanh", ""),
}


def build_graph(
    config: Mapping[str, Any],
    weights: Mapping[str, NDArray[Any]],
    *,
    task: Literal["embedding", "classification"] | None = None,
    padded: bool = False,
    tabled: bool = False,
) -> Any:
    """The graph of an encoder or of a sequence classifier.

    Inputs are `input_ids` and, where the model tells texts of a pair apart, `token_type_ids`: int64 [texts, tokens].
    An encoder's output is `last_hidden_state`, float32 [texts, tokens, hidden]; a classifier's is `logits`, float32
    [texts, labels]. Equal arguments give equal bytes.

    Args:
        config: config.json.
        weights: the model's tensors by name, whatever prefix they have; any floating-point type.
        task: which of the two is wanted; a classifier where it is None and `architectures` says so.
        padded: whether there is a further input `attention_mask`, 0 at tokens that are padding. Without it, the texts
            of a batch must be of equal length, and attention takes an eighth less time.
        tabled: whether the first layer's queries, keys and values are looked up, where their tables are small enough:
            a model of six layers takes 3 % less time and, for 30,000 words of 384 values, 140 MB more.

    Returns:
        An `onnx.ModelProto`.

    Raises:
        UsageError: the model is of a kind that is not supported; the message names what is.
        DataError: a tensor is missing or has another shape than the configuration says.
    """
    shape = _read_shape(config)
    found = _Weights(weights)
    found.refuse_layers(shape.family.layer, shape.layers)
    builder = _Builder(shape, found, padded, tabled)
    classifies = _classifies(config) if task is None else task == "classification"
    return builder.build_classifier() if classifies else builder.build_encoder()


@dataclass(frozen=True, slots=True)
class _Shape:
    """What config.json says, in one spelling for all architectures."""

    model_type: str
    family: _Family
    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    embedding: int
    activation: tuple[str, str]
    epsilon: float
    padding: int
    buckets: int


def _read_shape(config: Mapping[str, Any]) -> _Shape:
    model_type, family = _find_family(config)
    names = dict(family.renamed)
    hidden = _read_size(config, names.get("hidden_size", "hidden_size"))
    heads = _read_size(config, names.get("num_attention_heads", "num_attention_heads"))
    if hidden % heads:
        raise DataError(f"config.json: hidden_size {hidden} is no multiple of num_attention_heads {heads}")
    activation = config.get(names.get("hidden_act", "hidden_act"), "gelu")
    if activation not in _ACTIVATIONS:
        raise UsageError(f"hidden_act '{activation}' is not supported; these are: {', '.join(sorted(_ACTIVATIONS))}")
    types = config.get("type_vocab_size", 2)
    return _Shape(
        model_type=model_type,
        family=family,
        hidden=hidden,
        layers=_read_size(config, names.get("num_hidden_layers", "num_hidden_layers")),
        heads=heads,
        inner=_read_size(config, names.get("intermediate_size", "intermediate_size")),
        vocabulary=_read_size(config, "vocab_size"),
        positions=_read_size(config, "max_position_embeddings"),
        types=types if family.types else 0,
        embedding=config.get("embedding_size", hidden) if model_type == "electra" else hidden,
        activation=_ACTIVATIONS[activation],
        epsilon=float(config.get("layer_norm_eps", 1e-12)) if model_type != "distilbert" else 1e-12,
        padding=config.get("pad_token_id", 1 if family.positions == "offset" else 0) or 0,
        buckets=config.get("relative_attention_num_buckets", 32) if model_type == "mpnet" else 0,
    )


def _find_family(config: Mapping[str, Any]) -> tuple[str, _Family]:
    model_type = config.get("model_type")
    supported = ", ".join(sorted(FAMILIES))
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        found = "has no model_type" if model_type is None else f"is no encoder that can be built: {model_type}"
        raise UsageError(f"{found}; use a model with an .onnx file, or whose model_type is one of {supported}")
    if config.get("is_decoder") or config.get("add_cross_attention"):
        raise UsageError("is a decoder (is_decoder, add_cross_attention); use a model that is an encoder")
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise UsageError(f"position_embedding_type '{positions}' is not supported; only absolute is")
    return model_type, FAMILIES[model_type]


def _read_size(config: Mapping[str, Any], key: str) -> int:
    size = config.get(key)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        found = "is missing" if size is None else f"wants a whole number above 0, and is {size!r}"
        raise DataError(f"config.json: '{key}' {found}")
    return size


def _classifies(config: Mapping[str, Any]) -> bool:
    architectures = config.get("architectures") or ()
    return any(str(name).endswith("ForSequenceClassification") for name in architectures)


class _Weights:
    """Tensors by name without the prefix that a model with a head puts before its encoder."""

    _OLD_NAMES = ((".LayerNorm.weight", ".LayerNorm.gamma"), (".LayerNorm.bias", ".LayerNorm.beta"))

    def __init__(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        self._tensors = tensors
        known = "embeddings.word_embeddings.weight"
        found = sorted(name.removesuffix(known) for name in tensors if name.endswith(known))
        self._prefix = found[0] if found else ""

    def read(self, name: str, *shape: int | None) -> Array:
        """A tensor of the encoder as float32; None in the shape is any size.

        Raises:
            DataError: there is no such tensor, or it has another shape.
        """
        return self._read(self._prefix + name, shape)

    def refuse_layers(self, layer: str, count: int) -> None:
        """Refuse weights of more layers than config.json has, which would be left out.

        Raises:
            DataError: there is a tensor of layer `count` or above.
        """
        start = self._prefix + layer.partition("{}")[0]
        numbers = {name.removeprefix(start).partition(".")[0] for name in self._tensors if name.startswith(start)}
        most = max((int(number) + 1 for number in numbers if number.isdecimal()), default=0)
        if most > count:
            raise DataError(f"the weights have {most} layers ('{start}{most - 1}'), and config.json has {count}")

    def read_head(self, name: str, *shape: int | None) -> Array:
        """A tensor of the classifier, which has no prefix; otherwise as `read`."""
        return self._read(name, shape)

    def read_linear(self, name: str, inputs: int, outputs: int) -> tuple[Array, Array]:
        """Weight [inputs, outputs], for a product from the right, and bias [outputs]."""
        return self.read(f"{name}.weight", outputs, inputs).T, self.read(f"{name}.bias", outputs)

    def _read(self, name: str, shape: tuple[int | None, ...]) -> Array:
        expected = list(shape)
        tensor = self._tensors.get(name)
        for new, old in self._OLD_NAMES:
            if tensor is None and name.endswith(new):
                tensor = self._tensors.get(name.removesuffix(new) + old)
        if tensor is None:
            raise DataError(f"the weights have no tensor '{name}', which config.json wants with the shape {expected}")
        fits = len(tensor.shape) == len(shape) and all(
            wanted in (None, size) for wanted, size in zip(shape, tensor.shape, strict=True)
        )
        if not fits:
            raise DataError(f"the tensor '{name}' has the shape {list(tensor.shape)}; config.json wants {expected}")
        if tensor.dtype.kind != "f":
            raise DataError(f"the tensor '{name}' holds {tensor.dtype}, not floating-point numbers")
        return tensor.astype(np.float32)


class _Nodes:
    """A graph in the making: each node's output is named, and what is constant is stored once."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def add(self, operator: str, *inputs: str, domain: str = "", besides: Sequence[str] = (), **attributes: Any) -> str:
        """A node, the answer being its output's name; of outputs `besides`, it stands before theirs and a `_`."""
        output = f"{operator}_{len(self._nodes)}"
        outputs = [output, *(f"{output}_{name}" for name in besides)]
        self._nodes.append(helper.make_node(operator, inputs, outputs, output, domain=domain, **attributes))
        return output

    def hold(self, name: str, values: NDArray[Any]) -> str:
        """A constant; the same name gives the same constant."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(values, order="C"), name)
        return name

    def number(self, value: int) -> str:
        """A constant int64 of no dimension."""
        return self.hold(f"number_{value}", np.array(value, np.int64))

    def vector(self, *values: int) -> str:
        """A constant int64 vector."""
        return self.hold(f"vector_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def finish(self, inputs: list[str], output: str, name: str, dimensions: list[str | int]) -> onnx.ModelProto:
        """The model; `output` is given `name`."""
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
    """Builds one model, layer after layer."""

    def __init__(self, shape: _Shape, weights: _Weights, padded: bool, tabled: bool) -> None:
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
        hidden = self._run_layers(first_alone=False)
        return self._nodes.finish(self._inputs, hidden, "last_hidden_state", ["texts", "tokens", self._shape.hidden])

    def build_classifier(self) -> onnx.ModelProto:
        """A classifier reads the first token alone, and so the last layer computes no other."""
        first = self._run_layers(first_alone=True)
        first = self._nodes.add("Squeeze", first, self._nodes.vector(1))
        logits, labels = self._classify(first)
        return self._nodes.finish(self._inputs, logits, "logits", ["texts", labels])

    def _run_layers(self, *, first_alone: bool) -> str:
        hidden = self._embed()
        bias = self._bucket_distances() if self._shape.buckets else ""
        for number in range(self._shape.layers):
            last = number == self._shape.layers - 1
            hidden = self._run_layer(number, hidden, bias, first_alone=first_alone and last)
        return hidden

    def _embed(self) -> str:
        """Word, position and type embeddings: normalised, and projected where they are narrower than the layers."""
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
        """Embeddings of words, of types where there are several, and of positions."""
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
        """Sums of a token's rows in the tables, which are held under their names behind the prefix."""
        nodes = self._nodes
        held = {name: nodes.hold(prefix + name, table) for name, table in tables.items()}
        found = nodes.add("Gather", held["words"], "input_ids")
        if "types" in held:
            found = nodes.add("Add", found, nodes.add("Gather", held["types"], "token_type_ids"))
        return nodes.add("Add", found, self._place(held["positions"]))

    def _find_places(self) -> str:
        """How many tokens there are, or each token's position where padding is not counted."""
        nodes = self._nodes
        if self._family.positions == "absolute":
            return nodes.add("Shape", "input_ids", start=1, end=2)
        padding = nodes.number(self._shape.padding)
        empty = nodes.add("Equal", "input_ids", padding)
        counted = nodes.add("Cast", nodes.add("Not", empty), to=onnx.TensorProto.INT64)
        places = nodes.add("Mul", nodes.add("CumSum", counted, nodes.number(1)), counted)
        return nodes.add("Add", places, padding)

    def _place(self, positions: str) -> str:
        """The tokens' rows: [tokens, width], or [texts, tokens, width] where padding is not counted."""
        nodes = self._nodes
        if self._family.positions == "absolute":
            return nodes.add("Slice", positions, nodes.vector(0), self._places, nodes.vector(0))
        return nodes.add("Gather", positions, self._places)

    def _bucket_distances(self) -> str:
        """MPNet's bias of attention by distance, [1, heads, tokens, tokens]."""
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

    def _run_layer(self, number: int, hidden: str, bias: str, *, first_alone: bool) -> str:
        """Attention and feed-forward, each added to what it read and normalised; maybe for the first token alone."""
        shape, names, nodes = self._shape, self._family, self._nodes
        layer = names.layer.format(number)
        asking = hidden
        if first_alone:
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
        """Queries, keys or values without their bias, and the bias."""
        weight, bias = self._weights.read_linear(name, self._shape.hidden, self._shape.hidden)
        if self._tabled and source == self._embedded:
            return self._look_up_projected(name, weight, bias)
        return self._multiply(source, name, weight), bias

    def _look_up_projected(self, name: str, weight: Array, bias: Array) -> tuple[str, Array]:
        """Projections of normalised embeddings, without a product.

        Before it is divided by the deviation, which hangs on all of a token's embeddings, normalising is linear, and
        so a projection of the sum of embeddings is the sum of theirs.
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
        """The inner layer of the feed-forward network, its activation included."""
        weight, bias = self._weights.read_linear(name, self._shape.hidden, self._shape.inner)
        product = self._multiply(hidden, name, weight)
        held = self._nodes.hold(f"{name}.bias", bias)
        operator, domain = self._shape.activation
        if domain:
            return self._nodes.add(operator, product, held, domain=domain)
        return self._nodes.add(operator, self._nodes.add("Add", product, held))

    def _classify(self, first: str) -> tuple[str, int]:
        """Logits of the first tokens [texts, hidden], and how many there are of a text."""
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
        """A linear layer of the head. It takes no time, and so it stays float32 where products are quantised."""
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


def _count_bytes(shape: _Shape) -> int:
    """What tables of the first layer's projections take: queries, keys and values of each word, in float32."""
    return 3 * 4 * shape.vocabulary * shape.hidden


def _find_buckets(distances: NDArray[np.int64], buckets: int, furthest: int = 128) -> NDArray[np.int64]:
    """T5's buckets of relative positions (key minus query), for attention in both directions (Raffel et al. 2020).

    Half of the buckets are for keys behind the query; of each half, half are for one distance, the others grow
    with the logarithm of the distance up to `furthest`.
    """
    half = buckets // 2
    exact = half // 2
    size = np.abs(distances)
    # In float32, as PyTorch computes it: a bucket's border may hang on it.
    ratio = np.log(np.maximum(size, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(furthest / exact))
    grown = exact + (ratio * np.float32(half - exact)).astype(np.int64)
    within = np.where(size < exact, size, np.minimum(grown, half - 1))
    return np.asarray(within + np.where(distances > 0, half, 0), np.int64)
