""""""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from onnx_from_checkpoints.architectures.bert import FAMILIES
from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.weights import Weights, read_weights
from tests.onnx_from_checkpoints.models import HIDDEN, make_config, make_weights

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

    def read(self, *names: str, more: Mapping[str, NDArray[Any]] | None = None) -> Weights:
        weights = Weights({**self.tensors, **(more or {})}, "words")
        for name in names:
            weights.read(name, 2)
        return weights

    def test_an_unread_tensor_of_a_layer_is_named(self) -> None:
        with pytest.raises(
            DamagedFile, match=r"the weights have 'model\.layers\.0\.norm', which nothing in a model with this"
        ):
            self.read("words").refuse_unread()

    def test_an_unread_tensor_of_a_head_is_named(self) -> None:
        weights = self.read("words", "layers.0.norm", more={"head.bias": np.ones(2)})
        with pytest.raises(
            DamagedFile, match=r"the weights have 'head\.bias', which nothing .* without it, its numbers"
        ):
            weights.refuse_unread()

    def test_of_many_the_first_are_named(self) -> None:
        weights = self.read("words", "layers.0.norm", more={f"cls.{name}": np.ones(2) for name in "edcba"})
        with pytest.raises(DamagedFile, match=r"have 'cls\.a', 'cls\.b', 'cls\.c' and 2 more, which .* without them"):
            weights.refuse_unread()

    def test_what_is_read_and_computed_angles_are_not_refused(self) -> None:
        weights = self.read("words", "layers.0.norm", more={"model.layers.0.places": np.arange(2)})
        weights.refuse_unread()
        assert weights.has("layers.0.norm")
        assert not weights.has("layers.1.norm")


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_that_an_adapter_added_to_a_layer_is_refused(kind: str) -> None:
    config = make_config(kind)
    weights = make_weights(config)
    query = next(name for name in weights if "layer.1." in name and name.endswith(".weight"))
    added = query.replace(".weight", ".lora_A.weight")
    with pytest.raises(DamagedFile, match=re.escape(f"the weights have '{added}', which nothing in a model with this")):
        build_graph(config, weights | {added: np.ones((2, HIDDEN), np.float32)})


def test_a_tensor_that_is_passed_over_is_not_opened() -> None:
    class Opened(dict[str, NDArray[Any]]):
        def __getitem__(self, name: str) -> NDArray[Any]:
            assert name != "model.pooler.weight"
            return super().__getitem__(name)

    weights = Weights(Opened({"model.words": np.ones(2), "model.pooler.weight": np.ones(2)}), "words")
    weights.read("words", 2)
    weights.pass_over("pooler.")
    weights.refuse_unread()


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


TWO = {"a": ("F32", [2], [0, 8]), "b": ("F32", [2], [8, 16])}


def write(path: Path, entries: dict[str, Any], size: int = 16) -> Path:
    """A safetensors file with these entries and so many bytes of zeros."""
    keys = ("dtype", "shape", "data_offsets")
    named = {
        name: dict(zip(keys, one, strict=False)) if isinstance(one, tuple) else one for name, one in entries.items()
    }
    text = json.dumps(named).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
    return path


def test_tensors_are_read_as_they_were_written(tmp_path: Path) -> None:
    arrays = {
        "x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "one": np.array(3, np.float32),
        "none": np.zeros((0, 2), np.float32),
    }
    save_file(arrays, tmp_path / "m.safetensors", {"format": "pt"})
    found = read_weights([tmp_path / "m.safetensors"])
    assert sorted(found) == ["none", "one", "x"]
    assert len(found) == 3
    assert found.count_bytes() == 28
    for name, values in arrays.items():
        assert found[name].shape == values.shape
        assert (found[name] == values).all()
    assert found.get("y") is None


