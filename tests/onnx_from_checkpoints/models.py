"""Small models of each architecture, with random weights under the names that transformers uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.onnx_from_checkpoints.reference.encoder import NAMES

Config = dict[str, Any]
Weights = dict[str, NDArray[np.float32]]

HIDDEN, INNER, LAYERS, HEADS, VOCABULARY, POSITIONS, LABELS = 16, 24, 2, 4, 40, 34, 3
EMBEDDING = 12
"""The width of ELECTRA's embeddings, which may be another than that of the layers."""
PREFIXES = {"electra": "electra.", "mpnet": "mpnet.", "distilbert": "distilbert.", "bert": "bert."}


def make_config(model_type: str, *, classifier: bool = False, activation: str = "gelu") -> Config:
    """config.json."""
    sizes = (HIDDEN, INNER, LAYERS, HEADS)
    keys = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "hidden_act")
    if model_type == "distilbert":
        keys = ("dim", "hidden_dim", "n_layers", "n_heads", "activation")
    offset = model_type in ("roberta", "xlm-roberta", "camembert", "mpnet")
    config = {
        "architectures": ["XForSequenceClassification" if classifier else "XModel"],
        "model_type": model_type,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS,
        "pad_token_id": 1 if offset else 0,
        **dict(zip(keys, (*sizes, activation), strict=True)),
    }
    if model_type not in ("distilbert", "mpnet"):
        config["type_vocab_size"] = 1 if offset else 2
    if model_type == "electra":
        config["embedding_size"] = EMBEDDING
    if model_type == "mpnet":
        config["relative_attention_num_buckets"] = 32
    if offset and model_type != "mpnet":
        config["layer_norm_eps"] = 1e-5
    return config


def make_weights(config: Config, seed: int = 0, *, prefixed: bool | None = None) -> Weights:
    """All tensors that the configuration requires; those of the encoder have a prefix if the model has a head."""
    kind = str(config["model_type"])
    names = NAMES[kind]
    random = np.random.default_rng(seed)
    classifier = config["architectures"] == ["XForSequenceClassification"]
    prefix = PREFIXES.get(kind, "roberta.") if (classifier if prefixed is None else prefixed) else ""
    width = config.get("embedding_size", HIDDEN)
    weights: Weights = {}

    def draw(name: str, *shape: int) -> None:
        weights[name] = random.normal(0, 0.4, shape).astype(np.float32)

    def draw_linear(name: str, inputs: int, outputs: int) -> None:
        draw(f"{name}.weight", outputs, inputs)
        draw(f"{name}.bias", outputs)

    def draw_norm(name: str, size: int) -> None:
        draw(f"{name}.weight", size)
        weights[f"{name}.weight"] += 1
        draw(f"{name}.bias", size)

    draw(f"{prefix}embeddings.word_embeddings.weight", VOCABULARY, width)
    draw(f"{prefix}embeddings.position_embeddings.weight", POSITIONS, width)
    if "type_vocab_size" in config:
        draw(f"{prefix}embeddings.token_type_embeddings.weight", config["type_vocab_size"], width)
    draw_norm(f"{prefix}embeddings.LayerNorm", width)
    if width != HIDDEN:
        draw_linear(f"{prefix}embeddings_project", width, HIDDEN)
    if kind == "mpnet":
        draw(f"{prefix}encoder.relative_attention_bias.weight", config["relative_attention_num_buckets"], HEADS)
    for number in range(LAYERS):
        layer = prefix + names["layer"].format(number)
        for part in ("query", "key", "value", "attended"):
            draw_linear(layer + names[part], HIDDEN, HIDDEN)
        draw_linear(layer + names["widened"], HIDDEN, INNER)
        draw_linear(layer + names["narrowed"], INNER, HIDDEN)
        draw_norm(layer + names["attention_norm"], HIDDEN)
        draw_norm(layer + names["output_norm"], HIDDEN)
    if kind == "bert":
        draw_linear(f"{prefix}pooler.dense", HIDDEN, HIDDEN)
    if classifier:
        inner = {"bert": None, "distilbert": "pre_classifier"}.get(kind, "classifier.dense")
        if inner:
            draw_linear(inner, HIDDEN, HIDDEN)
        draw_linear("classifier" if kind in ("bert", "distilbert") else "classifier.out_proj", HIDDEN, LABELS)
    return weights
