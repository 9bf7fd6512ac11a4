""""""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.quantization import quantize
from onnx_from_checkpoints.weights import read_weights
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference import session as session_module
from rageval_spec.inference.model_files import find_source, locate
from rageval_spec.inference.session import Session, _read_limits, count_cores, make_batches, pool
from tests.onnx_from_checkpoints.architectures.golden import read_golden
from tests.onnx_from_checkpoints.folders import write_copy_detector
from tests.onnx_from_checkpoints.integer_products import (
    BESIDE,
    EXPECTED,
    OPERATORS,
    SHARED,
    VALUES,
    ZERO,
    save_encoder,
)
from tests.onnx_from_checkpoints.models import HIDDEN, LABELS, POSITIONS, VOCABULARY, make_config, make_weights
from tests.onnx_from_checkpoints.reference.encoder import classify, encode

CONFIG = make_config("bert")
WEIGHTS = make_weights(CONFIG)
CLASSIFIER = make_config("bert", classifier=True)

Ids = Sequence[NDArray[np.int64]]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "encoder.onnx"
    onnx.save_model(build_graph(CONFIG, WEIGHTS), path)
    return path


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "classifier.onnx"
    onnx.save_model(build_graph(CLASSIFIER, make_weights(CLASSIFIER)), path)
    return path


