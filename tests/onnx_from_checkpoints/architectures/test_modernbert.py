from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
from tests.onnx_from_checkpoints.reference.modernbert import encode

HIDDEN, HEADS, INNER, VOCABULARY = 8, 2, 6, 20
CONFIG: dict[str, Any] = {
    "model_type": "modernbert",
    "architectures": ["ModernBertModel"],
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "num_hidden_layers": 3,
    "vocab_size": VOCABULARY,
    "global_attn_every_n_layers": 2,
    "local_attention": 6,
    "global_rope_theta": 900.0,
    "local_rope_theta": 50.0,
}
"""In the spelling of transformers 4."""


def make_weights(seed: int = 0) -> dict[str, NDArray[Any]]:
    draw = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.tok_embeddings.weight": (VOCABULARY, HIDDEN),
        "embeddings.norm.weight": (HIDDEN,),
        "final_norm.weight": (HIDDEN,),
    }
    for number in range(CONFIG["num_hidden_layers"]):
        layer = f"layers.{number}."
        shapes |= {f"{layer}attn.Wqkv.weight": (3 * HIDDEN, HIDDEN), f"{layer}attn.Wo.weight": (HIDDEN, HIDDEN)}
        shapes |= {f"{layer}mlp.Wi.weight": (2 * INNER, HIDDEN), f"{layer}mlp.Wo.weight": (HIDDEN, INNER)}
        shapes |= {f"{layer}{name}.weight": (HIDDEN,) for name in ("attn_norm", "mlp_norm")[number == 0 :]}
    return {name: (draw.standard_normal(shape) * 0.4 + 0.1).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", list_goldens("modernbert"))
def test_outputs_are_those_of_transformers(name: str) -> None:
    check_golden(name)


class TestWindows:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(1, 70), st.integers(1, 24), st.integers(0, 5))
    def test_hidden_states_are_those_of_the_definition(self, tokens: int, window: int, seed: int) -> None:
        config, weights = CONFIG | {"local_attention": window}, make_weights(seed)
        ids = np.random.default_rng(seed).integers(0, VOCABULARY, tokens)
        found = run(open_graph(build_graph(config, weights)), {"input_ids": ids[None]})
        assert_close(found[0], encode(config, weights, ids.tolist()).astype(np.float32), f"{tokens=} {window=}")

    @pytest.mark.parametrize("tokens", [4, 18, 19, 65])
    def test_texts_of_one_length_do_not_see_each_other(self, tokens: int) -> None:
        graph = open_graph(build_graph(CONFIG, make_weights()))
        ids = np.random.default_rng(1).integers(0, VOCABULARY, (3, tokens))
        together = run(graph, {"input_ids": ids})
        for text in range(3):
            assert_close(together[text : text + 1], run(graph, {"input_ids": ids[text : text + 1]}), f"text {text}")

    def test_a_window_wider_than_the_text_is_full_attention(self) -> None:
        ids = {"input_ids": np.arange(15)[None]}
        same = CONFIG | {"local_rope_theta": CONFIG["global_rope_theta"]}
        wide, full = ({"local_attention": 28}, {"global_attn_every_n_layers": 1})
        found = [run(open_graph(build_graph(same | one, make_weights())), ids) for one in (wide, full)]
        assert_close(found[0], found[1], "a wide window and full attention")

    def test_a_window_narrower_than_the_text_is_not(self) -> None:
        ids = {"input_ids": np.arange(15)[None]}
        same = CONFIG | {"local_rope_theta": CONFIG["global_rope_theta"]}
        narrow, full = ({"local_attention": 26}, {"global_attn_every_n_layers": 1})
        found = [run(open_graph(build_graph(same | one, make_weights())), ids) for one in (narrow, full)]
        assert np.abs(found[0] - found[1]).max() > 1e-4


def test_both_spellings_of_the_layers_and_angles_give_equal_graphs() -> None:
    new = {key: value for key, value in CONFIG.items() if not key.startswith(("global_", "local_rope"))}
    new |= {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}
    parts = {"full_attention": 900.0, "sliding_attention": 50.0}
    new |= {"rope_parameters": {kind: {"rope_type": "default", "rope_theta": one} for kind, one in parts.items()}}
    assert build_graph(new, make_weights()) == build_graph(CONFIG, make_weights())


@pytest.mark.parametrize("golden", ["modernbert-labels", "modernbert-sliding", "modernbert-biased"])
def test_a_prefix_of_the_encoder_is_found(golden: str) -> None:
    config, weights, _ = read_golden(golden)
    assert all(name.startswith(("model.", "head.", "classifier.")) for name in weights)
    bare = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
    assert build_graph(config, bare) is not None


