""""""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from onnx_from_checkpoints.architectures.shared.layers import (
    ACTIVATIONS,
    Layers,
    Nodes,
    Rotary,
    Rotation,
    Windows,
    find_buckets,
)
from onnx_from_checkpoints.weights import Weights


def test_a_graph_of_two_nodes_computes_what_it_says() -> None:
    nodes = Nodes()
    ids = nodes.add("Cast", "input_ids", to=1)
    doubled = nodes.add("Mul", ids, nodes.hold("two", np.array(2, np.float32)))
    model = nodes.finish(["input_ids"], doubled, "last_hidden_state", ["texts", "tokens"])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(["last_hidden_state"], {"input_ids": np.array([[1, 2, 3]])})
    assert found.tolist() == [[2, 4, 6]]


def test_a_constant_is_stored_once_with_its_first_values() -> None:
    nodes = Nodes()
    assert nodes.number(7) == nodes.number(7)
    assert nodes.hold("values", np.zeros(2, np.float32)) == nodes.hold("values", np.ones(2, np.float32))
    model = nodes.finish(["input_ids"], "values", "last_hidden_state", [2])
    stored = {one.name: one.raw_data for one in model.graph.initializer}
    assert sorted(stored) == ["number_7", "values"]
    assert stored["values"] == bytes(8)


def test_further_outputs_of_a_node_are_named_after_it() -> None:
    nodes = Nodes()
    output = nodes.add("LayerNormalization", "a", "b", "c", besides=("mean", "inverse"), axis=-1)
    (node,) = list(nodes.finish([], output, "last_hidden_state", []).graph.node)[:1]
    assert list(node.output) == [output, f"{output}_mean", f"{output}_inverse"]


def test_only_the_chosen_branch_is_computed() -> None:
    nodes = Nodes()
    short = nodes.add("Less", nodes.add("Size", "input_ids"), nodes.number(3))
    table = nodes.hold("table", np.arange(5, dtype=np.float32))

    def read(place: int) -> str:
        return nodes.add("Gather", table, nodes.vector(place))

    chosen = nodes.choose(short, lambda: read(2), lambda: nodes.add("Neg", read(4)))
    model = nodes.finish(["input_ids"], nodes.add("Add", chosen, chosen), "output", [1])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = [session.run(None, {"input_ids": np.zeros((1, size), np.int64)})[0].tolist() for size in (2, 3)]
    assert found == [[4.0], [-8.0]]
    names = [name for node in model.graph.node for name in node.output]
    names += [
        name for node in model.graph.node for one in node.attribute for inner in one.g.node for name in inner.output
    ]
    assert len(set(names)) == len(names)


RANDOM = np.random.default_rng(0)
TENSORS: dict[str, NDArray[Any]] = {
    "inner.weight": RANDOM.normal(size=(5, 3)).astype(np.float32),
    "inner.bias": RANDOM.normal(size=5).astype(np.float32),
    "norm.weight": RANDOM.normal(size=3).astype(np.float32),
    "norm.bias": RANDOM.normal(size=3).astype(np.float32),
}
TABLE = RANDOM.normal(size=(4, 3)).astype(np.float32)
"""The vector of each token id."""
IDS = np.array([[0, 2, 1], [3, 3, 0]])


@pytest.fixture
def layers() -> Layers:
    return Layers(Weights(TENSORS))


def run(nodes: Nodes, output: str) -> NDArray[np.float32]:
    model = nodes.finish(["input_ids"], output, "output", ["texts", "tokens", "values"])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"input_ids": IDS})[0], np.float32)


def embed(nodes: Nodes) -> str:
    return nodes.add("Gather", nodes.hold("table", TABLE), "input_ids")


def test_a_linear_layer(layers: Layers) -> None:
    found = run(layers, layers.apply_linear(embed(layers), "inner", 3, 5))
    np.testing.assert_allclose(found, TABLE[IDS] @ TENSORS["inner.weight"].T + TENSORS["inner.bias"], atol=1e-6)