def draw_texts(lengths: Sequence[int], seed: int = 0) -> list[NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    return [random.integers(2, VOCABULARY, length) for length in lengths]


def collect(session: Session, ids: Ids, types: Ids | None = None) -> NDArray[np.float32]:
    """The answers in the order of the texts; checks that each text has exactly one."""
    rows: dict[int, NDArray[np.float32]] = {}
    for positions, vectors in session.run(ids, types):
        assert vectors.dtype == np.float32
        for position, vector in zip(positions.tolist(), vectors, strict=True):
            assert position not in rows
            rows[position] = vector
    assert sorted(rows) == list(range(len(ids)))
    return np.array([rows[position] for position in range(len(ids))], np.float32)


class TestVectors:
    def test_are_the_mean_of_the_tokens(self, graph: Path) -> None:
        ids = draw_texts([3, 8, 1, 8, 5])
        found = collect(Session(graph), ids)
        expected = [encode(CONFIG, WEIGHTS, one.tolist(), [0] * len(one)).mean(axis=0) for one in ids]
        np.testing.assert_allclose(found, expected, atol=1e-4)

    def test_several_poolings_are_concatenated(self, graph: Path) -> None:
        ids = draw_texts([3, 8])
        found = collect(Session(graph, ("cls", "max")), ids)
        assert found.shape == (2, 2 * HIDDEN)
        parts = [collect(Session(graph, (one,)), ids) for one in ("cls", "max")]
        assert found.tolist() == np.concatenate(parts, axis=1).tolist()

    def test_depend_on_the_types_of_the_tokens(self, graph: Path) -> None:
        ids, types = draw_texts([6]), [np.array([0, 0, 0, 1, 1, 1])]
        found = collect(Session(graph), ids, types)
        expected = encode(CONFIG, WEIGHTS, ids[0].tolist(), types[0].tolist()).mean(axis=0)
        np.testing.assert_allclose(found[0], expected, atol=1e-4)
        assert np.abs(found - collect(Session(graph), ids)).max() > 1e-3

    @settings(max_examples=30)
    @given(
        lengths=st.lists(st.integers(1, POSITIONS), min_size=1, max_size=30),
        threads=st.integers(1, 4),
        budget=st.integers(1, 200),
    )
    @pytest.mark.parametrize("precision", ["fp32", "int8"])
    def test_are_bit_identical_whatever_other_texts_are_run(
        self, graph: Path, precision: str, lengths: list[int], threads: int, budget: int
    ) -> None:
        path = graph if precision == "fp32" else graph.with_name("int8.onnx")
        if not path.exists():
            quantize(graph, path)
        ids = draw_texts(lengths)
        together = collect(Session(path, threads=threads, budget=budget), ids)
        alone = Session(path, threads=1)
        for position, one in enumerate(ids):
            assert collect(alone, [one]).tobytes() == together[position].tobytes()


class TestLogits:
    def test_are_those_of_the_definition(self, classifier: Path) -> None:
        ids, types = draw_texts([4, 9, 9]), [np.arange(length) % 2 for length in (4, 9, 9)]
        session = Session(classifier)
        assert session.task == "classification"
        found = collect(session, ids, types)
        assert found.shape == (3, LABELS)
        weights = make_weights(CLASSIFIER)
        expected = [classify(CLASSIFIER, weights, a.tolist(), b.tolist()) for a, b in zip(ids, types, strict=True)]
        np.testing.assert_allclose(found, expected, atol=1e-4)

    def test_are_bit_identical_whatever_other_texts_are_run(self, classifier: Path) -> None:
        ids = draw_texts([7] * 20 + [3, 2, 2])
        together = collect(Session(classifier, budget=1000), ids)
        assert collect(Session(classifier, budget=1), ids).tobytes() == together.tobytes()


class TestOrder:
    def test_the_longest_come_first_on_any_number_of_threads(self, graph: Path) -> None:
        ids = draw_texts([2, 30, 7, 30, 1, 7] * 5)
        orders = [
            [positions.tolist() for positions, _ in Session(graph, threads=threads).run(ids)] for threads in (1, 3)
        ]
        assert orders[0] == orders[1]
        lengths = [len(ids[positions[0]]) for positions in orders[0]]
        assert lengths == sorted(lengths, reverse=True)

    def test_no_texts_give_no_batches(self, graph: Path) -> None:
        assert list(Session(graph).run([])) == []

    def test_texts_are_computed_only_when_needed(self, graph: Path) -> None:
        """Only a few batches are ready at a time, so memory does not grow with the number of texts."""
        read: list[int] = []

        class Watched(Sequence[NDArray[np.int64]]):
            def __len__(self) -> int:
                return 100

            def __getitem__(self, position: Any) -> Any:
                if position >= 100:
                    raise IndexError
                read.append(position)
                return np.array([2 + position % 30])

        answers = Session(graph, threads=2, budget=1).run(Watched())
        next(answers)
        before = len(read)
        answers.close()  # type: ignore[attr-defined]
        assert before <= 100 + 8

    def test_stopping_the_iteration_early_stops_the_threads(self, graph: Path) -> None:
        before = threading.active_count()
        answers = Session(graph, threads=3).run(draw_texts([9] * 500))
        next(answers)
        answers.close()  # type: ignore[attr-defined]
        assert threading.active_count() == before


class TestInterrupts:
    def test_an_interrupt_ends_the_batch_that_is_being_computed(self, tmp_path: Path) -> None:
        """The graph would run for minutes; an interrupt reaches the caller before it ends."""
        session = Session(make_endless(tmp_path / "endless.onnx"), threads=1)

        def interrupt() -> None:
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        # Shells start background jobs with interrupts ignored, and Python keeps that setting.
        inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                list(session.run([np.array([1, 2])]))
        finally:
            thread.join()
            signal.signal(signal.SIGINT, inherited)
        assert not [one for one in threading.enumerate() if one.name.startswith("inference")]


def make_endless(path: Path) -> Path:
    """A graph whose loop runs a hundred million times."""
    int64, float32 = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["condition"], ["goes_on"]),
            helper.make_node("MatMul", ["state", "square"], ["next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("round", int64, []),
            helper.make_tensor_value_info("condition", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", float32, [4, 4]),
        ],
        [
            helper.make_tensor_value_info("goes_on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", float32, [4, 4]),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["input_ids"], ["numbers"], to=float32),
            helper.make_node("Loop", ["rounds", "", "square"], ["turned"], body=body),
            helper.make_node("ReduceSum", ["turned"], ["total"], keepdims=0),
            helper.make_node("Add", ["numbers", "total"], ["sentence_embedding"]),
        ],
        "endless",
        [helper.make_tensor_value_info("input_ids", int64, ["b", "t"])],
        [helper.make_tensor_value_info("sentence_embedding", float32, ["b", "t"])],
        [
            numpy_helper.from_array(np.array(100_000_000), "rounds"),
            numpy_helper.from_array(np.eye(4, dtype=np.float32), "square"),
        ],
    )
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def make_model(path: Path, inputs: Sequence[str], output: str, kind: int = onnx.TensorProto.INT64) -> Path:
    """A graph whose vector for a token is the token's id."""
    nodes = [
        helper.make_node("Cast", [inputs[0]], ["numbers"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["numbers", "axis"], ["column"]),
    ]
    last = "column"
    if output in ("sentence_embedding", "logits"):
        nodes.append(helper.make_node("ReduceSum", ["column", "tokens"], ["total"], keepdims=0))
        last = "total"
    nodes.append(helper.make_node("Identity", [last], [output]))
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info(name, kind, ["b", "t"]) for name in inputs],
        [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([2]), "axis"), numpy_helper.from_array(np.array([1]), "tokens")],
    )
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


