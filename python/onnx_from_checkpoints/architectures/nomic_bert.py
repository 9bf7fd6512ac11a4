"""Graphs of nomic-bert (Nussbaum et al. 2024): BERT with rotary positions and a gated feed-forward network.

There are two spellings of everything, in config.json and in the names of tensors: that of Nomic's own code, with which
nomic-embed-text-v1 and v1.5 were saved, and that of transformers 5. Any mixture of them is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, LayerNames, Rotary, Rotation, Transformer
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Weights

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
class _Names(LayerNames):
    """How one spelling names its tensors; `stacked` holds queries, keys and values in one tensor."""

    embedding_norm: str
    stacked: str
    separate: tuple[str, ...]
    gate: str


_NOMIC = _Names(
    layer="encoder.layers.{}.",
    embedding_norm="emb_ln",
    stacked="attn.Wqkv",
    separate=(),
    attended="attn.out_proj",
    attention_norm="norm1",
    widened="mlp.fc11",
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
    widened="mlp.up_proj",
    gate="mlp.gate_proj",
    narrowed="mlp.down_proj",
    output_norm="post_mlp_layernorm",
)


def build(config: Settings, weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    model = _NomicBert(config, weights, wanted.padded)
    if wanted.task != "classification":
        weights.pass_over("pooler.")
    return model.build(wanted.task)


def _refuse_variants(config: Settings) -> None:
    """Refuse what Nomic's code can do, but no published text model without experts does."""
    every = config.get("moe_every_n_layers")
    if every is not None and (not isinstance(every, int) or every > 0):  # 0 and -1: no layer has experts
        raise UnsupportedModel(
            "config.json: 'moe_every_n_layers' is not supported: this model has experts (as nomic-embed-text-v2-moe); "
            "use a model with an .onnx file, or nomic-embed-text-v1.5"
        )
    contract.refuse_decoders(config)
    config.refuse_unless("prenorm parallel_block use_rms_norm norm_mlp rotary_head_dim", False, None)
    config.refuse_unless("rotary_emb_scale_base", None)


def _read_activation(config: Settings, is_own: bool) -> str:
    stated = config.activation("hidden_act", "silu", ACTIVATIONS)
    if not is_own:
        return stated
    gate = _GATES[config.choice("activation_function", "gelu_new", _GATES)]
    if "hidden_act" in config and stated != gate:
        raise DamagedFile(
            f"config.json: 'hidden_act' {stated!r} contradicts 'activation_function' "
            f"{config.get('activation_function')!r}; remove one"
        )
    return gate


def _read_rotation(config: Settings, size: int, is_own: bool) -> Rotation:
    """The angles. A scaling factor extends texts beyond those of training, by dynamic NTK scaling."""
    kind = contract.read_rope(config, kinds=("default", "dynamic"))
    key = "rotary_emb_fraction"  # the share of each head that is turned
    if (is_own and key not in config) or config.get(key, 1) == 0:
        raise UnsupportedModel(
            f"config.json: '{key}' is 0 or missing: learned positions are not supported for nomic_bert"
        )
    width = size * config.number(key, 1)
    if width % 2 or width > size:
        raise DamagedFile(
            f"config.json: '{key}' turns {width:g} of the {size} values of a head; it must turn an even number of them"
        )
    bases = ("rope_parameters.rope_theta", "rope_theta", "rotary_emb_base")
    theta = config.number(config.find(*bases), 10_000 if is_own else 1_000)
    rotation = Rotation(theta, int(width), config.flag("rotary_emb_interleaved", False))
    return _scale(config, rotation, config.number("rope_parameters.factor", 1) if kind == "dynamic" else None)


def _scale(config: Settings, rotation: Rotation, factor: float | None) -> Rotation:
    """The rotation with its scaling: `factor` of transformers 5, or Nomic's `rotary_scaling_factor`."""
    key, trained = "max_position_embeddings", "max_trained_positions"
    if config.get("rotary_scaling_factor"):
        if factor is not None:
            raise DamagedFile("config.json: 'rotary_scaling_factor' and 'rope_parameters' both scale; remove one")
        factor, key = config.number("rotary_scaling_factor"), trained
    if factor is None:
        return rotation
    if rotation.width < 4:
        raise DamagedFile(
            f"config.json: scaled angles need at least 4 turned values of a head, but {rotation.width} are"
        )
    return replace(rotation, factor=factor, trained=config.size(key, 2048))


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


class _NomicBert(Transformer):
    names: _Names

    def __init__(self, config: Settings, weights: Weights, padded: bool) -> None:
        _refuse_variants(config)
        is_own = any(key in config for key in _OWN_KEYS)
        names = _NOMIC if weights.has(f"{_NOMIC.embedding_norm}.weight") else _TRANSFORMERS
        super().__init__(config, weights, padded, names, _OLD_NAMES)
        config.refuse_unless("head_dim", self.size, None)
        config.refuse_unless("num_heads_kv", self.heads, None)
        self.inner = _round_up(self.inner, _MULTIPLE) if is_own else self.inner
        self.vocabulary = _round_up(self.vocabulary, config.size("pad_vocab_size_multiple", 1))
        self._types = 0 if config.get("type_vocab_size") == 0 else config.size("type_vocab_size", 2)
        epsilon = config.find("layer_norm_eps", "layer_norm_epsilon")
        self._epsilon = config.number(epsilon, 1e-5 if is_own else 1e-12)
        self.activation = _read_activation(config, is_own)
        rotation = _read_rotation(config, self.size, is_own)
        self.attention_bias = config.flag("qkv_proj_bias", is_own)
        self._inner_bias = config.flag("mlp_fc1_bias", is_own)
        self._output_bias = config.flag("mlp_fc2_bias", is_own)
        self._rotary = Rotary(self, rotation, self.count_tokens(), self.heads, self.size)

    def _classify(self) -> tuple[str, int]:
        pooled = self.apply_gemm(self._run_first(), self._weights.read, "pooler.dense", self._width, self._width)
        return self.label(self.add("Tanh", pooled), "classifier", self._width)

    def _embed(self) -> str:
        """Normalised sum of word and type embeddings."""
        words = self._weights.read(KNOWN, self.vocabulary, self._width)
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

    def _attend(self, number: int, layer: str, asking: str, source: str) -> str:  # noqa: ARG002 - as all
        sources = (asking, source, source)
        queries, keys, values = (self._project(layer, part, read) for part, read in enumerate(sources))
        if asking == source:  # the first token turns by the angle 0
            queries = self._rotary.turn(queries)
        return self.attend(queries, self._rotary.turn(keys), values, "", self._mask, heads=self.heads)

    def _feed(self, layer: str, source: str) -> str:
        names, width = self.names, self._width
        inner = self.apply_linear(source, layer + names.widened, width, self.inner, biased=self._inner_bias)
        gate = self.apply_linear(source, layer + names.gate, width, self.inner, biased=self._inner_bias)
        inner = self.add("Mul", inner, ACTIVATIONS[self.activation](self, gate))
        return self.apply_linear(inner, layer + names.narrowed, self.inner, width, biased=self._output_bias)

    def _project(self, layer: str, part: int, source: str) -> str:
        """Queries (part 0), keys (1) or values (2)."""
        width, names, biased = self._width, self.names, self.attention_bias
        if not names.stacked:
            return self.apply_linear(source, layer + names.separate[part], width, width, biased=biased)
        return self.apply_stacked(source, layer + names.stacked, part, 3, width, width, biased=biased)

    def _normalize(self, source: str, name: str) -> str:
        return self.normalize(source, name, self._width, self._epsilon)