def test_large_files_are_read_again_after_their_pages_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnx_from_checkpoints.weights._MOST_MAPPED", 1)
    arrays = {name: np.full((64, 64), number, np.float32) for number, name in enumerate("abc")}
    save_file(arrays, tmp_path / "m.safetensors")
    found = read_weights([tmp_path / "m.safetensors"])
    kept = [found[name] for name in "abcab"]
    assert [int(values[5, 5]) for values in kept] == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("entries", "size", "message"),
    [
        (TWO, 15, "'b' ends at byte .*, but the file has only"),
        (TWO, 20, "the last 4 bytes belong to no tensor"),
        ({**TWO, "b": ("F32", [2], [4, 12])}, 16, "'b' overlaps 'a'"),
        ({**TWO, "b": ("F32", [1], [12, 16])}, 16, "4 bytes before 'b' belong to no tensor"),
        ({**TWO, "b": ("F32", [3], [8, 16])}, 16, r"'b' needs 12 bytes for F32 \[3\], but has 8"),
        ({**TWO, "b": ("F32", [-2], [8, 16])}, 16, "'b' needs a dtype, a shape and two data_offsets"),
        ({**TWO, "b": ("F32", [2], [8])}, 16, "'b' needs a dtype, a shape and two data_offsets"),
        ({**TWO, "b": 7}, 16, "'b' needs a dtype, a shape and two data_offsets"),
        ({**TWO, "b": ("F32", [True], [8, 16])}, 16, "'b' needs a dtype, a shape and two data_offsets"),
    ],
)
def test_tensors_that_do_not_fit_the_file(tmp_path: Path, entries: dict[str, Any], size: int, message: str) -> None:
    path = write(tmp_path / "m.safetensors", entries, size)
    with pytest.raises(
        DamagedFile, match=rf"m\.safetensors: is damaged or truncated \({message}.*\); download it again"
    ):
        read_weights([path])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has only 0 bytes"),
        (b"\x01\x00", "it has only 2 bytes"),
        (struct.pack("<Q", 500) + b"{}", "its header should have 500 bytes, but only 2 follow"),
        (struct.pack("<Q", 1 << 62) + b"{}", "its header should have 4611686018427387904 bytes"),
        (struct.pack("<Q", 2) + b"[]", "its header is not a JSON object"),
        (struct.pack("<Q", 2) + b"{x", "its header is not a JSON object"),
        (struct.pack("<Q", 2) + b"\xff\xfe", "its header is not a JSON object"),
        (struct.pack("<Q", 13) + b'{"a":1,"a":2}', "its header has 'a' twice"),
    ],
)
def test_damaged_headers(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=rf"m\.safetensors: is damaged or truncated \({message}"):
        read_weights([path])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_nan_and_infinity_are_refused_when_the_tensor_is_read(tmp_path: Path, value: float, kind: Any) -> None:
    values = np.ones(7, kind)
    values[5] = value
    save_file({"layer.weight": values, "good": np.ones(2, np.float32)}, tmp_path / "m.safetensors")
    found = read_weights([tmp_path / "m.safetensors"])
    assert found["good"].tolist() == [1, 1]
    with pytest.raises(DamagedFile, match=r"m\.safetensors: 'layer\.weight' holds NaN or infinity; download it again"):
        found["layer.weight"]


def test_a_type_that_is_not_supported(tmp_path: Path) -> None:
    path = write(tmp_path / "m.safetensors", {"x": ("F8_E4M3", [16], [0, 16])})
    with pytest.raises(DamagedFile, match=r"m\.safetensors: 'x' is of type F8_E4M3, which is not supported"):
        read_weights([path])["x"]


def test_a_name_in_two_files(tmp_path: Path) -> None:
    for name in ("1", "2"):
        save_file({"x": np.ones(2, np.float32)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(DamagedFile, match=r"2\.safetensors: has the tensor 'x', which is also in .*1\.safetensors"):
        read_weights([tmp_path / "1.safetensors", tmp_path / "2.safetensors"])


def test_an_index_that_names_tensors_which_are_not_there(tmp_path: Path) -> None:
    files = [tmp_path / "1.safetensors", tmp_path / "2.safetensors"]
    for name, path in zip("xy", files, strict=True):
        save_file({name: np.ones(2, np.float32)}, path)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "1.safetensors", "y": "2.safetensors"}}))
    assert sorted(read_weights(files, index)) == ["x", "y"]
    for wrong in ({"z": "1.safetensors"}, {"y": "1.safetensors"}):
        index.write_text(json.dumps({"weight_map": wrong}))
        with pytest.raises(
            DamagedFile, match=r"index\.json: says that 1\.safetensors has the tensor '[zy]', but it has"
        ):
            read_weights(files, index)


def test_a_missing_shard_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match=r"absent\.safetensors: cannot be read: No such file .*; download it again"):
        read_weights([tmp_path / "absent.safetensors"])


def test_a_pointer_of_git_lfs_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(DamagedFile, match=r"m\.safetensors: is only a pointer of Git LFS; run `git lfs pull` in its"):
        read_weights([path])
