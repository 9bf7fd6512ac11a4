""""""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnx_from_checkpoints.architectures.shared.contract import WantedGraph
from onnx_from_checkpoints.architectures.t5 import T5, find_hhem_settings
from onnx_from_checkpoints.errors import CheckpointError, DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Weights
from tests.onnx_from_checkpoints.architectures.golden import (
    REPLIES,
    check_golden,
    list_goldens,
    open_graph,
    read_golden,
    run,
)
from tests.onnx_from_checkpoints.reference.t5 import encode, reply
from tests.onnx_from_checkpoints.t5_models import VOCABULARY, make_config, make_weights

tokens = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=24)


def compute(model: onnx.ModelProto, ids: list[int]) -> NDArray[np.float32]:
    return np.asarray(run(open_graph(model), {"input_ids": np.array([ids], np.int64)})[0])


@pytest.mark.parametrize("name", list_goldens("t5", "umt5"))
def test_outputs_are_those_of_transformers(name: str) -> None:
    check_golden(name, replies=REPLIES.get(name, ()))


def test_all_goldens_are_small() -> None:
    names = list_goldens("t5", "umt5")
    assert len(names) == 6
    assert all(case.inputs["input_ids"].shape[1] > 128 for name in names for case in read_golden(name)[2][-1:])


@settings(max_examples=40)
@given(
    ids=tokens,
    seed=st.integers(0, 5),
    kind=st.sampled_from(["t5", "mt5", "umt5"]),
    activation=st.sampled_from(["relu", "gated-gelu", "gated-silu", "silu"]),
)
def test_hidden_states_are_those_of_the_definition(ids: list[int], seed: int, kind: str, activation: str) -> None:
    config = make_config(model_type=kind, feed_forward_proj=activation)
    weights = make_weights(config, seed)
    found = compute(build_graph(config, take_encoder(weights)), ids)
    np.testing.assert_allclose(found, encode(config, weights, ids), atol=2e-4)


@settings(max_examples=40)
@given(ids=tokens, seed=st.integers(0, 5), tied=st.booleans(), start=st.integers(0, 9))
def test_a_reply_is_that_of_the_definition(ids: list[int], seed: int, tied: bool, start: int) -> None:
    config = make_config(tie_word_embeddings=tied, decoder_start_token_id=start, feed_forward_proj="gated-gelu")
    weights = make_weights(config, seed)
    if tied:
        del weights["lm_head.weight"]
    found = compute(build_graph(config, weights, task="classification", replies=(7, 2)), ids)
    np.testing.assert_allclose(found, reply(config, weights, ids)[[7, 2]], atol=2e-4)


def test_padding_does_not_matter_even_if_all_scores_are_extreme() -> None:
    config = make_config()
    weights = make_weights(config, spread=3.0)
    padded = open_graph(build_graph(config, weights, padded=True, replies=(7, 2)))
    ids = np.arange(12).reshape(2, 6)
    found = run(padded, {"input_ids": ids, "attention_mask": np.array([[1, 1, 1, 0, 0, 0], [1] * 6])})
    alone = compute(build_graph(config, weights, replies=(7, 2)), [0, 1, 2])
    np.testing.assert_allclose(found[0], alone, rtol=1e-4)


def test_equal_models_give_equal_bytes() -> None:
    config = make_config()
    one, two = (build_graph(config, make_weights(config), replies=(1, 2)) for _ in range(2))
    assert one.SerializeToString(deterministic=True) == two.SerializeToString(deterministic=True)


def test_a_decoder_keeps_only_the_rows_of_the_replies() -> None:
    graph = build_graph(make_config(), make_weights(make_config()), replies=(4, 2)).graph
    kept = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    assert kept["replies"] == (8, 2)
    assert "lm_head.weight" not in kept


def test_embeddings_have_either_name_or_both() -> None:
    config = make_config()
    alone = take_encoder(make_weights(config))
    both = alone | {"encoder.embed_tokens.weight": alone["shared.weight"]}
    other = {name: values for name, values in both.items() if name != "shared.weight"}
    expected = compute(build_graph(config, alone), [1, 2])
    for weights in (both, other):
        assert np.array_equal(compute(build_graph(config, weights), [1, 2]), expected)


