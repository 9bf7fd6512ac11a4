""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from onnx_from_checkpoints.architectures.bert import FAMILIES
from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.quantization import quantize, quantize_blocks, quantize_columns, read_unsigned
from tests.onnx_from_checkpoints.architectures.golden import list_goldens, read_golden
from tests.onnx_from_checkpoints.architectures.golden import run as run_golden
from tests.onnx_from_checkpoints.integer_products import (
    BESIDE,
    EXPECTED,
    OPERATORS,
    SHARED,
    SIZE,
    UINT8,
    VALUES,
    WEIGHT,
    ZERO,
    save_encoder,
)
from tests.onnx_from_checkpoints.models import make_config, make_weights


def save(path: Path, kind: str = "bert", *, classifier: bool = False) -> Path:
    config = make_config(kind, classifier=classifier)
    onnx.save_model(build_graph(config, make_weights(config)), path)
    return path


def answer(graph: Path | bytes, ids: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    """The output for a text by itself."""
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    inputs = {"input_ids": ids[None], "attention_mask": np.ones((1, len(ids)), np.int64)}
    return run_golden(session, inputs | {"token_type_ids": np.zeros((1, len(ids)), np.int64)})[0]


def test_columns_worked_by_hand() -> None:
    integers, factors = quantize_columns(np.array([[1.27, 0, -2.54], [-0.635, 0, 0.02]], np.float32))
    assert integers.tolist() == [[127, 0, -127], [-64, 0, 1]]
    np.testing.assert_allclose(factors, [0.01, 1, 0.02], rtol=1e-6)


@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 9))
def test_no_weight_is_off_by_more_than_half_a_step(seed: int, rows: int, columns: int) -> None:
    matrix = np.random.default_rng(seed).normal(0, 2, (rows, columns)).astype(np.float32)
    integers, factors = quantize_columns(matrix)
    assert np.abs(integers.astype(int)).max(axis=0).tolist() == [127] * columns
    assert (np.abs(integers * factors - matrix) <= factors * 0.50001).all()


@pytest.mark.parametrize("kind", sorted(FAMILIES))
@pytest.mark.parametrize("classifier", [False, True])
def test_a_quantised_model_is_near_its_original(tmp_path: Path, kind: str, classifier: bool) -> None:
    whole, small = save(tmp_path / "whole.onnx", kind, classifier=classifier), tmp_path / "small.onnx"
    quantize(whole, small)
    exact, rounded = (answer(path, np.arange(5, 25)) for path in (whole, small))
    assert 0 < np.abs(rounded - exact).max() < 0.25
    if not classifier:
        cosine = np.sum(exact * rounded) / np.linalg.norm(exact) / np.linalg.norm(rounded)
        assert cosine > 0.995


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_weights_of_both_forms_give_equal_bits(tmp_path: Path, kind: str) -> None:
    whole = save(tmp_path / "whole.onnx", kind)
    found: list[Any] = []
    stored: list[set[int]] = []
    for signed in (False, True):
        path = tmp_path / f"{signed}.onnx"
        quantize(whole, path, signed=signed)
        graph = onnx.load_model(path).graph
        kinds = {tensor.name: tensor.data_type for tensor in graph.initializer}
        stored.append({kinds[node.input[1]] for node in graph.node if node.op_type == "MatMulIntegerToFloat"})
        # Products of int8 weights saturate on some processors, so such a graph is run as its unsigned form.
        found.append(answer(read_unsigned(path) or path, np.arange(5, 25)))
    assert stored == [{onnx.TensorProto.UINT8}, {onnx.TensorProto.INT8}]
    assert np.array_equal(*found)


def test_only_products_are_replaced_and_their_float_weights_dropped(tmp_path: Path) -> None:
    quantize(save(tmp_path / "whole.onnx", classifier=True), tmp_path / "small.onnx")
    graph = onnx.load_model(tmp_path / "small.onnx").graph
    operators = [node.op_type for node in graph.node]
    assert "MatMul" not in operators
    assert operators.count("MatMulIntegerToFloat") == 12
    # Queries, keys and values read the same value, except that the last layer's queries read only the first token.
    assert operators.count("QuantizeLinear") == 9
    assert "DynamicQuantizeLinear" not in operators
    assert operators.count("Gemm") == 2
    kept = {tensor.name: tensor.data_type for tensor in graph.initializer}
    assert kept["words"] == onnx.TensorProto.FLOAT
    assert not [name for name in kept if name.endswith("query.weight")]


