"""Write the golden models of the tests: tiny models with random weights, and the outputs that transformers gives.

    python benches/tiny_models.py [NAME ...] [--list]

Needs transformers and torch, which the tests do not. Each model becomes a folder of
`tests/onnx_from_checkpoints/architectures/golden/` with config.json, model.safetensors and expected.npz:
token ids, masks, token types, and the outputs in
float32. Equal versions give equal files. An architecture has at most 300 KB.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "onnx_from_checkpoints" / "architectures" / "golden"
VOCABULARY = 60

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 66,
}


@dataclass(frozen=True)
class Tiny:
    """One model.

    Attributes:
        model_type: transformers' name of the architecture.
        head: the name of transformers' class without the architecture, such as `ForSequenceClassification`.
        config: keys of config.json beside `SIZES`; None removes one of those.
        lengths: numbers of tokens of the texts; those of one tuple are one batch, padded to the longest.
        spread: the standard deviation of the weights: large enough that a mistake shows.
        rows: of an output for each token, at most so many tokens are kept, spread over the text.
        replies: tokens of a text generator whose logits, for the first word that it writes, are the output.
        hhem: whether to write a token classifier as HHEM is published, of which only the first token counts.
        saving: arguments of `save_pretrained`.
    """

    model_type: str
    head: str = "Model"
    config: dict[str, Any] = field(default_factory=dict)
    lengths: tuple[tuple[int, ...], ...] = ((1,), (2, 7), (3, 16, 9), (64,), (64, 31))
    spread: float = 0.2
    rows: int = 24
    replies: tuple[int, ...] = ()
    hhem: bool = False
    saving: dict[str, Any] = field(default_factory=dict)


_LABELS = {"num_labels": 3}
_OFFSET = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1}
_SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2}
_SMALL_OFFSET = _SMALL | _OFFSET | {"layer_norm_eps": 1e-5}
_DISTIL = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": None, "hidden_dim": 24}
_MPNET = _SMALL | {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
_SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
_MODERN = _SPECIAL | {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
    "num_hidden_layers": 4,
    "max_position_embeddings": 200,
    "local_attention": 16,
}
_BIASED = {
    "norm_bias": True,
    "attention_bias": True,
    "mlp_bias": True,
    "classifier_bias": True,
    "classifier_pooling": "mean",
    "classifier_activation": "silu",
    "hidden_activation": "gelu_pytorch_tanh",
    "norm_eps": 1e-3,
    "global_attn_every_n_layers": 2,
    "local_attention": 11,
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 500.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 70.0},
    },
}
_SLIDING_LAST = {"num_hidden_layers": 3}
_DEBERTA = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
    "relative_attention": True,
    "position_buckets": 16,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
}
"""As DeBERTa-v3, which has 256 buckets."""
_DEBERTA_OLD = _DEBERTA | {
    "position_buckets": -1,
    "max_relative_positions": 20,
    "norm_rel_ebd": "none",
    "share_att_key": False,
    "position_biased_input": True,
    "type_vocab_size": 2,
    "embedding_size": 12,
    "hidden_act": "gelu_new",
}
"""What the published models leave out: a row for each distance, own projections, absolute positions, token types."""
_FURTHER = ((1,), (2, 7), (3, 16, 9), (64,), (64, 31), (90,))
"""Beyond the most positions too, since relative ones have no bound."""
_LONGER = ((1,), (2, 7), (3, 19, 9), (48,), (49, 50), (64, 31), (113,), (200, 150))
"""Around the length from which on texts are cut into windows, and far above it."""
_NOMIC = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "max_position_embeddings": 120,
    "layer_norm_eps": 1e-6,
}
_DYNAMIC = {
    "max_position_embeddings": 32,
    "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 800.0},
}
_EURO = _SPECIAL | {
    "mask_token_id": 3,
    "hidden_size": 24,
    "intermediate_size": 32,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "max_position_embeddings": 300,
    "rope_parameters": {"rope_type": "default", "rope_theta": 250_000.0},
}
"""As EuroBERT-610m, where three heads share keys and values."""
_EURO_BIASED = _EURO | {
    "attention_bias": True,
    "mlp_bias": True,
    "num_key_value_heads": 6,
    "head_dim": 8,
    "hidden_act": "gelu",
    "rms_norm_eps": 1e-3,
    "classifier_pooling": "mean",
}
_RENAMED = {"save_original_format": False}
"""transformers saves nomic-bert with the names of Nomic's own code, unless told otherwise."""
_T5 = {"intermediate_size": None, "max_position_embeddings": None, "d_ff": 32, "d_kv": 6, "hidden_size": 16}
_GATED = _T5 | {"feed_forward_proj": "gated-gelu"}
_FLAN = _GATED | {"hidden_size": 16, "d_ff": 24, "num_attention_heads": 2, "tie_word_embeddings": False}
_TIED = _FLAN | {"tie_word_embeddings": None, "num_decoder_layers": 1}
_HHEM = _FLAN | {"d_kv": 64, "num_labels": 2}
_FAR = ((1,), (2, 7), (64, 31), (150, 200))
MODELS: dict[str, Tiny] = {
    "bert": Tiny("bert"),
    "bert-labels": Tiny("bert", "ForSequenceClassification", _SMALL | _LABELS | {"hidden_act": "gelu_new"}),
    "bert-tokens": Tiny("bert", "ForTokenClassification", _LABELS),
    "camembert": Tiny("camembert", "Model", _SMALL_OFFSET),
    "camembert-labels": Tiny("camembert", "ForSequenceClassification", _SMALL_OFFSET | _LABELS),
    "deberta": Tiny("deberta-v2", "Model", _DEBERTA, lengths=_FURTHER),
    "deberta-content": Tiny("deberta-v2", "Model", _DEBERTA | {"pos_att_type": ["c2p"], "position_buckets": 4}),
    "deberta-convolution": Tiny(
        "deberta-v2",
        "ForSequenceClassification",
        _DEBERTA | _LABELS | {"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 8},
        lengths=_FURTHER,
    ),
    "deberta-labels": Tiny("deberta-v2", "ForSequenceClassification", _DEBERTA | _LABELS, lengths=_FURTHER),
    "deberta-old": Tiny("deberta-v2", "ForSequenceClassification", _DEBERTA_OLD | _LABELS),
    "deberta-tokens": Tiny("deberta-v2", "ForTokenClassification", _DEBERTA_OLD | _LABELS),
    "distilbert": Tiny("distilbert", "Model", _DISTIL),
    "distilbert-labels": Tiny("distilbert", "ForSequenceClassification", _DISTIL | _LABELS | {"activation": "relu"}),
    "distilbert-tokens": Tiny("distilbert", "ForTokenClassification", _DISTIL | _LABELS),
    "electra": Tiny("electra", "Model", {"embedding_size": 24}),
    "electra-labels": Tiny("electra", "ForSequenceClassification", _SMALL | _LABELS | {"embedding_size": 16}),
    "electra-tokens": Tiny("electra", "ForTokenClassification", _SMALL | _LABELS | {"embedding_size": 12}),
    "eurobert": Tiny("eurobert", "Model", _EURO, _FAR),
    "eurobert-first": Tiny("eurobert", "ForSequenceClassification", _EURO | _LABELS | {"classifier_pooling": "bos"}),
    "eurobert-labels": Tiny("eurobert", "ForSequenceClassification", _EURO | _LABELS, _FAR),
    "eurobert-mean": Tiny("eurobert", "ForSequenceClassification", _EURO_BIASED | _LABELS),
    "eurobert-tokens": Tiny("eurobert", "ForTokenClassification", _EURO | _LABELS, _FAR),
    "modernbert": Tiny("modernbert", "Model", _MODERN, _LONGER),
    "modernbert-biased": Tiny("modernbert", "ForSequenceClassification", _MODERN | _BIASED | _LABELS, _LONGER),
    "modernbert-labels": Tiny("modernbert", "ForSequenceClassification", _MODERN | _LABELS, _LONGER),
    "modernbert-sliding": Tiny("modernbert", "ForSequenceClassification", _MODERN | _SLIDING_LAST | _LABELS, _LONGER),
    "modernbert-tokens": Tiny("modernbert", "ForTokenClassification", _MODERN | _LABELS, _LONGER),
    "mpnet": Tiny("mpnet", "Model", _MPNET, lengths=((1,), (2, 7), (3, 16, 9), (62,), (62, 31))),
    "mpnet-labels": Tiny("mpnet", "ForSequenceClassification", _MPNET | _LABELS),
    "mpnet-tokens": Tiny("mpnet", "ForTokenClassification", _MPNET | _LABELS),
    "nomic_bert": Tiny("nomic_bert", "Model", _NOMIC, ((1,), (2, 7), (3, 19, 9), (64, 31), (120, 77))),
    "nomic_bert-dynamic": Tiny("nomic_bert", "Model", _NOMIC | _DYNAMIC, ((1,), (32, 32), (33,), (70,), (120,))),
    "nomic_bert-labels": Tiny("nomic_bert", "ForSequenceClassification", _NOMIC | _LABELS),
    "nomic_bert-renamed": Tiny("nomic_bert", "ForTokenClassification", _NOMIC | _LABELS, saving=_RENAMED),
    "roberta": Tiny("roberta", "Model", _SMALL_OFFSET),
    "roberta-labels": Tiny("roberta", "ForSequenceClassification", _SMALL_OFFSET | _LABELS | {"type_vocab_size": 2}),
    "roberta-tokens": Tiny("roberta", "ForTokenClassification", _SMALL_OFFSET | _LABELS),
    "t5": Tiny("t5", "ForTextEncoding", _T5, _FAR),
    "t5-hhem": Tiny("t5", "ForTokenClassification", _HHEM, _FAR, hhem=True),
    "t5-reply": Tiny("t5", "ForSeq2SeqLM", _FLAN | {"num_decoder_layers": 3}, _FAR, replies=(3, 20)),
    "t5-tied-reply": Tiny("t5", "ForSeq2SeqLM", _TIED, _FAR, 0.4, replies=(20, 3, 5)),
    "t5-tokens": Tiny("t5", "ForTokenClassification", _LABELS | _FLAN, _FAR, rows=8),
    "umt5": Tiny("umt5", "ForTextEncoding", _FLAN | {"relative_attention_num_buckets": 8}, _FAR, rows=8),
    "xlm-roberta": Tiny("xlm-roberta", "Model", _SMALL_OFFSET),
    "xlm-roberta-pairs": Tiny("xlm-roberta", "ForSequenceClassification", _OFFSET | _LABELS),
    "xlm-roberta-tokens": Tiny("xlm-roberta", "ForTokenClassification", _SMALL_OFFSET | _LABELS),
}
"""The models by the names of their folders; each begins with the name of its architecture."""


def build_model(tiny: Tiny) -> Any:
    """The model in float32 with seeded weights."""
    import torch
    import transformers

    sizes = {key: value for key, value in (SIZES | tiny.config).items() if value is not None}
    config = transformers.AutoConfig.for_model(tiny.model_type, **sizes)
    name = {"Model": "AutoModel"}.get(tiny.head, f"AutoModel{tiny.head}")
    model = getattr(transformers, name).from_config(config, attn_implementation="eager").float().eval()
    if tiny.replies and not model.config.scale_decoder_outputs:
        model.lm_head.weight = torch.nn.Parameter(torch.zeros_like(model.lm_head.weight))  # no longer the embeddings
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter_name, parameter in sorted(model.named_parameters()):
            values = torch.randn(parameter.shape, generator=draw) * tiny.spread
            is_scale = parameter.dim() == 1 and parameter_name.endswith("weight")
            parameter.copy_(1 + values if is_scale else values)
    return model


def draw_batches(tiny: Tiny, config: Any) -> Iterator[dict[str, NDArray[np.int64]]]:
    """Token ids, masks and token types; special tokens occur like any others, padding only at the end."""
    draw = np.random.default_rng(0)
    padding = getattr(config, "pad_token_id", 0) or 0
    types = getattr(config, "type_vocab_size", 0) or 0
    for lengths in tiny.lengths:
        shape = (len(lengths), max(lengths))
        mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype(np.int64)
        ids = draw.integers(0, config.vocab_size, shape)
        ids[(ids == padding)] = (padding + 3) % config.vocab_size
        batch = {"input_ids": np.where(mask == 1, ids, padding), "attention_mask": mask}
        if types > 1:
            seconds = np.arange(shape[1]) >= np.array(lengths)[:, None] // 2
            batch["token_type_ids"] = (seconds & (mask == 1)).astype(np.int64)
        yield batch


def run_model(tiny: Tiny, model: Any, batch: dict[str, NDArray[np.int64]]) -> NDArray[np.float32]:
    """The hidden states or logits of a batch."""
    import torch

    inputs = {name: torch.from_numpy(values) for name, values in batch.items()}
    if tiny.replies:
        inputs["decoder_input_ids"] = torch.zeros((len(batch["input_ids"]), 1), dtype=torch.int64)
    with torch.inference_mode():
        found = model(**inputs)
    output = found.logits if hasattr(found, "logits") else found.last_hidden_state
    if tiny.replies:
        output = output[:, 0, list(tiny.replies)]
    if tiny.hhem:
        output = output[:, 0]
    return np.asarray(output.numpy(), np.float32)


def write_golden(name: str, tiny: Tiny) -> int:
    """Write the folder of one model; returns its bytes."""
    folder = GOLDEN / name
    shutil.rmtree(folder, ignore_errors=True)
    model = build_model(tiny)
    model.save_pretrained(folder, **tiny.saving)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if tiny.hhem:
        publish_hhem(folder)
    arrays: dict[str, NDArray[Any]] = {}
    for number, batch in enumerate(draw_batches(tiny, model.config)):
        output = run_model(tiny, model, batch)
        if output.ndim == 3:
            kept = np.unique(np.linspace(0, output.shape[1] - 1, tiny.rows).astype(int))
            arrays[f"rows_{number}"] = kept.astype(np.int16)
            output = output[:, kept]
        arrays |= {f"{key}_{number}": values.astype(np.int16) for key, values in batch.items()}
        arrays[f"output_{number}"] = output
    np.savez_compressed(folder / "expected.npz", **arrays)  # type: ignore[arg-type]
    return sum(path.stat().st_size for path in folder.iterdir())


def publish_hhem(folder: Path) -> None:
    """Change a folder to the form in which HHEM is published: a prefix, and a configuration without sizes."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    save_file({f"t5.{name}": tensor for name, tensor in tensors.items()}, folder / "model.safetensors")
    config = {
        "architectures": ["HHEMv2ForSequenceClassification"],
        "foundation": "google/flan-t5-base",
        "id2label": {"0": "hallucinated", "1": "consistent"},
        "model_type": "HHEMv2Config",
        "prompt": "<pad> Is it true?\n\nPremise: {text1}\n\nHypothesis: {text2}",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to write; by default all")
    parser.add_argument("--list", action="store_true", help="print the names of the models")
    options = parser.parse_args()
    if options.list:
        print("\n".join(MODELS))
        return
    for name in options.names or MODELS:
        print(f"{name}: {write_golden(name, MODELS[name]):,} bytes")


if __name__ == "__main__":
    main()
