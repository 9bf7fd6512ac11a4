"""Runs an ONNX graph over texts: one thread per batch, one batch per core at a time.

This is faster than several threads on one batch, and the numbers do not depend on the number of threads.

A batch has texts of equal length, so nothing is padded. No work is wasted, and a text's numbers cannot depend on the
other texts in its batch.

The vectors of a text's tokens are combined into one as sentence-transformers' `Pooling` does.
"""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onnx_from_checkpoints import find_external_data, is_quantized
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference.model_files import say_fetch, translated
from rageval_spec.libraries import compile_later

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onnx_from_checkpoints import Task

    Tokens = Sequence[NDArray[np.int64]]
    Answer = tuple[NDArray[np.intp], NDArray[np.float32]]

    Hidden = NDArray[np.float32]
    Mask = NDArray[np.int64]
    Vectors = NDArray[np.float32]


TOKEN_BUDGET = 256
"""The most tokens in a batch: enough for matrix products at full speed, few enough for a core's cache."""


def make_batches(lengths: Sequence[int], budget: int = TOKEN_BUDGET) -> Iterator[NDArray[np.intp]]:
    """Positions of texts of equal length, at most `budget` tokens together; the longest texts come first.

    A text that is longer than the budget is a batch of its own. Among equal lengths the order of the texts is kept.

    Args:
        lengths: the number of tokens of each text.
        budget: at least 1.
    """
    if budget < 1:
        raise UsageError(f"the budget of a batch must be at least 1 token, not {budget}")
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    for length, equals in groupby(order, key=lambda position: lengths[position]):
        positions = np.fromiter(equals, np.intp)
        rows = max(1, budget // max(1, length))
        for start in range(0, len(positions), rows):
            yield positions[start : start + rows]


_VECTORS, _HIDDEN, _LOGITS = ("sentence_embedding",), ("last_hidden_state", "token_embeddings"), ("logits",)
_TOKEN_LOGITS = ("token_logits",)
"""The logits of tokens in graphs that are built here; other graphs call both kinds `logits`."""
_TOKEN_AXES = 3
_SCALED_TOGETHER = (b"DynamicQuantizeLinear", b"DynamicQuantizeMatMul", b"DynamicQuantizeLSTM")
"""Operators that compute one scale for all texts of a batch."""
_SLOW_FUSIONS = ["SkipLayerNormFusion"]
"""Disabled: on CPUs the fused operator takes four times as long as the two that it replaces."""
_WAITING_PER_THREAD = 2
_EXACT_PRODUCTS = ("session.x64quantprecision", "1")
"""Makes int8 weights uint8, so that products are exact where those of uint8 and int8 saturate (x86 without VNNI).
Elsewhere it must not be set: with AMX, products of uint8 and uint8 take six times as long."""
_PROBED_ROWS, _PROBED_WIDTH = (1, 64), 64
"""Shapes of the products by which `multiplies_exactly` tells: one row has another kernel than many."""
_FOLDER_OF_WEIGHTS = "session.model_external_initializers_file_folder_path"
"""Where the external weights of a graph are that is given as bytes."""
_FATAL = 4
"""ONNX Runtime's log level at which it does not also print the errors that it raises."""
_OUT_OF_BOUNDS = compile_later(r"idx=(\d+) must be within the inclusive range \[-\d+,(\d+)\]")
"""ONNX Runtime's message for an index outside of an embedding table."""
_FIRST_POSITION = 16
"""Larger than the index of the first position in any model."""


class Session:
    """An `.onnx` file that is ready to run.

    The output for a text is bit-identical whatever other texts are run with it and however many threads there are:
    batches hold texts of equal length, and a graph that computes one scale per batch gets one text at a time.
    """

    def __init__(
        self,
        path: Path,
        pooling: Sequence[str] = ("mean",),
        *,
        task: Task | None = None,
        threads: int | None = None,
        budget: int = TOKEN_BUDGET,
    ) -> None:
        """Load the graph.

        Args:
            path: the `.onnx` file.
            pooling: how the tokens of a text become one vector; several are concatenated. Ignored if the graph itself
                outputs one vector per text (`sentence_embedding`) or logits.
            task: which output to read if the graph has both vectors and logits; None reads vectors. It also says what
                an output `logits` holds whose number of axes the graph does not state.
            threads: None uses the cores that this process may use; see `count_cores`.
            budget: the most tokens in a batch; see `make_batches`.
        """
        self._path = path
        self._pooling = tuple(pooling)
        self._threads = threads or count_cores()
        self._session = _open(path)
        # Looking for the operator's name is faster than parsing a graph with all its weights.
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            self._budget = 1 if any(content.find(name) >= 0 for name in _SCALED_TOGETHER) else budget
        self._inputs = self._find_inputs()
        self._output = self._find_output(task)
        self._task = self._find_task(task)

    @property
    def task(self) -> Task:
        """Whether the graph outputs vectors, logits of texts, or logits of tokens."""
        return self._task

    @property
    def pooled(self) -> bool:
        """Whether the graph itself outputs one vector per text."""
        return self._output in _VECTORS

    def run(self, ids: Tokens, type_ids: Tokens | None = None) -> Iterator[Answer]:
        """Yield positions in `ids` with their outputs; longest texts first.

        Outputs are vectors [texts, hidden], logits [texts, labels], or the logits of tokens [texts, tokens, labels].

        Vectors are pooled but not normalised. The order depends only on the lengths. If the caller stops iterating or
        is interrupted, running computations stop at their next operator.

        Args:
            ids: int64 [tokens] for each text, at least one token, including special tokens.
            type_ids: the same shapes: which of two texts a token belongs to; None means 0 everywhere.
        """
        from onnxruntime import RunOptions

        options = RunOptions()
        batches = make_batches([len(one) for one in ids], self._budget)
        waiting: deque[Future[Answer]] = deque()
        pool_of_threads = ThreadPoolExecutor(self._threads, "inference")
        try:
            jobs = (pool_of_threads.submit(self._run_batch, batch, ids, type_ids, options) for batch in batches)
            waiting.extend(islice(jobs, self._threads * _WAITING_PER_THREAD))
            while waiting:
                answer = waiting.popleft().result()
                waiting.extend(islice(jobs, 1))
                yield answer
        finally:
            options.terminate = True
            pool_of_threads.shutdown(cancel_futures=True)

    def _run_batch(self, batch: NDArray[np.intp], ids: Tokens, type_ids: Tokens | None, options: Any) -> Answer:
        tokens = np.stack([ids[position] for position in batch]).astype(np.int64, copy=False)
        mask = np.ones_like(tokens)
        feeds = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        if type_ids is not None:
            feeds["token_type_ids"] = np.stack([type_ids[position] for position in batch]).astype(np.int64, copy=False)
        (found,) = self._compute({name: feeds[name] for name in self._inputs}, options)
        values = np.asarray(found, np.float32)
        self._check_shape(values.shape, tokens.shape)
        if self._output not in _HIDDEN:
            return batch, values
        return batch, np.concatenate([pool(values, mask, method) for method in self._pooling], axis=1)

    def _check_shape(self, found: tuple[int, ...], tokens: tuple[int, ...]) -> None:
        """Refuse outputs of tokens that are not [texts, tokens, values], and other outputs that are not
        [texts, values].
        """
        is_of_tokens = self._output in _HIDDEN or self._task == "token_classification"
        leading = tokens if is_of_tokens else tokens[:1]
        if len(found) != len(leading) + 1 or found[:-1] != leading:
            meant = ", ".join([*map(str, leading), "hidden" if self._output in _HIDDEN else "values"])
            raise DataError(
                f"{self._path}: is not an encoder: for input_ids of shape {list(tokens)}, its output {self._output} "
                f"has shape {list(found)}, not [{meant}]"
            )

    def _compute(self, feeds: dict[str, NDArray[np.int64]], options: Any) -> Sequence[NDArray[Any]]:
        try:
            found: Sequence[NDArray[Any]] = self._session.run([self._output], feeds, options)
        except Exception as error:  # ONNX Runtime's exception classes have no common base but Exception
            self._refuse_id(feeds["input_ids"], error)
            tokens = feeds["input_ids"].shape[1]
            reason = _find_positions(tokens, error) or _shorten(error)
            raise RagevalError(f"{self._path}: cannot read a text of {tokens} tokens: {reason}") from error
        return found

    def _refuse_id(self, ids: NDArray[np.int64], error: Exception) -> None:
        """Raise a DataError if a token id without an embedding caused the error.

        ONNX Runtime reports missing positions in the same words; those are never far above the number of tokens.
        """
        found = _OUT_OF_BOUNDS.search(str(error))
        if found and int(found[1]) > ids.shape[1] + _FIRST_POSITION and (ids == int(found[1])).any():
            raise DataError(
                f"{self._path}: the tokenizer does not match the model: it gives the id {found[1]}, but the model "
                f"only knows ids below {int(found[2]) + 1}"
            ) from error

    def _find_inputs(self) -> list[str]:
        inputs = {one.name: one.type for one in self._session.get_inputs()}
        known = {"input_ids", "attention_mask", "token_type_ids"}
        if "input_ids" not in inputs or not inputs.keys() <= known:
            self._refuse("inputs", inputs, "input_ids, and optionally attention_mask and token_type_ids")
        if set(inputs.values()) != {"tensor(int64)"}:
            raise DataError(f"{self._path}: is not an encoder of tokens: its inputs are {inputs}, not all int64")
        return list(inputs)

    def _find_output(self, task: str | None) -> str:
        outputs = {one.name: one.type for one in self._session.get_outputs()}
        logits = (*_LOGITS, *_TOKEN_LOGITS) if task == "classification" else (*_TOKEN_LOGITS, *_LOGITS)
        known = (*_VECTORS, *_HIDDEN, *logits)
        for name in known if task in (None, "embedding") else (*logits, *known):
            if name in outputs:
                return name
        expected = ", ".join((*_VECTORS, *_HIDDEN, *_LOGITS))
        return self._refuse("outputs", outputs, f"{expected} or {_TOKEN_LOGITS[0]}")

    def _find_task(self, task: Task | None) -> Task:
        """The task that the output serves; `logits` of three axes are those of tokens."""
        if self._output in _TOKEN_LOGITS:
            return "token_classification"
        if self._output not in _LOGITS:
            return "embedding"
        axes = next(len(one.shape or ()) for one in self._session.get_outputs() if one.name == self._output)
        if not axes:
            return "token_classification" if task == "token_classification" else "classification"
        return "token_classification" if axes == _TOKEN_AXES else "classification"

    def _refuse(self, kind: str, found: dict[str, str], wanted: str) -> str:
        raise DataError(
            f"{self._path}: is not an encoder: its {kind} are {', '.join(found) or 'empty'}; expected {wanted}"
        )


def count_cores() -> int:
    """The number of cores that this process may use, at least 1: the lower of its affinity and its cgroup's quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    return max(1, min(cores, *_read_limits(Path("/sys/fs/cgroup"))))


def _read_limits(folder: Path) -> Iterator[int]:
    """The CPU quotas of cgroup versions 2 and 1 in cores, rounded up."""
    for quota, period in (
        _read_words(folder / "cpu.max"),
        (*_read_words(folder / "cpu" / "cpu.cfs_quota_us")[:1], *_read_words(folder / "cpu" / "cpu.cfs_period_us")[:1]),
    ):
        if quota.isdigit() and period.isdigit() and int(period):
            yield -(-int(quota) // int(period))
    yield 1 << 30


def _read_words(path: Path) -> tuple[str, str]:
    try:
        words = path.read_text().split()
    except OSError:
        words = []
    return (*words, "", "")[0], (*words, "", "")[1]


@cache
def multiplies_exactly() -> bool:
    """Whether ONNX Runtime's products of uint8 and int8 are exact on this processor: it tries one that may saturate."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.full((_PROBED_WIDTH, _PROBED_WIDTH), 127, np.int8), "weight")
    source = helper.make_tensor_value_info("source", TensorProto.UINT8, ["rows", _PROBED_WIDTH])
    product = helper.make_tensor_value_info("product", TensorProto.INT32, ["rows", _PROBED_WIDTH])
    node = helper.make_node("MatMulInteger", ["source", "weight"], ["product"])
    graph = helper.make_graph([node], "probe", [source], [product], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = _FATAL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    sources = (np.full((rows, _PROBED_WIDTH), 255, np.uint8) for rows in _PROBED_ROWS)
    return all((session.run(None, {"source": one})[0] == 255 * 127 * _PROBED_WIDTH).all() for one in sources)


def _open(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The arena hands memory from one thread to another, whose core does not have it in its cache. `malloc` gives a
    # thread its own memory back, which saves a fifth of the time with two threads, and more with an int8 graph.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = _FATAL
    if is_quantized(path) and not multiplies_exactly():
        options.add_session_config_entry(*_EXACT_PRODUCTS)

    def start(graph: Path | bytes) -> Any:
        return onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOW_FUSIONS
        )

    try:
        return start(path)
    except Exception as error:  # ONNX Runtime's exception classes have no common base but Exception
        # ONNX Runtime makes int8 weights uint8 for exact products, but fails if several products share one.
        from onnx_from_checkpoints import read_unsigned

        with suppress(Exception):
            if unsigned := read_unsigned(path):
                options.add_session_config_entry(_FOLDER_OF_WEIGHTS, str(path.parent))
                return start(unsigned)
        if not path.is_file():
            raise DataError(f"{path}: no such file") from error
        with translated():
            names = find_external_data(path) or ()
        for name in names:
            if not (path.parent / name).is_file():
                lost = f"its weights are in {name}, which is missing from its folder"
                raise DataError(f"{path}: {lost}; {say_fetch(path)}") from error
        raise DataError(f"{path}: is damaged or not an ONNX model ({_shorten(error)}); {say_fetch(path)}") from error


def _find_positions(tokens: int, error: Exception) -> str:
    """What the error means if a position without an embedding caused it; empty if something else did."""
    found = _OUT_OF_BOUNDS.search(str(error))
    if not found or int(found[1]) > tokens + _FIRST_POSITION:
        return ""
    return f"the model has {int(found[2]) + 1} positions, of which the first may be reserved; set a lower 'max_length'"


def _shorten(error: Exception) -> str:
    """ONNX Runtime's message without the error code and the path."""
    message = str(error).strip() or type(error).__name__
    return message.splitlines()[0].rpartition("failed:")[2].rpartition(" : ")[2].strip()


_SMALLEST_COUNT = 1e-9
"""What a count of tokens is divided by at least, so that a text without tokens gets zeros."""


def pool(hidden: Hidden, mask: Mask, method: str) -> Vectors:
    """A vector of each text: [texts, hidden].

    Args:
        hidden: the vectors of the tokens, float32 [texts, tokens, hidden].
        mask: [texts, tokens], 0 for tokens that do not count.
        method: `mean`; `mean_sqrt_len_tokens`, the sum over the root of the count; `weightedmean`, weights growing
            1, 2, 3, ... along the text; `max`; `cls`, the first token that counts; `lasttoken`, the last one.
    """
    if method not in _POOLINGS:
        raise UsageError(f"there is no pooling '{method}'; the poolings are: {', '.join(_POOLINGS)}")
    counts, rows = mask != 0, np.arange(len(hidden))
    if method in ("cls", "lasttoken"):
        place = counts.argmax(axis=1) if method == "cls" else mask.shape[1] - 1 - counts[:, ::-1].argmax(axis=1)
        return np.asarray(hidden[rows, place])
    if method == "max":
        return np.asarray(np.where(counts[:, :, None], hidden, np.float32(-np.inf)).max(axis=1))
    weights = mask.astype(np.float32)
    if method == "weightedmean":
        weights = weights * np.arange(1, mask.shape[1] + 1, dtype=np.float32)
    # Added up in the order of the tokens: in a BLAS the order would depend on the number of threads.
    added = (hidden * weights[:, :, None]).sum(axis=1)
    total = np.maximum(weights.sum(axis=1, keepdims=True), np.float32(_SMALLEST_COUNT))
    return np.asarray(added / (np.sqrt(total) if method == "mean_sqrt_len_tokens" else total))


_POOLINGS = ("cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean")