class TestForeignGraphs:
    @pytest.mark.parametrize(
        ("output", "task", "expected"),
        [
            ("last_hidden_state", "embedding", [[3], [5]]),
            ("token_embeddings", "embedding", [[3], [5]]),
            ("sentence_embedding", "embedding", [[6], [5]]),
            ("logits", "classification", [[6], [5]]),
        ],
    )
    def test_outputs_by_the_names_that_exporters_give(
        self, tmp_path: Path, output: str, task: str, expected: list[list[float]]
    ) -> None:
        inputs = ["input_ids", "attention_mask", "token_type_ids"]
        session = Session(make_model(tmp_path / "model.onnx", inputs, output))
        assert session.task == task
        np.testing.assert_allclose(collect(session, [np.array([2, 4]), np.array([5])]), expected, rtol=1e-5)


class TestBadFiles:
    @pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"\x08\x0a"])
    def test_files_that_are_not_models(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "broken.onnx"
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"broken\.onnx: is damaged or not an ONNX model \(.+\); download it again"):
            Session(path)

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
    def test_a_truncated_file(self, graph: Path, tmp_path: Path, share: float) -> None:
        path, content = tmp_path / "half.onnx", graph.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(DataError, match=r"half\.onnx: is damaged"):
            Session(path)

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"none\.onnx: no such file"):
            Session(tmp_path / "none.onnx")

    def test_an_image_model(self, tmp_path: Path) -> None:
        path = make_model(tmp_path / "model.onnx", ["pixel_values"], "last_hidden_state")
        with pytest.raises(DataError, match=r"is not an encoder: its inputs are pixel_values; expected input_ids"):
            Session(path)

    def test_a_decoder(self, tmp_path: Path) -> None:
        path = make_model(tmp_path / "model.onnx", ["input_ids", "past_key_values.0.key"], "logits")
        with pytest.raises(DataError, match=r"its inputs are input_ids, past_key_values\.0\.key"):
            Session(path)

    def test_a_model_with_other_outputs(self, tmp_path: Path) -> None:
        path = make_model(tmp_path / "model.onnx", ["input_ids"], "start_logits")
        with pytest.raises(DataError, match=r"its outputs are start_logits; expected sentence_embedding"):
            Session(path)

    def test_inputs_of_another_type(self, tmp_path: Path) -> None:
        path = make_model(tmp_path / "model.onnx", ["input_ids"], "logits", onnx.TensorProto.FLOAT)
        with pytest.raises(DataError, match=r"not all int64"):
            Session(path)


