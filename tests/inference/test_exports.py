from __future__ import annotations

import errno
import os
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from safetensors.numpy import save_file

import onnx_from_checkpoints
from onnx_from_checkpoints.architectures import bert
from onnx_from_checkpoints.configuration import read_configuration
from onnx_from_checkpoints.weights import read_weights
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference import exports
from rageval_spec.inference.exports import CachedModel, Precision, export_model, list_cached, provide_graph
from rageval_spec.inference.model_files import ModelFiles, find_source, locate
from rageval_spec.inference.session import Session
from rageval_spec.inference.tokens import Text, load_tokenizer
from rageval_spec.plugin import Context
from rageval_spec.store import disk
from tests.onnx_from_checkpoints.e5s1_files import write_e5s1
from tests.onnx_from_checkpoints.folders import BERT, bert_weights, write_encoder, write_json
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden

FINGERPRINT = Context("m").fingerprint
TOKENS = [np.array([2, 4, 5, 3])]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def source(tmp_path: Path) -> ModelFiles:
    return source_of(write_encoder(tmp_path / "small"))


def source_of(folder: Path) -> ModelFiles:
    found = find_source(locate(str(folder), Path()))
    assert found is not None
    return found


def provide(source: ModelFiles, precision: Precision = "fp32") -> Path:
    return provide_graph(source, read_configuration(source.folder), precision, FINGERPRINT)


