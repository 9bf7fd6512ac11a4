from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from safetensors.numpy import save_file

from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference.checkpoint_errors import CheckpointError, DamagedFile, UnsupportedModel
from rageval_spec.inference.encoder import load_encoder
from rageval_spec.inference.exports import export_model, provide_graph
from rageval_spec.inference.graph import find_architecture
from rageval_spec.inference.pairing import find_reply_ids
from rageval_spec.inference.session import Session
from rageval_spec.inference.sources import find_missing, find_source, list_external_data, locate
from rageval_spec.inference.tensors import read_weights
from rageval_spec.inference.tokens import measure_unread
from rageval_spec.inference.translation import find_hub_cache, say_fetch, translated
from rageval_spec.plugin import Context
from tests.inference.folders import DENSE, POOLING, TRANSFORMER, write_encoder, write_json


def find_error(function: Callable[..., Any], *arguments: Any) -> RagevalError:
    """The error that a call ends with, as a user sees it."""
    with pytest.raises(RagevalError) as caught, translated():
        function(*arguments)
    return caught.value


def fail(error: Exception) -> None:
    raise error


def test_a_model_that_is_not_supported_is_an_error_of_use() -> None:
    error = find_error(find_architecture, {"model_type": "gpt2"})
    assert type(error) is UsageError
    assert isinstance(error.__cause__, UnsupportedModel)
    assert str(error) == str(error.__cause__)


def test_a_damaged_file_is_an_error_of_data(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"half")
    error = find_error(read_weights, [path])
    assert type(error) is DataError
    assert isinstance(error.__cause__, DamagedFile)
    assert str(error) == f"{path}: is damaged or truncated (it has only 4 bytes); download it again"


def test_a_file_of_the_hubs_cache_is_downloaded_again_after_its_folder_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--owner--name"
    path = repository / "snapshots" / "0" / "model.safetensors"
    path.parent.mkdir(parents=True)
    save_file({"x": np.array([np.nan], np.float32)}, path)
    error = find_error(read_weights([path]).__getitem__, "x")
    advice = f"delete the folder {repository} and run again, which downloads it again"
    assert say_fetch(path) == advice
    assert str(error) == f"{path}: 'x' holds NaN or infinity; {advice}"


def test_a_damaged_file_that_says_what_to_do_gets_no_other_advice(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert str(find_error(read_weights, [path])) == (
        f"{path}: is only a pointer of Git LFS; run `git lfs pull` in its folder"
    )


@pytest.mark.parametrize("kind", CheckpointError.__subclasses__())
def test_every_kind_of_error_is_translated(kind: type[CheckpointError]) -> None:
    assert str(find_error(fail, kind("the words"))) == "the words"


@pytest.mark.parametrize("error", [DataError("ours"), OSError("of the system"), KeyError("x"), struct.error()])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, translated():
        fail(error)
    assert caught.value is error


def test_where_the_hubs_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert find_hub_cache() == Path.home() / ".cache" / "huggingface" / "hub"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert find_hub_cache() == Path("/x/huggingface/hub")
    monkeypatch.setenv("HF_HOME", "/h")
    assert find_hub_cache() == Path("/h/hub")
    monkeypatch.setenv("HF_HUB_CACHE", "/c")
    assert find_hub_cache() == Path("/c")


def find_damaged_modules(folder: Path) -> None:
    (folder / "modules.json").write_text("{")
    find_missing(folder)


def find_damaged_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    find_missing(folder)


def list_data_outside(folder: Path) -> None:
    write_graph_with_data(folder / "model.onnx", "../secret")
    list_external_data(folder, "model.onnx")


def open_graph_with_data_outside(folder: Path) -> None:
    write_graph_with_data(folder / "model.onnx", "../secret")
    Session(folder / "model.onnx")


def measure_with_damaged_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    measure_unread(folder, ["tokenizer.json"], ["привет"])


def find_replies_with_damaged_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    find_reply_ids(folder, ["tokenizer.json"], {"yes": "1"})


def export_damaged_vocabulary(folder: Path) -> None:
    write_encoder(folder)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_bytes(b"\xff\n")
    source = find_source(locate(str(folder), Path()))
    assert source is not None
    export_model(source, source.read_configuration(), folder / "out", "fp32", Context("m").fingerprint)


def load_damaged_dense_layer(folder: Path) -> None:
    write_encoder(folder)
    write_json(folder / "modules.json", [TRANSFORMER, POOLING, DENSE])
    write_json(folder / "2_Dense" / "config.json", {"in_features": 8, "out_features": 3, "bias": True})
    values = {"linear.weight": np.full((3, 8), np.inf, np.float32), "linear.bias": np.zeros(3, np.float32)}
    save_file(values, folder / "2_Dense" / "model.safetensors")
    source = find_source(locate(str(folder), Path()))
    assert source is not None
    configuration = source.read_configuration()
    graph = provide_graph(source, configuration, "fp32", Context("m").fingerprint)
    load_encoder(source, configuration, graph, 1)


def write_graph_with_data(path: Path, location: str) -> None:
    """A graph whose one constant is in another file."""
    constant = onnx.TensorProto(name="c", dims=[1], data_type=1, data_location=onnx.TensorProto.EXTERNAL)
    constant.external_data.add(key="location", value=location)
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    node = helper.make_node("Identity", ["c"], ["y"])
    onnx.save_model(helper.make_model(helper.make_graph([node], "g", [], [output], [constant])), path)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (find_damaged_modules, r"modules\.json:1: is not JSON"),
        (find_damaged_config, r"config\.json:1: is not JSON"),
        (list_data_outside, r"model\.onnx: has weights in '\.\./secret', which is outside of its folder"),
        (open_graph_with_data_outside, r"model\.onnx: has weights in '\.\./secret', which is outside of its folder"),
        (measure_with_damaged_tokenizer, r"tokenizer\.json: is not a tokenizer"),
        (find_replies_with_damaged_tokenizer, r"tokenizer\.json: is not a tokenizer"),
        (export_damaged_vocabulary, r"vocab\.txt: cannot be read as a vocabulary"),
        (
            load_damaged_dense_layer,
            r"2_Dense/model\.safetensors: 'linear\.weight' holds NaN or infinity; ",
        ),
    ],
)
def test_wherever_a_model_is_read_its_damaged_files_are_errors_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], None], message: str
) -> None:
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(DataError, match=message):
        read(folder)