def test_normalising(layers: Layers) -> None:
    found = run(layers, layers.normalize(embed(layers), "norm", 3, 1e-5))
    centred = TABLE[IDS] - TABLE[IDS].mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, scaled * TENSORS["norm.weight"] + TENSORS["norm.bias"], atol=1e-5)


def test_each_token_gets_its_labels(layers: Layers) -> None:
    logits, labels = layers.label_tokens(embed(layers), "inner", 3)
    assert labels == 5
    found = run(layers, logits)
    np.testing.assert_allclose(found, TABLE[IDS] @ TENSORS["inner.weight"].T + TENSORS["inner.bias"], atol=1e-6)


def test_the_first_token_keeps_its_axis(layers: Layers) -> None:
    np.testing.assert_array_equal(run(layers, layers.take_first(embed(layers), 1)), TABLE[IDS][:, :1])


def test_a_mean_leaves_padding_out(layers: Layers) -> None:
    model = layers.finish(
        ["input_ids", "attention_mask"], layers.average(embed(layers), padded=True), "output", ["texts", "values"]
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    mask = np.array([[1, 1, 0], [1, 1, 1]])
    found = session.run(None, {"input_ids": IDS, "attention_mask": mask})[0]
    np.testing.assert_allclose(found, [TABLE[[0, 2]].mean(axis=0), TABLE[[3, 3, 0]].mean(axis=0)], atol=1e-6)


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _approximate_gelu(value: float) -> float:
    return value / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)))


FORMULAS: dict[str, Callable[[float], float]] = {
    "gelu": lambda value: value / 2 * (1 + math.erf(value / math.sqrt(2))),
    "gelu_new": _approximate_gelu,
    "relu": lambda value: max(value, 0.0),
    "sigmoid": _sigmoid,
    "silu": lambda value: value * _sigmoid(value),
    "tanh": math.tanh,
}


def test_each_name_has_a_formula() -> None:
    assert FORMULAS.keys() == ACTIVATIONS.keys()


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_each_activation_is_its_formula(name: str) -> None:
    values = np.arange(-30, 30, dtype=np.float32)[None] / 8
    nodes = Nodes()
    result = ACTIVATIONS[name](nodes, nodes.hold("values", values))
    model = nodes.finish(["input_ids"], result, "output", [1, values.size])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": np.zeros((1, 1), np.int64)})
    np.testing.assert_allclose(found[0], [FORMULAS[name](float(value)) for value in values[0]], atol=2e-6)


