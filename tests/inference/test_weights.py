from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from rageval_spec.inference.architectures.shared.families import FAMILIES
from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.graph import build_graph
from rageval_spec.inference.weights import Weights
from tests.inference.models import HIDDEN, make_config, make_weights

KINDS = sorted(FAMILIES)


def test_names_of_old_checkpoints_are_read() -> None:
    config = make_config("bert")
    weights = make_weights(config)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in weights.items()
    }
    assert build_graph(config, old).SerializeToString() == build_graph(config, weights).SerializeToString()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classifier", [False, True])
def test_each_missing_tensor_is_named(kind: str, classifier: bool) -> None:
    config = make_config(kind, classifier=classifier)
    weights = make_weights(config)
    for name in weights:
        if "word_embeddings" in name or (not classifier and "pooler" in name):
            continue
        with pytest.raises(DamagedFile, match=re.escape(name)):
            build_graph(config, {other: tensor for other, tensor in weights.items() if other != name})


def test_no_weights_at_all() -> None:
    with pytest.raises(DamagedFile, match=r"no tensor 'embeddings.word_embeddings.weight'"):
        build_graph(make_config("bert"), {})


def test_integer_weights_are_refused() -> None:
    config = make_config("bert")
    weights: dict[str, NDArray[Any]] = dict(make_weights(config))
    weights["encoder.layer.0.output.dense.bias"] = np.zeros(HIDDEN, np.int8)
    with pytest.raises(DamagedFile, match=r"'encoder.layer.0.output.dense.bias' holds int8"):
        build_graph(config, weights)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_with_more_layers_than_the_configuration_are_refused(kind: str) -> None:
    config = make_config(kind, classifier=True)
    key = "n_layers" if kind == "distilbert" else "num_hidden_layers"
    with pytest.raises(DamagedFile, match="the weights have 2 layers"):
        build_graph({**config, key: 1}, make_weights(config))


@pytest.mark.parametrize("prefix", ["", "bert.", "model.encoder."])
def test_tensors_are_found_behind_any_prefix(prefix: str) -> None:
    words = np.arange(6, dtype=np.float16).reshape(2, 3)
    weights = Weights({f"{prefix}embeddings.word_embeddings.weight": words})
    found = weights.read("embeddings.word_embeddings.weight", 2, 3)
    assert found.dtype == np.float32 and found.tolist() == words.tolist()


def test_a_linear_layer_is_transposed_to_multiply_from_the_right() -> None:
    tensors = {"d.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "d.bias": np.ones(2, np.float32)}
    weight, bias = Weights(tensors).read_linear("d", 3, 2)
    assert weight.tolist() == [[0, 3], [1, 4], [2, 5]] and bias.tolist() == [1, 1]


class TestTensorsThatNothingReads:
    tensors: ClassVar = {f"model.{name}": np.ones(2) for name in ("words", "layers.0.norm", "layers.0.rotary.inv_freq")}

    def test_an_unread_tensor_of_a_layer_is_named(self) -> None:
        with pytest.raises(
            DamagedFile, match=r"the weights have a tensor 'model\.layers\.0\.norm', but a model with this"
        ):
            Weights(self.tensors, "words").refuse_unread("layers.")

    def test_an_unread_tensor_of_a_head_is_named(self) -> None:
        weights = Weights(self.tensors | {"head.bias": np.ones(2)}, "words")
        weights.refuse_unread("embeddings.")
        with pytest.raises(DamagedFile, match=r"the weights have a tensor 'head\.bias', but a model with this config"):
            weights.refuse_unread("embeddings.", heads=("head.",))

    def test_what_is_read_and_computed_angles_are_not_refused(self) -> None:
        weights = Weights(self.tensors, "words")
        weights.read("layers.0.norm", 2)
        weights.refuse_unread("layers.")
        Weights(self.tensors | {"model.layers.0.places": np.arange(2)}, "words").refuse_unread("embeddings.")
        assert weights.has("layers.0.norm")
        assert not weights.has("layers.1.norm")


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_that_an_adapter_added_to_a_layer_is_refused(kind: str) -> None:
    config = make_config(kind)
    weights = make_weights(config)
    query = next(name for name in weights if "layer.1." in name and name.endswith(".weight"))
    added = query.replace(".weight", ".lora_A.weight")
    with pytest.raises(DamagedFile, match=re.escape(f"the weights have a tensor '{added}', but a model with this")):
        build_graph(config, weights | {added: np.ones((2, HIDDEN), np.float32)})


def test_a_tensor_that_does_not_count_is_not_opened() -> None:
    class Opened(dict[str, NDArray[Any]]):
        def __getitem__(self, name: str) -> NDArray[Any]:
            assert name != "lm_head.weight"
            return super().__getitem__(name)

    Weights(Opened({"words": np.ones(2), "lm_head.weight": np.ones(2)}), "words").refuse_unread("layers.")


def test_sizes_and_layers_can_be_read_from_the_tensors() -> None:
    tensors = {f"model.layer.{number}.w": np.ones((2, 3), np.float32) for number in (0, 1, 10)}
    weights = Weights(tensors, "layer.0.w")
    assert weights.size("layer.0.w", 2) == (2, 3)
    assert weights.count_layers("layer.{}.") == 11
    assert (weights.has("layer.1.w"), weights.has("layer.2.w")) == (True, False)
    with pytest.raises(DamagedFile, match=r"no tensor 'model\.layer\.2\.w'"):
        weights.size("layer.2.w", 2)


def test_a_missing_head_is_named_without_a_shape() -> None:
    config = make_config("bert", classifier=True)
    bare = {name: values for name, values in make_weights(config).items() if not name.startswith("classifier.")}
    with pytest.raises(DamagedFile, match=r"^the weights have no tensor 'classifier\.bias'; use weights and a config"):
        build_graph(config, bare)
