"""The shape of a T5 model according to its config.json, or to its tensors where that names only a foundation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rageval_spec.inference.architectures.shared.nodes import MICROSOFT
from rageval_spec.inference.architectures.shared.sizes import read_size
from rageval_spec.inference.checkpoint_errors import DamagedFile, UnsupportedModel

if TYPE_CHECKING:
    from rageval_spec.inference.weights import Weights

TYPES = ("mt5", "t5", "umt5")
HHEM = ("HHEMv2", "HHEMv2Config")
"""What HHEM-2.1-Open is called in `model_type`: its config.json and its code disagree."""
_FOUNDATIONS = ("flan-t5-small", "flan-t5-base", "flan-t5-large", "flan-t5-xl", "flan-t5-xxl")
_HEAD_SIZE = 64
"""Values per attention head in each T5 that was published."""

Operator = tuple[str, str, Mapping[str, Any]]
"""An operator, its domain and its attributes."""

_TANH_GELU: Operator = ("FastGelu", MICROSOFT, {})
_ACTIVATIONS: Mapping[str, Operator] = MappingProxyType(
    {
        "gelu": ("Gelu", "", {}),
        "gelu_new": _TANH_GELU,
        "gelu_pytorch_tanh": _TANH_GELU,
        "relu": ("Relu", "", {}),
        "silu": ("QuickGelu", MICROSOFT, {"alpha": 1.0}),
        "swish": ("QuickGelu", MICROSOFT, {"alpha": 1.0}),
    }
)


@dataclass(frozen=True, slots=True)
class T5Shape:
    """The sizes and choices of a T5 model.

    Attributes:
        hidden: `d_model`.
        head_size: `d_kv`; `heads` times this need not be `hidden`.
        feed_forward: `d_ff`.
        furthest: the distance from which on all distances share a bucket.
        gated: whether the feed-forward network multiplies its inner layer with a second one.
        biased_layers: whether each layer has a bias by distance of its own (UMT5), and not only the first.
        start: the token that the decoder starts with.
        scales_output: whether the decoder's output is divided by the root of `hidden` before it becomes logits.
    """

    hidden: int
    heads: int
    head_size: int
    feed_forward: int
    layers: int
    decoder_layers: int
    vocabulary: int
    buckets: int
    furthest: int
    epsilon: float
    activation: Operator
    gated: bool
    biased_layers: bool = False
    start: int = 0
    scales_output: bool = False

    @property
    def inner(self) -> int:
        """The width of queries, keys and values."""
        return self.heads * self.head_size


def read_t5_shape(config: Mapping[str, Any]) -> T5Shape:
    """The shape that config.json describes.

    Raises:
        UnsupportedModel: the activation is not supported; the message names what is.
        DamagedFile: a size is missing or invalid.
    """
    kind = config["model_type"]
    layers = read_size(config, "num_layers")
    activation, gated = _read_activation(config, "relu" if kind == "t5" else "gated-gelu")
    buckets = read_size(config, "relative_attention_num_buckets", 32)
    furthest = read_size(config, "relative_attention_max_distance", 128)
    if buckets % 4 or furthest <= buckets // 4:
        raise DamagedFile(
            f"config.json: 'relative_attention_num_buckets' {buckets} must be a multiple of 4, and "
            f"'relative_attention_max_distance' {furthest} more than a quarter of it"
        )
    decoder = config.get("num_decoder_layers")
    return T5Shape(
        hidden=read_size(config, "d_model"),
        heads=read_size(config, "num_heads"),
        head_size=read_size(config, "d_kv", _HEAD_SIZE),
        feed_forward=read_size(config, "d_ff"),
        layers=layers,
        decoder_layers=layers if decoder is None else read_size(config, "num_decoder_layers"),
        vocabulary=read_size(config, "vocab_size"),
        buckets=buckets,
        furthest=furthest,
        epsilon=_read_epsilon(config),
        activation=activation,
        gated=gated,
        biased_layers=kind == "umt5",
        start=_read_start(config),
        scales_output=_scales_output(config),
    )


def read_hhem_shape(config: Mapping[str, Any], weights: Weights) -> T5Shape:
    """The shape of HHEM-2.1-Open, whose config.json names only its foundation; the sizes are those of its tensors.

    Raises:
        UnsupportedModel: the foundation is not a FLAN-T5, whose activation, epsilon and reach are known.
        DamagedFile: tensors are missing.
    """
    foundation = config.get("foundation")
    if not isinstance(foundation, str) or foundation.rstrip("/").rpartition("/")[2] not in _FOUNDATIONS:
        found = "is missing" if foundation is None else f"is {foundation!r}"
        raise UnsupportedModel(f"config.json: 'foundation' {found}; supported are: {', '.join(_FOUNDATIONS)}")
    vocabulary, hidden = weights.size("shared.weight", 2)
    buckets, heads = weights.size("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 2)
    feed_forward, _ = weights.size("encoder.block.0.layer.1.DenseReluDense.wi_0.weight", 2)
    return T5Shape(
        hidden=hidden,
        heads=heads,
        head_size=_HEAD_SIZE,
        feed_forward=feed_forward,
        layers=weights.count_layers("encoder.block.{}."),
        decoder_layers=0,
        vocabulary=vocabulary,
        buckets=buckets,
        furthest=128,
        epsilon=1e-6,
        activation=_TANH_GELU,
        gated=True,
    )


def _read_activation(config: Mapping[str, Any], default: str) -> tuple[Operator, bool]:
    """The activation, and whether it is gated.

    `feed_forward_proj` says both, where `gated-gelu` means the approximation by tanh. `dense_act_fn` and `is_gated_act`
    are derived from it, but count if they say something else.
    """
    stated = config.get("feed_forward_proj", default)
    parts = stated.split("-") if isinstance(stated, str) else []
    if len(parts) not in (1, 2) or (len(parts) == 2 and parts[0] != "gated"):
        raise DamagedFile(f"config.json: 'feed_forward_proj' must be like 'relu' or 'gated-gelu', but is {stated!r}")
    name = config.get("dense_act_fn", "gelu_new" if stated == "gated-gelu" else parts[-1])
    gated = config.get("is_gated_act", len(parts) == 2)
    if not isinstance(name, str) or name not in _ACTIVATIONS:
        raise UnsupportedModel(
            f"config.json: 'feed_forward_proj' or 'dense_act_fn': the activation {name!r} is not supported; supported "
            f"are: {', '.join(sorted(_ACTIVATIONS))}"
        )
    if not isinstance(gated, bool):
        raise DamagedFile(f"config.json: 'is_gated_act' must be true or false, but is {gated!r}")
    return _ACTIVATIONS[name], gated


def _read_epsilon(config: Mapping[str, Any]) -> float:
    epsilon = config.get("layer_norm_epsilon", 1e-6)
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 <= epsilon < 1:
        raise DamagedFile(f"config.json: 'layer_norm_epsilon' must be a small number, but is {epsilon!r}")
    return float(epsilon)


def _read_start(config: Mapping[str, Any]) -> int:
    """The decoder's first token: padding, unless the configuration names another."""
    start = config.get("decoder_start_token_id")
    start = config.get("pad_token_id", 0) if start is None else start
    if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start < read_size(config, "vocab_size"):
        raise DamagedFile(f"config.json: 'decoder_start_token_id' must be a token's id, but is {start!r}")
    return start


def _scales_output(config: Mapping[str, Any]) -> bool:
    """Whether logits come from a scaled output: yes with tied embeddings, as in the first T5.

    Newer versions of transformers write `scale_decoder_outputs`, and `tie_word_embeddings` as true in any case.
    """
    stated = config.get("scale_decoder_outputs", config.get("tie_word_embeddings", True))
    if not isinstance(stated, bool):
        raise DamagedFile(f"config.json: 'tie_word_embeddings' must be true or false, but is {stated!r}")
    return stated
