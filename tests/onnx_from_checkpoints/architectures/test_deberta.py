""""""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnx_from_checkpoints.architectures.deberta import Convolution, Deberta, find_rows
from onnx_from_checkpoints.errors import CheckpointError, DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Weights
from tests.onnx_from_checkpoints.architectures.golden import (
    assert_close,
    check_golden,
    list_goldens,
    open_graph,
    read_golden,
    run,
)
from tests.onnx_from_checkpoints.reference.deberta import classify, classify_tokens, encode, find_bucket

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


TENSORS_OF_HEADS: dict[str, tuple[str, ...]] = {
    "embedding": (),
    "classification": ("pooler.dense", "classifier"),
    "token_classification": ("classifier",),
}


def make_weights(config: dict[str, Any], seed: int = 0, task: str = "embedding") -> dict[str, NDArray[Any]]:
    """All tensors that config.json and the task ask for."""
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
    for name in TENSORS_OF_HEADS[task]:
        outputs = LABELS if name == "classifier" else hidden
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
        weights, text = make_weights(config, task=task), draw_text(tokens, tokens, config["type_vocab_size"])
        expected = define(config, weights, *(text[name][0].tolist() for name in ("input_ids", "token_type_ids")))
        assert_close(run(open_graph(build_graph(config, weights, task=task)), text)[0], expected, variant)

    @pytest.mark.parametrize("task", ["embedding", "classification"])
    def test_padding_and_other_texts_change_nothing(self, variant: str, task: Any) -> None:
        config = V3 | VARIANTS[variant]
        graph = open_graph(build_graph(config, make_weights(config, task=task), task=task, padded=True))
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
    weights = make_weights(config, task=task)
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
    graph = build_graph(V3, make_weights(V3, task=task), task=task).graph
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
        weights = {name: tensor for name, tensor in make_weights(V3, task="classification").items() if name != lost}
        with pytest.raises(DamagedFile, match=re.escape(message)):
            build_graph(V3 | changed, weights, task="classification")

    @pytest.mark.parametrize(
        ("made", "read", "message"),
        [
            (
                {"conv_kernel_size": 3},
                {},
                "'deberta.encoder.conv.LayerNorm.bias', 'deberta.encoder.conv.LayerNorm.weight', ",
            ),
            ({"share_att_key": False}, {}, "'deberta.encoder.layer.0.attention.self.pos_key_proj.bias', 'deberta"),
            (
                {},
                {"norm_rel_ebd": "none"},
                "'deberta.encoder.LayerNorm.bias', 'deberta.encoder.LayerNorm.weight', which",
            ),
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


CONFIG: dict[str, Any] = {
    "model_type": "deberta-v2",
    "hidden_size": 12,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "vocab_size": 40,
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "position_buckets": 256,
    "max_position_embeddings": 512,
}


class TestRows:
    def test_each_distance_has_its_own_row_without_buckets(self) -> None:
        assert find_rows(3, -1).tolist() == [0, 1, 2, 3, 4, 5, 5]

    def test_published_models_have_256_buckets_for_512_positions(self) -> None:
        rows = dict(zip(range(-512, 513), find_rows(512, 256).tolist(), strict=True))
        assert [rows[distance] for distance in (-512, -511, -510, -128, -1, 0, 1, 128)] == [
            0, 1, 1, 128, 255, 256, 257, 384
        ]  # fmt: skip
        # log(129 / 128) / log(511 / 128) * 127 is 0.71, log(130 / 128) 1.42, log(132 / 128) 2.82
        assert [rows[distance] for distance in (129, 130, 131, 132)] == [385, 386, 387, 387]
        assert [rows[distance] for distance in (510, 511, 512)] == [511, 511, 511]

    def test_a_distance_on_the_border_of_a_bucket_is_in_that_of_pytorch(self) -> None:
        """log(21 / 3) / log(147 / 3) * 2 is exactly 1; a logarithm that is off by one bit gives the next bucket."""
        assert find_rows(148, 6)[148 + 21] == 6 + 4

    @given(st.sampled_from([(18, 8), (40, 16), (512, 256), (100, 12), (9, 4), (33, 2)]), st.data())
    def test_rows_are_those_of_the_definition(self, sizes: tuple[int, int], data: st.DataObject) -> None:
        reach, buckets = sizes
        distance = data.draw(st.integers(-reach, reach))
        expected = min(2 * buckets - 1, max(0, find_bucket(distance, buckets, reach) + buckets))
        assert find_rows(reach, buckets)[distance + reach] == expected

    @given(st.integers(2, 40), st.integers(1, 12))
    def test_rows_never_decrease(self, reach: int, half: int) -> None:
        rows = find_rows(reach + half, 2 * half)
        assert (np.diff(rows) >= 0).all()
        assert rows.min() >= 0
        assert rows.max() < 4 * half


def read(config: dict[str, Any]) -> Deberta:
    return Deberta(Settings(config), Weights({}), padded=False)


def test_defaults_are_those_of_transformers() -> None:
    plain = {key: value for key, value in CONFIG.items() if key not in ("relative_attention", "pos_att_type")}
    shape = read(plain)
    assert (shape.positions, shape.types, shape.embedding, shape.epsilon) == (512, 0, 12, 1e-7)
    assert (shape.distances, shape.convolution, shape.activation, shape.pooled) == (None, None, "gelu", "gelu")
    assert read(CONFIG | {"conv_kernel_size": 3}).convolution == Convolution(3, 1, "tanh")
    distances = read(CONFIG).distances
    assert distances
    assert (distances.shared, distances.normalized, distances.embeddings, distances.reach) == (False, False, 512, 512)


@pytest.mark.parametrize(("terms", "count"), [([], 1), (["c2p"], 2), ("p2c", 2), ("c2p|p2c", 3), ("none", 1)])
@pytest.mark.parametrize("relative", [True, False])
def test_scores_shrink_with_the_number_of_terms(terms: Any, count: int, relative: bool) -> None:
    """transformers counts the terms even if relative_attention is false."""
    shape = read(CONFIG | {"pos_att_type": terms, "relative_attention": relative})
    assert shape.scale == pytest.approx(1 / math.sqrt(6 * count))
    assert (shape.distances is None) == (not relative or count == 1)


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        (
            {"pos_att_type": "c2p|p2p"},
            UnsupportedModel,
            "config.json: 'pos_att_type' has 'p2p', which is not supported",
        ),
        ({"pos_att_type": 3}, DamagedFile, "config.json: 'pos_att_type' must be a list of c2p and p2c, but is 3"),
        (
            {"norm_rel_ebd": "rms"},
            UnsupportedModel,
            "config.json: 'norm_rel_ebd' 'rms' is not supported; supported are: ",
        ),
        ({"position_buckets": 7}, UnsupportedModel, "'position_buckets' 7 is not supported; only even numbers are"),
        ({"position_buckets": 1100}, DamagedFile, "'position_buckets' is 1100, which needs a max_relative_positions"),
        ({"position_buckets": None}, DamagedFile, "'position_buckets' must be a whole number, but is None"),
        ({"max_relative_positions": 2.5}, DamagedFile, "'max_relative_positions' must be a whole number, but is 2.5"),
        ({"relative_attention": "yes"}, DamagedFile, "'relative_attention' must be true or false, but is 'yes'"),
        ({"share_att_key": 1}, DamagedFile, "'share_att_key' must be true or false, but is 1"),
        ({"position_biased_input": None}, DamagedFile, "'position_biased_input' must be true or false, but is None"),
        ({"type_vocab_size": -1}, DamagedFile, "'type_vocab_size' must be a whole number from 0 up, but is -1"),
        ({"embedding_size": 0}, DamagedFile, "'embedding_size' must be a whole number above 0, but is 0"),
        ({"conv_kernel_size": 4}, DamagedFile, "'conv_kernel_size' must be odd, but is 4"),
        ({"conv_kernel_size": 3, "conv_groups": 5}, DamagedFile, "hidden_size 12 is not a multiple of conv_groups 5"),
        (
            {"conv_kernel_size": 3, "conv_act": "mish"},
            UnsupportedModel,
            "'conv_act' 'mish' is not supported; supported are:",
        ),
        (
            {"hidden_act": "mish"},
            UnsupportedModel,
            "config.json: 'hidden_act' 'mish' is not supported; supported are: ",
        ),
        (
            {"pooler_hidden_act": "mish"},
            UnsupportedModel,
            "'pooler_hidden_act' 'mish' is not supported; supported are: ",
        ),
        ({"attention_head_size": 8}, UnsupportedModel, "'attention_head_size' 8 is not supported; only 6 is"),
        ({"pooler_hidden_size": 8}, UnsupportedModel, "'pooler_hidden_size' 8 is not supported; only 12 is"),
        ({"num_attention_heads": 5}, DamagedFile, "'hidden_size' 12 is not a multiple of 'num_attention_heads' 5"),
        ({"layer_norm_eps": -1}, DamagedFile, "'layer_norm_eps' must be a number above 0, but is -1"),
        ({"hidden_size": None}, DamagedFile, "'hidden_size' is missing"),
    ],
)
def test_what_is_not_supported_is_refused(changed: dict[str, Any], kind: type[CheckpointError], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        read(CONFIG | changed)
