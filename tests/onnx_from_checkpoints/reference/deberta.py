"""DeBERTa-v2 and v3, slowly: a pair of tokens at a time, in float64, by transformers' names of the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.onnx_from_checkpoints.reference.encoder import activate, apply, normalize

Array = NDArray[np.float64]
Weights = Mapping[str, NDArray[Any]]


def encode(config: Mapping[str, Any], weights: Weights, ids: list[int], types: list[int]) -> Array:
    """The last hidden state of one text: [tokens, hidden]."""
    inner = {name.removeprefix("deberta."): np.asarray(tensor, np.float64) for name, tensor in weights.items()}
    epsilon = config.get("layer_norm_eps", 1e-7)
    rows = []
    for place, (token, type_id) in enumerate(zip(ids, types, strict=True)):
        row = inner["embeddings.word_embeddings.weight"][token]
        if config.get("position_biased_input", True):
            row = row + inner["embeddings.position_embeddings.weight"][place]
        if config.get("type_vocab_size", 0):
            row = row + inner["embeddings.token_type_embeddings.weight"][type_id]
        if "embeddings.embed_proj.weight" in inner:
            row = inner["embeddings.embed_proj.weight"] @ row
        rows.append(normalize(row, inner, "embeddings.LayerNorm", epsilon))
    embedded = hidden = np.stack(rows)
    for number in range(config["num_hidden_layers"]):
        hidden = run_layer(config, inner, f"encoder.layer.{number}.", hidden, epsilon)
        if number == 0 and config.get("conv_kernel_size", 0):
            hidden = convolve(config, inner, embedded, hidden, epsilon)
    return hidden


def classify(config: Mapping[str, Any], weights: Weights, ids: list[int], types: list[int]) -> Array:
    """The logits of one text or pair: [labels]."""
    head = {name: np.asarray(tensor, np.float64) for name, tensor in weights.items()}
    pooled = apply(encode(config, weights, ids, types)[0], head, "pooler.dense")
    return apply(activate(pooled, config.get("pooler_hidden_act", "gelu")), head, "classifier")


def classify_tokens(config: Mapping[str, Any], weights: Weights, ids: list[int], types: list[int]) -> Array:
    """The logits of each token: [tokens, labels]."""
    head = {name: np.asarray(tensor, np.float64) for name, tensor in weights.items()}
    return np.stack([apply(row, head, "classifier") for row in encode(config, weights, ids, types)])


def run_layer(
    config: Mapping[str, Any], weights: Mapping[str, Array], layer: str, hidden: Array, epsilon: float
) -> Array:
    """Attention of each token to each, then a network of two layers, each added to what it read and normalised."""
    attended = attend(config, weights, f"{layer}attention.self.", hidden, epsilon)
    found = []
    for before, row in zip(hidden, attended, strict=True):
        row = before + apply(row, weights, f"{layer}attention.output.dense")
        row = normalize(row, weights, f"{layer}attention.output.LayerNorm", epsilon)
        inner = activate(apply(row, weights, f"{layer}intermediate.dense"), config.get("hidden_act", "gelu"))
        inner = apply(inner, weights, f"{layer}output.dense")
        found.append(normalize(row + inner, weights, f"{layer}output.LayerNorm", epsilon))
    return np.stack(found)


def attend(config: Mapping[str, Any], weights: Mapping[str, Array], names: str, hidden: Array, epsilon: float) -> Array:
    """The values of the other tokens, weighted by content and by distance."""
    tokens, size = hidden.shape
    heads = config["num_attention_heads"]
    width = size // heads
    queries, keys, values = (
        np.stack([apply(row, weights, f"{names}{part}_proj") for row in hidden]) for part in ("query", "key", "value")
    )
    terms = config.get("pos_att_type") or []
    scale = 1 / math.sqrt(width * (1 + ("c2p" in terms) + ("p2c" in terms)))
    found = np.zeros_like(hidden)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        for asking in range(tokens):
            scores = np.zeros(tokens)
            for key in range(tokens):
                scores[key] = queries[asking, part] @ keys[key, part]
                for term in terms if config.get("relative_attention", False) else ():
                    distance = embed_distance(config, weights, asking - key, epsilon)
                    own = {"c2p": "pos_key_proj", "p2c": "pos_query_proj"}[term]
                    shared = {"c2p": "key_proj", "p2c": "query_proj"}[term]
                    distance = apply(distance, weights, names + (shared if config.get("share_att_key") else own))
                    content = queries[asking] if term == "c2p" else keys[key]
                    scores[key] += content[part] @ distance[part]
            shares = np.exp(scores * scale - (scores * scale).max())
            found[asking, part] = (shares / shares.sum()) @ values[:, part]
    return found


def embed_distance(config: Mapping[str, Any], weights: Mapping[str, Array], distance: int, epsilon: float) -> Array:
    """The embedding of a distance (query minus key)."""
    furthest = config.get("max_relative_positions", -1)
    furthest = config["max_position_embeddings"] if furthest < 1 else furthest
    buckets = config.get("position_buckets", -1)
    span = buckets if buckets > 0 else furthest
    bucket = find_bucket(distance, buckets, furthest) if buckets > 0 else distance
    row: Array = weights["encoder.rel_embeddings.weight"][max(0, min(2 * span - 1, bucket + span))]
    if "layer_norm" not in config.get("norm_rel_ebd", "none"):
        return row
    return normalize(row, weights, "encoder.LayerNorm", epsilon)


def find_bucket(distance: int, buckets: int, furthest: int) -> int:
    """Near distances have a bucket each, far ones share one with a growing number of others."""
    exact = buckets // 2
    size = abs(distance)
    if size <= exact:
        return distance
    grown = exact + math.ceil(math.log(size / exact) / math.log((furthest - 1) / exact) * (exact - 1))
    return grown if distance > 0 else -grown


def convolve(
    config: Mapping[str, Any], weights: Mapping[str, Array], embedded: Array, hidden: Array, epsilon: float
) -> Array:
    """Add a convolution over the embeddings, where outside of the text there are zeros."""
    kernel, bias = weights["encoder.conv.conv.weight"], weights["encoder.conv.conv.bias"]
    tokens, width = embedded.shape
    part = width // config.get("conv_groups", 1)
    found = []
    for place in range(tokens):
        row = bias.copy()
        for step in range(config["conv_kernel_size"]):
            other = place + step - config["conv_kernel_size"] // 2
            for channel in range(width) if 0 <= other < tokens else ():
                start = channel // part * part
                row[channel] += kernel[channel, :, step] @ embedded[other, start : start + part]
        row = hidden[place] + activate(row, config.get("conv_act", "tanh"))
        found.append(normalize(row, weights, "encoder.conv.LayerNorm", epsilon))
    return np.stack(found)
