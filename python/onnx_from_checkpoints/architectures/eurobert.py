"""Graphs of EuroBERT (Boizard et al. 2025): the layers of Llama, with attention in both directions.

Layers normalise first by the root of the mean square, positions are rotary, several heads may share keys and values,
and the feed-forward network is gated. The settings have the spelling of EuroBERT's own code or of transformers 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, Encoder, Rotary, Rotation
from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.weights import Weights

MODEL_TYPES = ("eurobert",)
VERSION = "2"
KNOWN = "embed_tokens.weight"
_POOLINGS = ("bos", "mean", "late")


def build(config: Mapping[str, Any], weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    model = EuroBert(config, weights, wanted.padded)
    weights.refuse_layers("layers.{}.", model.layers)
    return model.build(wanted.task)


def _read_theta(config: Mapping[str, Any]) -> float:
    """`theta` from `rope_parameters` (transformers 5), or from a key of its own.

    It has no default here, because EuroBERT's own code and transformers have different ones.
    """
    contract.refuse_unless(config, "rope_scaling", None)
    own, _ = contract.read_rope(config.get("rope_parameters"))
    where = "rope_parameters."
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


class EuroBert(Encoder):
    """A model with this config.json.

    Attributes:
        shared: the number of heads that keys and values have, of which several query heads use each.
        size: how many values a head has.
        pooling: how a classifier reads a text: its first token (`bos`), the `mean` of its tokens, or `late`, the mean
            of the tokens' logits.
    """

    def __init__(self, config: Mapping[str, Any], weights: Weights, padded: bool) -> None:
        for key in ("is_decoder", "add_cross_attention", "is_causal"):
            contract.refuse_unless(config, key, False, None)
        hidden, heads = contract.read_size(config, "hidden_size"), contract.read_size(config, "num_attention_heads")
        if hidden % heads:
            raise DamagedFile(f"config.json: 'hidden_size' {hidden} is not a multiple of 'num_attention_heads' {heads}")
        kept = config.get("num_key_value_heads")
        self.shared = heads if kept is None else contract.read_size(config, "num_key_value_heads")
        if heads % self.shared:
            raise DamagedFile(
                f"config.json: 'num_attention_heads' {heads} is not a multiple of 'num_key_value_heads' {self.shared}"
            )
        self.size = hidden // heads if config.get("head_dim") is None else contract.read_size(config, "head_dim")
        if self.size % 2:
            raise DamagedFile(
                f"config.json: rotary positions turn pairs of values, but a head has {self.size} ('head_dim')"
            )
        self.layers, self.heads = contract.read_size(config, "num_hidden_layers"), heads
        self.inner = contract.read_size(config, "intermediate_size")
        self.vocabulary = contract.read_size(config, "vocab_size")
        self.theta = _read_theta(config)
        self.epsilon = contract.read_number(config, "rms_norm_eps", 1e-5)
        self.activation = contract.read_activation(config, "hidden_act", "silu", ACTIVATIONS)
        self.attention_bias = contract.read_flag(config, "attention_bias", False)
        self.inner_bias = contract.read_flag(config, "mlp_bias", False)
        self.pooling = _read_pooling(config)
        super().__init__(weights, hidden, padded)
        tokens, rotation = self.count_tokens(), Rotation(self.theta, self.size)
        self._turn_queries = Rotary(self, rotation, tokens, heads, self.size).turn
        self._turn_keys = Rotary(self, rotation, tokens, self.shared, self.size).turn

    def _classify(self) -> tuple[str, int]:
        pooling, hidden, padded = self.pooling, self._run_layers(), bool(self._mask)
        if pooling == "late":
            rows = self.add("Reshape", hidden, self.vector(-1, self._width))
            each, labels = self.label_tokens(self._prepare_head(rows), "classifier", self._width)
            return self.average(each, padded=padded), labels
        first = self.add("Gather", hidden, self.number(0), axis=1)
        pooled = first if pooling == "bos" else self.average(hidden, padded=padded)
        return self.label(self._prepare_head(pooled), "classifier", self._width)

    def _prepare_head(self, rows: str) -> str:
        """What the classifier does before its last linear layer, for rows [rows, hidden]."""
        dense = self.apply_gemm(rows, self._weights.read_head, "dense", self._width, self._width)
        return ACTIVATIONS["gelu"](self, dense)

    def _run_layers(self, *, first_only: bool = False) -> str:  # noqa: ARG002 - no head of it reads only the first
        words = self.hold(KNOWN, self._weights.read(KNOWN, self.vocabulary, self._width))
        hidden = self.add("Gather", words, "input_ids")
        for number in range(self.layers):
            layer = f"layers.{number}."
            attended = self._attend(layer, self._normalize(hidden, f"{layer}input_layernorm"))
            hidden = self.add("Add", hidden, attended)
            fed = self._feed(layer, self._normalize(hidden, f"{layer}post_attention_layernorm"))
            hidden = self.add("Add", hidden, fed)
        return self._normalize(hidden, "norm")

    def _attend(self, layer: str, normal: str) -> str:
        queries = self._turn_queries(self._project(layer, "q", normal, self.heads))
        keys = self._repeat(self._turn_keys(self._project(layer, "k", normal, self.shared)))
        values = self._repeat(self._project(layer, "v", normal, self.shared))
        attended = self.attend(queries, keys, values, "", self._mask, heads=self.heads)
        width, biased = self.heads * self.size, self.attention_bias
        return self.apply_linear(attended, f"{layer}self_attn.o_proj", width, self._width, biased=biased)

    def _project(self, layer: str, part: str, source: str, heads: int) -> str:
        name, biased = f"{layer}self_attn.{part}_proj", self.attention_bias
        return self.apply_linear(source, name, self._width, heads * self.size, biased=biased)

    def _repeat(self, source: str) -> str:
        """Keys or values [texts, tokens, shared * size] for each query head: [texts, tokens, heads * size]."""
        if self.shared == self.heads:
            return source
        split = self.add("Reshape", source, self.vector(0, 0, self.shared, self.size))
        numbers = np.repeat(np.arange(self.shared, dtype=np.int64), self.heads // self.shared)
        repeated = self.add("Gather", split, self.hold("shared_heads", numbers), axis=2)
        return self.add("Reshape", repeated, self.vector(0, 0, self.heads * self.size))

    def _feed(self, layer: str, source: str) -> str:
        biased = self.inner_bias
        gate, inner = (
            self.apply_linear(source, f"{layer}mlp.{part}_proj", self._width, self.inner, biased=biased)
            for part in ("gate", "up")
        )
        gated = self.add("Mul", ACTIVATIONS[self.activation](self, gate), inner)
        return self.apply_linear(gated, f"{layer}mlp.down_proj", self.inner, self._width, biased=biased)

    def _normalize(self, source: str, name: str) -> str:
        return self.normalize_by_root(source, name, self._width, self.epsilon)