def turn(rotation: Rotation, values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Turn [tokens, heads * size]."""
    nodes = Nodes()
    tokens = nodes.add("Squeeze", nodes.add("Shape", "input_ids", start=1, end=2))
    rotary = Rotary(nodes, rotation, tokens, heads, values.shape[1] // heads)
    model = nodes.finish(["input_ids"], rotary.turn(nodes.hold("values", values[None])), "output", [1, "tokens", "all"])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": np.zeros((1, len(values)), np.int64)})
    return np.asarray(found[0], np.float32)


def test_a_pair_turns_by_its_position() -> None:
    found = turn(Rotation(10.0, 2), np.array([[1, 0], [1, 0], [0, 1]], np.float32), 1)
    expected: list[list[float]] = [[1, 0], [math.cos(1), math.sin(1)], [-math.sin(2), math.cos(2)]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_later_pairs_turn_more_slowly() -> None:
    found = turn(Rotation(100.0, 4), np.array([[0] * 4, [1, 1, 0, 0]], np.float32), 1)
    np.testing.assert_allclose(found[1], [math.cos(1), math.cos(0.1), math.sin(1), math.sin(0.1)], atol=1e-6)


def test_neighbours_can_be_pairs() -> None:
    found = turn(Rotation(100.0, 4, interleaved=True), np.array([[0] * 4, [1, 0, 1, 0]], np.float32), 1)
    np.testing.assert_allclose(found[1], [math.cos(1), math.sin(1), math.cos(0.1), math.sin(0.1)], atol=1e-6)


def test_a_part_of_each_head_can_stay_as_it_is() -> None:
    found = turn(Rotation(100.0, 2), np.array([[0] * 8, [1, 0, 5, 6, 0, 1, 7, 8]], np.float32), 2)
    expected = [math.cos(1), math.sin(1), 5, 6, -math.sin(1), math.cos(1), 7, 8]
    np.testing.assert_allclose(found[1], expected, atol=1e-6)


@pytest.mark.parametrize(("tokens", "theta"), [(4, 100.0), (8, 100.0), (12, 100 * (3 * 12 / 8 - 2) ** 2)])
def test_theta_grows_with_texts_longer_than_trained(tokens: int, theta: float) -> None:
    values = np.random.default_rng(0).standard_normal((tokens, 4)).astype(np.float32)
    scaled = turn(Rotation(100.0, 4, factor=3.0, trained=8), values, 1)
    np.testing.assert_allclose(scaled, turn(Rotation(theta, 4), values, 1), atol=1e-6)


def test_angles_are_exact_at_far_positions() -> None:
    values = np.zeros((8192, 2), np.float32)
    values[:, 0] = 1
    found = turn(Rotation(10.0, 2), values, 1)
    np.testing.assert_allclose(found[-1], [math.cos(8191), math.sin(8191)], atol=1e-6)


def open_windows(reach: int, cut: bool) -> onnxruntime.InferenceSession:
    """A graph of attention with one head, in which queries, keys and values are rows of a table, by token id."""
    nodes = Nodes()
    table = np.random.default_rng(0).standard_normal((200, 4)).astype(np.float32)
    rows = nodes.add("Gather", nodes.hold("table", table), "input_ids")
    found = Windows(nodes, reach, 1, 4, cut=cut).attend(rows, rows, rows)
    model = nodes.finish(["input_ids"], found, "output", ["texts", "tokens", 4])
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def attend(session: onnxruntime.InferenceSession, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    (found,) = session.run(None, {"input_ids": ids})
    return np.asarray(found, np.float32)


def define(reach: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    rows = np.random.default_rng(0).standard_normal((200, 4)).astype(np.float32)[ids].astype(np.float64)
    places = np.arange(len(ids))
    scores = np.where(abs(places[:, None] - places) <= reach, rows @ rows.T / math.sqrt(4), -np.inf)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True) @ rows)


@pytest.mark.parametrize("reach", [0, 1, 2, 7])
def test_each_length_gives_the_definition(reach: int) -> None:
    session = open_windows(reach, cut=True)
    for tokens in [*range(1, 60), 131]:
        ids = np.random.default_rng(tokens).integers(0, 200, tokens)
        np.testing.assert_allclose(attend(session, ids[None])[0], define(reach, ids), atol=2e-6, err_msg=str(tokens))


def test_cutting_changes_nothing() -> None:
    cut, whole = (open_windows(3, cut=cut) for cut in (True, False))
    ids = np.random.default_rng(1).integers(0, 200, (4, 77))
    np.testing.assert_allclose(attend(cut, ids), attend(whole, ids), atol=2e-6)


def test_a_token_out_of_reach_changes_nothing() -> None:
    ids = np.arange(100)[None]
    other = ids.copy()
    other[0, 60:] = 7
    first, second = (attend(open_windows(5, cut=True), one)[0] for one in (ids, other))
    assert (first[:55] == second[:55]).all()
    assert (first[55:60] != second[55:60]).any(axis=1).all()


def test_32_buckets_worked_by_hand() -> None:
    """Half for each direction; 8 of 16 hold one distance; then each bucket is wider by 16 ** (1 / 8)."""
    distances = np.array([0, -1, -7, -8, -11, -12, -127, -128, -5000, 1, 7, 8, 128, 5000])
    expected = [0, 1, 7, 8, 8, 9, 15, 15, 15, 17, 23, 24, 31, 31]
    assert find_buckets(distances, 32).tolist() == expected


@given(st.integers(-3000, 3000), st.sampled_from([8, 16, 32, 64]))
def test_buckets_never_shrink_with_the_distance(distance: int, buckets: int) -> None:
    near, far = find_buckets(np.array([distance, distance + np.sign(distance)]), buckets)
    assert 0 <= near <= far < buckets
    assert (near >= buckets // 2) == (distance > 0)
