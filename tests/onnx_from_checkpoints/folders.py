"""Model folders in the layouts in which models are published: small, with random weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, save_model
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = ("the", "cat", "dog", "owl", "ant", "sat", "ran", "on", "a", "mat", "query", ":")
VOCABULARY = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
BERT: Mapping[str, Any] = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "hidden_act": "gelu",
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
CROSS_ENCODER = {**BERT, "architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
DENSE = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}


def write_json(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
    return path


def write_tokenizer(folder: Path, vocabulary: Mapping[str, int] = VOCABULARY, padded_to: int | None = None) -> Path:
    """A tokenizer with one token per word and BERT's special tokens; it can turn on padding and truncation."""
    tokenizer = Tokenizer(models.WordLevel(dict(vocabulary), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    if padded_to is not None:
        tokenizer.enable_padding(length=padded_to)
        tokenizer.enable_truncation(padded_to)
    path = folder / "tokenizer.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))
    return path


def bert_weights(config: Mapping[str, Any] = BERT, seed: int = 0, prefix: str = "") -> dict[str, NDArray[np.float32]]:
    """Random weights under the names that transformers uses."""
    random = np.random.default_rng(seed)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        linear = {f"attention.self.{part}": (hidden, hidden) for part in ("query", "key", "value")}
        linear["attention.output.dense"] = (hidden, hidden)
        linear |= {"intermediate.dense": (inner, hidden), "output.dense": (hidden, inner)}
        for name, shape in linear.items():
            shapes |= {f"{layer}.{name}.weight": shape, f"{layer}.{name}.bias": shape[:1]}
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    weights = {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    for norm in norms:
        weights[f"{norm}.weight"] = random.normal(1, 0.1, hidden).astype(np.float32)
        weights[f"{norm}.bias"] = random.normal(0, 0.1, hidden).astype(np.float32)
    return {prefix + name: array for name, array in weights.items()}


def classifier_weights(config: Mapping[str, Any] = CROSS_ENCODER, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(seed + 1)
    hidden, labels = config["hidden_size"], len(config["id2label"])
    head = {
        "bert.pooler.dense.weight": random.normal(0, 0.5, (hidden, hidden)),
        "bert.pooler.dense.bias": random.normal(0, 0.5, hidden),
        "classifier.weight": random.normal(0, 0.5, (labels, hidden)),
        "classifier.bias": random.normal(0, 0.5, labels),
    }
    return bert_weights(config, seed, "bert.") | {name: array.astype(np.float32) for name, array in head.items()}


def write_encoder(folder: Path, *, config: Mapping[str, Any] = BERT, modules: bool = True, seed: int = 0) -> Path:
    """A sentence-transformers folder: mean pooling, unit length, at most 12 tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_tokenizer(folder)
    save_file(bert_weights(config, seed), folder / "model.safetensors")
    if modules:
        write_json(folder / "modules.json", [TRANSFORMER, POOLING, NORMALIZE])
        write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": 12, "do_lower_case": False})
    return folder


def write_cross_encoder(folder: Path, *, config: Mapping[str, Any] = CROSS_ENCODER) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_tokenizer(folder)
    save_file(classifier_weights(config), folder / "model.safetensors")
    return folder


def write_copy_detector(path: Path, output: str = "logits", *, stated: bool = True) -> Path:
    """A token classifier: a token that occurs more than once has the logits [1, -1], any other token [-1, 1].

    Without `stated`, the graph does not say how many axes its output has.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    constants: dict[str, NDArray[Any]] = {
        "one": np.array([1], np.int64),
        "two": np.array([2], np.int64),
        "most": np.array(1.5, np.float32),
        "signs": np.array([1, -1], np.float32),
    }
    steps = [
        helper.make_node("Unsqueeze", ["input_ids", "two"], ["rows"]),
        helper.make_node("Unsqueeze", ["input_ids", "one"], ["columns"]),
        helper.make_node("Equal", ["rows", "columns"], ["same"]),
        helper.make_node("Cast", ["same"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["ones", "two"], ["count"], keepdims=1),
        helper.make_node("Sub", ["count", "most"], ["more"]),
        helper.make_node("Sign", ["more"], ["sign"]),
        helper.make_node("Mul", ["sign", "signs"], ["product"]),
    ]
    given = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["texts", "tokens", 2])
    if stated:
        steps.append(helper.make_node("Identity", ["product"], [output]))
    else:
        # A shape that is computed from the input hides the number of axes.
        steps += [
            helper.make_node("Shape", ["product"], ["sizes"]),
            helper.make_node("Compress", ["sizes", "all"], ["hidden_sizes"], axis=0),
            helper.make_node("Reshape", ["product", "hidden_sizes"], [output]),
        ]
        constants["all"] = np.array([True, True, True])
        given = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    read = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])]
    held = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(steps, "copies", read, [given], held)
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


DETECTOR: Mapping[str, Any] = {
    "architectures": ["ModernBertForTokenClassification"],
    "model_type": "modernbert",
    "vocab_size": 20,
    "max_position_embeddings": 64,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
}


def write_detector(
    folder: Path, *, config: Mapping[str, Any] = DETECTOR, vocabulary: Mapping[str, int] = VOCABULARY
) -> Path:
    """A folder with `write_copy_detector`'s graph: words of the answer that the prompt contains are supported."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_tokenizer(folder, vocabulary)
    write_copy_detector(folder / "model.onnx")
    return folder