def test_quantising_gives_equal_bytes(tmp_path: Path) -> None:
    whole = save(tmp_path / "whole.onnx")
    for name in ("first.onnx", "second.onnx"):
        quantize(whole, tmp_path / name)
    assert (tmp_path / "first.onnx").read_bytes() == (tmp_path / "second.onnx").read_bytes()


def test_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    quantize(save(tmp_path / "whole.onnx"), tmp_path / "small.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.onnx", "whole.onnx"]


def test_a_quantised_model_is_not_quantised_again(tmp_path: Path) -> None:
    quantize(save(tmp_path / "whole.onnx"), tmp_path / "small.onnx")
    with pytest.raises(DamagedFile, match=r"small\.onnx: has no products .* quantised already"):
        quantize(tmp_path / "small.onnx", tmp_path / "smaller.onnx")
    assert not (tmp_path / "smaller.onnx").exists()


def run(path: Path, values: np.ndarray[Any, np.dtype[np.float32]]) -> Any:
    """The output of a graph whose input is `x`."""
    (found,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": values})
    return found


def save_product(path: Path, weight: np.ndarray[Any, np.dtype[np.float32]], opset: int, rank: int = 3) -> Path:
    """A graph of one product, `y = x @ weight`."""
    width = [*["abc"[place] for place in range(rank - 1)]]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weight"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [*width, weight.shape[0]])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [*width, weight.shape[1]])],
        [numpy_helper.from_array(weight, "weight")],
    )
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


@pytest.mark.parametrize("opset", [13, 17, 18, 20])
@pytest.mark.parametrize("rank", [2, 3])
def test_an_outlier_in_one_token_leaves_the_others_exact(tmp_path: Path, opset: int, rank: int) -> None:
    random = np.random.default_rng(0)
    weight = random.normal(size=(64, 8)).astype(np.float32)
    quantize(save_product(tmp_path / "whole.onnx", weight, opset, rank), tmp_path / "small.onnx")
    values = random.normal(size=(2, 5, 64)[3 - rank :]).astype(np.float32)
    usual = run(tmp_path / "small.onnx", values)
    assert np.abs(usual - values @ weight).max() < 0.3
    values[..., 0, 3] = 10_000
    found = run(tmp_path / "small.onnx", values)
    assert (found[..., 1:, :] == usual[..., 1:, :]).all()
    np.testing.assert_allclose(found[..., 0, :], values[..., 0, :] @ weight, atol=0.02 * 10_000)


