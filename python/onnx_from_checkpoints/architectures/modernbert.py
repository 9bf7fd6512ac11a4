"""Graphs of ModernBERT (Warner et al. 2024), and of Ettin's encoders (Weller et al. 2025), which have its layers.

Layers normalise first, positions are rotary, the feed-forward network is gated, and most layers attend only to a window
around each token.
"""

from __future__ import annotations

import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import (
    ACTIVATIONS,
    LayerNames,
    Rotary,
    Rotation,
    Transformer,
    Windows,
)
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Weights

VERSION = "2"
KNOWN = "embeddings.tok_embeddings.weight"
_NAMES = LayerNames(
    layer="layers.{}.",
    attended="attn.Wo",
    attention_norm="attn_norm",
    widened="mlp.Wi",
    narrowed="mlp.Wo",
    output_norm="mlp_norm",
)
_FULL, _SLIDING = "full_attention", "sliding_attention"
_OLD_THETA = {_FULL: ("global_rope_theta", 160_000.0), _SLIDING: ("local_rope_theta", 10_000.0)}
"""The key of `theta` before transformers 5, and its default."""


def build(config: Settings, weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    return _ModernBert(config, weights, wanted.padded).build(wanted.task)


def _read_kinds(config: Settings, layers: int) -> tuple[str, ...]:
    stated = config.get("layer_types")
    if stated is None:
        every = config.size("global_attn_every_n_layers", 3)
        return tuple(_SLIDING if number % every else _FULL for number in range(layers))
    if not isinstance(stated, list) or len(stated) != layers:
        raise DamagedFile(f"config.json: 'layer_types' must be a list of {layers} words, one for each layer")
    for kind in stated:
        if kind not in (_FULL, _SLIDING):
            raise UnsupportedModel(
                f"config.json: 'layer_types' {kind!r} is not supported; only {_FULL} and {_SLIDING} are"
            )
    return tuple(stated)


def _read_theta(config: Settings, kind: str) -> float:
    """`theta` from `rope_parameters` (transformers 5), or from a key of its own (transformers 4)."""
    old, default = _OLD_THETA[kind]
    contract.read_rope(config, f"rope_parameters.{kind}")
    key = config.find(old, f"rope_parameters.{kind}.rope_theta")
    if kind == _SLIDING and config.get(key, default) is None:  # null: one base for both kinds of layers
        key, default = _OLD_THETA[_FULL]
    return config.number(key, default)


class _ModernBert(Transformer):
    """Reads config.json in the spelling of transformers 4 or 5.

    Attributes:
        kinds: for each layer, `full_attention` or `sliding_attention`.
    """

    norms_first = embeds_normalized = True
    last_norm = "final_norm"

    def __init__(self, config: Settings, weights: Weights, padded: bool) -> None:
        contract.refuse_decoders(config)
        super().__init__(config, weights, padded, _NAMES)
        self.kinds = _read_kinds(config, self.layers)
        self._reach = config.size("local_attention", 128) // 2  # how far a token of a sliding layer sees
        every = config.get("rope_parameters") or {}
        if not isinstance(every, dict) or not set(every) <= set(_OLD_THETA):
            raise UnsupportedModel(
                f"config.json: 'rope_parameters' must have the keys {_FULL} and {_SLIDING}, but is {every!r}"
            )
        thetas = {kind: _read_theta(config, kind) for kind in (_FULL, _SLIDING)}
        self._epsilon = config.number("norm_eps", 1e-5)
        self.activation = config.activation("hidden_activation", "gelu", ACTIVATIONS)
        self._norm_bias = config.flag("norm_bias", False)
        self.attention_bias = config.flag("attention_bias", False)
        self._inner_bias = config.flag("mlp_bias", False)
        self._head_bias = config.flag("classifier_bias", False)
        self._head_activation = config.activation("classifier_activation", "gelu", ACTIVATIONS)
        self._pooling = config.choice("classifier_pooling", "cls", ("cls", "mean"))
        tokens, heads = self.count_tokens(), self.heads
        self._rotary = {
            kind: Rotary(self, Rotation(thetas[kind], self.size), tokens, heads, self.size)
            for kind in sorted(set(self.kinds))
        }
        if _SLIDING in self.kinds:
            self._windows = Windows(self, self._reach, heads, self._width, cut=not padded)

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

    def _embed(self) -> str:
        words = self.hold(KNOWN, self._weights.read(KNOWN, self.vocabulary, self._width))
        return self._normalize(self.add("Gather", words, "input_ids"), "embeddings.norm")

    def _attend(self, number: int, layer: str, asking: str, source: str) -> str:
        kind, mask = self.kinds[number], self._mask
        from_first, rotary = asking != source, self._rotary[kind]
        if from_first and kind == _SLIDING:
            within = self._reach + 1
            source, mask = self.take_first(source, 1, within), self.take_first(mask, 1, within) if mask else ""
        queries, keys, values = (self._project(layer, part, read) for part, read in enumerate((asking, source, source)))
        queries = queries if from_first else rotary.turn(queries)  # the first token turns by the angle 0
        keys = rotary.turn(keys)
        if kind == _SLIDING and not from_first:
            return self._windows.attend(queries, keys, values, mask)
        return self.attend(queries, keys, values, "", mask, heads=self.heads)

    def _project(self, layer: str, part: int, source: str) -> str:
        """Queries (part 0), keys (1) or values (2)."""
        biased = self.attention_bias
        return self.apply_stacked(source, f"{layer}attn.Wqkv", part, 3, self._width, self._width, biased=biased)

    def _feed(self, layer: str, source: str) -> str:
        width, inner_width, biased = self._width, self.inner, self._inner_bias
        inner, gate = (
            self.apply_stacked(source, layer + self.names.widened, part, 2, width, inner_width, biased=biased)
            for part in range(2)
        )
        gated = self.add("Mul", ACTIVATIONS[self.activation](self, inner), gate)
        return self.apply_linear(gated, layer + self.names.narrowed, inner_width, width, biased=biased)

    def _normalize(self, source: str, name: str) -> str:
        return self.normalize(source, name, self._width, self._epsilon, biased=self._norm_bias)
