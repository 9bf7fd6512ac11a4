""""""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnx_from_checkpoints.architectures import bert
from onnx_from_checkpoints.architectures.bert import FAMILIES, Bert
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Weights
from tests.onnx_from_checkpoints.architectures.golden import check_golden, list_goldens
from tests.onnx_from_checkpoints.models import HIDDEN, LABELS, POSITIONS, VOCABULARY, make_config, make_weights
from tests.onnx_from_checkpoints.reference.encoder import classify, encode

KINDS = sorted(FAMILIES)
MOST_TOKENS = POSITIONS - 2
tokens = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=MOST_TOKENS)


def run(model: Any, ids: list[list[int]], types: list[list[int]], mask: list[list[int]] | None = None) -> NDArray[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
    wanted = [one.name for one in session.get_inputs()]
    (found,) = session.run(None, {name: np.array(feeds[name], np.int64) for name in wanted})
    return np.asarray(found)


@pytest.mark.parametrize("kind", KINDS)
class TestEachArchitecture:
    @settings(max_examples=25)
    @given(ids=tokens, seed=st.integers(0, 5))
    def test_hidden_states_are_those_of_the_definition(self, kind: str, ids: list[int], seed: int) -> None:
        config = make_config(kind)
        weights = make_weights(config, seed)
        types = [int(place > len(ids) // 2) for place in range(len(ids))]
        found = run(build_graph(config, weights), [ids], [types])
        assert found.shape == (1, len(ids), HIDDEN)
        np.testing.assert_allclose(found[0], encode(config, weights, ids, types), atol=2e-4)

    @settings(max_examples=25)
    @given(ids=tokens, seed=st.integers(0, 5))
    def test_logits_are_those_of_the_definition(self, kind: str, ids: list[int], seed: int) -> None:
        config = make_config(kind, classifier=True)
        weights = make_weights(config, seed)
        types = [int(place > len(ids) // 2) for place in range(len(ids))]
        found = run(build_graph(config, weights), [ids], [types])
        assert found.shape == (1, LABELS)
        np.testing.assert_allclose(found[0], classify(config, weights, ids, types), atol=2e-4)

    @settings(max_examples=25)
    @given(ids=tokens, seed=st.integers(0, 5))
    def test_looked_up_projections_give_the_same_result(self, kind: str, ids: list[int], seed: int) -> None:
        config = make_config(kind)
        weights = make_weights(config, seed)
        types = [int(place > len(ids) // 2) for place in range(len(ids))]
        model = build_graph(config, weights, tabled=True)
        narrow = config.get("embedding_size", HIDDEN) != HIDDEN
        assert (model == build_graph(config, weights)) == narrow
        np.testing.assert_allclose(run(model, [ids], [types])[0], encode(config, weights, ids, types), atol=2e-4)

    @pytest.mark.parametrize("layers", [1, 2])
    def test_a_classifier_can_look_up_projections(self, kind: str, layers: int) -> None:
        key = "n_layers" if kind == "distilbert" else "num_hidden_layers"
        config = {**make_config(kind, classifier=True), key: layers}
        weights = {name: one for name, one in make_weights(config).items() if layers == 2 or ".layer.1." not in name}
        found = run(build_graph(config, weights, tabled=True), [[5, 6, 7, 8]], [[0, 0, 1, 1]])
        np.testing.assert_allclose(found[0], classify(config, weights, [5, 6, 7, 8], [0, 0, 1, 1]), atol=2e-4)

    @pytest.mark.parametrize("classifier", [False, True])
    def test_padding_changes_nothing(self, kind: str, classifier: bool) -> None:
        config = make_config(kind, classifier=classifier)
        graph = build_graph(config, make_weights(config), padded=True)
        ids, filled = [5, 6, 7, 8], [config["pad_token_id"]] * 3
        alone = run(graph, [ids], [[0] * 4], [[1] * 4])[0]
        beside = run(graph, [ids + filled, [9] * 7], [[0] * 7] * 2, [[1] * 4 + [0] * 3, [1] * 7])[0]
        np.testing.assert_allclose(beside if classifier else beside[:4], alone, atol=1e-6)

    def test_equal_weights_give_equal_bytes(self, kind: str) -> None:
        config = make_config(kind)
        weights = make_weights(config)
        turned = dict(reversed(weights.items()))
        first, second = (build_graph(config, one) for one in (weights, turned))
        assert first.SerializeToString() == second.SerializeToString()

    def test_the_graph_is_valid_and_declares_its_output(self, kind: str) -> None:
        graph = build_graph(make_config(kind), make_weights(make_config(kind))).graph
        assert [one.name for one in graph.output] == ["last_hidden_state"]
        types = ["token_type_ids"] if kind in ("bert", "electra") else []
        assert [one.name for one in graph.input] == ["input_ids", *types]
        names = [node.output[0] for node in graph.node]
        assert len(set(names)) == len(names)

    @pytest.mark.parametrize("kept", [np.float16, np.float64])
    def test_weights_of_another_precision_are_read(self, kind: str, kept: type) -> None:
        config = make_config(kind)
        weights: dict[str, NDArray[Any]] = {name: one.astype(kept) for name, one in make_weights(config).items()}
        same = {name: tensor.astype(np.float32) for name, tensor in weights.items()}
        assert build_graph(config, weights).SerializeToString() == build_graph(config, same).SerializeToString()

    def test_a_prefix_changes_nothing(self, kind: str) -> None:
        config = make_config(kind)
        plain, prefixed = (build_graph(config, make_weights(config, prefixed=p)) for p in (False, True))
        assert run(plain, [[5, 6, 7]], [[0] * 3]).tolist() == run(prefixed, [[5, 6, 7]], [[0] * 3]).tolist()


def test_an_encoder_of_one_layer_worked_by_hand() -> None:
    """Queries, keys and values are zero, so attention and the feed-forward network add nothing before normalising."""
    config = {**make_config("bert"), "hidden_size": 2, "num_attention_heads": 1, "num_hidden_layers": 1}
    config |= {"intermediate_size": 2, "vocab_size": 3, "max_position_embeddings": 4}
    zero, one = np.zeros((2, 2), np.float32), np.ones(2, np.float32)
    weights: dict[str, NDArray[Any]] = {
        "embeddings.word_embeddings.weight": np.array([[0, 0], [1, 3], [5, 1]], np.float32),
        "embeddings.position_embeddings.weight": np.zeros((4, 2), np.float32),
        "embeddings.token_type_embeddings.weight": zero,
    }
    for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        weights |= {f"encoder.layer.0.{name}.weight": zero, f"encoder.layer.0.{name}.bias": one * 0}
    for name in ("intermediate.dense", "output.dense"):
        weights |= {f"encoder.layer.0.{name}.weight": zero, f"encoder.layer.0.{name}.bias": one * 0}
    norms = ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output")
    for norm in norms:
        weights |= {f"{norm}.LayerNorm.weight": one, f"{norm}.LayerNorm.bias": one * 0}
    # (1, 3) has mean 2 and standard deviation 1, so it becomes (-1, 1); (5, 1) becomes (1, -1).
    found = run(build_graph(config, weights), [[1, 2]], [[0, 0]])
    np.testing.assert_allclose(found, [[[-1, 1], [1, -1]]], atol=1e-6)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu", "tanh"])
def test_each_activation_matches_its_name(activation: str) -> None:
    config = make_config("bert", activation=activation)
    weights = make_weights(config)
    ids = [3, 9, 27, 4]
    found = run(build_graph(config, weights), [ids], [[0] * 4])
    np.testing.assert_allclose(found[0], encode(config, weights, ids, [0] * 4), atol=1e-4)


def test_gelu_is_exact() -> None:
    """The tanh approximation is off by up to 5e-4, which would be visible in the hidden states."""
    exact, fast = (make_config("bert", activation=name) for name in ("gelu", "gelu_new"))
    weights = make_weights(exact)
    difference = run(build_graph(exact, weights), [[3, 4]], [[0, 0]]) - run(
        build_graph(fast, weights), [[3, 4]], [[0, 0]]
    )
    assert 1e-5 < abs(difference).max() < 1e-2


def test_projections_of_large_vocabularies_are_not_tabled(monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config("bert")
    weights = make_weights(config)
    monkeypatch.setattr(bert, "MOST_BYTES_OF_TABLES", 3 * 4 * VOCABULARY * HIDDEN - 1)
    assert build_graph(config, weights, tabled=True) == build_graph(config, weights)
    monkeypatch.setattr(bert, "MOST_BYTES_OF_TABLES", 3 * 4 * VOCABULARY * HIDDEN)
    assert build_graph(config, weights, tabled=True) != build_graph(config, weights)


@pytest.mark.parametrize("name", list_goldens("bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm"))
def test_outputs_are_those_of_transformers(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, r"not an encoder that can be built: llama; .* bert, .*distilbert, .*xlm-roberta"),
        ({"model_type": None}, "has no model_type"),
        ({"is_decoder": True}, r"config\.json: 'is_decoder' True is not supported; only false or null is"),
        ({"position_embedding_type": "relative_key"}, r"config\.json: 'position_embedding_type' 'relative_key' is not"),
        ({"hidden_act": "swiglu"}, r"config\.json: 'hidden_act' 'swiglu' is not supported; supported are: .*gelu"),
        ({"hidden_act": ["gelu"]}, r"config\.json: 'hidden_act' \['gelu'\] is not supported"),
    ],
)
def test_models_that_cannot_be_built(changes: dict[str, Any], message: str) -> None:
    config = make_config("bert")
    with pytest.raises(UnsupportedModel, match=message):
        build_graph({**config, **changes}, make_weights(config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 5}, "'hidden_size' 16 is not a multiple of 'num_attention_heads' 5"),
        ({"hidden_size": None}, "'hidden_size' is missing"),
        ({"num_hidden_layers": 0}, "'num_hidden_layers' must be a whole number above 0, but is 0"),
        ({"vocab_size": "many"}, "'vocab_size' must be a whole number above 0, but is 'many'"),
        (
            {"vocab_size": VOCABULARY + 1},
            re.escape("'embeddings.word_embeddings.weight' has the shape [40, 16], but must have [41, 16]"),
        ),
        ({"layer_norm_eps": None}, "'layer_norm_eps' must be a number from 0 to 1, but is None"),
        ({"type_vocab_size": 0}, "'type_vocab_size' must be a whole number above 0, but is 0"),
        ({"num_hidden_layers": 1}, r"weights have 2 layers \('encoder\.layer\.1'\), but config\.json has 1"),
        ({"num_hidden_layers": 3}, r"no tensor 'encoder.layer.2.*shape \[16, 16\]"),
    ],
)
def test_inconsistent_configurations(changes: dict[str, Any], message: str) -> None:
    config = make_config("bert")
    with pytest.raises(DamagedFile, match=message):
        build_graph({**config, **changes}, make_weights(config))


def test_padding_from_which_positions_are_counted_must_be_an_id() -> None:
    config = make_config("roberta")
    with pytest.raises(DamagedFile, match=r"'pad_token_id' must be a whole number from 0 up, but is '\[PAD\]'"):
        build_graph({**config, "pad_token_id": "[PAD]"}, make_weights(config))


def test_positions_of_null_are_absolute() -> None:
    config = make_config("bert")
    plain, null = (
        build_graph(one, make_weights(config)) for one in (config, config | {"position_embedding_type": None})
    )
    assert plain == null


@pytest.mark.parametrize("kind", KINDS)
def test_one_spelling_of_sizes_for_all_architectures(kind: str) -> None:
    model = Bert(Settings(make_config(kind)), Weights({}), padded=False, tabled=False)
    assert (HIDDEN % model.heads, model.vocabulary, model.layers) == (0, VOCABULARY, 2)
    assert model.types == (2 if kind in ("bert", "electra") else model.types)


def test_mpnet_with_other_buckets_than_those_of_transformers_is_refused() -> None:
    config = make_config("mpnet") | {"relative_attention_num_buckets": 16}
    with pytest.raises(UnsupportedModel, match=r"'relative_attention_num_buckets' 16 is not supported; only 32 is"):
        Bert(Settings(config), Weights({}), padded=False, tabled=False)