def test_rows_of_zeros_and_rows_of_one_sign(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    quantize(save_product(tmp_path / "whole.onnx", weight, 20, rank=2), tmp_path / "small.onnx")
    positive = np.random.default_rng(1).uniform(5, 6, 32).astype(np.float32)
    values = np.stack([np.zeros(32, np.float32), positive, -positive])
    found = run(tmp_path / "small.onnx", values)
    assert found[0].tolist() == [0, 0, 0, 0]
    assert np.abs(found - values @ weight).max() < 0.5


def test_graphs_of_old_versions_have_one_scale_for_all_tokens(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    quantize(save_product(tmp_path / "whole.onnx", weight, 12), tmp_path / "small.onnx")
    assert "DynamicQuantizeLinear" in [node.op_type for node in onnx.load_model(tmp_path / "small.onnx").graph.node]
    values = np.random.default_rng(1).normal(size=(1, 3, 16)).astype(np.float32)
    assert np.abs(run(tmp_path / "small.onnx", values) - values @ weight).max() < 0.2


def make_foreign(path: Path, **saving: Any) -> Path:
    """A graph as exporters write it: with a mask, a product without a constant, and a shared weight."""
    weight = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
        helper.make_node("MatMul", ["embedded", "weight"], ["first"]),
        helper.make_node("Transpose", ["first"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["first", "turned"], ["scores"]),
        helper.make_node("MatMul", ["scores", "first"], ["mixed"]),
        helper.make_node("MatMul", ["mixed", "weight"], ["second"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "axis"], ["column"]),
        helper.make_node("Mul", ["second", "column"], ["last_hidden_state"]),
    ]
    int64, float32 = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    table = np.random.default_rng(1).normal(size=(9, 6)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "foreign",
        [helper.make_tensor_value_info(name, int64, ["b", "t"]) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("last_hidden_state", float32, ["b", "t", 6])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(weight, "weight"),
            numpy_helper.from_array(np.array([2]), "axis"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save_model(model, path, **saving)
    return path


@pytest.mark.parametrize("saving", [{}, {"save_as_external_data": True, "location": "beside", "size_threshold": 100}])
def test_foreign_graphs_are_quantised_too(tmp_path: Path, saving: dict[str, Any]) -> None:
    whole = make_foreign(tmp_path / "whole.onnx", **saving)
    quantize(whole, tmp_path / "small.onnx")
    operators = [node.op_type for node in onnx.load_model(tmp_path / "small.onnx").graph.node]
    assert operators.count("MatMulIntegerToFloat") == 2
    assert operators.count("MatMul") == 2
    exact, rounded = (answer(tmp_path / name, np.array([1, 4, 7])) for name in ("whole.onnx", "small.onnx"))
    assert 0 < np.abs(rounded - exact).max() < 0.05 * np.abs(exact).max()


def test_blocks_worked_by_hand() -> None:
    table = np.zeros((2, 40), np.float32)
    table[0, :3], table[0, 33], table[1, 39] = (1.27, -0.635, 0.004), -2.54, 12.7
    integers, factors = quantize_blocks(table)
    assert integers.shape == (2, 40)
    assert integers[0, :4].tolist() == [255, 64, 128, 128]
    assert (integers[0, 33], integers[1, 0], integers[1, 39]) == (1, 128, 255)
    np.testing.assert_allclose(factors, [[0.01, 0.02], [1, 0.1]], rtol=1e-6)


@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 70))
def test_no_value_of_a_table_is_off_by_more_than_half_a_step(seed: int, rows: int, columns: int) -> None:
    table = np.random.default_rng(seed).normal(0, 2, (rows, columns)).astype(np.float32)
    integers, factors = quantize_blocks(table)
    steps = np.repeat(factors, 32, axis=1)[:, :columns]
    assert (np.abs((integers.astype(np.float32) - 128) * steps - table) <= steps * 0.50001).all()


def is_looked_up(path: Path) -> bool:
    return "GatherBlockQuantized" in [node.op_type for node in onnx.load_model(path).graph.node]


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_a_large_table_of_words_is_quantised(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = save(tmp_path / "whole.onnx", kind)
    quantize(whole, tmp_path / "float.onnx")
    assert not is_looked_up(tmp_path / "float.onnx")
    monkeypatch.setattr("onnx_from_checkpoints.quantization._TABLE_FROM", 1)
    quantize(whole, tmp_path / "small.onnx", single_up_to=0)
    assert is_looked_up(tmp_path / "small.onnx")
    kept = {tensor.name for tensor in onnx.load_model(tmp_path / "small.onnx").graph.initializer}
    assert "words" not in kept
    exact, rounded = (answer(tmp_path / name, np.arange(5, 25)) for name in ("float.onnx", "small.onnx"))
    assert 0 < np.abs(rounded - exact).max() < 0.25


def test_a_table_that_a_product_reads_too_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_from_checkpoints.quantization._TABLE_FROM", 1)
    model = onnx.load_model(make_foreign(tmp_path / "whole.onnx"))
    quantize(tmp_path / "whole.onnx", tmp_path / "small.onnx")
    assert is_looked_up(tmp_path / "small.onnx")
    model.graph.node.append(helper.make_node("Transpose", ["table"], ["transposed"]))
    onnx.save_model(model, tmp_path / "whole.onnx")
    quantize(tmp_path / "whole.onnx", tmp_path / "small.onnx")
    assert not is_looked_up(tmp_path / "small.onnx")


@pytest.mark.parametrize("kind", [onnx.TensorProto.INT4, onnx.TensorProto.UINT4, onnx.TensorProto.BFLOAT16])
@pytest.mark.parametrize("saving", [{}, {"save_as_external_data": True, "location": "beside", "size_threshold": 100}])
def test_constants_of_types_that_numpy_lacks_are_kept(tmp_path: Path, kind: int, saving: dict[str, Any]) -> None:
    """An odd number of integers of 4 bits, of which two are in a byte."""
    model = onnx.load_model(make_foreign(tmp_path / "whole.onnx"))
    values = np.random.default_rng(0).integers(0, 8, (171, 19)).astype(helper.tensor_dtype_to_np_dtype(kind))
    model.graph.initializer.append(numpy_helper.from_array(values, "constant"))
    model.graph.node.append(helper.make_node("Cast", ["constant"], ["cast"], to=onnx.TensorProto.FLOAT))
    model.graph.output.append(helper.make_tensor_value_info("cast", onnx.TensorProto.FLOAT, [171, 19]))
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 21))
    model.ir_version = 10
    onnx.save_model(model, tmp_path / "whole.onnx", **saving)
    quantize(tmp_path / "whole.onnx", tmp_path / "small.onnx", single_up_to=0)
    assert (tmp_path / "small.onnx_data").stat().st_size > values.size // 2
    inputs = {name: np.zeros((1, 1), np.int64) for name in ("input_ids", "attention_mask")}
    found = run_inside(tmp_path / "small.onnx", inputs, ["cast"])["cast"]
    assert np.array_equal(found, values.astype(np.float32))


@pytest.mark.parametrize("content", [b"", b"no protobuf at all", b"\x08\x0a"])
def test_files_that_are_not_models(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"broken\.onnx: is damaged or not an ONNX model"):
        quantize(path, tmp_path / "small.onnx")
    assert not (tmp_path / "small.onnx").exists()


def test_a_truncated_file(tmp_path: Path) -> None:
    path = save(tmp_path / "whole.onnx")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(DamagedFile, match=r"whole\.onnx: is damaged"):
        quantize(path, tmp_path / "small.onnx")


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match=r"none\.onnx: cannot be read: No such file"):
        quantize(tmp_path / "none.onnx", tmp_path / "small.onnx")


REPLIES: dict[str, dict[str, Any]] = {
    "t5-reply": {"task": "classification", "replies": (3, 20)},
    "t5-tied-reply": {"task": "classification", "replies": (20, 3, 5)},
}
NEAR = 0.02
FURTHER = {"t5-tokens": 0.03, "eurobert-tokens": 0.07}
"""The random weights of these two magnify rounding: noise of 0.7 % in each product of the float32 graph, as much as
int8 makes, changes single tokens' probabilities by up to 0.04 (EuroBERT) and 0.09 (T5), but by 0.02 in BERT and
ModernBERT."""
MOST_NOISE = 0.03
"""The largest error of a product's values, as a share of their root mean square. On average it is 0.7 %."""


@pytest.mark.parametrize("name", list_goldens(""))
def test_probabilities_of_int8_are_near_those_of_float32(tmp_path: Path, name: str) -> None:
    config, weights, cases = read_golden(name)
    onnx.save_model(build_graph(config, weights, **REPLIES.get(name, {})), tmp_path / "whole.onnx")
    quantize(tmp_path / "whole.onnx", tmp_path / "small.onnx")
    whole, small = (
        onnxruntime.InferenceSession(tmp_path / file, providers=["CPUExecutionProvider"])
        for file in ("whole.onnx", "small.onnx")
    )
    for case in cases:
        for text, length in enumerate(case.inputs["attention_mask"].sum(axis=1)):
            inputs = {key: values[text : text + 1, :length] for key, values in case.inputs.items()}
            exact, rounded = run_golden(whole, inputs)[0], run_golden(small, inputs)[0]
            if "logits" in whole.get_outputs()[0].name:
                difference = np.abs(find_probabilities(exact) - find_probabilities(rounded)).max()
                assert difference < FURTHER.get(name, NEAR)
            else:
                cosine = (exact * rounded).sum() / np.linalg.norm(exact) / np.linalg.norm(rounded)
                assert cosine > 0.998


@pytest.mark.parametrize("name", list_goldens(""))
def test_each_product_is_off_by_rounding_alone(tmp_path: Path, name: str) -> None:
    config, weights, cases = read_golden(name)
    whole = build_graph(config, weights, **REPLIES.get(name, {}))
    onnx.save_model(whole, tmp_path / "whole.onnx")
    quantize(tmp_path / "whole.onnx", tmp_path / "small.onnx")
    matrices = {tensor.name: numpy_helper.to_array(tensor) for tensor in whole.graph.initializer}
    products = [
        node
        for node in whole.graph.node
        if node.op_type == "MatMul" and node.input[1] in matrices and matrices[node.input[1]].ndim == 2
    ]
    assert products
    text = {key: values[:1, : cases[-1].inputs["attention_mask"][0].sum()] for key, values in cases[-1].inputs.items()}
    values = run_inside(
        tmp_path / "small.onnx", text, [each for node in products for each in (node.input[0], node.output[0])]
    )
    for node in products:
        exact = values[node.input[0]] @ matrices[node.input[1]]
        error = values[node.output[0]] - exact
        assert np.sqrt(np.mean(error**2)) < MOST_NOISE * np.sqrt(np.mean(exact**2)), node.input[1]


def run_inside(path: Path, inputs: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Values inside a graph by their names."""
    model = onnx.load_model(path)
    constants = {
        tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer if tensor.name in names
    }
    inner = [name for name in dict.fromkeys(names) if name not in constants]
    shown = {value.name for value in model.graph.output}
    model.graph.output.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in inner if name not in shown
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = {value.name for value in session.get_inputs()}
    found = session.run(inner, {key: values for key, values in inputs.items() if key in wanted})
    return constants | dict(zip(inner, found, strict=True))


def find_probabilities(logits: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The softmax over the last dimension."""
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True), np.float32)


