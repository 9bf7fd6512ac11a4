"""Graphs of EuroBERT (Boizard et al. 2025): the layers of Llama, with attention in both directions.

Layers normalise first by the root of the mean square, positions are rotary, several heads may share keys and values,
and the feed-forward network is gated. The settings have the spelling of EuroBERT's own code or of transformers 5.
"""

from __future__ import annotations

import numpy as np
import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, LayerNames, Rotary, Rotation, Transformer
from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Weights

VERSION = "2"
KNOWN = "embed_tokens.weight"
_NAMES = LayerNames(
    layer="layers.{}.",
    attended="self_attn.o_proj",
    attention_norm="input_layernorm",
    widened="mlp.up_proj",
    narrowed="mlp.down_proj",
    output_norm="post_attention_layernorm",
)


def build(config: Settings, weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    return EuroBert(config, weights, wanted.padded).build(wanted.task)


class EuroBert(Transformer):
    """A model with this config.json.

    Attributes:
        shared: the number of heads that keys and values have, of which several query heads use each.
        pooling: how a classifier reads a text: its first token (`bos`), the `mean` of its tokens, or `late`, the mean
            of the tokens' logits.
    """

    norms_first = True
    last_norm = "norm"

    def __init__(self, config: Settings, weights: Weights, padded: bool) -> None:
        contract.refuse_decoders(config)
        super().__init__(config, weights, padded, _NAMES)
        kept = config.get("num_key_value_heads")
        self.shared = self.heads if kept is None else config.size("num_key_value_heads")
        if self.heads % self.shared:
            raise DamagedFile(
                f"config.json: 'num_attention_heads' {self.heads} is not a multiple of 'num_key_value_heads' "
                f"{self.shared}"
            )
        self.size = self.size if config.get("head_dim") is None else config.size("head_dim")
        contract.read_rope(config)
        # It has no default here, because EuroBERT's own code and transformers have different ones.
        self.theta = config.number(config.find("rope_theta", "rope_parameters.rope_theta"))
        self.epsilon = config.number("rms_norm_eps", 1e-5)
        self.activation = config.activation("hidden_act", "silu", ACTIVATIONS)
        self.attention_bias = config.flag("attention_bias", False)
        self.inner_bias = config.flag("mlp_bias", False)
        self.pooling = config.choice(config.find("clf_pooling", "classifier_pooling"), "late", ("bos", "mean", "late"))
        tokens, rotation = self.count_tokens(), Rotation(self.theta, self.size)
        self._turn_queries = Rotary(self, rotation, tokens, self.heads, self.size).turn
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

    def _embed(self) -> str:
        words = self.hold(KNOWN, self._weights.read(KNOWN, self.vocabulary, self._width))
        return self.add("Gather", words, "input_ids")

    def _attend(self, number: int, layer: str, asking: str, source: str) -> str:  # noqa: ARG002 - as all
        queries = self._turn_queries(self._project(layer, "q", asking, self.heads))
        keys = self._repeat(self._turn_keys(self._project(layer, "k", source, self.shared)))
        values = self._repeat(self._project(layer, "v", source, self.shared))
        return self.attend(queries, keys, values, "", self._mask, heads=self.heads)

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
        names, biased = ("mlp.gate_proj", self.names.widened), self.inner_bias
        gate, inner = (self.apply_linear(source, layer + one, self._width, self.inner, biased=biased) for one in names)
        gated = self.add("Mul", ACTIVATIONS[self.activation](self, gate), inner)
        return self.apply_linear(gated, layer + self.names.narrowed, self.inner, self._width, biased=biased)

    def _normalize(self, source: str, name: str) -> str:
        return self.normalize_by_root(source, name, self._width, self.epsilon)
