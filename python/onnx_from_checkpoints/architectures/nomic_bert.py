"""Graphs of nomic-bert (Nussbaum et al. 2024): BERT with rotary positions and a gated feed-forward network.

There are two spellings of everything, in config.json and in the names of tensors: that of Nomic's own code, with which
nomic-embed-text-v1 and v1.5 were saved, and that of transformers 5. Any mixture of them is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, Encoder, Rotary, Rotation
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

MODEL_TYPES = ("nomic_bert",)
VERSION = "2"
KNOWN = "embeddings.word_embeddings.weight"
_OWN_KEYS = ("n_embd", "n_layer", "rotary_emb_fraction", "activation_function")
"""Keys of Nomic's own code. With any of them, settings that are not in the file have its defaults."""
_OLD_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "n_inner",
}
_GATES = {"swiglu": "silu", "geglu": "gelu", "glu": "sigmoid"}
"""The gate's activation by Nomic's `activation_function`."""
_MULTIPLE = 256
"""Nomic's code rounds the width of the feed-forward network up to a multiple of this."""


@dataclass(frozen=True, slots=True)
class _Names:
    """How one spelling names its tensors; `stacked` holds queries, keys and values in one tensor."""

    layer: str
    embedding_norm: str
    stacked: str
    separate: tuple[str, ...]
    attended: str
    attention_norm: str
    inner: str
    gate: str
    narrowed: str
    output_norm: str


_NOMIC = _Names(
    layer="encoder.layers.{}.",
    embedding_norm="emb_ln",
    stacked="attn.Wqkv",
    separate=(),
    attended="attn.out_proj",
    attention_norm="norm1",
    inner="mlp.fc11",
    gate="mlp.fc12",
    narrowed="mlp.fc2",
    output_norm="norm2",
)
_TRANSFORMERS = _Names(
    layer="layers.{}.",
    embedding_norm="embeddings.LayerNorm",
    stacked="",
    separate=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    attended="self_attn.o_proj",
    attention_norm="post_attention_layernorm",
    inner="mlp.up_proj",
    gate="mlp.gate_proj",
    narrowed="mlp.down_proj",
    output_norm="post_mlp_layernorm",
)


