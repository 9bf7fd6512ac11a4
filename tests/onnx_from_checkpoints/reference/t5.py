"""T5, slowly: a token at a time, in float64, by the names that transformers gives its weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = Mapping[str, NDArray[Any]]
Config = Mapping[str, Any]


def encode(config: Config, weights: Weights, ids: list[int]) -> Array:
    """The encoder's output for one text: [tokens, hidden]."""
    hidden = np.array([_read(weights, "shared")[one] for one in ids])
    for number in range(config["num_layers"]):
        layer = f"encoder.block.{number}.layer"
        biased = layer if config["model_type"] == "umt5" else "encoder.block.0.layer"
        table = _read(weights, f"{biased}.0.SelfAttention.relative_attention_bias")
        normed = [_normalize(config, weights, f"{layer}.0.layer_norm", row) for row in hidden]
        hidden = hidden + [
            _attend(
                config,
                weights,
                f"{layer}.0.SelfAttention",
                normed[place],
                normed,
                _bias(config, table, place, len(ids)),
            )
            for place in range(len(ids))
        ]
        hidden = np.array([_feed_forward(config, weights, f"{layer}.1", row) for row in hidden])
    return np.array([_normalize(config, weights, "encoder.final_layer_norm", row) for row in hidden])


def reply(config: Config, weights: Weights, ids: list[int]) -> Array:
    """The logits of all words for the first that the decoder writes: [vocabulary]."""
    encoded = list(encode(config, weights, ids))
    hidden = _read(weights, "shared")[config.get("decoder_start_token_id") or 0]
    for number in range(config["num_decoder_layers"]):
        layer = f"decoder.block.{number}.layer"
        normed = _normalize(config, weights, f"{layer}.0.layer_norm", hidden)
        alone = np.zeros((config["num_heads"], 1))
        hidden = hidden + _attend(config, weights, f"{layer}.0.SelfAttention", normed, [normed], alone)
        normed = _normalize(config, weights, f"{layer}.1.layer_norm", hidden)
        even = np.zeros((config["num_heads"], len(ids)))
        hidden = hidden + _attend(config, weights, f"{layer}.1.EncDecAttention", normed, encoded, even)
        hidden = _feed_forward(config, weights, f"{layer}.2", hidden)
    hidden = _normalize(config, weights, "decoder.final_layer_norm", hidden)
    if config.get("tie_word_embeddings", True):
        hidden = hidden / math.sqrt(config["d_model"])
    head = "lm_head" if "lm_head.weight" in weights else "shared"
    return np.asarray(_read(weights, head) @ hidden)


def _read(weights: Weights, name: str) -> Array:
    return np.asarray(weights[f"{name}.weight"], np.float64)


def _normalize(config: Config, weights: Weights, name: str, row: Array) -> Array:
    return np.asarray(row / math.sqrt((row**2).mean() + config.get("layer_norm_epsilon", 1e-6)) * _read(weights, name))


def _attend(config: Config, weights: Weights, name: str, asking: Array, sources: list[Array], bias: Array) -> Array:
    heads, size = config["num_heads"], config["d_kv"]
    query = (_read(weights, f"{name}.q") @ asking).reshape(heads, size)
    keys = [(_read(weights, f"{name}.k") @ source).reshape(heads, size) for source in sources]
    values = [(_read(weights, f"{name}.v") @ source).reshape(heads, size) for source in sources]
    mixed = []
    for head in range(heads):
        scores = np.array([query[head] @ key[head] for key in keys]) + bias[head]
        shares = np.exp(scores - scores.max())
        mixed.append(sum(share * value[head] for share, value in zip(shares / shares.sum(), values, strict=True)))
    return np.asarray(_read(weights, f"{name}.o") @ np.concatenate(mixed))


def _bias(config: Config, table: Array, place: int, tokens: int) -> Array:
    """The bias on the scores of one token: [heads, tokens]."""
    return np.array([table[_find_bucket(config, key - place)] for key in range(tokens)]).T


def _find_bucket(config: Config, distance: int) -> int:
    """Half of the buckets are for keys to the right; in each half, half are for one distance each."""
    half = config.get("relative_attention_num_buckets", 32) // 2
    exact, reach = half // 2, config.get("relative_attention_max_distance", 128)
    size = abs(distance)
    if size >= exact:
        # In float32, as in PyTorch, because a distance may lie exactly on a border.
        ratio = np.log(np.float32(size) / np.float32(exact)) / np.float32(math.log(reach / exact))
        size = min(half - 1, exact + int(ratio * np.float32(half - exact)))
    return size + (half if distance > 0 else 0)


def _feed_forward(config: Config, weights: Weights, layer: str, row: Array) -> Array:
    normed = _normalize(config, weights, f"{layer}.layer_norm", row)
    name = f"{layer}.DenseReluDense"
    activate = _ACTIVATIONS[config["feed_forward_proj"].removeprefix("gated-")]
    if config["feed_forward_proj"].startswith("gated-"):
        inner = activate(_read(weights, f"{name}.wi_0") @ normed) * (_read(weights, f"{name}.wi_1") @ normed)
    else:
        inner = activate(_read(weights, f"{name}.wi") @ normed)
    return np.asarray(row + _read(weights, f"{name}.wo") @ inner)


_ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "relu": lambda values: np.maximum(values, 0),
    "gelu": lambda values: 0.5 * values * (1 + np.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3))),
    "silu": lambda values: values / (1 + np.exp(-values)),
}
