"""ModernBERT for one text, in float64, token by token: slow and obvious (Warner et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
WORDS = "embeddings.tok_embeddings.weight"


def encode(config: Mapping[str, Any], weights: Mapping[str, Array], ids: Sequence[int]) -> Array:
    """The hidden states of a text without padding, [tokens, hidden]; without biases, with an exact GELU."""
    hidden = normalize(weights[WORDS].astype(np.float64)[list(ids)], weights, "embeddings.norm")
    for number in range(config["num_hidden_layers"]):
        layer = f"layers.{number}."
        normal = normalize(hidden, weights, f"{layer}attn_norm") if number else hidden
        hidden = hidden + attend(config, weights, number, normal) @ weights[f"{layer}attn.Wo.weight"].T
        both = normalize(hidden, weights, f"{layer}mlp_norm") @ weights[f"{layer}mlp.Wi.weight"].T
        inner, gate = np.split(both, 2, axis=-1)
        hidden = hidden + (gelu(inner) * gate) @ weights[f"{layer}mlp.Wo.weight"].T
    return normalize(hidden, weights, "final_norm")


def attend(config: Mapping[str, Any], weights: Mapping[str, Array], number: int, normal: Array) -> Array:
    """What each token gathers from the ones that it sees, [tokens, hidden]."""
    is_full = number % config["global_attn_every_n_layers"] == 0
    theta = config["global_rope_theta"] if is_full else config["local_rope_theta"]
    heads, size = config["num_attention_heads"], config["hidden_size"] // config["num_attention_heads"]
    projected = (normal @ weights[f"layers.{number}.attn.Wqkv.weight"].T).reshape(len(normal), 3, heads, size)
    found = np.zeros((len(normal), heads, size))
    for head in range(heads):
        queries = [turn(row, place, theta) for place, row in enumerate(projected[:, 0, head])]
        keys = [turn(row, place, theta) for place, row in enumerate(projected[:, 1, head])]
        for place, query in enumerate(queries):
            seen = [
                other for other in range(len(keys)) if is_full or abs(other - place) <= config["local_attention"] // 2
            ]
            scores = np.array([query @ keys[other] / math.sqrt(size) for other in seen])
            shares = np.exp(scores - scores.max())
            found[place, head] = (shares / shares.sum()) @ projected[seen, 2, head]
    return found.reshape(len(normal), heads * size)


def turn(values: Array, place: int, theta: float) -> Array:
    """Turn the pairs (i, i + half) of one head by the angles of a position."""
    half = len(values) // 2
    turned = values.copy()
    for pair in range(half):
        angle = place * theta ** (-pair / half)
        first, second = values[pair], values[pair + half]
        turned[pair] = first * math.cos(angle) - second * math.sin(angle)
        turned[pair + half] = second * math.cos(angle) + first * math.sin(angle)
    return turned


def normalize(rows: Array, weights: Mapping[str, Array], name: str, epsilon: float = 1e-5) -> Array:
    """Layer normalisation without a bias."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
    return np.asarray(scaled * weights[f"{name}.weight"])


def gelu(values: Array) -> Array:
    """GELU with the error function."""
    return np.asarray(values * 0.5 * (1 + np.vectorize(math.erf)(values / math.sqrt(2))))
