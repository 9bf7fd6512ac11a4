"""Graphs of EuroBERT (Boizard et al. 2025): the layers of Llama, with attention in both directions.

Layers normalise first by the root of the mean square, positions are rotary, several heads may share keys and values,
and the feed-forward network is gated. The settings have the spelling of EuroBERT's own code or of transformers 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, MICROSOFT, Layers, Nodes, Rotary, Rotation
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.weights import Weights

MODEL_TYPES = ("eurobert",)
VERSION = "2"
KNOWN = "embed_tokens.weight"
_POOLINGS = ("bos", "mean", "late")


@dataclass(frozen=True, slots=True)
class EuroBertShape:
    """The contents of config.json.

    Attributes:
        shared: the number of heads that keys and values have, of which several query heads use each.
        size: how many values a head has.
        pooling: how a classifier reads a text: its first token (`bos`), the `mean` of its tokens, or `late`, the mean
            of the tokens' logits.
    """

    hidden: int
    layers: int
    heads: int
    shared: int
    size: int
    inner: int
    vocabulary: int
    theta: float
    epsilon: float
    activation: str
    attention_bias: bool
    inner_bias: bool
    pooling: str


def build(config: Mapping[str, Any], weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    """Build the graph; see `contract.Architecture`."""
    shape = read_shape(config)
    weights.refuse_layers("layers.{}.", shape.layers)
    return contract.build_for(wanted.task, _Builder(shape, weights, wanted.padded))


def read_shape(config: Mapping[str, Any]) -> EuroBertShape:
    """The shape that config.json describes.

    Raises:
        UnsupportedModel: a setting is not supported; the message names its key.
        DamagedFile: a size or a number is missing or impossible, or two keys contradict each other.
    """
    for key in ("is_decoder", "add_cross_attention", "is_causal"):
        contract.refuse_unless(config, key, False, None)
    hidden, heads = contract.read_size(config, "hidden_size"), contract.read_size(config, "num_attention_heads")
    if hidden % heads:
        raise DamagedFile(f"config.json: 'hidden_size' {hidden} is not a multiple of 'num_attention_heads' {heads}")
    shared = heads if config.get("num_key_value_heads") is None else contract.read_size(config, "num_key_value_heads")
    if heads % shared:
        raise DamagedFile(
            f"config.json: 'num_attention_heads' {heads} is not a multiple of 'num_key_value_heads' {shared}"
        )
    size = hidden // heads if config.get("head_dim") is None else contract.read_size(config, "head_dim")
    if size % 2:
        raise DamagedFile(f"config.json: rotary positions turn pairs of values, but a head has {size} ('head_dim')")
    return EuroBertShape(
        hidden=hidden,
        layers=contract.read_size(config, "num_hidden_layers"),
        heads=heads,
        shared=shared,
        size=size,
        inner=contract.read_size(config, "intermediate_size"),
        vocabulary=contract.read_size(config, "vocab_size"),
        theta=_read_theta(config),
        epsilon=contract.read_number(config, "rms_norm_eps", 1e-5),
        activation=contract.read_activation(config, "hidden_act", "silu", ACTIVATIONS),
        attention_bias=contract.read_flag(config, "attention_bias", False),
        inner_bias=contract.read_flag(config, "mlp_bias", False),
        pooling=_read_pooling(config),
    )


def _read_theta(config: Mapping[str, Any]) -> float:
    """`theta` from `rope_parameters` (transformers 5), or from a key of its own.

    It has no default here, because EuroBERT's own code and transformers have different ones.
    """
    contract.refuse_unless(config, "rope_scaling", None)
    where, own = "rope_parameters.", config.get("rope_parameters") or {}
    if not isinstance(own, Mapping):
        raise DamagedFile(f"config.json: 'rope_parameters' must be an object, but is {own!r}")
    contract.read_choice(own, "rope_type", "default", ("default",), where)
    if own.get("partial_rotary_factor", 1) != 1:
        raise UnsupportedModel(f"config.json: '{where}partial_rotary_factor' is not supported; only 1 is")
    if "rope_theta" not in own and "rope_theta" not in config:
        raise DamagedFile("config.json: 'rope_theta' is missing; it is the base of the rotary positions")
    theta = contract.read_number(own if "rope_theta" in own else config, "rope_theta", 1, where=where if own else "")
    if "rope_theta" in config and contract.read_number(config, "rope_theta", 1) != theta:
        raise DamagedFile(
            f"config.json: 'rope_theta' is {config['rope_theta']!r}, but '{where}rope_theta' is {theta:g}; remove one"
        )
    return theta


def _read_pooling(config: Mapping[str, Any]) -> str:
    """How a classifier pools, by its key in transformers, or in EuroBERT's own code."""
    old = contract.read_choice(config, "clf_pooling", "late", _POOLINGS)
    pooling = contract.read_choice(config, "classifier_pooling", old, _POOLINGS)
    if "clf_pooling" in config and old != pooling:
        raise DamagedFile(f"config.json: 'clf_pooling' is {old!r}, but 'classifier_pooling' is {pooling!r}; remove one")
    return pooling


