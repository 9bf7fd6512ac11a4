from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onnx_from_checkpoints.configuration import read_configuration
from onnx_from_checkpoints.weights import read_weights
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference.hub import fetch, find_published_name
from rageval_spec.inference.model_files import Location, find_hub_cache, find_marker, find_source, locate, translated
from tests.inference.hub_server import COMMIT, Hub, files_of, serve
from tests.onnx_from_checkpoints.folders import (
    DENSE,
    POOLING,
    TRANSFORMER,
    write_cross_encoder,
    write_encoder,
    write_json,
)

MODEL = "owner/small-model"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = files_of(write_encoder(tmp_path / "published"))
    files |= {"pytorch_model.bin": b"pickle", "README.md": b"# model", "onnx/model_O3.onnx": b"other", "a/b/c.txt": b""}
    with serve(Hub(MODEL, files)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def test_only_needed_files_are_downloaded_and_the_commit_is_pinned(hub: Hub) -> None:
    location = fetch(MODEL)
    assert (location.kind, location.name, location.revision) == ("hub", MODEL, COMMIT)
    assert sorted(hub.fetched) == [
        "1_Pooling/config.json",
        "config.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "tokenizer.json",
    ]
    assert location.folder is not None
    assert location.folder.is_relative_to(find_hub_cache())
    assert (location.folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_downloaded_files_are_found_without_the_hub(hub: Hub) -> None:
    assert locate(MODEL, Path()).folder is None
    fetched = fetch(MODEL)
    hub.status = 503
    asked = len(hub.headers)
    for revision in (None, "main", COMMIT):
        location = locate(MODEL, Path(), revision)
        assert location == fetched
        source = find_source(location)
        assert source is not None
        assert source.weights == ("model.safetensors",)
    assert locate(MODEL, Path(), "v2").folder is None
    assert len(hub.headers) == asked


def test_a_snapshot_that_lacks_files_is_completed(hub: Hub) -> None:
    folder = fetch(MODEL).folder
    assert folder is not None
    (folder / "model.safetensors").unlink()
    location = locate(MODEL, Path())
    assert find_source(location) is None
    assert find_source(fetch(MODEL)) is not None


def write_part(hub: Hub, *names: str) -> Path:
    """Simulate a partial download by another program: some files of a snapshot, at the Hub's commit."""
    repository = find_hub_cache() / "models--owner--small-model"
    for name in names:
        path = repository / "snapshots" / COMMIT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(hub.files[name])
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    return repository / "snapshots" / COMMIT


BARE = ("config.json", "model.safetensors", "tokenizer.json")


def test_a_partial_download_of_another_program_is_completed_at_its_commit(hub: Hub) -> None:
    folder = write_part(hub, *BARE)
    assert find_source(locate(MODEL, Path())) is None
    hub.revisions = (COMMIT,)
    assert fetch(MODEL).folder == folder
    assert sorted(hub.fetched) == ["1_Pooling/config.json", "modules.json", "sentence_bert_config.json"]
    source = find_source(locate(MODEL, Path()))
    assert source is not None
    assert "1_Pooling/config.json" in source.configuration


def test_modules_without_their_files_are_completed(hub: Hub) -> None:
    write_part(hub, *BARE, "modules.json")
    assert find_source(locate(MODEL, Path())) is None
    assert find_source(fetch(MODEL)) is not None


@pytest.mark.parametrize(("weights", "whole"), [("model.safetensors", True), ("pytorch_model.bin", True), ("x", False)])
def test_a_layer_without_its_weights_makes_a_model_incomplete(hub: Hub, weights: str, whole: bool) -> None:
    folder = write_part(hub, *BARE)
    write_json(folder / "modules.json", [TRANSFORMER, POOLING, DENSE])
    for name in ("1_Pooling", "2_Dense"):
        write_json(folder / name / "config.json", {})
    (folder / "2_Dense" / weights).write_bytes(b"")
    assert (find_source(locate(MODEL, Path())) is not None) is whole


def test_files_that_the_hub_does_not_have_are_remembered(hub: Hub) -> None:
    hub.files = {name: hub.files[name] for name in BARE}
    source = find_source(fetch(MODEL))
    assert source is not None
    assert "modules.json" not in source.configuration


def test_a_module_that_was_published_without_its_files_is_reported(hub: Hub) -> None:
    hub.files = {name: hub.files[name] for name in (*BARE, "modules.json")}
    location = fetch(MODEL)
    assert find_source(location) is not None
    assert location.folder is not None
    with (
        pytest.raises(DataError, match=r"1_Pooling/config\.json: is missing, but modules\.json names its folder"),
        translated(),
    ):
        read_configuration(location.folder)


def test_an_incomplete_model_is_refused_offline(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_part(hub, *BARE)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        RagevalError,
        match=r"only partly on this machine: .* without modules\.json, .*HF_HUB_OFFLINE is set; unset HF_HUB_OFFLINE",
    ):
        fetch(MODEL)
    find_marker(folder, "modules.json").parent.mkdir(parents=True)
    find_marker(folder, "modules.json").touch()
    assert find_source(locate(MODEL, Path())) is not None


def test_a_classifier_needs_no_modules(hub: Hub, tmp_path: Path) -> None:
    hub.files = files_of(write_cross_encoder(tmp_path / "cross"))
    write_part(hub, *BARE)
    assert find_source(locate(MODEL, Path())) is not None


def test_a_named_file_is_downloaded_instead_of_the_weights(hub: Hub) -> None:
    source = find_source(fetch(MODEL, file="onnx/model_O3.onnx"), "onnx/model_O3.onnx")
    assert source is not None
    assert source.weights == ("onnx/model_O3.onnx",)
    assert "model.safetensors" not in hub.fetched
    with pytest.raises(UsageError, match=r"has no file 'onnx/model_O9\.onnx'; did you mean 'onnx/model_O3\.onnx'"):
        fetch(MODEL, file="onnx/model_O9.onnx")


def test_all_files_of_sharded_weights_are_downloaded(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model-00002-of-00002.safetensors").write_bytes(b"second")
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    write_json(folder / "model.safetensors.index.json", {"weight_map": shards})
    hub.files = files_of(folder)
    source = find_source(fetch(MODEL))
    assert source is not None
    assert source.weights == ("model.safetensors.index.json", *shards.values())


def test_for_a_damaged_file_in_the_cache_the_folder_to_delete_is_named(hub: Hub) -> None:
    folder = fetch(MODEL).folder
    assert folder is not None
    weights = folder / "model.safetensors"
    weights.unlink()
    weights.write_bytes(b"half")
    advice = r"delete the folder .*models--owner--small-model and run again, which downloads it again"
    with pytest.raises(DataError, match=advice), translated():
        read_weights([weights])


def test_no_token_is_sent_unless_one_is_set(hub: Hub) -> None:
    fetch(MODEL)
    assert not any("authorization" in map(str.lower, headers) for headers in hub.headers)


def test_a_model_that_does_not_exist(hub: Hub) -> None:
    with pytest.raises(
        UsageError, match="there is no folder 'owner/other', and the Hugging Face Hub has no such model"
    ):
        fetch("owner/other")


def test_a_revision_that_does_not_exist(hub: Hub) -> None:
    with pytest.raises(UsageError, match="'owner/small-model' on the Hugging Face Hub has no revision 'v9'"):
        fetch(MODEL, "v9")


def test_a_repository_without_usable_weights(hub: Hub) -> None:
    hub.files = {"config.json": b"{}", "tokenizer.json": b"{}", "pytorch_model.bin": b"pickle"}
    with pytest.raises(UsageError, match=r"only in pytorch_model.bin.*`use: sentence_transformers`"):
        fetch(MODEL)


def test_without_a_network_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(
        RagevalError,
        match=r"cannot download '.*' from the .* Hub: .*there is no folder '.*`hf download owner.*`model: minilm`",
    ):
        fetch(MODEL)


def test_the_embedded_model_is_not_suggested_instead_of_one_that_reads_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for model in ("cross-encoder/nli-deberta-v3-small", "owner/bge-reranker-base", "owner/roberta-large-mnli"):
        with pytest.raises(RagevalError, match="hf download") as caught:
            fetch(model)
        assert "minilm`" not in str(caught.value)


def test_downloads_work_with_any_http_client(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    for client in ("httpx", "httpx2"):
        monkeypatch.setitem(sys.modules, client, None)
    assert fetch(MODEL).revision == COMMIT
    hub.status = 503
    with pytest.raises(RagevalError, match=r"cannot download '.*' from the Hugging Face Hub"):
        fetch(MODEL)


def test_no_progress_bar_is_drawn(hub: Hub, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    fetch(MODEL)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_is_honoured(hub: Hub, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(RagevalError, match=r"is not on this machine, and HF_HUB_OFFLINE is set; .*`hf download"):
        fetch(MODEL)
    assert not hub.headers


def test_a_cache_that_cannot_be_written(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "hf").write_text("a file where the cache should be")
    with pytest.raises(RagevalError, match=r"cannot write to .*set HF_HOME to another folder"):
        fetch(MODEL)


@pytest.mark.parametrize(
    ("location", "revision", "name"),
    [
        (Location("hub", "a/b", None), None, "a/b"),
        (Location("hub", "a/b", None), "main", "a/b"),
        (Location("hub", "a/b", None), "old", "a/b@old"),
        (Location("embedded", "minilm", Path("/somewhere/model")), None, None),
        (Location("folder", "x", Path("/data/models/a/b")), None, "a/b"),
        (Location("folder", "x", Path("/hf/models--a--b--c/snapshots/0123")), None, "a/b--c"),
    ],
)
def test_the_published_name_is_the_id_or_what_the_folder_suggests(
    location: Location, revision: str | None, name: str | None
) -> None:
    assert find_published_name(location, revision) == name
