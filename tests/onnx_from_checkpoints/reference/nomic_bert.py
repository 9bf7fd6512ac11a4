"""nomic-bert for one text, in float64, by the names of Nomic's own code: slow and obvious (Nussbaum et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Weights = Mapping[str, Array]


def encode(config: Mapping[str, Any], weights: Weights, ids: Sequence[int], types: Sequence[int]) -> Array:
    """The hidden states of a text without padding, [tokens, hidden]."""
    hidden = weights["embeddings.word_embeddings.weight"].astype(np.float64)[list(ids)]
    if config["type_vocab_size"]:
        hidden = hidden + weights["embeddings.token_type_embeddings.weight"][list(types)]
    hidden = normalize(config, hidden, weights, "emb_ln")
    for number in range(config["n_layer"]):
        layer = f"encoder.layers.{number}."
        attended = apply(attend(config, weights, layer, hidden), weights, f"{layer}attn.out_proj")
        hidden = normalize(config, hidden + attended, weights, f"{layer}norm1")
        inner = apply(hidden, weights, f"{layer}mlp.fc11") * activate(
            config, apply(hidden, weights, f"{layer}mlp.fc12")
        )
        hidden = normalize(config, hidden + apply(inner, weights, f"{layer}mlp.fc2"), weights, f"{layer}norm2")
    return hidden


def attend(config: Mapping[str, Any], weights: Weights, layer: str, hidden: Array) -> Array:
    """What each token gathers from all, [tokens, hidden]."""
    heads, size = config["n_head"], config["n_embd"] // config["n_head"]
    projected = apply(hidden, weights, f"{layer}attn.Wqkv").reshape(len(hidden), 3, heads, size)
    found = np.zeros((len(hidden), heads, size))
    for head in range(heads):
        queries = np.array([turn(config, row, place, len(hidden)) for place, row in enumerate(projected[:, 0, head])])
        keys = np.array([turn(config, row, place, len(hidden)) for place, row in enumerate(projected[:, 1, head])])
        scores = queries @ keys.T / math.sqrt(size)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        found[:, head] = shares / shares.sum(axis=1, keepdims=True) @ projected[:, 2, head]
    return found.reshape(len(hidden), heads * size)


def turn(config: Mapping[str, Any], values: Array, place: int, tokens: int) -> Array:
    """Turn the pairs of one head by the angles of a position; what is not part of the fraction stays."""
    width = int(len(values) * config["rotary_emb_fraction"])
    base, factor, trained = config["rotary_emb_base"], config["rotary_scaling_factor"], config["max_trained_positions"]
    if factor and tokens > trained:
        base = base * (factor * tokens / trained - (factor - 1)) ** (width / (width - 2))
    turned = values.copy()
    for pair in range(width // 2):
        angle = place * base ** (-2 * pair / width)
        first, second = (2 * pair, 2 * pair + 1) if config["rotary_emb_interleaved"] else (pair, pair + width // 2)
        turned[first] = values[first] * math.cos(angle) - values[second] * math.sin(angle)
        turned[second] = values[second] * math.cos(angle) + values[first] * math.sin(angle)
    return turned


def activate(config: Mapping[str, Any], values: Array) -> Array:
    """The gate's activation."""
    if config["activation_function"] == "geglu":
        return np.asarray(values * 0.5 * (1 + np.vectorize(math.erf)(values / math.sqrt(2))))
    shares = 1 / (1 + np.exp(-values))
    return shares if config["activation_function"] == "glu" else values * shares


def apply(rows: Array, weights: Weights, name: str) -> Array:
    """A linear layer, with a bias if the weights have one."""
    return np.asarray(rows @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", np.zeros(1)))


def normalize(config: Mapping[str, Any], rows: Array, weights: Weights, name: str) -> Array:
    """Layer normalisation."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + config["layer_norm_epsilon"])
    return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])
