"""BERT-family encoders, slowly: a token at a time, in float64, by the names that transformers gives their weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = Mapping[str, NDArray[Any]]

BERT_NAMES = {
    "layer": "encoder.layer.{}.",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "widened": "intermediate.dense",
    "narrowed": "output.dense",
    "output_norm": "output.LayerNorm",
}
NAMES = {
    "bert": BERT_NAMES,
    "roberta": BERT_NAMES,
    "xlm-roberta": BERT_NAMES,
    "camembert": BERT_NAMES,
    "electra": BERT_NAMES,
    "mpnet": {
        **BERT_NAMES,
        "query": "attention.attn.q",
        "key": "attention.attn.k",
        "value": "attention.attn.v",
        "attended": "attention.attn.o",
        "attention_norm": "attention.LayerNorm",
    },
    "distilbert": {
        "layer": "transformer.layer.{}.",
        "query": "attention.q_lin",
        "key": "attention.k_lin",
        "value": "attention.v_lin",
        "attended": "attention.out_lin",
        "attention_norm": "sa_layer_norm",
        "widened": "ffn.lin1",
        "narrowed": "ffn.lin2",
        "output_norm": "output_layer_norm",
    },
}


def encode(config: Mapping[str, Any], weights: Weights, ids: list[int], types: list[int]) -> Array:
    """The last hidden state of one text: [tokens, hidden]."""
    kind = config["model_type"]
    names = NAMES[kind]
    prefix = next(name for name in weights if name.endswith("embeddings.word_embeddings.weight"))
    prefix = prefix.removesuffix("embeddings.word_embeddings.weight")
    inner = {name.removeprefix(prefix): np.asarray(tensor, np.float64) for name, tensor in weights.items()}
    epsilon = config.get("layer_norm_eps", 1e-12)
    rows = []
    for place, (token, type_id) in enumerate(zip(ids, types, strict=True)):
        row = inner["embeddings.word_embeddings.weight"][token]
        row = row + inner["embeddings.position_embeddings.weight"][find_place(kind, config, ids, place)]
        if "embeddings.token_type_embeddings.weight" in inner:
            table = inner["embeddings.token_type_embeddings.weight"]
            row = row + table[type_id if len(table) > 1 else 0]
        rows.append(normalize(row, inner, "embeddings.LayerNorm", epsilon))
    hidden = np.stack(rows)
    if "embeddings_project.weight" in inner:
        hidden = np.stack([apply(row, inner, "embeddings_project") for row in hidden])
    heads = config.get("num_attention_heads", config.get("n_heads"))
    activation = config.get("hidden_act", config.get("activation"))
    for number in range(config.get("num_hidden_layers", config.get("n_layers"))):
        hidden = run_layer(hidden, inner, names, names["layer"].format(number), heads, activation, epsilon)
    return hidden


def classify(config: Mapping[str, Any], weights: Weights, ids: list[int], types: list[int]) -> Array:
    """The logits of one text or pair: [labels]."""
    first = encode(config, weights, ids, types)[0]
    head = {name: np.asarray(tensor, np.float64) for name, tensor in weights.items()}
    kind = config["model_type"]
    if kind == "bert":
        return apply(np.tanh(apply(first, head, "bert.pooler.dense")), head, "classifier")
    if kind == "distilbert":
        return apply(np.maximum(apply(first, head, "pre_classifier"), 0), head, "classifier")
    inner = apply(first, head, "classifier.dense")
    inner = activate(inner, "gelu") if kind == "electra" else np.tanh(inner)
    return apply(inner, head, "classifier.out_proj")


def find_place(kind: str, config: Mapping[str, Any], ids: list[int], place: int) -> int:
    """The row of the position embeddings; RoBERTa and MPNet begin behind that of padding and do not count padding."""
    if kind in ("bert", "distilbert", "electra"):
        return place
    padding = int(config["pad_token_id"])
    if ids[place] == padding:
        return padding
    return padding + sum(token != padding for token in ids[: place + 1])


def run_layer(
    hidden: Array,
    weights: Mapping[str, Array],
    names: Mapping[str, str],
    layer: str,
    heads: int,
    activation: str,
    epsilon: float,
) -> Array:
    """Attention of each token to each, then a network of two layers, each added to what it read and normalised."""
    tokens, size = hidden.shape
    width = size // heads
    queries, keys, values = (
        np.stack([apply(row, weights, layer + names[part]) for row in hidden]) for part in ("query", "key", "value")
    )
    table = weights.get("encoder.relative_attention_bias.weight")
    attended = np.zeros_like(hidden)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        for asking in range(tokens):
            scores = np.array([queries[asking, part] @ keys[key, part] / math.sqrt(width) for key in range(tokens)])
            if table is not None:
                scores += [table[find_bucket(key - asking, len(table)), head] for key in range(tokens)]
            shares = np.exp(scores - scores.max())
            attended[asking, part] = (shares / shares.sum()) @ values[:, part]
    found = []
    for before, row in zip(hidden, attended, strict=True):
        row = normalize(
            before + apply(row, weights, layer + names["attended"]), weights, layer + names["attention_norm"], epsilon
        )
        inner = activate(apply(row, weights, layer + names["widened"]), activation)
        inner = apply(inner, weights, layer + names["narrowed"])
        found.append(normalize(row + inner, weights, layer + names["output_norm"], epsilon))
    return np.stack(found)


def apply(row: Array, weights: Mapping[str, Array], name: str) -> Array:
    """A linear layer."""
    return np.asarray(weights[f"{name}.weight"] @ row + weights[f"{name}.bias"])


def normalize(row: Array, weights: Mapping[str, Array], name: str, epsilon: float) -> Array:
    """Layer normalisation (Ba et al. 2016)."""
    centred = row - row.mean()
    scaled = centred / math.sqrt((centred**2).mean() + epsilon)
    return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])


def activate(row: Array, name: str) -> Array:
    """What stands between the two layers of the network."""
    if name == "relu":
        return np.maximum(row, 0)
    if name == "tanh":
        return np.tanh(row)
    if name == "gelu":
        return np.array([value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in row])
    return np.array(
        [value * (1 + math.tanh(math.sqrt(2 / math.pi) * (value + 0.044715 * value**3))) / 2 for value in row]
    )


def find_bucket(distance: int, buckets: int) -> int:
    """T5's bucket of a distance (key minus query): exact near by, logarithmic up to 128, half of them for each side."""
    half = buckets // 2
    exact = half // 2
    size = abs(distance)
    if size >= exact:
        size = min(half - 1, exact + int(math.log(size / exact) / math.log(128 / exact) * (half - exact)))
    return size + (half if distance > 0 else 0)