class TestBadTexts:
    def test_a_token_that_the_model_does_not_know(self, graph: Path) -> None:
        with pytest.raises(
            DataError, match=rf"it gives the id {VOCABULARY}, but the model only knows ids below {VOCABULARY}"
        ):
            list(Session(graph).run([np.array([2, VOCABULARY])]))

    def test_a_text_longer_than_the_model(self, graph: Path) -> None:
        with pytest.raises(RagevalError, match=rf"cannot read a text of {POSITIONS + 1} tokens"):
            list(Session(graph).run([np.full(POSITIONS + 1, 2)]))

    def test_a_text_longer_than_the_positions_of_roberta(self, tmp_path: Path) -> None:
        config = make_config("xlm-roberta")
        onnx.save_model(build_graph(config, make_weights(config)), tmp_path / "long.onnx")
        message = rf"cannot read a text of {POSITIONS} tokens: the model has {POSITIONS} positions, of which"
        with pytest.raises(RagevalError, match=message):
            list(Session(tmp_path / "long.onnx").run([np.full(POSITIONS, 2)]))

    def test_an_unknown_pooling(self, graph: Path) -> None:
        with pytest.raises(UsageError, match="no pooling 'sum'"):
            list(Session(graph, ("sum",)).run([np.array([2])]))


class TestCores:
    def test_are_at_most_those_of_the_affinity(self) -> None:
        assert 1 <= count_cores() <= len(os.sched_getaffinity(0))

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({"cpu.max": "150000 100000\n"}, 2),
            ({"cpu.max": "50000 100000\n"}, 1),
            ({"cpu.max": "max 100000\n"}, None),
            ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
            ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
            ({}, None),
        ],
    )
    def test_are_no_more_than_the_control_group_allows(
        self, tmp_path: Path, files: dict[str, str], expected: int | None
    ) -> None:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        limit = min(_read_limits(tmp_path))
        assert limit == expected if expected else limit > 1_000_000


