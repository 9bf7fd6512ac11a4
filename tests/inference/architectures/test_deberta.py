from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.graph import build_graph
from tests.inference.architectures.golden import (
    assert_close,
    check_golden,
    list_goldens,
    open_graph,
    read_golden,
    run,
)
from tests.reference.deberta import classify, classify_tokens, encode

HIDDEN, HEADS, INNER, VOCABULARY, LABELS = 8, 2, 6, 20, 3
V3: dict[str, Any] = {
    "model_type": "deberta-v2",
    "architectures": ["DebertaV2Model"],
    "hidden_size": HIDDEN,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "num_hidden_layers": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 18,
    "max_relative_positions": -1,
    "relative_attention": True,
    "position_buckets": 8,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "v3": {},
    "own projections": {"share_att_key": False},
    "keys only": {"pos_att_type": ["c2p"], "share_att_key": False},
    "queries only": {"pos_att_type": ["p2c"]},
    "no terms": {"pos_att_type": []},
    "no relative positions": {"relative_attention": False, "position_biased_input": True},
    "a row for each distance": {"position_buckets": -1, "max_relative_positions": 5},
    "embeddings as they are": {"norm_rel_ebd": "none"},
    "types and positions": {"type_vocab_size": 2, "position_biased_input": True},
    "one type": {"type_vocab_size": 1},
    "narrow embeddings": {"embedding_size": 5},
    "a convolution": {"conv_kernel_size": 3, "conv_act": "gelu"},
    "a convolution in groups": {"conv_kernel_size": 5, "conv_groups": 4},
    "one layer with a convolution": {"num_hidden_layers": 1, "conv_kernel_size": 3},
    "other activations": {"hidden_act": "relu", "pooler_hidden_act": "tanh", "conv_kernel_size": 1, "conv_act": "relu"},
    "another epsilon": {"layer_norm_eps": 0.1},
}


def make_weights(config: dict[str, Any], seed: int = 0) -> dict[str, NDArray[Any]]:
    """All tensors that config.json asks for, and both heads."""
    draw = np.random.default_rng(seed)
    hidden = config["hidden_size"]
    width = config.get("embedding_size", hidden)
    buckets = config["position_buckets"]
    rows = 2 * (buckets if buckets > 0 else config["max_relative_positions"])
    shapes: dict[str, tuple[int, ...]] = {"embeddings.word_embeddings.weight": (VOCABULARY, width)}
    if config["position_biased_input"]:
        shapes["embeddings.position_embeddings.weight"] = (config["max_position_embeddings"], width)
    if config["type_vocab_size"]:
        shapes["embeddings.token_type_embeddings.weight"] = (config["type_vocab_size"], width)
    if width != hidden:
        shapes["embeddings.embed_proj.weight"] = (hidden, width)
    norms = ["embeddings.LayerNorm"]
    if config["relative_attention"]:
        shapes["encoder.rel_embeddings.weight"] = (rows, hidden)
        norms += ["encoder.LayerNorm"] if config["norm_rel_ebd"] == "layer_norm" else []
    size = config.get("conv_kernel_size", 0)
    if size:
        norms.append("encoder.conv.LayerNorm")
        shapes["encoder.conv.conv.weight"] = (hidden, hidden // config.get("conv_groups", 1), size)
        shapes["encoder.conv.conv.bias"] = (hidden,)
    linear: dict[str, tuple[int, ...]] = {}
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}."
        own = {"c2p": "pos_key_proj", "p2c": "pos_query_proj"}
        parts = ["query_proj", "key_proj", "value_proj"]
        parts += [] if config["share_att_key"] else [own[term] for term in config["pos_att_type"]]
        linear |= {f"{layer}attention.self.{part}": (hidden, hidden) for part in parts}
        linear |= {f"{layer}attention.output.dense": (hidden, hidden)}
        linear |= {f"{layer}intermediate.dense": (INNER, hidden), f"{layer}output.dense": (hidden, INNER)}
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    for name, shape in linear.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    shapes |= {f"{name}.{kind}": (hidden,) for name in norms for kind in ("weight", "bias")}
    shapes = {f"deberta.{name}": shape for name, shape in shapes.items()}
    for name, outputs in (("pooler.dense", hidden), ("classifier", LABELS)):
        shapes |= {f"{name}.weight": (outputs, hidden), f"{name}.bias": (outputs,)}
    return {name: (draw.standard_normal(shape) * 0.4 + 0.1).astype(np.float32) for name, shape in shapes.items()}