def test_a_base_of_null_is_that_of_the_full_layers() -> None:
    null, same = ({"local_rope_theta": theta} for theta in (None, CONFIG["global_rope_theta"]))
    assert build_graph(CONFIG | null, make_weights()) == build_graph(CONFIG | same, make_weights())


def test_equal_weights_give_equal_bytes() -> None:
    first, second = (build_graph(CONFIG, dict(one)) for one in (make_weights(), reversed(make_weights().items())))
    assert first.SerializeToString() == second.SerializeToString()


class TestMessages:
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            (
                {"hidden_activation": "selu"},
                "config.json: 'hidden_activation' 'selu' is not supported; supported are: ",
            ),
            ({"classifier_activation": 3}, "'classifier_activation' 3 is not supported"),
            ({"classifier_pooling": "max"}, "'classifier_pooling' 'max' is not supported; supported are: cls, mean"),
            ({"layer_types": ["full_attention", "chunked", "full_attention"]}, "'layer_types' 'chunked' is not"),
            ({"layer_types": [["full_attention"]] * 3}, "'layer_types' ['full_attention'] is not"),
            ({"rope_scaling": {"rope_type": "yarn"}}, "'rope_scaling' {'rope_type': 'yarn'} is not supported"),
            ({"rope_parameters": {"rope_theta": 10.0}}, "'rope_parameters' must have the keys full_attention and"),
            (
                {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2}}},
                "'rope_parameters.full_attention.rope_type' 'linear' is not supported; supported are: default",
            ),
            ({"is_causal": True}, "config.json: 'is_causal' True is not supported"),
        ],
    )
    def test_what_is_not_supported_is_named(self, changed: Mapping[str, Any], message: str) -> None:
        with pytest.raises(UnsupportedModel, match=re.escape(message)):
            build_graph({**CONFIG, **changed}, make_weights())

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"local_attention": -1}, "config.json: 'local_attention' must be a whole number above 0, but is -1"),
            ({"global_attn_every_n_layers": 0}, "'global_attn_every_n_layers' must be a whole number above 0"),
            ({"global_rope_theta": "big"}, "'global_rope_theta' must be a number above 0, but is 'big'"),
            ({"global_rope_theta": None}, "'global_rope_theta' must be a number above 0, but is None"),
            ({"norm_eps": 0}, "'norm_eps' must be a number above 0, but is 0"),
            ({"norm_bias": "no"}, "'norm_bias' must be true or false, but is 'no'"),
            ({"layer_types": ["full_attention"]}, "'layer_types' must be a list of 3 words, one for each layer"),
            ({"num_attention_heads": 8}, "rotary positions turn pairs of values, but 1 values of a head are turned"),
            (
                {"rope_parameters": {"sliding_attention": {"rope_theta": 60.0}}},
                "'local_rope_theta' is 50.0, but 'rope_parameters.sliding_attention.rope_theta' is 60.0; remove one",
            ),
            ({"num_hidden_layers": 2}, "the weights have 3 layers ('layers.2'), but config.json has 2"),
            ({"num_hidden_layers": 4}, "the weights have no tensor 'layers.3.attn_norm.weight'"),
            ({"intermediate_size": 7}, "'layers.0.mlp.Wi.weight' has the shape [12, 8], but must have [14, 8]"),
            ({"attention_bias": True}, "the weights have no tensor 'layers.0.attn.Wqkv.bias'"),
            (
                {"rope_parameters": {"full_attention": 3}},
                "'rope_parameters.full_attention' must be an object, but is 3",
            ),
        ],
    )
    def test_what_does_not_fit_is_named(self, changed: Mapping[str, Any], message: str) -> None:
        with pytest.raises(DamagedFile, match=re.escape(message)):
            build_graph({**CONFIG, **changed}, make_weights())

    @pytest.mark.parametrize("name", ["layers.1.mlp.Wo.bias", "final_norm.bias", "embeddings.norm.bias"])
    def test_a_bias_that_the_configuration_does_not_have_is_refused(self, name: str) -> None:
        weights = make_weights() | {name: np.ones(HIDDEN, np.float32)}
        message = f"the weights have '{name}', which nothing in a model with this config.json reads"
        with pytest.raises(DamagedFile, match=re.escape(message)):
            build_graph(CONFIG, weights)

    def test_a_bias_of_the_head_is_refused(self) -> None:
        config, weights, _ = read_golden("modernbert-labels")
        weights["head.dense.bias"] = np.ones(config["hidden_size"], np.float32)
        with pytest.raises(DamagedFile, match=r"the weights have 'head\.dense\.bias', which"):
            build_graph(config, weights)