GOLDEN = {
    "A cat sits on the mat.": (
        [101, 1037, 4937, 7719, 2006, 1996, 13523, 1012, 102],
        [0.1265352, -0.0328508, -0.0290596, 0.044407, -0.0434453, 0.0320969, 0.0481111, 0.0276751],
    ),
    "What is the capital of France?": (
        [101, 2054, 2003, 1996, 3007, 1997, 2605, 1029, 102],
        [0.0820482, 0.0360555, -0.0038929, -0.0048811, 0.0256512, -0.0571434, 0.0121916, 0.004679],
    ),
    "ok": (
        [101, 7929, 102],
        [-0.0461246, -0.0590694, -0.0218846, 0.0169413, 0.0452772, -0.0172782, 0.0264446, 0.0638295],
    ),
}
"""The first components of normalised vectors that sentence-transformers 6.2 (torch 2.15, CPU) gives for
all-MiniLM-L6-v2, and the ids that its tokenizer gives."""


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph of all-MiniLM-L6-v2, from the embedded weights."""
    import json

    try:
        source = find_source(locate("minilm", Path()))
    except UsageError as error:
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2: {error}")
    assert source is not None
    path = tmp_path_factory.mktemp("minilm") / "model.onnx"
    config = json.loads((source.folder / "config.json").read_text())
    onnx.save_model(build_graph(config, read_weights([source.path("model.safetensors")])), path)
    return path


class TestMiniLM:
    def test_vectors_are_those_of_sentence_transformers(self, minilm: Path) -> None:
        found = collect(Session(minilm), [np.array(ids) for ids, _ in GOLDEN.values()])
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        np.testing.assert_allclose(found[:, :8], [vector for _, vector in GOLDEN.values()], atol=1e-6)

    def test_int8_vectors_have_nearly_the_same_direction(self, minilm: Path, tmp_path: Path) -> None:
        quantize(minilm, tmp_path / "int8.onnx")
        ids = [np.array(ids) for ids, _ in GOLDEN.values()]
        exact, rounded = (collect(Session(path), ids) for path in (minilm, tmp_path / "int8.onnx"))
        lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
        cosines = (exact * rounded).sum(axis=1) / lengths
        assert (cosines > 0.96).all()
        assert (cosines < 1).all()


def test_pooling_is_done_once_for_each_method(graph: Path) -> None:
    ids = draw_texts([5])
    hidden = encode(CONFIG, WEIGHTS, ids[0].tolist(), [0] * 5)[None].astype(np.float32)
    for method in ("cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean"):
        expected = pool(hidden, np.ones((1, 5), np.int64), method)
        np.testing.assert_allclose(collect(Session(graph, (method,)), ids), expected, atol=2e-4)


@pytest.mark.parametrize(
    ("output", "axes", "message"),
    [
        ("last_hidden_state", 0, r"output last_hidden_state has shape \[1, 5\], not \[1, 5, hidden\]"),
        ("token_embeddings", 2, r"has shape \[1, 5, 1, 1\], not \[1, 5, hidden\]"),
        ("sentence_embedding", 1, r"has shape \[1, 5, 1\], not \[1, values\]"),
        ("logits", 2, r"\.onnx: is not an encoder: .* its output logits has shape \[1, 5, 1, 1\], not \[1, values\]"),
        ("token_logits", 0, r"output token_logits has shape \[1, 5\], not \[1, 5, values\]"),
    ],
)
def test_an_output_of_another_shape_is_refused(tmp_path: Path, output: str, axes: int, message: str) -> None:
    numbers = numpy_helper.from_array(np.arange(2, 2 + axes, dtype=np.int64), "axes")
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["numbers"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["numbers", "axes"], [output]),
    ]
    read = [helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["texts", "tokens"])]
    given = [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "other", read, given, [numbers])
    path = tmp_path / "other.onnx"
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    with pytest.raises(DataError, match=message):
        collect(Session(path), draw_texts([5]))


@pytest.mark.parametrize(
    ("output", "stated", "told", "task"),
    [
        ("token_logits", True, None, "token_classification"),
        ("token_logits", True, "embedding", "token_classification"),
        ("logits", True, None, "token_classification"),
        ("logits", True, "classification", "token_classification"),
        ("logits", False, "token_classification", "token_classification"),
        ("logits", False, None, "classification"),
    ],
)
def test_logits_of_tokens_are_told_by_their_name_or_their_axes(
    tmp_path: Path, output: str, stated: bool, told: Any, task: str
) -> None:
    path = write_copy_detector(tmp_path / "tagger.onnx", output, stated=stated)
    session = Session(path, task=told)
    assert session.task == task
    if task == "token_classification":
        (one,) = session.run([np.array([5, 6, 5])])
        np.testing.assert_allclose(one[1], [[[1, -1], [-1, 1], [1, -1]]], rtol=1e-5)


def test_a_token_id_without_an_embedding_is_blamed_on_the_tokenizer(graph: Path) -> None:
    with pytest.raises(DataError, match=rf"tokenizer does not match the model: it gives the id 61996, .* {VOCABULARY}"):
        collect(Session(graph), [np.array([2, 61996, 3])])


def test_missing_external_weights_are_named(tmp_path: Path) -> None:
    path = tmp_path / "encoder.onnx"
    onnx.save_model(
        build_graph(CONFIG, WEIGHTS), path, save_as_external_data=True, location="encoder.onnx_data", size_threshold=0
    )
    (tmp_path / "encoder.onnx_data").unlink()
    with pytest.raises(DataError, match=r"its weights are in encoder\.onnx_data, which is missing from its folder"):
        Session(path)


def test_batches_worked_by_hand() -> None:
    found = [batch.tolist() for batch in make_batches([3, 5, 3, 2, 3, 9], budget=6)]
    assert found == [[5], [1], [0, 2], [4], [3]]


def test_no_texts_make_no_batches() -> None:
    assert list(make_batches([])) == []


@given(st.lists(st.integers(0, 40)), st.integers(1, 100))
def test_every_text_is_in_one_batch_of_equal_lengths_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(make_batches(lengths, budget))
    assert sorted(np.concatenate(batches).tolist() if batches else []) == list(range(len(lengths)))
    sizes = []
    for batch in batches:
        (length,) = {lengths[position] for position in batch}
        assert len(batch) == 1 or len(batch) * length <= budget
        assert batch.tolist() == sorted(batch)
        sizes.append(length)
    assert sizes == sorted(sizes, reverse=True)


@given(st.lists(st.integers(1, 40), min_size=1), st.integers(1, 100))
def test_batches_are_as_full_as_they_can_be(lengths: list[int], budget: int) -> None:
    batches = list(make_batches(lengths, budget))
    for one, following in pairwise(batches):
        length = lengths[one[0]]
        if lengths[following[0]] == length:
            assert (len(one) + 1) * length > budget


def test_a_budget_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1 token, not 0"):
        list(make_batches([1], budget=0))


METHODS = ("cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean")
HIDDEN_STATES = np.array([[[1, -8], [3, -2], [8, -5], [90, 90]]], np.float32)
MASK = np.array([[1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("cls", [1, -8]),
        ("lasttoken", [8, -5]),
        ("max", [8, -2]),
        ("mean", [4, -5]),
        ("mean_sqrt_len_tokens", [12 / math.sqrt(3), -15 / math.sqrt(3)]),
        ("weightedmean", [(1 + 6 + 24) / 6, (-8 - 4 - 15) / 6]),
    ],
)
def test_poolings_worked_by_hand(method: str, expected: list[float]) -> None:
    found = pool(HIDDEN_STATES, MASK, method)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [expected], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_padding_on_the_left_is_left_out_too(method: str) -> None:
    turned = pool(HIDDEN_STATES[:, [3, 0, 1, 2]], MASK[:, ::-1], method)
    if method == "weightedmean":  # weights count positions, as in sentence-transformers
        np.testing.assert_allclose(turned, [[(2 + 9 + 32) / 9, (-16 - 6 - 20) / 9]], rtol=1e-6)
    else:
        assert turned.tolist() == pool(HIDDEN_STATES, MASK, method).tolist()


def pool_slowly(hidden: NDArray[np.float32], mask: NDArray[np.int64], method: str) -> list[list[float]]:
    found = []
    for rows, counted in zip(hidden.astype(float), mask, strict=True):
        kept = [(place + 1, row) for place, row in enumerate(rows) if counted[place]]
        values = [row for _, row in kept]
        total = sum(values, np.zeros(rows.shape[1]))
        weighted = sum((place * row for place, row in kept), np.zeros(rows.shape[1]))
        found.append(
            {
                "cls": values[0],
                "lasttoken": values[-1],
                "max": np.array(values).max(0),
                "mean": total / len(values),
                "mean_sqrt_len_tokens": total / math.sqrt(len(values)),
                "weightedmean": weighted / sum(place for place, _ in kept),
            }[method].tolist()
        )
    return found


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_poolings_are_those_of_their_definitions(method: str, data: st.DataObject) -> None:
    texts, tokens, size = (data.draw(st.integers(1, 5)) for _ in range(3))
    hidden = np.random.default_rng(data.draw(st.integers(0, 99))).normal(0, 3, (texts, tokens, size))
    rows = st.lists(st.integers(0, 1), min_size=tokens, max_size=tokens).filter(any)
    mask = np.array(data.draw(st.lists(rows, min_size=texts, max_size=texts)))
    found = pool(hidden.astype(np.float32), mask, method)
    np.testing.assert_allclose(found, pool_slowly(hidden.astype(np.float32), mask, method), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_text_gets_bit_identical_vectors_alone_and_with_others(method: str) -> None:
    hidden = np.random.default_rng(0).normal(size=(9, 31, 48)).astype(np.float32)
    mask = np.ones((9, 31), np.int64)
    together = pool(hidden, mask, method)
    for row in range(9):
        assert pool(hidden[row : row + 1], mask[:1], method).tobytes() == together[row : row + 1].tobytes()


@pytest.mark.parametrize("method", ["mean", "mean_sqrt_len_tokens", "weightedmean"])
def test_a_text_without_tokens_gets_zeros(method: str) -> None:
    assert pool(HIDDEN_STATES, np.zeros((1, 4), np.int64), method).tolist() == [[0, 0]]


def test_an_unknown_pooling_is_refused_with_a_list_of_poolings() -> None:
    with pytest.raises(UsageError, match="no pooling 'sum'; the poolings are: cls, lasttoken, max, mean"):
        pool(HIDDEN_STATES, MASK, "sum")


class TestProductsOfIntegers:
    @pytest.fixture
    def quantized(self, graph: Path, tmp_path: Path) -> Path:
        quantize(graph, tmp_path / "int8.onnx", signed=True)
        return tmp_path / "int8.onnx"

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The entries with which sessions are configured."""
        entries: list[str] = []
        add = onnxruntime.SessionOptions.add_session_config_entry

        def note(options: onnxruntime.SessionOptions, key: str, value: str) -> None:
            entries.append(key)
            add(options, key, value)

        monkeypatch.setattr(onnxruntime.SessionOptions, "add_session_config_entry", note)
        return entries

    def test_int8_weights_stay_int8_where_their_products_are_exact(
        self, quantized: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With AMX, products of uint8 and uint8 take six times as long."""
        monkeypatch.setattr(session_module, "multiplies_exactly", lambda: True)
        Session(quantized)
        assert asked == []

    def test_they_become_uint8_where_their_products_saturate(
        self, quantized: Path, graph: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = [np.arange(2, 9)]
        expected = collect(Session(quantized), ids)
        monkeypatch.setattr(session_module, "multiplies_exactly", lambda: False)
        asked.clear()
        assert np.array_equal(collect(Session(quantized), ids), expected)
        assert asked == ["session.x64quantprecision"]
        Session(graph)
        assert asked == ["session.x64quantprecision"]


@OPERATORS
@ZERO
@SHARED
@BESIDE
def test_sessions_multiply_integers_exactly_on_every_processor(
    tmp_path: Path, operator: str, zero: bool, shared: bool, beside: bool
) -> None:
    session = Session(save_encoder(tmp_path / "model.onnx", operator, zero=zero, shared=shared, beside=beside))
    found = dict[int, Any]()
    for positions, vectors in session.run([np.array([token]) for token in range(len(VALUES))]):
        found |= dict(zip(positions.tolist(), vectors, strict=True))
    # Saturated products are far off; last bits differ where model outputs are perturbed.
    assert np.allclose([found[token] for token in range(len(VALUES))], EXPECTED * (2 if shared else 1), rtol=1e-5)


@pytest.mark.parametrize("tokens", [3, 18, 19, 65])
def test_a_text_of_modernbert_has_the_same_bits_in_any_batch(tmp_path: Path, tokens: int) -> None:
    config, weights, _ = read_golden("modernbert-sliding")
    onnx.save_model(build_graph(config, weights), tmp_path / "model.onnx")
    ids = list(np.random.default_rng(2).integers(0, config["vocab_size"], (5, tokens)))
    found: list[list[NDArray[np.float32]]] = []
    for budget in (1, 1000):
        answers = Session(tmp_path / "model.onnx", ("mean",), threads=1, budget=budget).run(ids)
        found.append([row for _, vectors in answers for row in vectors])
    assert len(found[0]) == len(ids)
    assert np.array_equal(found[0], found[1])
