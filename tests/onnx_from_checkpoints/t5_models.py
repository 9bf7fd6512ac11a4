"""Tiny models of T5's kind, with random weights, and a tokenizer like theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.onnx_from_checkpoints.folders import write_json

VOCABULARY = 20
WORDS = ["predict:", "Is", "it", "true?", "Premise:", "Hypothesis:", "the", "cat", "dog", "sat", "on", "a", "mat", "1"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789:.,?<>/☕"


def make_tokenizer() -> Tokenizer:
    """A tokenizer of T5's kind: Unigram, with the special tokens among its pieces."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    pieces += [(f"▁{word}", -8.0) for word in WORDS] + [(letter, -9.0) for letter in LETTERS]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in ("<pad>", "</s>", "<unk>")])
    return tokenizer


def make_config(**keys: Any) -> dict[str, Any]:
    sizes = {"d_model": 8, "d_kv": 3, "d_ff": 10, "num_heads": 2, "num_layers": 2, "num_decoder_layers": 2}
    other = {"vocab_size": VOCABULARY, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12}
    return {
        "architectures": ["T5EncoderModel"],
        "model_type": "t5",
        "feed_forward_proj": "relu",
        **sizes,
        **other,
        **keys,
    }


def make_weights(config: dict[str, Any], seed: int = 0, spread: float = 0.4) -> dict[str, NDArray[np.float32]]:
    """All tensors of an encoder and a decoder, with an `lm_head` of its own."""
    random = np.random.default_rng(seed)
    is_gated = config.get("is_gated_act", str(config["feed_forward_proj"]).startswith("gated"))
    widened = ("wi_0", "wi_1") if is_gated else ("wi",)
    hidden, inner, wide = config["d_model"], config["num_heads"] * config["d_kv"], config["d_ff"]
    shapes: dict[str, tuple[int, ...]] = {
        "shared": (config["vocab_size"], hidden),
        "lm_head": (config["vocab_size"], hidden),
    }
    for stack, parts in (("encoder", ("SelfAttention",)), ("decoder", ("SelfAttention", "EncDecAttention"))):
        shapes[f"{stack}.final_layer_norm"] = (hidden,)
        for number in range(config["num_layers" if stack == "encoder" else "num_decoder_layers"]):
            for place, part in enumerate((*parts, "DenseReluDense")):
                layer = f"{stack}.block.{number}.layer.{place}"
                shapes[f"{layer}.layer_norm"] = (hidden,)
                if part == "DenseReluDense":
                    shapes |= {f"{layer}.{part}.{one}": (wide, hidden) for one in widened}
                    shapes[f"{layer}.{part}.wo"] = (hidden, wide)
                else:
                    shapes |= {f"{layer}.{part}.{one}": (inner, hidden) for one in "qkv"}
                    shapes[f"{layer}.{part}.o"] = (hidden, inner)
                    if part == "SelfAttention" and (number == 0 or config["model_type"] == "umt5"):
                        table = (config["relative_attention_num_buckets"], config["num_heads"])
                        shapes[f"{layer}.{part}.relative_attention_bias"] = table
    return {f"{name}.weight": random.normal(0, spread, shape).astype(np.float32) for name, shape in shapes.items()}


def write_t5(folder: Path, **keys: Any) -> Path:
    """A FLAN-T5 of its own, with its tokenizer."""
    tokenizer = make_tokenizer()
    flan = {
        "architectures": ["T5ForConditionalGeneration"],
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    }
    config = make_config(vocab_size=tokenizer.get_vocab_size(), **flan, **keys)
    write_json(folder / "config.json", config)
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(make_weights(config), folder / "model.safetensors")
    return folder


def write_hhem(folder: Path, *, tokenizer: bool = True) -> Path:
    """A model in the form in which HHEM is published; its own repository has no tokenizer."""
    config = make_config(vocab_size=make_tokenizer().get_vocab_size(), d_kv=64, feed_forward_proj="gated-gelu")
    config |= {"relative_attention_num_buckets": 32}
    tensors = {f"t5.transformer.{name}": one for name, one in make_weights(config).items() if "lm_head" not in name}
    tensors = {name: one for name, one in tensors.items() if "decoder" not in name}
    random = np.random.default_rng(1)
    tensors["t5.classifier.weight"] = random.normal(0, 0.4, (2, config["d_model"])).astype(np.float32)
    tensors["t5.classifier.bias"] = np.array([0.1, -0.2], np.float32)
    hhem = {
        "architectures": ["HHEMv2ForSequenceClassification"],
        "foundation": "google/flan-t5-base",
        "id2label": {"0": "hallucinated", "1": "consistent"},
        "model_type": "HHEMv2Config",
        "prompt": "<pad> Is it true?\n\nPremise: {text1}\n\nHypothesis: {text2}",
    }
    write_json(folder / "config.json", hhem)
    save_file(tensors, folder / "model.safetensors")
    if tokenizer:
        make_tokenizer().save(str(folder / "tokenizer.json"))
    return folder
