from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import save_file

from onnx_from_checkpoints.configuration import read_configuration
from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference import encoder
from rageval_spec.inference.encoder import Encoder, load_encoder, normalize
from rageval_spec.inference.exports import provide_graph
from rageval_spec.inference.model_files import find_source, locate
from rageval_spec.inference.tokens import Text, TextTokens
from rageval_spec.plugin import Context
from tests.onnx_from_checkpoints.folders import (
    DENSE,
    DETECTOR,
    POOLING,
    TRANSFORMER,
    write_detector,
    write_encoder,
    write_json,
)

Array = NDArray[Any]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))


class LengthTokenizer:
    """Gives one token per letter; texts of more than nine letters are cut."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def read(self, texts: Sequence[Text]) -> TextTokens:
        self.asked.append(len(texts))
        ids = [np.arange(min(len(text), 9)) for text in texts]
        return TextTokens(ids, ids, np.array([len(text) > 9 for text in texts]))


class LengthSession:
    """Gives each text its number of tokens as vector, in batches of one, in reverse order."""

    task = "embedding"

    def run(self, ids: Sequence[Array], type_ids: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
        for position in reversed(range(len(ids))):
            yield np.array([position]), np.array([[len(ids[position])]], np.float32)


def collect(texts: list[str], tokenizer: LengthTokenizer) -> tuple[list[float], list[bool], list[int]]:
    vectors, truncated, sizes = [-1.0] * len(texts), [False] * len(texts), []
    ready = Encoder(tokenizer, LengthSession(), lambda found: found * 2)  # type: ignore[arg-type]
    for batch in ready.embed(texts):
        sizes.append(len(batch.positions))
        for position, vector, cut in zip(batch.positions, batch.vectors, batch.truncated, strict=True):
            assert vectors[position] == -1
            vectors[position], truncated[position] = float(vector[0]), bool(cut)
    return vectors, truncated, sizes


@given(texts=st.lists(st.text("ab", max_size=12), max_size=30))
def test_each_text_has_its_vector_whatever_the_order(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "TOKENISED_AT_ONCE", 7)
        patch.setattr(encoder, "KEPT_AT_ONCE", 3)
        tokenizer = LengthTokenizer()
        vectors, truncated, sizes = collect(texts, tokenizer)
    assert vectors == [2 * min(len(text), 9) for text in texts]
    assert truncated == [len(text) > 9 for text in texts]
    assert max([0, *tokenizer.asked]) <= 7
    assert max([0, *sizes]) <= 3


def test_vectors_are_passed_on_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collect(["a"] * 100, LengthTokenizer())[2] == [100]
    monkeypatch.setattr(encoder, "KEPT_EVERY", -1.0)
    assert collect(["a"] * 100, LengthTokenizer())[2] == [1] * 100


def test_unit_length() -> None:
    found = normalize(np.array([[3, 4], [0, 0], [1e-20, 0], [-5, 0]], np.float32))
    assert found.tolist() == pytest.approx(np.array([[0.6, 0.8], [0, 0], [1e-8, 0], [-1, 0]], np.float32))
    assert found.dtype == np.float32


def vectors_of(folder: Path) -> Array:
    source = find_source(locate(str(folder), Path()))
    assert source is not None
    configuration = read_configuration(folder)
    graph = provide_graph(source, configuration, "fp32", Context("m").fingerprint)
    return next(load_encoder(source, configuration, graph, 1).embed(["the cat"])).vectors


def detector_in(folder: Path) -> Encoder:
    source = find_source(locate(str(write_detector(folder)), Path()))
    assert source is not None
    configuration = read_configuration(folder)
    return load_encoder(source, configuration, folder / "model.onnx", 1)


def test_each_pair_has_the_tokens_of_its_second_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "TAGGED_AT_ONCE", 2)
    ready = detector_in(tmp_path)
    pairs = [("the cat sat", "cat ran"), ("the", ""), ("a dog", "a the  mat"), ("the " * 80, "dog ran on")]
    found: dict[int, tuple[Any, Any, bool]] = {}
    for batch in ready.tag(pairs):
        assert {each.dtype for each in batch.logits} == {np.dtype(np.float32)}
        for place, *tags in zip(batch.positions.tolist(), batch.offsets, batch.logits, batch.truncated, strict=True):
            found[place] = tuple(np.round(np.asarray(one, np.float64), 4).tolist() for one in tags)
    assert found == {
        0: ([[0, 3], [4, 7]], [[1, -1], [-1, 1]], False),
        1: ([], [], False),
        2: ([[0, 1], [2, 5], [7, 10]], [[1, -1], [-1, 1], [-1, 1]], False),
        3: ([[0, 3], [4, 7], [8, 10]], [[-1, 1]] * 3, True),
    }
    assert (ready.task, ready.width, ready.room, ready.count(["the cat"])) == ("token_classification", 2, 61, [2])


def test_a_tokenizer_without_offsets_cannot_say_where_a_token_lies() -> None:
    ready = Encoder(LengthTokenizer(), LengthSession(), lambda found: found)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"only transformers can read .*, and it does not report the characters"):
        next(ready.tag([("a", "b")]))


def test_a_graph_of_another_task_than_the_files_say_is_refused(tmp_path: Path) -> None:
    write_detector(tmp_path, config={**DETECTOR, "architectures": ["BertForSequenceClassification"]})
    source = find_source(locate(str(tmp_path), Path()))
    assert source is not None
    with pytest.raises(DataError, match=r"model\.onnx: is a token classifier, .* describe a classifier, which gives"):
        load_encoder(source, read_configuration(tmp_path), tmp_path / "model.onnx", 1)


def test_a_number_of_labels_that_the_graph_does_not_have_is_refused(tmp_path: Path) -> None:
    write_detector(tmp_path, config={**DETECTOR, "id2label": {"0": "a", "1": "b", "2": "c"}})
    source = find_source(locate(str(tmp_path), Path()))
    assert source is not None
    ready = load_encoder(source, read_configuration(tmp_path), tmp_path / "model.onnx", 1)
    with pytest.raises(DataError, match=r"config\.json: names 3 labels, but the model gives 2 logits"):
        list(ready.tag([("a", "b")]))


def write_dense(folder: Path, **keys: Any) -> dict[str, Array]:
    """An encoder without normalisation, with a dense layer."""
    write_encoder(folder)
    write_json(folder / "modules.json", [TRANSFORMER, POOLING, DENSE])
    write_json(folder / "2_Dense" / "config.json", {"in_features": 8, "out_features": 3, "bias": True, **keys})
    random = np.random.default_rng(3)
    weights = {
        "linear.weight": random.normal(size=(3, 8)).astype(np.float32),
        "linear.bias": random.normal(size=3).astype(np.float32),
    }
    save_file(weights, folder / "2_Dense" / "model.safetensors")
    return weights


def pooled_of(folder: Path) -> Array:
    write_encoder(folder)
    write_json(folder / "modules.json", [TRANSFORMER, POOLING])
    return vectors_of(folder)


def test_a_dense_layer_by_hand(tmp_path: Path) -> None:
    pooled = pooled_of(tmp_path / "plain")
    activations: dict[str, Callable[[Array], Array]] = {"activation.Tanh": np.tanh, "linear.Identity": np.positive}
    for name, activation in activations.items():
        weights = write_dense(tmp_path / name, activation_function=f"torch.nn.modules.{name}")
        expected = activation(pooled @ weights["linear.weight"].T + weights["linear.bias"])
        assert vectors_of(tmp_path / name) == pytest.approx(expected, abs=1e-6)


def test_a_dense_layer_without_bias(tmp_path: Path) -> None:
    weights = write_dense(tmp_path / "m", bias=False, activation_function="torch.nn.modules.linear.Identity")
    expected = pooled_of(tmp_path / "plain") @ weights["linear.weight"].T
    assert vectors_of(tmp_path / "m") == pytest.approx(expected, abs=1e-6)


class VectorSession:
    """The vectors of texts in batches of a given size."""

    task, pooled = "embedding", False

    def __init__(self, vectors: Array, together: int) -> None:
        self._vectors, self._together = vectors, together

    def run(self, ids: Sequence[Array], type_ids: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
        for start in range(0, len(ids), self._together):
            positions = np.arange(start, min(start + self._together, len(ids)))
            yield positions, self._vectors[positions]


@pytest.mark.parametrize(("dimensions", "normalized"), [(None, True), (None, False), (77, True)])
def test_vectors_are_bit_identical_whatever_is_computed_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dimensions: int | None, normalized: bool
) -> None:
    random, folder = np.random.default_rng(5), tmp_path / "m"
    write_dense(folder)
    weights = {
        "linear.weight": random.normal(0, 0.05, (191, 384)).astype(np.float32),
        "linear.bias": random.normal(size=191).astype(np.float32),
        "residual.weight": random.normal(0, 0.05, (191, 384)).astype(np.float32),
    }
    save_file(weights, folder / "2_Dense" / "model.safetensors")
    write_json(folder / "2_Dense" / "config.json", {"use_residual": True})
    source = find_source(locate(str(folder), Path()))
    assert source is not None
    configuration = replace(read_configuration(folder), dimensions=dimensions, normalize=normalized)
    vectors = random.normal(size=(70, 384)).astype(np.float32)
    found = []
    for together in (1, 2, 3, 7, 64, 70):
        session: Any = VectorSession(vectors, together)
        monkeypatch.setattr(encoder, "KEPT_AT_ONCE", together)
        finish = encoder._finish_vectors(source, configuration, session)
        ready = Encoder(LengthTokenizer(), session, finish)  # type: ignore[arg-type]
        batches = list(ready.embed(["a"] * 70))
        assert {len(batch.positions) for batch in batches} <= {together, 70 % together}
        found.append(np.concatenate([batch.vectors for batch in batches]))
    for other in found[1:]:
        assert np.array_equal(other, found[0])
    product = np.tanh(vectors @ weights["linear.weight"].T + weights["linear.bias"])
    expected = (product + vectors @ weights["residual.weight"].T)[:, :dimensions]
    assert found[0] == pytest.approx(normalize(expected) if normalized else expected, abs=1e-5)


def test_a_dense_layer_of_another_model(tmp_path: Path) -> None:
    write_dense(tmp_path / "m")
    save_file({"linear.weight": np.zeros((3, 9), np.float32), "linear.bias": np.zeros(3, np.float32)},
              tmp_path / "m" / "2_Dense" / "model.safetensors")  # fmt: skip
    with pytest.raises(DataError, match="needs vectors of 9 values, but gets 8"):
        vectors_of(tmp_path / "m")
    save_file({"linear.weight": np.zeros((3, 8), np.float32)}, tmp_path / "m" / "2_Dense" / "model.safetensors")
    with pytest.raises(DataError, match=r"has no 'linear\.bias'"):
        vectors_of(tmp_path / "m")


def test_dense_layers_that_are_not_supported(tmp_path: Path) -> None:
    write_dense(tmp_path / "m", activation_function="torch.nn.modules.activation.Mish")
    with pytest.raises(UsageError, match="the activation Mish is not supported; `use: sentence_transformers`"):
        vectors_of(tmp_path / "m")
    write_dense(tmp_path / "m")
    (tmp_path / "m" / "2_Dense" / "model.safetensors").rename(tmp_path / "m" / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(UsageError, match="2_Dense: has weights only in a format that can execute code"):
        vectors_of(tmp_path / "m")