def vectors_of(path: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    return next(Session(path).run(TOKENS))[1]


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets one entry for each graph that is built."""
    built: list[int] = []
    build: Callable[..., onnx.ModelProto] = onnx_from_checkpoints.build_graph

    def count(*arguments: Any, **keys: Any) -> onnx.ModelProto:
        built.append(1)
        return build(*arguments, **keys)

    monkeypatch.setattr(onnx_from_checkpoints, "build_graph", count)
    return built


def test_a_graph_is_built_once(source: ModelFiles, builds: list[int], cache: Path) -> None:
    first = provide(source)
    assert provide(source) == first
    assert first.is_relative_to(cache)
    assert len(builds) == 1
    assert vectors_of(first).shape == (1, 8)


def test_other_weights_or_builders_give_another_graph(
    source: ModelFiles, builds: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = provide(source)
    second = provide(source_of(write_encoder(tmp_path / "other", seed=1)))
    same = provide(source_of(write_encoder(tmp_path / "copy")))
    monkeypatch.setattr(bert, "VERSION", "next")
    third = provide(source)
    assert same == first
    assert len({first, second, third}) == len(builds) == 3


def test_int8_is_made_once(source: ModelFiles, builds: list[int]) -> None:
    small = provide(source, "int8")
    assert provide(source, "int8") == small
    assert len(builds) == 1
    assert [path.name for path in sorted(small.parent.iterdir())] == ["manifest.json", "model.onnx"]
    whole = provide(source)
    assert small != whole
    assert np.allclose(vectors_of(small), vectors_of(whole), atol=0.2)
    assert not np.array_equal(vectors_of(small), vectors_of(whole))


def test_a_models_own_graph_is_used_in_place(source: ModelFiles, builds: list[int], cache: Path) -> None:
    own = source.folder / "onnx" / "model.onnx"
    own.parent.mkdir()
    own.write_bytes(provide(source).read_bytes())
    theirs = find_source(locate(str(source.folder), Path()), graph="repository")
    assert theirs is not None
    assert provide(theirs) == own
    assert provide(theirs, "int8").is_relative_to(cache)
    assert len(builds) == 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "manifest"])
def test_a_damaged_file_is_rebuilt(source: ModelFiles, builds: list[int], damage: str) -> None:
    path = provide(source)
    content = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(content[:-100])
        case "flipped":
            path.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
        case "gone":
            path.unlink()
        case "manifest":
            (path.parent / "manifest.json").write_text("{")
    assert provide(source) == path
    assert path.read_bytes() == content
    assert len(builds) == 2
    assert [entry.name for entry in path.parent.parent.iterdir()] == [path.parent.name]


def test_a_failed_build_leaves_nothing_behind(source: ModelFiles, cache: Path) -> None:
    (source.folder / "model.safetensors").write_bytes(b"\x10")
    with pytest.raises(DataError, match=r"model\.safetensors: is damaged or truncated \(.*\); download it again"):
        provide(source)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("size", [0, 7, 100, 3000])
def test_truncated_weights(source: ModelFiles, size: int) -> None:
    path = source.folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DataError, match="is damaged or truncated"):
        provide(source)


def test_weights_that_do_not_match_the_configuration(source: ModelFiles) -> None:
    write_json(source.folder / "config.json", {**BERT, "hidden_size": 16})
    with pytest.raises(DataError, match="small: "):
        provide(source)


def test_a_model_that_cannot_be_built(source: ModelFiles) -> None:
    write_json(source.folder / "config.json", {**BERT, "model_type": "llama"})
    with pytest.raises(UsageError, match=r"small: .*llama"):
        provide(source)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_cache_that_cannot_be_written(source: ModelFiles, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*arguments: Any, **keys: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(onnx, "save_model", fail)
    with pytest.raises(RagevalError, match=f"cannot write to .*models: {os.strerror(number)}; set RAGEVAL_CACHE to"):
        provide(source)


def test_a_cache_that_is_a_file(source: ModelFiles, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(RagevalError, match="set RAGEVAL_CACHE to another folder"):
        provide(source)


def test_concurrent_builds_agree(source: ModelFiles) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: provide(source), range(16)))
    assert len(paths) == 1
    assert [entry.name for entry in paths.pop().parent.parent.iterdir()] == [provide(source).parent.name]


def test_leftovers_of_a_killed_process_are_removed(source: ModelFiles, cache: Path) -> None:
    old, new = cache / ".old.part", cache / ".new.part"
    for folder in (old, new):
        (folder / "inside").mkdir(parents=True)
    os.utime(old, (0, time.time() - disk.ABANDONED_AFTER - 60))
    provide(source)
    assert (old.exists(), new.exists()) == (False, True)


def test_large_weights_are_written_to_a_separate_file(
    source: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = vectors_of(provide(source))
    monkeypatch.setattr(exports, "MOST_BYTES_IN_ONE_FILE", 100)
    monkeypatch.setattr("onnx_from_checkpoints.onnx_files.EXTERNAL_FROM", 0)
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "large"))
    path = provide(source)
    assert {entry.name for entry in path.parent.iterdir()} == {"model.onnx", "model.onnx_data", "manifest.json"}
    assert np.array_equal(vectors_of(path), expected)
    exported = export_model(source, read_configuration(source.folder), tmp_path / "out", "fp32", FINGERPRINT)
    assert vectors_of(exported) == pytest.approx(expected, abs=1e-6)
    assert source_of(tmp_path / "out").weights == ("onnx/model.onnx", "onnx/model.onnx_data")


def test_the_limit_counts_the_float32_bytes_that_are_written(
    source: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = {name: array.astype(np.float16) for name, array in bert_weights().items()}
    save_file(halves, source.folder / "model.safetensors")
    size = sum(array.nbytes for array in halves.values())
    monkeypatch.setattr(exports, "MOST_BYTES_IN_ONE_FILE", size * 3 // 2)
    monkeypatch.setattr("onnx_from_checkpoints.onnx_files.EXTERNAL_FROM", 0)
    assert (provide(source).parent / "model.onnx_data").is_file()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_an_export_accepts_padded_batches(source: ModelFiles, tmp_path: Path, precision: Precision) -> None:
    import onnxruntime

    path = export_model(source, read_configuration(source.folder), tmp_path / "out", precision, FINGERPRINT)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ids, mask = np.array([[2, 4, 5, 3], [2, 6, 3, 0]]), np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    assert {one.name for one in session.get_inputs()} == set(feeds)
    (together,) = session.run(None, feeds)
    for row, length in ((0, 4), (1, 3)):
        (alone,) = session.run(None, {name: array[row : row + 1, :length] for name, array in feeds.items()})
        assert together[row, :length] == pytest.approx(alone[0], abs=1e-6 if precision == "fp32" else 0.1)


@pytest.mark.parametrize("own", [False, True])
def test_an_export_in_int8_is_exact_in_other_programs(source: ModelFiles, tmp_path: Path, own: bool) -> None:
    import onnxruntime

    if own:
        graph = source.folder / "onnx" / "model.onnx"
        graph.parent.mkdir()
        graph.write_bytes(provide(source).read_bytes())
        source = source_of(source.folder)
    path = export_model(source, read_configuration(source.folder), tmp_path / "out", "int8", FINGERPRINT)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {"input_ids": TOKENS[0][None], "attention_mask": np.ones((1, 4), np.int64)}
    feeds["token_type_ids"] = np.zeros((1, 4), np.int64)
    (found,) = session.run(None, {one.name: feeds[one.name] for one in session.get_inputs()})
    assert found.mean(axis=1) == pytest.approx(vectors_of(provide(source, "int8")), abs=1e-6)


def test_an_e5s1_file_is_not_exported(tmp_path: Path) -> None:
    write_e5s1(path := tmp_path / "small-q4.bin")
    found = find_source(locate(str(path), Path()))
    assert found is not None
    with pytest.raises(UsageError, match=r"small-q4\.bin: cannot be exported: other programs"):
        export_model(found, found.read_configuration(), tmp_path / "out", "fp32", FINGERPRINT)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_an_export_is_a_folder_that_gives_the_same_vectors(
    source: ModelFiles, tmp_path: Path, precision: Precision
) -> None:
    target = tmp_path / "out" / "exported"
    path = export_model(source, read_configuration(source.folder), target, precision, FINGERPRINT)
    assert path == target / "onnx" / "model.onnx"
    exported = source_of(target)
    assert (exported.format, exported.weights) == ("onnx", ("onnx/model.onnx",))
    assert read_configuration(target).max_length == 12
    assert (target / "1_Pooling" / "config.json").is_file()
    assert vectors_of(path) == pytest.approx(vectors_of(provide(source, precision)), abs=1e-6)
    assert [entry.name for entry in target.parent.iterdir()] == ["exported"]


def test_an_export_overwrites_nothing(source: ModelFiles, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    export_model(source, read_configuration(source.folder), target, "fp32", FINGERPRINT)
    with pytest.raises(UsageError, match="out: already exists; name a new folder"):
        export_model(source, read_configuration(source.folder), target, "fp32", FINGERPRINT)


def test_an_export_that_cannot_be_written(source: ModelFiles, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RagevalError, match=r"cannot write to .*file: .*; name another folder"):
        export_model(source, read_configuration(source.folder), tmp_path / "file" / "out", "fp32", FINGERPRINT)


def test_an_export_says_which_file_of_the_model_cannot_be_read(source: ModelFiles, tmp_path: Path) -> None:
    lost = source.folder / source.tokenizer[0]
    lost.unlink()
    with pytest.raises(
        DataError, match=r"tokenizer\.json: cannot be read: No such file or directory; download it again"
    ):
        export_model(source, read_configuration(source.folder), tmp_path / "out", "fp32", FINGERPRINT)
    assert not (tmp_path / "out").exists()


def test_cached_models_are_listed(source: ModelFiles, cache: Path) -> None:
    assert list_cached() == ()
    small = provide(source, "int8")
    provide(source)
    (cache / "no-model").mkdir()
    found = list_cached()
    assert [(model.name, model.precision) for model in found] == [
        (str(source.folder), "fp32"),
        (str(source.folder), "int8"),
    ]
    assert found[1] == CachedModel(small.parent.name, str(source.folder), "int8", small.stat().st_size, small.parent)


def test_weights_of_every_type(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "f16": np.array([1, 2], np.float16),
        "f64": np.array([[1.5]], np.float64),
        "i64": np.array([7], np.int64),
        "flag": np.array([True, False]),
    }
    save_file(arrays, tmp_path / "a.safetensors")
    save_file(bert_weights(), tmp_path / "b.safetensors")
    found = read_weights([tmp_path / "a.safetensors", tmp_path / "b.safetensors"])
    for name, array in (arrays | bert_weights()).items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


def test_bfloat16_is_read_as_float32(tmp_path: Path) -> None:
    values = np.array([1.0, -2.5, 3.140625, 0.0], ml_dtypes.bfloat16)
    header = b'{"x":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + values.tobytes())
    found = read_weights([tmp_path / "a.safetensors"])["x"]
    assert found.dtype == np.float32
    assert found.tolist() == [[1.0, -2.5], [3.140625, 0.0]]


def test_an_export_has_a_tokenizer_json_if_the_model_had_only_a_vocabulary(source: ModelFiles, tmp_path: Path) -> None:
    (source.folder / "tokenizer.json").unlink()
    copy_golden("bert_cased", source.folder, config=BERT)
    old = source_of(source.folder)
    target = tmp_path / "exported"
    export_model(old, read_configuration(old.folder), target, "fp32", FINGERPRINT)
    exported = source_of(target)
    assert exported.tokenizer == ("tokenizer.json", "tokenizer_config.json", "vocab.txt")
    texts: list[Text] = ["The cat \u00e9\u4f60", ("a", "[SEP] B")]
    built, read = (load_tokenizer(one.folder, one.tokenizer, max_length=None).read(texts) for one in (old, exported))
    assert [one.tolist() for one in built.ids] == [one.tolist() for one in read.ids]