class _Builder:
    """Builds one model, layer by layer."""

    def __init__(self, shape: EuroBertShape, weights: Weights, padded: bool) -> None:
        self._shape = shape
        self._weights = weights
        self._nodes = nodes = Nodes()
        self._layers = Layers(nodes, weights)
        self._inputs = ["input_ids", *(["attention_mask"] if padded else [])]
        self._mask = nodes.add("Cast", "attention_mask", to=onnx.TensorProto.INT32) if padded else ""
        tokens = nodes.add("Squeeze", nodes.add("Shape", "input_ids", start=1, end=2))
        rotation = Rotation(shape.theta, shape.size)
        self._turn_queries = Rotary(nodes, rotation, tokens, shape.heads, shape.size).turn
        self._turn_keys = Rotary(nodes, rotation, tokens, shape.shared, shape.size).turn

    def build_encoder(self) -> onnx.ModelProto:
        hidden = self._run_layers()
        return self._nodes.finish(self._inputs, hidden, "last_hidden_state", ["texts", "tokens", self._shape.hidden])

    def build_token_classifier(self) -> onnx.ModelProto:
        logits, labels = self._layers.label_tokens(self._run_layers(), "classifier", self._shape.hidden)
        return self._nodes.finish(self._inputs, logits, "token_logits", ["texts", "tokens", labels])

    def build_classifier(self) -> onnx.ModelProto:
        nodes, pooling, hidden = self._nodes, self._shape.pooling, self._run_layers()
        if pooling == "late":
            rows = nodes.add("Reshape", hidden, nodes.vector(-1, self._shape.hidden))
            each, labels = self._layers.label_tokens(self._prepare_head(rows), "classifier", self._shape.hidden)
            logits = self._layers.average(each, padded=bool(self._mask))
        else:
            first = nodes.add("Gather", hidden, nodes.number(0), axis=1)
            pooled = first if pooling == "bos" else self._layers.average(hidden, padded=bool(self._mask))
            logits, labels = self._layers.label(self._prepare_head(pooled), "classifier", self._shape.hidden)
        return nodes.finish(self._inputs, logits, "logits", ["texts", labels])

    def _prepare_head(self, rows: str) -> str:
        """What the classifier does before its last linear layer, for rows [rows, hidden]."""
        hidden = self._shape.hidden
        dense = self._layers.apply_gemm(rows, self._weights.read_head, "dense", hidden, hidden)
        return ACTIVATIONS["gelu"](self._nodes, dense)

    def _run_layers(self) -> str:
        words = self._nodes.hold(KNOWN, self._weights.read(KNOWN, self._shape.vocabulary, self._shape.hidden))
        hidden = self._nodes.add("Gather", words, "input_ids")
        for number in range(self._shape.layers):
            layer = f"layers.{number}."
            attended = self._attend(layer, self._normalize(hidden, f"{layer}input_layernorm"))
            hidden = self._nodes.add("Add", hidden, attended)
            fed = self._feed(layer, self._normalize(hidden, f"{layer}post_attention_layernorm"))
            hidden = self._nodes.add("Add", hidden, fed)
        return self._normalize(hidden, "norm")

    def _attend(self, layer: str, normal: str) -> str:
        nodes, shape = self._nodes, self._shape
        queries = self._turn_queries(self._project(layer, "q", normal, shape.heads))
        keys = self._repeat(self._turn_keys(self._project(layer, "k", normal, shape.shared)))
        values = self._repeat(self._project(layer, "v", normal, shape.shared))
        inputs = (queries, keys, values, *(("", self._mask) if self._mask else ()))
        attended = nodes.add("MultiHeadAttention", *inputs, domain=MICROSOFT, num_heads=shape.heads)
        width, biased = shape.heads * shape.size, shape.attention_bias
        return self._layers.apply_linear(attended, f"{layer}self_attn.o_proj", width, shape.hidden, biased=biased)

    def _project(self, layer: str, part: str, source: str, heads: int) -> str:
        shape, name = self._shape, f"{layer}self_attn.{part}_proj"
        width = heads * shape.size
        return self._layers.apply_linear(source, name, shape.hidden, width, biased=shape.attention_bias)

    def _repeat(self, source: str) -> str:
        """Keys or values [texts, tokens, shared * size] for each query head: [texts, tokens, heads * size]."""
        nodes, shape = self._nodes, self._shape
        if shape.shared == shape.heads:
            return source
        split = nodes.add("Reshape", source, nodes.vector(0, 0, shape.shared, shape.size))
        numbers = np.repeat(np.arange(shape.shared, dtype=np.int64), shape.heads // shape.shared)
        repeated = nodes.add("Gather", split, nodes.hold("shared_heads", numbers), axis=2)
        return nodes.add("Reshape", repeated, nodes.vector(0, 0, shape.heads * shape.size))

    def _feed(self, layer: str, source: str) -> str:
        """The gated feed-forward network."""
        nodes, shape, biased = self._nodes, self._shape, self._shape.inner_bias
        gate, inner = (
            self._layers.apply_linear(source, f"{layer}mlp.{part}_proj", shape.hidden, shape.inner, biased=biased)
            for part in ("gate", "up")
        )
        gated = nodes.add("Mul", ACTIVATIONS[shape.activation](nodes, gate), inner)
        return self._layers.apply_linear(gated, f"{layer}mlp.down_proj", shape.inner, shape.hidden, biased=biased)

    def _normalize(self, source: str, name: str) -> str:
        """The norm by the root of the mean square."""
        scale = self._nodes.hold(f"{name}.weight", self._weights.read(f"{name}.weight", self._shape.hidden))
        return self._nodes.add("SimplifiedLayerNormalization", source, scale, axis=-1, epsilon=self._shape.epsilon)
