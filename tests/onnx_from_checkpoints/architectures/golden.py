"""Golden models: tiny ones with random weights, with the outputs of transformers (`benches/tiny_models.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.weights import read_weights

FOLDER = Path(__file__).parent / "golden"
CLOSE = 1e-5
"""The largest difference to transformers, in units of the largest output if that is above 1."""

Ids = NDArray[np.int64]
Weights = dict[str, NDArray[Any]]


class Case(NamedTuple):
    """A batch: inputs by name [texts, tokens], the tokens whose outputs were kept if there is one each, and outputs."""

    inputs: dict[str, Ids]
    rows: Ids | None
    output: NDArray[np.float32]


REPLIES = {"t5-reply": (3, 20), "t5-tied-reply": (20, 3, 5)}
"""The ids of the words that stand for the labels, of models that write text."""


def list_goldens(*starts: str) -> list[str]:
    """The names of the models whose names begin with one of `starts`."""
    return sorted(path.name for path in FOLDER.iterdir() if path.name.startswith(starts))


def read_golden(name: str) -> tuple[dict[str, Any], Weights, list[Case]]:
    """config.json, the tensors by name, and the batches."""
    folder = FOLDER / name
    return (
        json.loads((folder / "config.json").read_text()),
        dict(read_weights([folder / "model.safetensors"])),
        list(_read_cases(folder / "expected.npz")),
    )


def _read_cases(path: Path) -> Iterator[Case]:
    with np.load(path) as arrays:
        for number in range(sum(name.startswith("output_") for name in arrays)):
            names = ("input_ids", "attention_mask", "token_type_ids")
            inputs = {
                name: arrays[f"{name}_{number}"].astype(np.int64) for name in names if f"{name}_{number}" in arrays
            }
            rows = arrays[f"rows_{number}"].astype(np.int64) if f"rows_{number}" in arrays else None
            yield Case(inputs, rows, arrays[f"output_{number}"])


def check_golden(name: str, **options: Any) -> None:
    """Assert that the graphs for texts without padding and for padded batches give transformers' outputs.

    `options` are keys of `build_graph`.
    """
    config, weights, cases = read_golden(name)
    alone = open_graph(build_graph(config, weights, **options))
    padded = open_graph(build_graph(config, weights, padded=True, **options))
    assert cases
    for case in cases:
        together = run(padded, case.inputs)
        for text, length in enumerate(case.inputs["attention_mask"].sum(axis=1)):
            inputs = {key: values[text : text + 1, :length] for key, values in case.inputs.items()}
            rows, expected = case.rows, case.output[text]
            by_itself, in_batch = run(alone, inputs)[0], together[text]
            if rows is not None:
                expected = expected[rows < length]
                rows = rows[rows < length]
                by_itself, in_batch = by_itself[rows], in_batch[rows]
            assert_close(by_itself, expected, f"{name}: text {text} of length {length}, by itself")
            assert_close(in_batch, expected, f"{name}: text {text} of length {length}, in a batch")


def assert_close(found: NDArray[Any], expected: NDArray[Any], where: str) -> None:
    """Assert that outputs agree within `CLOSE`."""
    assert found.shape == expected.shape, where
    allowed = CLOSE * max(1.0, float(np.abs(expected).max(initial=0)))
    assert np.abs(found - expected).max(initial=0) <= allowed, where


def open_graph(model: Any) -> onnxruntime.InferenceSession:
    """A session of a built graph."""
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def run(session: onnxruntime.InferenceSession, inputs: dict[str, Ids]) -> NDArray[np.float32]:
    """The output for a batch; inputs that the graph does not have are left out."""
    (found,) = session.run(None, {one.name: inputs[one.name] for one in session.get_inputs()})
    return np.asarray(found, np.float32)
