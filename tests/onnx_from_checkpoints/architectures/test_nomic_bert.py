from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import build_graph
from tests.onnx_from_checkpoints.architectures.golden import (
    assert_close,
    check_golden,
    list_goldens,
    open_graph,
    read_golden,
    run,
)
from tests.onnx_from_checkpoints.reference.nomic_bert import encode

HIDDEN, VOCABULARY, INNER = 16, 20, 256
CONFIG: dict[str, Any] = {
    "activation_function": "swiglu",
    "architectures": ["NomicBertModel"],
    "causal": False,
    "layer_norm_epsilon": 1e-12,
    "max_trained_positions": 12,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "model_type": "nomic_bert",
    "n_embd": HIDDEN,
    "n_head": 2,
    "n_inner": INNER,
    "n_layer": 2,
    "n_positions": 48,
    "pad_vocab_size_multiple": 1,
    "parallel_block": False,
    "prenorm": False,
    "qkv_proj_bias": False,
    "rotary_emb_base": 1000,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None,
    "type_vocab_size": 2,
    "use_rms_norm": False,
    "vocab_size": VOCABULARY,
}
"""The keys of nomic-embed-text-v1.5."""
SCALED = {"rotary_scaling_factor": 2}


def make_weights(config: Mapping[str, Any] = CONFIG, inner: int = INNER) -> dict[str, NDArray[Any]]:
    draw = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"embeddings.word_embeddings.weight": (VOCABULARY, HIDDEN)}
    if config["type_vocab_size"]:
        shapes["embeddings.token_type_embeddings.weight"] = (config["type_vocab_size"], HIDDEN)
    norms = ["emb_ln"]
    for number in range(config["n_layer"]):
        layer = f"encoder.layers.{number}."
        norms += [f"{layer}norm1", f"{layer}norm2"]
        for name, outputs, inputs, key in (
            ("attn.Wqkv", 3 * HIDDEN, HIDDEN, "qkv_proj_bias"),
            ("attn.out_proj", HIDDEN, HIDDEN, "qkv_proj_bias"),
            ("mlp.fc11", inner, HIDDEN, "mlp_fc1_bias"),
            ("mlp.fc12", inner, HIDDEN, "mlp_fc1_bias"),
            ("mlp.fc2", HIDDEN, inner, "mlp_fc2_bias"),
        ):
            shapes[f"{layer}{name}.weight"] = (outputs, inputs)
            shapes |= {f"{layer}{name}.bias": (outputs,)} if config[key] else {}
    shapes |= {f"{norm}.{kind}": (HIDDEN,) for norm in norms for kind in ("weight", "bias")}
    return {name: (draw.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", list_goldens("nomic_bert"))
def test_outputs_are_those_of_transformers(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("tokens", [1, 2, 12, 13, 40])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        SCALED,
        {"qkv_proj_bias": True},
        {"mlp_fc1_bias": True},
        {"mlp_fc2_bias": True, "layer_norm_epsilon": 0.1},
        {"activation_function": "geglu"},
        {"activation_function": "glu"},
        {"rotary_emb_fraction": 0.5, "rotary_emb_base": 10},
        {"rotary_emb_fraction": 0.5} | SCALED,
        {"rotary_emb_interleaved": True},
        {"type_vocab_size": 1},
        {"type_vocab_size": 0},
    ],
    ids=str,
)
def test_hidden_states_are_those_of_the_definition(changed: Mapping[str, Any], tokens: int) -> None:
    config = {**CONFIG, **changed}
    weights = make_weights(config)
    ids = np.random.default_rng(tokens).integers(0, VOCABULARY, tokens)
    types = (np.arange(tokens) > tokens // 2).astype(np.int64) * (config["type_vocab_size"] > 1)
    inputs = {"input_ids": ids[None], "token_type_ids": types[None]}
    found = run(open_graph(build_graph(config, weights)), inputs)[0]
    assert_close(found, encode(config, weights, ids.tolist(), types.tolist()).astype(np.float32), str(changed))


def test_scaling_changes_only_texts_longer_than_those_of_training() -> None:
    plain, scaled = (open_graph(build_graph(CONFIG | one, make_weights())) for one in ({}, SCALED))
    for tokens, is_changed in ((12, False), (13, True)):
        inputs = {name: np.ones((1, tokens), np.int64) for name in ("input_ids", "token_type_ids")}
        inputs["input_ids"] = np.arange(tokens)[None]
        assert (np.abs(run(plain, inputs) - run(scaled, inputs)).max() > 1e-4) == is_changed


def test_the_inner_width_is_rounded_up_as_in_nomics_code() -> None:
    assert build_graph(CONFIG | {"n_inner": 200}, make_weights()) == build_graph(CONFIG, make_weights())


def test_the_vocabulary_is_rounded_up_to_its_multiple() -> None:
    rounded = build_graph(CONFIG | {"vocab_size": 17, "pad_vocab_size_multiple": 10}, make_weights())
    assert rounded == build_graph(CONFIG, make_weights())


def test_both_spellings_of_the_configuration_give_equal_graphs() -> None:
    new = {
        "model_type": "nomic_bert",
        "hidden_size": HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": INNER,
        "vocab_size": VOCABULARY,
        "layer_norm_eps": 1e-12,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000},
    }
    assert build_graph(new, make_weights()) == build_graph(CONFIG, make_weights())
    assert build_graph(CONFIG | new, make_weights()) == build_graph(CONFIG, make_weights())


def test_a_model_saved_again_by_transformers_is_read() -> None:
    """It keeps Nomic's keys and adds its own; the published window of 8,192 tokens contradicts nothing."""
    both = CONFIG | {"hidden_size": HIDDEN, "hidden_act": "silu", "max_position_embeddings": 2048, "n_positions": 8192}
    both |= {"rope_theta": 1000.0, "head_dim": 8}
    assert build_graph(both, make_weights()) == build_graph(CONFIG, make_weights())


def test_the_names_of_transformers_give_the_same_outputs() -> None:
    config, weights, cases = read_golden("nomic_bert-renamed")
    assert any(name.endswith("self_attn.q_proj.weight") for name in weights)
    own: dict[str, NDArray[Any]] = {}
    for name, tensor in weights.items():
        for old, new in (
            ("nomic_bert.layers", "bert.encoder.layers"),
            ("nomic_bert.", "bert."),
            ("embeddings.LayerNorm", "emb_ln"),
            ("self_attn.o_proj", "attn.out_proj"),
            ("post_attention_layernorm", "norm1"),
            ("post_mlp_layernorm", "norm2"),
            ("up_proj", "fc11"),
            ("gate_proj", "fc12"),
            ("down_proj", "fc2"),
        ):
            name = name.replace(old, new)
        own[name] = tensor
    for number in range(config["num_hidden_layers"]):
        layer = f"bert.encoder.layers.{number}."
        parts = [own.pop(f"{layer}self_attn.{part}_proj.weight") for part in "qkv"]
        own[f"{layer}attn.Wqkv.weight"] = np.concatenate(parts)
    first, second = (open_graph(build_graph(config, one)) for one in (weights, own))
    assert_close(run(first, cases[0].inputs), run(second, cases[0].inputs), "the two spellings of the names")


@pytest.mark.parametrize("every", [-1, 0, None])
def test_a_model_without_layers_of_experts_is_read(every: int | None) -> None:
    config, weights, _ = read_golden("nomic_bert")
    assert build_graph(config | {"moe_every_n_layers": every}, weights) == build_graph(config, weights)


class TestMessages:
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"moe_every_n_layers": 2}, "config.json: 'moe_every_n_layers' is not supported: this model has experts"),
            ({"prenorm": True}, "config.json: 'prenorm' True is not supported; only false or null is"),
            ({"use_rms_norm": True}, "'use_rms_norm' True is not supported"),
            ({"causal": True}, "'causal' True is not supported"),
            ({"norm_mlp": True}, "'norm_mlp' True is not supported"),
            ({"rotary_head_dim": True}, "'rotary_head_dim' True is not supported"),
            ({"rotary_emb_scale_base": 512}, "'rotary_emb_scale_base' 512 is not supported; only null is"),
            ({"num_heads_kv": 1}, "'num_heads_kv' 1 is not supported; only 2 or null is"),
            ({"head_dim": 4}, "'head_dim' 4 is not supported; only 8 or null is"),
            ({"rotary_emb_fraction": 0}, "'rotary_emb_fraction' is 0 or missing: learned positions are not supported"),
            ({"activation_function": "gelu"}, "'activation_function' 'gelu' is not supported; supported are: geglu"),
            ({"rope_parameters": {"rope_type": "yarn"}}, "'rope_parameters.rope_type' 'yarn' is not supported"),
            ({"rope_scaling": {"type": "linear"}}, "'rope_scaling' {'type': 'linear'} is not supported"),
        ],
    )
    def test_what_is_not_supported_is_named(self, changed: Mapping[str, Any], message: str) -> None:
        with pytest.raises(UnsupportedModel, match=re.escape(message)):
            build_graph({**CONFIG, **changed}, make_weights())

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"hidden_size": 32}, "config.json: 'hidden_size' is 32, but 'n_embd' is 16; remove one"),
            ({"layer_norm_eps": 1e-5}, "'layer_norm_eps' is 1e-05, but 'layer_norm_epsilon' is 1e-12; remove one"),
            ({"rope_theta": 10_000}, "'rope_theta' is 10000, but 'rotary_emb_base' is 1000; remove one"),
            ({"hidden_act": "gelu"}, "'hidden_act' 'gelu' contradicts 'activation_function' 'swiglu'; remove one"),
            ({"rotary_emb_fraction": 1.5}, "'rotary_emb_fraction' turns 12 of the 8 values of a head"),
            (
                {"rotary_emb_fraction": 0.125},
                "'rotary_emb_fraction' turns 1 of the 8 values of a head; it must turn an even",
            ),
            (
                SCALED | {"rotary_emb_fraction": 0.25},
                "scaled angles need at least 4 turned values of a head, but 2 are",
            ),
            (
                SCALED | {"rope_parameters": {"rope_type": "dynamic", "factor": 2}},
                "'rotary_scaling_factor' and 'rope_parameters' both scale; remove one",
            ),
            ({"rotary_scaling_factor": "2"}, "'rotary_scaling_factor' must be a number above 0, but is '2'"),
            (SCALED | {"max_trained_positions": 0}, "'max_trained_positions' must be a whole number above 0"),
            ({"n_inner": None}, "'n_inner' is missing"),
            ({"n_head": 3}, "'hidden_size' 16 is not a multiple of 'num_attention_heads' 3"),
            ({"n_layer": 1}, "the weights have 2 layers ('encoder.layers.1'), but config.json has 1"),
            ({"n_layer": 3}, "the weights have no tensor 'encoder.layers.2.attn.Wqkv.weight'"),
            ({"n_inner": 300}, "'encoder.layers.0.mlp.fc11.weight' has the shape [256, 16], but must have [512, 16]"),
            ({"vocab_size": 21}, "'embeddings.word_embeddings.weight' has the shape [20, 16], but must have [21, 16]"),
            ({"qkv_proj_bias": True}, "the weights have no tensor 'encoder.layers.0.attn.Wqkv.bias'"),
        ],
    )
    def test_what_does_not_fit_is_named(self, changed: Mapping[str, Any], message: str) -> None:
        with pytest.raises(DamagedFile, match=re.escape(message)):
            build_graph({**CONFIG, **changed}, make_weights())

    def test_a_bias_that_the_configuration_does_not_have_is_refused(self) -> None:
        message = "the weights have 'encoder.layers.0.attn.Wqkv.bias', 'encoder.layers.0.attn.out_proj.bias', "
        with pytest.raises(DamagedFile, match=re.escape(message)):
            build_graph(CONFIG, make_weights(CONFIG | {"qkv_proj_bias": True}))

    def test_a_missing_bias_key_means_a_bias_as_in_nomics_code(self) -> None:
        config = {key: value for key, value in CONFIG.items() if key != "qkv_proj_bias"}
        with pytest.raises(DamagedFile, match=r"no tensor 'encoder\.layers\.0\.attn\.Wqkv\.bias'"):
            build_graph(config, make_weights())