def build(config: Mapping[str, Any], weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    model = _NomicBert(config, weights, wanted.padded)
    weights.refuse_layers(model.names.layer, model.layers)
    if wanted.task != "classification":
        weights.pass_over("pooler.")
    return model.build(wanted.task)


def _refuse_variants(config: Mapping[str, Any]) -> None:
    """Refuse what Nomic's code can do, but no published text model without experts does."""
    every = config.get("moe_every_n_layers")
    if every is not None and (not isinstance(every, int) or every > 0):  # 0 and -1: no layer has experts
        raise UnsupportedModel(
            "config.json: 'moe_every_n_layers' is not supported: this model has experts (as nomic-embed-text-v2-moe); "
            "use a model with an .onnx file, or nomic-embed-text-v1.5"
        )
    off = ("prenorm", "parallel_block", "causal", "use_rms_norm", "norm_mlp", "rotary_head_dim", "is_decoder")
    for key in (*off, "add_cross_attention"):
        contract.refuse_unless(config, key, False, None)
    for key in ("rotary_emb_scale_base", "rope_scaling"):
        contract.refuse_unless(config, key, None)


def _read_renamed(config: Mapping[str, Any], key: str, old: str) -> int:
    """A size that both spellings have."""
    if key in config and old in config and config[key] != config[old]:
        raise DamagedFile(f"config.json: '{key}' is {config[key]!r}, but '{old}' is {config[old]!r}; remove one")
    return contract.read_size(config, old if key not in config and old in config else key)


def _agree(config: Mapping[str, Any], key: str, old: str, value: float) -> float:
    """A number under its old key, which must not contradict the new one; `value` if only the new one is there."""
    if old not in config:
        return value
    stated = contract.read_number(config, old, value)
    if key in config and stated != value:
        raise DamagedFile(f"config.json: '{key}' is {value:g}, but '{old}' is {stated:g}; remove one")
    return stated


def _read_activation(config: Mapping[str, Any], is_own: bool) -> str:
    stated = contract.read_activation(config, "hidden_act", "silu", ACTIVATIONS)
    if not is_own:
        return stated
    gate = _GATES[contract.read_choice(config, "activation_function", "gelu_new", _GATES)]
    if "hidden_act" in config and stated != gate:
        raise DamagedFile(
            f"config.json: 'hidden_act' {stated!r} contradicts 'activation_function' "
            f"{config['activation_function']!r}; remove one"
        )
    return gate


def _read_rotation(config: Mapping[str, Any], size: int, is_own: bool) -> Rotation:
    """The angles. A scaling factor extends texts beyond those of training, by dynamic NTK scaling."""
    own, kind = contract.read_rope(config.get("rope_parameters"), kinds=("default", "dynamic"))
    where = "rope_parameters."
    if "rope_theta" in config:
        own = {"rope_theta": config["rope_theta"], **own}
    width = size * _read_fraction(config, is_own)
    if width % 2:
        raise DamagedFile(
            f"config.json: 'rotary_emb_fraction' turns {width:g} of the {size} values of a head; it must turn an even "
            "number"
        )
    theta = contract.read_number(own, "rope_theta", 10_000 if is_own else 1_000, where=where)
    theta = _agree({**config, **own}, "rope_theta", "rotary_emb_base", theta)
    rotation = Rotation(theta, int(width), contract.read_flag(config, "rotary_emb_interleaved", False))
    return _scale(config, rotation, contract.read_number(own, "factor", 1, where=where) if kind == "dynamic" else None)


def _read_fraction(config: Mapping[str, Any], is_own: bool) -> float:
    """The share of each head that is turned."""
    key = "rotary_emb_fraction"
    if (is_own and key not in config) or config.get(key, 1) == 0:
        raise UnsupportedModel(
            f"config.json: '{key}' is 0 or missing: learned positions are not supported for nomic_bert"
        )
    fraction = contract.read_number(config, key, 1)
    if fraction > 1:
        raise DamagedFile(f"config.json: '{key}' must be at most 1, but is {fraction:g}")
    return fraction


def _scale(config: Mapping[str, Any], rotation: Rotation, factor: float | None) -> Rotation:
    """The rotation with its scaling: `factor` of transformers 5, or Nomic's `rotary_scaling_factor`."""
    key, trained = "max_position_embeddings", "max_trained_positions"
    if config.get("rotary_scaling_factor"):
        if factor is not None:
            raise DamagedFile("config.json: 'rotary_scaling_factor' and 'rope_parameters' both scale; remove one")
        factor, key = contract.read_number(config, "rotary_scaling_factor", 1), trained
    if factor is None:
        return rotation
    if rotation.width < 4:
        raise DamagedFile(
            f"config.json: scaled angles need at least 4 turned values of a head, but {rotation.width} are"
        )
    positions = contract.read_size(config, key, 2048)
    return Rotation(rotation.theta, rotation.width, rotation.interleaved, factor, positions)


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


class _NomicBert(Encoder):
    def __init__(self, config: Mapping[str, Any], weights: Weights, padded: bool) -> None:
        _refuse_variants(config)
        is_own = any(key in config for key in _OWN_KEYS)
        hidden, layers, heads, inner = (_read_renamed(config, key, old) for key, old in _OLD_NAMES.items())
        if hidden % heads:
            raise DamagedFile(f"config.json: the hidden size {hidden} is not a multiple of the number of heads {heads}")
        contract.refuse_unless(config, "head_dim", hidden // heads, None)
        contract.refuse_unless(config, "num_heads_kv", heads, None)
        multiple = contract.read_size(config, "pad_vocab_size_multiple", 1)
        epsilon = contract.read_number(config, "layer_norm_eps", 1e-5 if is_own else 1e-12)
        self.layers, self._heads = layers, heads
        self._inner = _round_up(inner, _MULTIPLE) if is_own else inner
        self._vocabulary = _round_up(contract.read_size(config, "vocab_size"), multiple)
        self._types = 0 if config.get("type_vocab_size") == 0 else contract.read_size(config, "type_vocab_size", 2)
        self._epsilon = _agree(config, "layer_norm_eps", "layer_norm_epsilon", epsilon)
        self._activation = ACTIVATIONS[_read_activation(config, is_own)]
        rotation = _read_rotation(config, hidden // heads, is_own)
        self._attention_bias = contract.read_flag(config, "qkv_proj_bias", is_own)
        self._inner_bias = contract.read_flag(config, "mlp_fc1_bias", is_own)
        self._output_bias = contract.read_flag(config, "mlp_fc2_bias", is_own)
        super().__init__(weights, hidden, padded)
        self.names = _NOMIC if weights.has(f"{_NOMIC.embedding_norm}.weight") else _TRANSFORMERS
        self._rotary = Rotary(self, rotation, self.count_tokens(), heads, hidden // heads)

    def _classify(self) -> tuple[str, int]:
        pooled = self.apply_gemm(self._run_first(), self._weights.read, "pooler.dense", self._width, self._width)
        return self.label(self.add("Tanh", pooled), "classifier", self._width)

    def _run_layers(self, *, first_only: bool = False) -> str:
        hidden = self._embed()
        for number in range(self.layers):
            last = number == self.layers - 1
            hidden = self._run_layer(self.names.layer.format(number), hidden, first_only=first_only and last)
        return hidden

    def _embed(self) -> str:
        """Normalised sum of word and type embeddings."""
        words = self._weights.read(KNOWN, self._vocabulary, self._width)
        kinds = np.zeros((0, self._width), np.float32)
        if self._types:
            kinds = self._weights.read("embeddings.token_type_embeddings.weight", self._types, self._width)
        if self._types == 1:
            words = words + kinds[0]
        embedded = self.add("Gather", self.hold(KNOWN, words), "input_ids")
        if self._types > 1:
            self._inputs.append("token_type_ids")
            embedded = self.add("Add", embedded, self.add("Gather", self.hold("types", kinds), "token_type_ids"))
        return self._normalize(embedded, self.names.embedding_norm)

    def _run_layer(self, layer: str, hidden: str, *, first_only: bool) -> str:
        """Attention and feed-forward network with their residuals and norms, for all tokens or only the first."""
        names, width = self.names, self._width
        asking = self.take_first(hidden, 1) if first_only else hidden
        sources = (asking, hidden, hidden)
        queries, keys, values = (self._project(layer, part, source) for part, source in enumerate(sources))
        if not first_only:  # the first token turns by the angle 0
            queries = self._rotary.turn(queries)
        attended = self.attend(queries, self._rotary.turn(keys), values, "", self._mask, heads=self._heads)
        attended = self.apply_linear(attended, layer + names.attended, width, width, biased=self._attention_bias)
        attended = self._normalize(self.add("Add", asking, attended), layer + names.attention_norm)
        inner = self.apply_linear(attended, layer + names.inner, width, self._inner, biased=self._inner_bias)
        gate = self.apply_linear(attended, layer + names.gate, width, self._inner, biased=self._inner_bias)
        inner = self.add("Mul", inner, self._activation(self, gate))
        inner = self.apply_linear(inner, layer + names.narrowed, self._inner, width, biased=self._output_bias)
        return self._normalize(self.add("Add", attended, inner), layer + names.output_norm)

    def _project(self, layer: str, part: int, source: str) -> str:
        """Queries (part 0), keys (1) or values (2)."""
        width, names, biased = self._width, self.names, self._attention_bias
        if not names.stacked:
            return self.apply_linear(source, layer + names.separate[part], width, width, biased=biased)
        return self.apply_stacked(source, layer + names.stacked, part, 3, width, width, biased=biased)

    def _normalize(self, source: str, name: str) -> str:
        return self.normalize(source, name, self._width, self._epsilon)