@OPERATORS
@ZERO
@SHARED
@BESIDE
def test_unsigned_graphs_are_exact_in_other_programs(
    tmp_path: Path, operator: str, zero: bool, shared: bool, beside: bool
) -> None:
    path = save_encoder(tmp_path / "model.onnx", operator, zero=zero, shared=shared, beside=beside)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
    session = onnxruntime.InferenceSession(read_unsigned(path), options, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": np.arange(len(VALUES))[None]})
    assert np.array_equal(found[0], EXPECTED * (2 if shared else 1))


def test_scales_of_columns_keep_their_shape(tmp_path: Path) -> None:
    """A zero point of DequantizeLinear must have the shape of its scale."""
    path = save_encoder(tmp_path / "model.onnx", "DequantizeLinear", zero=False, shared=False, beside=False)
    model = onnx.load_model(path)
    node = next(node for node in model.graph.node if node.input[0] == "weight")
    node.input[1] = "scales"
    scales = np.arange(1, SIZE + 1, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scales, "scales"))
    onnx.save_model(model, path)
    session = onnxruntime.InferenceSession(read_unsigned(path), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": np.arange(len(VALUES))[None]})
    assert np.array_equal(found[0], EXPECTED * scales)


def test_the_same_weight_is_stored_once(tmp_path: Path) -> None:
    path = save_encoder(tmp_path / "model.onnx", "MatMulInteger", zero=True, shared=True, beside=False)
    graph = onnx.load_model_from_string(read_unsigned(path)).graph
    weights = {node.input[1] for node in graph.node if node.op_type == "MatMulInteger"}
    (kept,) = [one for one in graph.initializer if one.name in weights]
    assert (kept.data_type, len(weights)) == (UINT8, 1)
    assert np.array_equal(numpy_helper.to_array(kept), WEIGHT.astype(int) + 128)


def test_graphs_without_int8_weights(tmp_path: Path) -> None:
    once = read_unsigned(save_encoder(tmp_path / "model.onnx", "MatMulInteger", zero=True, shared=True, beside=False))
    (tmp_path / "again.onnx").write_bytes(once)
    assert read_unsigned(tmp_path / "again.onnx") == b""
