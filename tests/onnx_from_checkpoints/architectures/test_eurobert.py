from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from onnx_from_checkpoints.architectures.eurobert import EuroBert
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Weights
from tests.onnx_from_checkpoints.architectures.golden import check_golden, list_goldens, read_golden

CONFIG: dict[str, Any] = {
    "architectures": ["EuroBertForMaskedLM"],
    "attention_bias": False,
    "clf_pooling": "late",
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 1152,
    "intermediate_size": 4096,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "model_type": "eurobert",
    "num_attention_heads": 18,
    "num_hidden_layers": 26,
    "num_key_value_heads": 6,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 250_000,
    "vocab_size": 128_256,
}
"""The keys of EuroBERT-610m, in the spelling of its own code."""


@pytest.mark.parametrize("name", list_goldens("eurobert"))
def test_outputs_are_those_of_transformers(name: str) -> None:
    check_golden(name)


def test_there_is_a_golden_of_each_head_and_pooling() -> None:
    assert len(list_goldens("eurobert")) == 5
    configs = [read_golden(name)[0] for name in list_goldens("eurobert")]
    assert {config["classifier_pooling"] for config in configs} == {"bos", "late", "mean"}


def test_both_spellings_give_equal_graphs() -> None:
    config, weights, _ = read_golden("eurobert-first")
    old = {key: value for key, value in config.items() if key not in ("rope_parameters", "classifier_pooling")}
    old |= {"rope_theta": 250_000, "rope_scaling": None, "clf_pooling": "bos"}
    assert build_graph(old, weights) == build_graph(config, weights)


def read(config: Mapping[str, Any]) -> EuroBert:
    return EuroBert(Settings(config), Weights({}), padded=False)


def test_the_published_settings_are_read() -> None:
    shape = read(CONFIG)
    assert (shape.heads, shape.shared, shape.size, shape.theta, shape.pooling) == (18, 6, 64, 250_000, "late")
    alone = read({key: value for key, value in CONFIG.items() if not key.startswith(("num_key", "head_dim"))})
    assert (alone.shared, alone.size) == (18, 64)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"is_decoder": True}, "'is_decoder' True is not supported; only false or null is"),
        ({"rope_scaling": {"type": "linear"}}, "'rope_scaling' {'type': 'linear'} is not supported; only null is"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "'rope_parameters.rope_type' 'yarn' is not supported"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "'rope_parameters.partial_rotary_factor' 0.5 is not"),
        ({"hidden_act": "quick_gelu"}, "'hidden_act' 'quick_gelu' is not supported; supported are: gelu"),
        ({"clf_pooling": "max"}, "'clf_pooling' 'max' is not supported; supported are: bos, late, mean"),
    ],
    ids=str,
)
def test_what_is_not_supported_is_named(changed: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedModel, match=re.escape(message)):
        read({**CONFIG, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_attention_heads": 7}, "'hidden_size' 1152 is not a multiple of 'num_attention_heads' 7"),
        ({"num_key_value_heads": 4}, "'num_attention_heads' 18 is not a multiple of 'num_key_value_heads' 4"),
        ({"head_dim": 63}, "rotary positions turn pairs of values, but 63 values of a head are turned"),
        ({"rope_theta": 0}, "'rope_theta' must be a number above 0, but is 0"),
        ({"rope_parameters": []}, None),
        ({"rope_parameters": [1]}, "'rope_parameters' must be an object, but is [1]"),
        ({"rope_parameters": {"rope_theta": 5}}, "'rope_theta' is 250000, but 'rope_parameters.rope_theta' is 5"),
        ({"classifier_pooling": "bos"}, "'clf_pooling' is 'late', but 'classifier_pooling' is 'bos'; remove one"),
        ({"rms_norm_eps": "x"}, "'rms_norm_eps' must be a number above 0"),
        ({"vocab_size": None}, "'vocab_size' is missing"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named(changed: Mapping[str, Any], message: str | None) -> None:
    if message is None:
        assert read({**CONFIG, **changed}).theta == read(CONFIG).theta
        return
    with pytest.raises(DamagedFile, match=re.escape(message)):
        read({**CONFIG, **changed})


def test_a_missing_theta_is_not_guessed() -> None:
    # transformers' default is 10,000 and that of EuroBERT's own code 250,000.
    with pytest.raises(DamagedFile, match="'rope_theta' is missing"):
        read({key: value for key, value in CONFIG.items() if key != "rope_theta"})


def test_weights_that_the_configuration_does_not_name_are_refused() -> None:
    config, weights, _ = read_golden("eurobert-tokens")
    with pytest.raises(DamagedFile, match="the weights have 2 layers"):
        build_graph({**config, "num_hidden_layers": 1}, weights)
    bias = {"model.layers.0.mlp.up_proj.bias": np.zeros(32, np.float32)}
    with pytest.raises(DamagedFile, match=r"have 'model\.layers\.0\.mlp\.up_proj\.bias', which nothing"):
        build_graph(config, weights | bias)
    weights.pop("model.layers.1.self_attn.k_proj.weight")
    with pytest.raises(DamagedFile, match=r"no tensor 'model\.layers\.1\.self_attn\.k_proj\.weight', .* \[8, 24\]"):
        build_graph(config, weights)
