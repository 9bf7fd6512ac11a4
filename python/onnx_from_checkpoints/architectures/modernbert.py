"""Graphs of ModernBERT (Warner et al. 2024), and of Ettin's encoders (Weller et al. 2025), which have its layers.

Layers normalise first, positions are rotary, the feed-forward network is gated, and most layers attend only to a window
around each token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, Encoder, Rotary, Rotation, Windows
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.weights import Weights

MODEL_TYPES = ("modernbert",)
VERSION = "2"
KNOWN = "embeddings.tok_embeddings.weight"
_FULL, _SLIDING = "full_attention", "sliding_attention"
_OLD_THETA = {_FULL: ("global_rope_theta", 160_000.0), _SLIDING: ("local_rope_theta", 10_000.0)}
"""The key of `theta` before transformers 5, and its default."""


def build(config: Mapping[str, Any], weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    model = _ModernBert(config, weights, wanted.padded)
    weights.refuse_layers("layers.{}.", len(model.kinds))
    return model.build(wanted.task)


def _read_kinds(config: Mapping[str, Any]) -> tuple[str, ...]:
    layers = contract.read_size(config, "num_hidden_layers")
    stated = config.get("layer_types")
    if stated is None:
        every = contract.read_size(config, "global_attn_every_n_layers", 3)
        return tuple(_SLIDING if number % every else _FULL for number in range(layers))
    if not isinstance(stated, list) or len(stated) != layers:
        raise DamagedFile(f"config.json: 'layer_types' must be a list of {layers} words, one for each layer")
    for kind in stated:
        if kind not in (_FULL, _SLIDING):
            raise UnsupportedModel(
                f"config.json: 'layer_types' {kind!r} is not supported; only {_FULL} and {_SLIDING} are"
            )
    return tuple(stated)


def _read_theta(config: Mapping[str, Any], kind: str) -> float:
    """`theta` from `rope_parameters` (transformers 5), or from a key of its own (transformers 4)."""
    key, default = _OLD_THETA[kind]
    contract.refuse_unless(config, "rope_scaling", None)
    every = config.get("rope_parameters") or {}
    if not isinstance(every, Mapping) or not set(every) <= set(_OLD_THETA):
        raise UnsupportedModel(
            f"config.json: 'rope_parameters' must have the keys {_FULL} and {_SLIDING}, but is {every!r}"
        )
    own, _ = contract.read_rope(every.get(kind), f"rope_parameters.{kind}")
    if "rope_theta" not in own:
        if kind == _SLIDING and config.get(key, default) is None:  # null: one base for both kinds of layers
            key, default = _OLD_THETA[_FULL]
        return contract.read_number(config, key, default)
    where = f"rope_parameters.{kind}."
    theta = contract.read_number(own, "rope_theta", default, where=where)
    if config.get(key) is not None and contract.read_number(config, key, default) != theta:
        raise DamagedFile(f"config.json: '{key}' is {config[key]!r}, but '{where}rope_theta' is {theta:g}; remove one")
    return theta


class _ModernBert(Encoder):
    """Reads config.json in the spelling of transformers 4 or 5.

    Attributes:
        kinds: for each layer, `full_attention` or `sliding_attention`.
    """

    def __init__(self, config: Mapping[str, Any], weights: Weights, padded: bool) -> None:
        for key in ("is_decoder", "add_cross_attention", "is_causal", "causal_mask"):
            contract.refuse_unless(config, key, False, None)
        hidden = contract.read_size(config, "hidden_size")
        self._heads = heads = contract.read_size(config, "num_attention_heads")
        if hidden % heads or hidden // heads % 2:
            raise DamagedFile(
                f"config.json: 'hidden_size' {hidden} must be an even multiple of 'num_attention_heads' {heads}"
            )
        self._inner = contract.read_size(config, "intermediate_size")
        self._vocabulary = contract.read_size(config, "vocab_size")
        self.kinds = _read_kinds(config)
        self._reach = contract.read_size(config, "local_attention", 128) // 2  # how far a token of a sliding layer sees
        thetas = {kind: _read_theta(config, kind) for kind in (_FULL, _SLIDING)}
        self._epsilon = contract.read_number(config, "norm_eps", 1e-5)
        self._activation = contract.read_activation(config, "hidden_activation", "gelu", ACTIVATIONS)
        self._norm_bias = contract.read_flag(config, "norm_bias", False)
        self._attention_bias = contract.read_flag(config, "attention_bias", False)
        self._inner_bias = contract.read_flag(config, "mlp_bias", False)
        self._head_bias = contract.read_flag(config, "classifier_bias", False)
        self._head_activation = contract.read_activation(config, "classifier_activation", "gelu", ACTIVATIONS)
        self._pooling = contract.read_choice(config, "classifier_pooling", "cls", ("cls", "mean"))
        super().__init__(weights, hidden, padded)
        tokens, size = self.count_tokens(), hidden // heads
        self._rotary = {
            kind: Rotary(self, Rotation(thetas[kind], size), tokens, heads, size) for kind in sorted(set(self.kinds))
        }
        if _SLIDING in self.kinds:
            self._windows = Windows(self, self._reach, heads, hidden, cut=not padded)

    def _classify_tokens(self, hidden: str) -> tuple[str, int]:
        rows = self.add("Reshape", hidden, self.vector(-1, self._width))
        return self.label_tokens(self._prepare_head(rows), "classifier", self._width)

    def _classify(self) -> tuple[str, int]:
        if self._pooling == "cls":
            pooled = self._run_first()
        else:
            pooled = self.average(self._run_layers(), padded=bool(self._mask))
        return self.label(self._prepare_head(pooled), "classifier", self._width)

    def _prepare_head(self, pooled: str) -> str:
        """What both classifiers do before the last linear layer, for rows [rows, hidden]."""
        width, read = self._width, self._weights.read_head
        dense = self.apply_gemm(pooled, read, "head.dense", width, width, biased=self._head_bias)
        active = ACTIVATIONS[self._head_activation](self, dense)
        return self.normalize(active, "head.norm", width, self._epsilon, biased=self._norm_bias, read=read)

    def _run_layers(self, *, first_only: bool = False) -> str:
        words = self.hold(KNOWN, self._weights.read(KNOWN, self._vocabulary, self._width))
        hidden = self._normalize(self.add("Gather", words, "input_ids"), "embeddings.norm")
        last = len(self.kinds) - 1
        for number in range(last + 1):
            hidden = self._run_layer(number, hidden, first_only=first_only and number == last)
        return self._normalize(hidden, "final_norm")

    def _run_layer(self, number: int, hidden: str, *, first_only: bool) -> str:
        """Attention and feed-forward network with their residuals, for all tokens or only the first."""
        layer = f"layers.{number}."
        # The embeddings are normalised already, so the first layer has no norm.
        normal = self._normalize(hidden, f"{layer}attn_norm") if number else hidden
        attend = self._attend_from_first if first_only else self._attend
        attended = attend(layer, self.kinds[number], normal)
        attended = self.apply_linear(attended, f"{layer}attn.Wo", self._width, self._width, biased=self._attention_bias)
        if first_only:
            hidden = self.take_first(hidden, 1)
        hidden = self.add("Add", hidden, attended)
        return self.add("Add", hidden, self._feed(layer, self._normalize(hidden, f"{layer}mlp_norm")))

    def _attend(self, layer: str, kind: str, normal: str) -> str:
        rotary = self._rotary[kind]
        queries, keys, values = (self._project(layer, part, normal) for part in range(3))
        queries, keys = rotary.turn(queries), rotary.turn(keys)
        if kind == _SLIDING:
            return self._windows.attend(queries, keys, values, self._mask)
        return self.attend(queries, keys, values, "", self._mask, heads=self._heads)

    def _attend_from_first(self, layer: str, kind: str, normal: str) -> str:
        """Attention of the first token, whose rotary angle is 0, to all tokens or to the ones within reach."""
        mask, within = self._mask, self._reach + 1
        if kind == _SLIDING:
            normal, mask = self.take_first(normal, 1, within), self.take_first(mask, 1, within) if mask else ""
        queries = self._project(layer, 0, self.take_first(normal, 1))
        keys, values = (self._project(layer, part, normal) for part in (1, 2))
        return self.attend(queries, self._rotary[kind].turn(keys), values, "", mask, heads=self._heads)

    def _project(self, layer: str, part: int, source: str) -> str:
        """Queries (part 0), keys (1) or values (2)."""
        biased = self._attention_bias
        return self.apply_stacked(source, f"{layer}attn.Wqkv", part, 3, self._width, self._width, biased=biased)

    def _feed(self, layer: str, source: str) -> str:
        width, inner_width, biased = self._width, self._inner, self._inner_bias
        inner, gate = (
            self.apply_stacked(source, f"{layer}mlp.Wi", part, 2, width, inner_width, biased=biased)
            for part in range(2)
        )
        gated = self.add("Mul", ACTIVATIONS[self._activation](self, inner), gate)
        return self.apply_linear(gated, f"{layer}mlp.Wo", inner_width, width, biased=biased)

    def _normalize(self, source: str, name: str) -> str:
        return self.normalize(source, name, self._width, self._epsilon, biased=self._norm_bias)