def draw_text(seed: int, tokens: int, types: int) -> dict[str, NDArray[np.int64]]:
    draw = np.random.default_rng(seed)
    kinds = draw.integers(0, max(1, types), (1, tokens))
    return {"input_ids": draw.integers(0, VOCABULARY, (1, tokens)), "token_type_ids": kinds}


@pytest.mark.parametrize("name", list_goldens("deberta"))
def test_outputs_are_those_of_transformers(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("variant", VARIANTS)
class TestEachVariant:
    @settings(max_examples=8, deadline=None)
    @given(tokens=st.integers(1, 30), seed=st.integers(0, 5))
    def test_hidden_states_are_those_of_the_definition(self, variant: str, tokens: int, seed: int) -> None:
        config = V3 | VARIANTS[variant]
        tokens = min(tokens, config["max_position_embeddings"]) if config["position_biased_input"] else tokens
        weights, text = make_weights(config, seed), draw_text(seed, tokens, config["type_vocab_size"])
        expected = encode(config, weights, *(text[name][0].tolist() for name in ("input_ids", "token_type_ids")))
        assert_close(run(open_graph(build_graph(config, weights)), text)[0], expected, f"{variant}: {tokens} tokens")

    @pytest.mark.parametrize("tokens", [1, 2, 17])
    @pytest.mark.parametrize(
        ("task", "define"), [("classification", classify), ("token_classification", classify_tokens)]
    )
    def test_logits_are_those_of_the_definition(self, variant: str, tokens: int, task: Any, define: Any) -> None:
        config = V3 | VARIANTS[variant]
        weights, text = make_weights(config), draw_text(tokens, tokens, config["type_vocab_size"])
        expected = define(config, weights, *(text[name][0].tolist() for name in ("input_ids", "token_type_ids")))
        assert_close(run(open_graph(build_graph(config, weights, task=task)), text)[0], expected, variant)

    @pytest.mark.parametrize("task", ["embedding", "classification"])
    def test_padding_and_other_texts_change_nothing(self, variant: str, task: Any) -> None:
        config = V3 | VARIANTS[variant]
        graph = open_graph(build_graph(config, make_weights(config), task=task, padded=True))
        ids = np.random.default_rng(3).integers(1, VOCABULARY, (2, 17))
        mask = (np.arange(17) < np.array([[9], [17]])).astype(np.int64)
        inputs = {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": mask * 0}
        together = run(graph, inputs)
        alone = run(graph, {name: values[:1, :9] for name, values in inputs.items()})
        assert_close(together[0] if task == "classification" else together[0, :9], alone[0], variant)


def test_texts_of_one_length_do_not_see_each_other() -> None:
    graph = open_graph(build_graph(V3, make_weights(V3)))
    ids = np.random.default_rng(1).integers(0, VOCABULARY, (3, 21))
    together = run(graph, {"input_ids": ids})
    for text in range(3):
        assert_close(together[text : text + 1], run(graph, {"input_ids": ids[text : text + 1]}), f"text {text}")


@pytest.mark.parametrize("task", ["embedding", "classification", "token_classification"])
def test_the_bits_of_a_text_do_not_depend_on_the_other_texts_of_its_batch(task: Any) -> None:
    config = V3 | {"hidden_size": 64}
    weights = make_weights(config)
    graph = open_graph(build_graph(config, weights, task=task))
    for tokens in (1, 2, 7, 33):
        ids = np.random.default_rng(tokens).integers(0, VOCABULARY, (5, tokens))
        together = run(graph, {"input_ids": ids})
        for text in range(5):
            alone = run(graph, {"input_ids": ids[text : text + 1]})
            assert alone.tobytes() == together[text : text + 1].tobytes(), f"{task}: text {text} of {tokens} tokens"


def test_far_distances_share_their_embeddings_but_near_ones_do_not() -> None:
    """The last row changes the outputs if and only if the text is long enough: it is that of all distances from 11."""
    weights, name = make_weights(V3), "deberta.encoder.rel_embeddings.weight"
    turned = weights[name].copy()
    turned[-1] = turned[-1, ::-1]
    first, second = (open_graph(build_graph(V3, one)) for one in (weights, {**weights, name: turned}))
    for tokens, same in ((11, True), (12, False), (40, False)):
        ids = {"input_ids": np.arange(tokens)[None] % VOCABULARY}
        assert (np.abs(run(first, ids) - run(second, ids)).max() < 1e-5) == same, tokens


@pytest.mark.parametrize(("changed", "inputs"), [({}, []), ({"type_vocab_size": 2}, ["token_type_ids"])])
def test_only_models_with_several_token_types_read_them(changed: dict[str, Any], inputs: list[str]) -> None:
    graph = build_graph(V3 | changed, make_weights(V3 | changed)).graph
    assert [one.name for one in graph.input] == ["input_ids", *inputs]


def test_a_prefix_changes_nothing() -> None:
    weights = make_weights(V3)
    bare = {name.removeprefix("deberta."): tensor for name, tensor in weights.items()}
    assert build_graph(V3, bare) == build_graph(V3, weights)


@pytest.mark.parametrize("spelled", ["p2c|c2p", "c2p | p2c", ["c2p", "p2c"]])
def test_both_spellings_of_the_terms_give_equal_graphs(spelled: Any) -> None:
    assert build_graph(V3 | {"pos_att_type": spelled}, make_weights(V3)) == build_graph(V3, make_weights(V3))


@pytest.mark.parametrize("task", ["embedding", "classification"])
def test_the_shapes_of_products_with_distances_are_known(task: Any) -> None:
    """ONNX Runtime searches all values of unknown shape for memory to use again: a large model loads for seconds."""
    graph = build_graph(V3, make_weights(V3), task=task).graph
    known, held = ({one.name for one in some} for some in (graph.value_info, graph.initializer))
    taken = {node.output[0] for node in graph.node if node.op_type == "Slice" and node.input[0] in held}
    products = {node.input[0] for node in graph.node if node.op_type == "GatherElements"}
    assert len(taken) == len(products) == V3["num_hidden_layers"] * HEADS * 2
    assert taken | products <= known


def test_equal_weights_give_equal_bytes() -> None:
    first, second = (build_graph(V3, dict(one)) for one in (make_weights(V3), reversed(make_weights(V3).items())))
    assert first.SerializeToString() == second.SerializeToString()


class TestMessages:
    @pytest.mark.parametrize(
        ("changed", "lost", "message"),
        [
            ({}, "deberta.encoder.rel_embeddings.weight", "no tensor 'deberta.encoder.rel_embeddings.weight'"),
            ({}, "deberta.encoder.LayerNorm.weight", "no tensor 'deberta.encoder.LayerNorm.weight'"),
            ({}, "pooler.dense.weight", "no tensor 'pooler.dense.weight'"),
            ({"share_att_key": False}, "", "no tensor 'deberta.encoder.layer.0.attention.self.pos_key_proj.weight'"),
            ({"position_buckets": 6}, "", "'deberta.encoder.rel_embeddings.weight' has the shape [16, 8], but must"),
            ({"position_biased_input": True}, "", "no tensor 'deberta.embeddings.position_embeddings.weight'"),
            ({"embedding_size": 4}, "", "'deberta.embeddings.word_embeddings.weight' has the shape [20, 8], but must"),
            ({"num_hidden_layers": 1}, "", "the weights have 2 layers ('deberta.encoder.layer.1')"),
        ],
    )
    def test_weights_that_do_not_fit_config_json(self, changed: dict[str, Any], lost: str, message: str) -> None:
        weights = {name: tensor for name, tensor in make_weights(V3).items() if name != lost}
        with pytest.raises(DamagedFile, match=re.escape(message)):
            build_graph(V3 | changed, weights, task="classification")

    @pytest.mark.parametrize(
        ("made", "read", "message"),
        [
            ({"conv_kernel_size": 3}, {}, "a tensor 'deberta.encoder.conv.LayerNorm.bias', but a model with this"),
            ({"share_att_key": False}, {}, "'deberta.encoder.layer.0.attention.self.pos_key_proj.bias', but a model"),
            ({}, {"norm_rel_ebd": "none"}, "a tensor 'deberta.encoder.LayerNorm.bias', but a model"),
        ],
    )
    def test_weights_that_config_json_leaves_out(
        self, made: dict[str, Any], read: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(DamagedFile, match=re.escape(message)):
            build_graph(V3 | read, make_weights(V3 | made))


def test_goldens_cover_each_head_and_a_text_beyond_the_most_positions() -> None:
    read = [read_golden(name) for name in list_goldens("deberta")]
    heads = {config["architectures"][0] for config, _, _ in read}
    assert heads == {f"DebertaV2{head}" for head in ("Model", "ForSequenceClassification", "ForTokenClassification")}
    lengths = {case.inputs["input_ids"].shape[1] for _, _, cases in read for case in cases}
    assert max(lengths) > read[0][0]["max_position_embeddings"]