def test_the_encoder_of_a_model_that_writes_text_is_not_taken_for_an_embedding_model() -> None:
    config = make_config()
    with pytest.raises(DamagedFile, match=r"the weights have 'decoder\.block\.0\..* and \d+ more, which nothing"):
        build_graph(config, make_weights(config))


def build(config: dict[str, Any], **changes: Any) -> onnx.ModelProto:
    gating = {key: config[key] for key in ("feed_forward_proj", "is_gated_act") if key in config}
    weights = make_weights(make_config(**gating))
    return build_graph(config, weights if "replies" in changes else take_encoder(weights), **changes)


def take_encoder(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in weights.items() if not name.startswith(("decoder", "lm_head"))}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"feed_forward_proj": "gated-mish"}, "'feed_forward_proj' 'mish' is not supported; supported are: gelu, "),
        ({"dense_act_fn": "mish"}, "'dense_act_fn' 'mish' is not supported; supported are: gelu, gelu_accurate"),
        ({"feed_forward_proj": "geglu-relu"}, "'feed_forward_proj' must be like 'relu' or 'gated-gelu'"),
        ({"is_gated_act": "yes"}, "'is_gated_act' must be true or false"),
        ({"relative_attention_num_buckets": 6}, "'relative_attention_num_buckets' 6 must be a multiple of 4"),
        ({"relative_attention_max_distance": 2}, "'relative_attention_max_distance' 2 more than a quarter"),
        ({"layer_norm_epsilon": "small"}, "'layer_norm_epsilon' must be a number from 0 to 1"),
        ({"tie_word_embeddings": 1}, "'tie_word_embeddings' must be true or false"),
        ({"decoder_start_token_id": 99}, "'decoder_start_token_id' must be a token's id, but is 99"),
        ({"num_decoder_layers": 0}, "'num_decoder_layers' must be a whole number above 0"),
        ({"num_layers": None}, "'num_layers' is missing"),
        ({"d_kv": 4}, r"SelfAttention\.q\.weight' has the shape \[6, 8\], but must have \[8, 8\]"),
        ({"num_layers": 1}, r"the weights have 2 layers \('encoder\.block\.1'\), but config\.json has 1"),
        ({"num_decoder_layers": 1}, r"the weights have 2 layers \('decoder\.block\.1'\), but config\.json has 1"),
        ({"num_layers": 3}, r"have no tensor 'encoder\.block\.2\.layer\.0\.layer_norm\.weight'"),
        ({"relative_attention_num_buckets": 12}, r"relative_attention_bias\.weight' has the shape \[8, 2\]"),
    ],
)
def test_what_does_not_fit_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        build(make_config(**keys), replies=(1, 2))


def test_a_gate_has_a_key_of_its_own() -> None:
    by_name, by_key = build(make_config(feed_forward_proj="gated-relu")), build(make_config(is_gated_act=True))
    assert np.array_equal(compute(by_key, [1, 2, 3]), compute(by_name, [1, 2, 3]))


@pytest.mark.parametrize(("key", "other"), [("dense_act_fn", "silu"), ("layer_norm_epsilon", 0.5)])
def test_each_key_changes_the_numbers(key: str, other: Any) -> None:
    plain, changed = compute(build(make_config()), [1, 2, 3]), compute(build(make_config(**{key: other})), [1, 2, 3])
    assert not np.allclose(plain, changed, atol=1e-3)


def test_a_config_of_newer_transformers_says_the_scale_in_its_own_key() -> None:
    keys = {"tie_word_embeddings": True, "scale_decoder_outputs": False}
    expected = compute(build(make_config(tie_word_embeddings=False), replies=(1, 2)), [1, 2])
    assert np.array_equal(compute(build(make_config(**keys), replies=(1, 2)), [1, 2]), expected)


def test_heads_on_the_decoder_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="T5ForConditionalGeneration with `replies`"):
        build(make_config(architectures=["T5ForSequenceClassification"]))
    with pytest.raises(UnsupportedModel, match="replies: are not supported for umt5, only for t5"):
        build(make_config(model_type="umt5"), replies=(1, 2))


def test_replies_are_refused_for_models_that_write_nothing() -> None:
    with pytest.raises(UnsupportedModel, match="replies: a bert model writes no text"):
        build_graph({"model_type": "bert"}, {}, replies=(1, 2))


