"""Encoders with BERT's layers: how they name their tensors, and the shape of a model according to its config.json.

Architectures: BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019), DistilBERT (Sanh et al. 2019), ELECTRA (Clark et
al. 2020), MPNet (Song et al. 2020, with the relative position buckets of T5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rageval_spec.inference.architectures.shared.nodes import MICROSOFT
from rageval_spec.inference.architectures.shared.settings import read_choice, refuse_unless
from rageval_spec.inference.architectures.shared.sizes import read_size
from rageval_spec.inference.checkpoint_errors import DamagedFile, UnsupportedModel


@dataclass(frozen=True, slots=True)
class Family:
    """How one architecture names its tensors.

    Attributes:
        layer: the prefix of a layer's tensors, with the layer's number.
        positions: `absolute` counts from 0; `offset` counts tokens other than padding from `pad_token_id` + 1.
        head: the kind of its sequence classifier.
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


_BERT = Family(
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
_DISTILBERT = Family(
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
FAMILIES: Mapping[str, Family] = {
    "bert": _BERT,
    "camembert": _ROBERTA,
    "distilbert": _DISTILBERT,
    "electra": replace(_BERT, head="gelu"),
    "mpnet": _MPNET,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
"""The architectures that can be built, by transformers' `model_type`."""

_GELU, _FAST_GELU = ("BiasGelu", MICROSOFT), ("FastGelu", MICROSOFT)
_ACTIVATIONS: Mapping[str, tuple[str, str]] = {
    "gelu": _GELU,
    "gelu_new": _FAST_GELU,
    "gelu_python": _GELU,
    "gelu_fast": _FAST_GELU,
    "gelu_pytorch_tanh": _FAST_GELU,
    "relu": ("Relu", ""),
    "tanh": ("Tanh", ""),
}


_BUCKETS = 32


@dataclass(frozen=True, slots=True)
class Shape:
    """The contents of config.json, in one spelling for all architectures."""

    model_type: str
    family: Family
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


def read_shape(config: Mapping[str, Any]) -> Shape:
    """The shape that config.json describes, in one spelling for all architectures.

    Raises:
        UnsupportedModel: the architecture, activation or kind of positions is not supported; the message names what is.
        DamagedFile: a size is missing or invalid.
    """
    model_type, family = _find_family(config)
    names = dict(family.renamed)
    hidden = read_size(config, names.get("hidden_size", "hidden_size"))
    heads = read_size(config, names.get("num_attention_heads", "num_attention_heads"))
    if hidden % heads:
        raise DamagedFile(f"config.json: hidden_size {hidden} is not a multiple of num_attention_heads {heads}")
    activation = read_choice(config, names.get("hidden_act", "hidden_act"), "gelu", _ACTIVATIONS)
    return Shape(
        model_type=model_type,
        family=family,
        hidden=hidden,
        layers=read_size(config, names.get("num_hidden_layers", "num_hidden_layers")),
        heads=heads,
        inner=read_size(config, names.get("intermediate_size", "intermediate_size")),
        vocabulary=read_size(config, "vocab_size"),
        positions=read_size(config, "max_position_embeddings"),
        types=read_size(config, "type_vocab_size", 2) if family.types else 0,
        embedding=read_size(config, "embedding_size", 128) if model_type == "electra" else hidden,
        activation=_ACTIVATIONS[activation],
        epsilon=_read_epsilon(config) if model_type != "distilbert" else 1e-12,
        padding=_read_padding(config, 1 if family.positions == "offset" else 0),
        buckets=_read_buckets(config) if model_type == "mpnet" else 0,
    )


def _read_buckets(config: Mapping[str, Any]) -> int:
    """MPNet's buckets of distances. transformers puts distances into 32, whatever config.json says."""
    refuse_unless(config, "relative_attention_num_buckets", _BUCKETS)
    return _BUCKETS


def _find_family(config: Mapping[str, Any]) -> tuple[str, Family]:
    model_type = str(config["model_type"])
    for key in ("is_decoder", "add_cross_attention"):
        if config.get(key):
            raise UnsupportedModel(
                f"config.json: '{key}' is {config[key]!r}: this is a decoder; use a model that is an encoder"
            )
    refuse_unless(config, "position_embedding_type", "absolute", None)
    return model_type, FAMILIES[model_type]


def _read_epsilon(config: Mapping[str, Any]) -> float:
    epsilon = config.get("layer_norm_eps", 1e-12)
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 <= epsilon < 1:
        raise DamagedFile(f"config.json: 'layer_norm_eps' must be a number from 0 to 1, but is {epsilon!r}")
    return float(epsilon)


def _read_padding(config: Mapping[str, Any], default: int) -> int:
    padding = config.get("pad_token_id", default) or 0
    if isinstance(padding, bool) or not isinstance(padding, int) or padding < 0:
        raise DamagedFile(f"config.json: 'pad_token_id' must be a whole number, but is {padding!r}")
    return padding