@pytest.mark.parametrize("foundation", [None, "google/t5-v1_1-base", 3])
def test_an_unknown_foundation_of_hhem_is_refused(foundation: object) -> None:
    config, weights, _ = read_golden("t5-hhem")
    with pytest.raises(UnsupportedModel, match=r"'foundation' .* supported are: flan-t5-small, flan-t5-base"):
        build_graph({**config, "foundation": foundation}, weights)


@pytest.mark.parametrize("foundation", ["models/flan-t5-base/", "flan-t5-large"])
def test_a_local_foundation_of_hhem_is_known_by_its_name(foundation: str) -> None:
    config, weights, cases = read_golden("t5-hhem")
    found = compute(build_graph({**config, "foundation": foundation}, weights), [1, 2])
    assert np.array_equal(found, compute(build_graph(config, weights), [1, 2]))
    assert cases[0].output.shape[-1] == 2


def test_a_hhem_without_a_tensor_is_refused() -> None:
    config, weights, _ = read_golden("t5-hhem")
    lost = "t5.transformer.encoder.block.1.layer.0.SelfAttention.q.weight"
    with pytest.raises(DamagedFile, match=re.escape(lost)):
        build_graph(config, {name: values for name, values in weights.items() if name != lost})


@pytest.mark.parametrize("name", list_goldens("t5"))
def test_a_tensor_that_nothing_reads_is_refused(name: str) -> None:
    """An adapter (LoRA) would otherwise be left out of the numbers."""
    config, weights, _ = read_golden(name)
    query = next(one for one in weights if one.endswith("encoder.block.0.layer.0.SelfAttention.q.weight"))
    adapter = query.replace("q.weight", "q.lora_A.weight")
    with pytest.raises(DamagedFile, match=re.escape(f"the weights have '{adapter}', which")):
        build_graph(config, {**weights, adapter: weights[query]}, replies=REPLIES.get(name, ()))


FLAN: dict[str, Any] = {
    "model_type": "t5",
    "d_model": 1024,
    "d_ff": 2816,
    "d_kv": 64,
    "num_heads": 16,
    "num_layers": 24,
    "num_decoder_layers": 24,
    "vocab_size": 32128,
    "feed_forward_proj": "gated-gelu",
    "relative_attention_num_buckets": 32,
    "tie_word_embeddings": False,
}
"""The keys of flan-t5-large."""


def read_shape(config: Settings) -> T5:
    return T5(config, Weights({}), WantedGraph("embedding"))


def test_the_shape_of_flan_t5_large() -> None:
    shape = read_shape(Settings(FLAN))
    assert (shape.inner, shape.gated, shape.scales_output, shape.start) == (1024, True, False, 0)
    assert shape.activation == "gelu_new"


def test_the_width_of_attention_need_not_be_that_of_the_model() -> None:
    assert read_shape(Settings(FLAN | {"d_kv": 128})).inner == 2048


def test_the_first_t5_has_relu_and_a_scaled_output() -> None:
    first = {key: FLAN[key] for key in FLAN.keys() - {"feed_forward_proj", "tie_word_embeddings", "num_decoder_layers"}}
    shape = read_shape(Settings(first))
    assert (shape.activation, shape.gated, shape.scales_output, shape.decoder_layers) == ("relu", False, True, 24)


def test_only_umt5_has_a_bias_in_each_layer() -> None:
    kinds = ("t5", "mt5", "umt5")
    assert [read_shape(Settings(FLAN | {"model_type": kind})).biased_layers for kind in kinds] == [
        False,
        False,
        True,
    ]


def test_the_sizes_of_hhem_are_those_of_its_tensors() -> None:
    config, tensors, _ = read_golden("t5-hhem")
    weights = Weights(tensors, "encoder.block.0.layer.0.SelfAttention.q.weight")
    shape = read_shape(find_hhem_settings(Settings(config), weights))
    assert (shape.head_size, shape.heads, shape.layers, shape.gated) == (64, 2, 2, True)


@pytest.mark.parametrize("key", ["d_model", "d_ff", "num_heads", "num_layers", "vocab_size"])
def test_a_missing_size_is_named(key: str) -> None:
    with pytest.raises(Exception, match=f"config.json: '{key}' is missing"):
        read_shape(Settings({other: value for other, value in FLAN.items() if other != key}))
